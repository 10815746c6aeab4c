/* A stream with TLS, both ends in one thread on a pair of sockets, and how a
 * link tries the addresses of an endpoint. */
#include "../cases.h"
#include "net/link.h"
#include "net/tls.h"

#include <signal.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/epoll.h>

#include "../../lib/bare_core.h"
#include "../../lib/certs.h"
#include "../../lib/hole.h"
#include "../../lib/shm_dir.h"
#include "../../lib/wait.h"

#define WITH_TLS(fn) CASE_WITH(fn, begin, end, struct scene *t)

struct scene {
    char dir[64];
    SSL_CTX *ctx; /* the server's */
    SSL *server;
    int fd; /* the server's end */
    struct net_tls *tls;
    struct net_stream s;
};

static void path(const struct scene *t, const char *name, char to[128])
{
    snprintf(to, 128, "%s/%s", t->dir, name);
}

static int begin(void **state)
{
    struct scene *t = calloc(1, sizeof(*t));
    struct net_tls_files files = {0};
    char pem[128], key[128], ca[128];
    int fds[2];

    assert_non_null(t);
    assert_non_null(shm_dir_make(t->dir, sizeof(t->dir), "holdfast-net"));
    assert_int_equal(certs_make(t->dir), 0);
    path(t, "server.pem", pem);
    path(t, "server.key", key);
    path(t, "ca.pem", ca);
    files.cacert = ca;
    assert_int_equal(hf__tls_new(&core, NULL, &files, &t->tls), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                     0);
    hf__net_init(&t->s, &core, NULL);
    t->s.tls = t->tls;
    t->s.fd = fds[0];
    strcpy(t->s.host, "localhost");
    t->fd = fds[1];
    t->ctx = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_file(t->ctx, pem, 1), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(t->ctx, key, 1), 1);
    t->server = SSL_new(t->ctx);
    SSL_set_fd(t->server, t->fd);
    SSL_set_accept_state(t->server);
    t->s.shaking = true;
    assert_int_equal(hf__tls_begin(&t->s), 0);
    for (int i = 0; hf__net_go_on(&t->s) == HF__PENDING; i++) {
        assert_true(i < 10);
        SSL_do_handshake(t->server);
    }
    assert_int_equal(t->s.broken, 0);
    SSL_do_handshake(t->server);
    assert_true(SSL_is_init_finished(t->server));
    *state = t;
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"ca",        "server",  "client",
                                        "elsewhere", "expired", "stranger"};
    struct scene *t = *state;
    char file[128];

    hf__net_fini(&t->s);
    hf__tls_free(t->tls);
    SSL_free(t->server);
    SSL_CTX_free(t->ctx);
    if (t->fd >= 0)
        close(t->fd);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(file, sizeof(file), "%s/%s.pem", t->dir, names[i]);
        unlink(file);
        snprintf(file, sizeof(file), "%s/%s.key", t->dir, names[i]);
        unlink(file);
    }
    rmdir(t->dir);
    free(t);
    return 0;
}

static bool is_readable(const struct scene *t)
{
    struct pollfd p = {.fd = t->s.fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* Reads all that has arrived. No bytes may stay buffered inside TLS, where
 * poll() would not report them. */
static size_t read_all(struct scene *t, char *to)
{
    size_t len = 0;
    ssize_t n;

    while (is_readable(t)) {
        do {
            n = hf__net_read(&t->s, to + len, 1000);
            assert_true(n >= 0);
            len += (size_t)n;
        } while (t->s.more);
    }
    return len;
}

WITH_TLS(test_all_that_has_come_is_read)
{
    static char text[60000], got[sizeof(text) + 2000];

    for (int i = 0; i < 20; i++) /* records, all in one recv() */
        assert_int_equal(SSL_write(t->server, "abc", 3), 3);
    assert_int_equal(read_all(t, got), 60);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i % 251);
    assert_int_equal(SSL_write(t->server, text, sizeof(text)), sizeof(text));
    assert_int_equal(read_all(t, got), sizeof(text));
    assert_memory_equal(got, text, sizeof(text));
    assert_int_equal(hf__net_read(&t->s, got, 10), 0);
    assert_int_equal(t->s.broken, 0);
}

/* Writing to a closed connection must not raise SIGPIPE, which would end this
 * program. */
WITH_TLS(test_no_sigpipe)
{
    signal(SIGPIPE, SIG_DFL);
    close(t->fd);
    t->fd = -1;
    assert_int_equal(hf__net_reserve(&t->s, 10), 0);
    memcpy(t->s.out.data, "0123456789", 10);
    t->s.out.len = 10;
    hf__net_flush(&t->s);
    assert_int_equal(t->s.broken, EPIPE);
    assert_int_equal(t->s.written, 0);
    assert_string_equal(hf__net_why(&t->s), strerror(EPIPE));
}

/* The buffer grows and moves while a record is partly sent. */
WITH_TLS(test_what_is_stuck_goes_on)
{
    enum { PIECE = 100000, PIECES = 12 };
    static char got[PIECE * PIECES];
    size_t len = 0;
    int n;

    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(hf__net_reserve(&t->s, PIECE), 0);
        memset(t->s.out.data + t->s.out.len, 'a' + i, PIECE);
        t->s.out.len += PIECE;
        hf__net_flush(&t->s);
    }
    assert_int_equal(watched, EPOLLIN | EPOLLOUT);
    while (len < sizeof(got)) {
        n = SSL_read(t->server, got + len, (int)(sizeof(got) - len));
        if (n > 0)
            len += (size_t)n;
        else
            hf__net_flush(&t->s);
        assert_int_equal(t->s.broken, 0);
    }
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(got[i * PIECE], 'a' + i);
        assert_int_equal(got[(i + 1) * PIECE - 1], 'a' + i);
    }
    assert_int_equal(watched, EPOLLIN);
    assert_int_equal(t->s.written, sizeof(got));
}

WITH_TLS(test_an_end_is_found)
{
    char byte;

    assert_false(hf__net_is_over(&t->s)); /* only TLS tickets have arrived */
    SSL_shutdown(t->server);
    assert_true(hf__net_is_over(&t->s));
    assert_int_equal(hf__net_read(&t->s, &byte, 1), HF_EBACKEND);
    assert_true(t->s.closed);
}

/* After a reset, or when the server was killed, no TLS alert arrives. */
WITH_TLS(test_an_end_without_a_word)
{
    char byte;

    close(t->fd);
    t->fd = -1;
    assert_true(hf__net_is_over(&t->s));
    assert_int_equal(hf__net_read(&t->s, &byte, 1), HF_EBACKEND);
    assert_true(t->s.closed);
}

WITH_TLS(test_noise_in_between_is_refused)
{
    char byte;

    assert_int_equal(write(t->fd, "+OK\r\n+OK\r\n", 10), 10);
    assert_int_equal(hf__net_read(&t->s, &byte, 1), HF_EPROTO);
    assert_int_equal(t->s.code, HF_EPROTO);
}

/* Returns the result of a handshake with the server at an address that belongs
 * to `host`. */
static int open_as(struct scene *t, int listener, struct net_addr *a,
                   const char *host)
{
    struct net_stream s;
    SSL *server = SSL_new(t->ctx);
    int rc, fd;

    hf__net_init(&s, &core, NULL);
    s.tls = t->tls;
    snprintf(a->host, sizeof(a->host), "%s", host);
    rc = hf__net_open(&s, a, 1);
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    SSL_set_fd(server, fd);
    SSL_set_accept_state(server);
    for (int i = 0; rc == HF__PENDING; i++) {
        assert_true(i < 10);
        SSL_do_handshake(server);
        rc = hf__net_go_on(&s);
    }
    SSL_free(server);
    close(fd);
    hf__net_fini(&s);
    return rc;
}

/* The connections of a client share the TLS context, but not the host name. */
WITH_TLS(test_each_host_is_verified_by_its_name)
{
    struct net_endpoint e = {.core = &core};
    struct net_addr *a = &e.addr[0];
    char file[128];
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);

    path(t, "socket", file);
    assert_int_equal(hf__net_set_path(&e, file), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&a->sa, a->len), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(open_as(t, listener, a, "localhost"), 0);
    assert_int_equal(open_as(t, listener, a, "elsewhere.example"), HF_EAUTH);
    assert_int_equal(open_as(t, listener, a, "127.0.0.1"), 0);
    assert_int_equal(open_as(t, listener, a, "127.0.0.2"), HF_EAUTH);
    assert_int_equal(open_as(t, listener, a, ""), HF_EAUTH);
    close(listener);
    unlink(file);
}

/* Makes the server choose `protocol`, or refuse if it is NULL. */
static int choose(SSL *ssl, const unsigned char **out, unsigned char *len,
                  const unsigned char *in, unsigned in_len, void *protocol)
{
    if (!protocol)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = protocol;
    *len = (unsigned char)strlen(protocol);
    return SSL_TLSEXT_ERR_OK;
}

/* The server ignores ALPN, agrees, disagrees or refuses. */
WITH_TLS(test_protocol_is_agreed_on)
{
    struct net_endpoint e = {.core = &core};
    struct net_addr *a = &e.addr[0];
    char file[128], ca[128];
    struct net_tls_files files = {.cacert = ca, .alpn = "h2"};
    struct net_tls *plain = t->tls;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);

    path(t, "ca.pem", ca);
    path(t, "socket", file);
    assert_int_equal(hf__tls_new(&core, NULL, &files, &t->tls), 0);
    assert_int_equal(hf__net_set_path(&e, file), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&a->sa, a->len), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(open_as(t, listener, a, "localhost"), HF_EPROTO);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose, "h2");
    assert_int_equal(open_as(t, listener, a, "localhost"), 0);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose, "h3");
    assert_int_equal(open_as(t, listener, a, "localhost"), HF_EPROTO);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose, NULL);
    assert_int_equal(open_as(t, listener, a, "localhost"), HF_EPROTO);
    hf__tls_free(t->tls);
    t->tls = plain;
    assert_int_equal(open_as(t, listener, a, "localhost"), 0);
    close(listener);
    unlink(file);
}

static int option_of(const struct net_stream *s, int name)
{
    socklen_t len = sizeof(int);
    int value = 0;

    assert_int_equal(getsockopt(s->fd, IPPROTO_TCP, name, &value, &len), 0);
    return value;
}

/* Bytes that were sent are never acknowledged: the connection fails by
 * itself. */
CASE(test_packets_that_vanish)
{
    struct net_addr a = {.family = AF_INET, .len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *in = (struct sockaddr_in *)&a.sa;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, rc;
    struct pollfd p = {.events = POLLIN};
    struct net_stream s;
    int64_t began;
    char byte;

    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)in, a.len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)in, &a.len), 0);
    hf__net_init(&s, &core, NULL);
    rc = hf__net_open(&s, &a, 1);
    fd = accept(listener, NULL, NULL);
    if (rc == HF__PENDING)
        rc = hf__net_go_on(&s);
    assert_int_equal(rc, 0);
    assert_int_equal(option_of(&s, TCP_KEEPIDLE), 15);
    assert_int_equal(option_of(&s, TCP_KEEPINTVL), 5);
    hole_before(fd);
    assert_int_equal(hf__net_reserve(&s, 1), 0);
    s.out.data[s.out.len++] = 'x';
    began = wait_fair();
    hf__net_flush(&s);
    p.fd = s.fd;
    assert_int_equal(poll(&p, 1, WAIT_LONG_MS), 1);
    assert_true(wait_within(began, 5000));
    assert_int_equal(hf__net_read(&s, &byte, 1), HF_EBACKEND);
    assert_int_equal(s.broken, ETIMEDOUT);
    hf__net_fini(&s);
    close(fd);
    close(listener);
}

/* "nobody" has no address, "a" has two, other names have one. */
static struct hf__lookup *find_names(const char *hosts, bool here)
{
    static struct sockaddr sa = {.sa_family = AF_INET};
    static struct addrinfo last = {.ai_family = AF_INET,
                                   .ai_addrlen = sizeof(sa),
                                   .ai_addr = &sa},
                           first = {.ai_family = AF_INET,
                                    .ai_addrlen = sizeof(sa),
                                    .ai_addr = &sa,
                                    .ai_next = &last};
    struct hf__lookup *l = calloc(1, sizeof(*l));

    assert_non_null(l);
    assert_true(here);
    for (; hosts; hosts = strchr(hosts, ','), hosts = hosts ? hosts + 1 : NULL)
        l->list[l->len++] = hosts[0] == 'n'   ? NULL
                            : hosts[0] == 'a' ? &first
                                              : &last;
    return l;
}

static void leave_names(struct hf__lookup *l)
{
    free(l);
}

static const struct hf__core with_names = {.alloc = take,
                                           .free = give,
                                           .why = why,
                                           .lasts = why,
                                           .lookup = find_names,
                                           .lookup_leave = leave_names};

CASE(test_every_address_has_its_turn)
{
    struct net_endpoint e = {.core = &core, .len = 3};
    struct net_walk w = {0};
    hf__time longest = 0;

    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++) {
            assert_ptr_equal(hf__net_addr(&e, &w), &e.addr[i]);
            assert_int_equal(hf__net_next(&e, &w, false), i < 2);
        }
        longest = hf__net_pause(&e, &w, 1000, UINT32_MAX);
        assert_in_range(longest, 5 * HF__MS, (10 << round) * HF__MS);
    }
    for (int i = 0; i < 100; i++)
        longest = hf__net_pause(&e, &w, 1000, 499);
    assert_int_equal(longest, 999 * HF__MS);
    w = (struct net_walk){.at = 1};
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(hf__net_addr(&e, &w), &e.addr[(1 + i) % 3]);
        assert_int_equal(hf__net_next(&e, &w, false), i < 2);
    }
}

static struct net_addr addr_of(const char *where, int family, uint32_t last)
{
    struct net_addr a = {.family = family, .len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in in = {.sin_addr.s_addr = htonl(last)};

    snprintf(a.where, sizeof(a.where), "%s", where);
    if (family == AF_INET) {
        a.len = sizeof(in);
        memcpy(&a.sa, &in, sizeof(in));
    }
    return a;
}

CASE(test_there_are_others)
{
    struct net_endpoint e = {.len = 1};

    e.addr[0] = addr_of("a:1", AF_INET6, 1);
    assert_false(hf__net_has_others(&e));
    e.addr[e.len++] = addr_of("a:1", AF_INET, 1);
    e.addr[e.len++] = addr_of("a:1", AF_INET, 1);
    assert_false(hf__net_has_others(&e));
    e.addr[2] = addr_of("a:1", AF_INET, 2);
    assert_true(hf__net_has_others(&e));
    e.len = 2;
    e.addr[1] = addr_of("b:1", AF_INET, 1);
    assert_true(hf__net_has_others(&e));
}

CASE(test_set_from_outside)
{
    struct net_endpoint e = {.core = &with_names};
    struct hf__host two[] = {{"::1", 1}, {"other", 0}};

    assert_int_equal(hf__net_set_hosts(&e, two, 1, 65535), 0);
    assert_string_equal(e.hosts, "::1:1");
    assert_int_equal(hf__net_find(&e), 0);
    assert_string_equal(e.addr[0].where, "[::1]:1");
    assert_int_equal(hf__net_set_hosts(&e, two, 2, 65535), 0);
    assert_string_equal(e.hosts, "::1:1,other:65535");
    assert_int_equal(e.len, 1); /* the old address, until others are found */
    hf__net_endpoint_fini(&e);
}

/* The first address of each host comes first, then the second addresses. Each
 * address is verified against the name of its own host. */
CASE(test_address_knows_its_host)
{
    struct net_endpoint e = {.core = &with_names};
    struct hf__host three[] = {{"a", 1}, {"nobody", 0}, {"::2", 0}};
    struct net_walk w = {0};

    assert_int_equal(hf__net_set_hosts(&e, three, 2, 7), 0);
    assert_int_equal(hf__net_find(&e), 0);
    assert_int_equal(e.len, 2);
    assert_false(hf__net_next(&e, &w, true)); /* both are addresses of "a" */
    assert_int_equal(hf__net_set_hosts(&e, three, 3, 7), 0);
    assert_int_equal(hf__net_find(&e), 0);
    assert_int_equal(e.len, 3);
    assert_string_equal(e.addr[0].host, "a");
    assert_string_equal(e.addr[0].where, "a:1");
    assert_string_equal(e.addr[1].host, "::2");
    assert_string_equal(e.addr[1].where, "[::2]:7");
    assert_string_equal(e.addr[2].host, "a");
    w = (struct net_walk){0};
    assert_true(hf__net_next(&e, &w, true));
    assert_int_equal(w.at, 1);
    hf__net_endpoint_fini(&e);
}

static unsigned greets, downs;

static int greet(void *link, hf__time now)
{
    greets++;
    hf__link_up(link, now);
    return 0;
}

static void down(void *link, int code, bool was_up, hf__time now)
{
    assert_int_equal(code, HF_EBACKEND);
    downs += !was_up;
}

static const struct net_talk talk = {.greet = greet, .down = down};

/* The link tries two addresses in turn. No server listens at the first one. A
 * server listens at the second one only from the second try on. */
CASE(test_link_goes_over_the_addresses)
{
    struct net_endpoint e = {.core = &core};
    struct net_link l;
    struct net_addr absent;
    char dir[64], file[128];
    uint32_t tags = 0;
    hf__time now = HF__MS;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_non_null(shm_dir_make(dir, sizeof(dir), "holdfast-link"));
    snprintf(file, sizeof(file), "%s/absent", dir);
    assert_int_equal(hf__net_set_path(&e, file), 0);
    absent = e.addr[0];
    snprintf(file, sizeof(file), "%s/there", dir);
    assert_int_equal(hf__net_set_path(&e, file), 0);
    e.addr[1] = e.addr[0];
    e.addr[0] = absent;
    e.len = 2;
    hf__link_init(&l, &core, NULL);
    l.talk = &talk;
    l.owner = &l;
    l.peer = &e;
    l.tags = &tags;
    l.connect_ms = l.pause_ms = 100;
    hf__link_start(&l, now);
    hf__link_advance(&l, now);
    assert_int_equal(downs, 1);
    assert_string_equal(l.where, absent.where);
    assert_int_equal(hf__link_opened(&l), HF__PENDING);
    assert_true(hf__link_timeout(&l) == now); /* the next address, at once */
    hf__link_advance(&l, now);
    assert_int_equal(downs, 2);
    assert_string_equal(l.where, e.addr[1].where);
    assert_int_equal(hf__link_opened(&l), HF_EBACKEND);
    assert_int_equal(strncmp(l.text, file, strlen(file)), 0);
    assert_true(hf__link_timeout(&l) > now);
    assert_int_equal(
        bind(listener, (struct sockaddr *)&e.addr[1].sa, e.addr[1].len), 0);
    assert_int_equal(listen(listener, 2), 0);
    for (int i = 0; i < 2; i++) {
        now = hf__link_timeout(&l);
        hf__link_advance(&l, now);
    }
    assert_int_equal(downs, 3);
    assert_int_equal(greets, 1);
    assert_int_equal(tags, 4);
    assert_int_equal(hf__link_opened(&l), HF__DONE);
    /* The link was up for a moment: if the addresses are equivalent, it tries
     * the next one. */
    l.goes_round = true;
    e.addr[0] = e.addr[1];
    e.addr[1] = absent;
    l.walk.at = 0;
    hf__link_fail(&l, HF_EBACKEND, now);
    assert_true(hf__link_timeout(&l) > now);
    now = hf__link_timeout(&l);
    hf__link_advance(&l, now);
    assert_string_equal(l.where, absent.where);
    assert_true(hf__link_timeout(&l) == now);
    hf__link_advance(&l, now);
    assert_int_equal(greets, 2);
    hf__link_fini(&l);
    hf__net_endpoint_fini(&e);
    close(listener);
    unlink(file);
    rmdir(dir);
}

static size_t heard_bytes;
static unsigned heard_times;

static int hear(void *link, const char *bytes, size_t len, hf__time now)
{
    heard_bytes += len;
    heard_times++;
    return 0;
}

/* A link reads while the client's mutex is held. It therefore reads a part and
 * is due again at once, so that other threads run in between. In the meantime
 * the reply timeout does not start. */
CASE(test_link_reads_some_at_a_time)
{
    static const struct net_talk hears = {.data = hear, .down = down};
    static char much[400000];
    struct net_link l;
    int fds[2], size = 2 * (int)sizeof(much);
    hf__time now = HF__MS;
    unsigned turns = 0;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                     0);
    assert_int_equal(
        setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    size = (int)write(fds[1], much, sizeof(much));
    assert_true(size > 5 * 16384); /* more than one turn reads */
    hf__link_init(&l, &core, NULL);
    l.talk = &hears;
    l.owner = &l;
    l.silence_ms = 1;
    l.state = NET_UP;
    l.awaits = true;
    l.stream.fd = fds[0];
    l.stream.tag = 1;
    assert_true(hf__link_ready(&l, 1, EPOLLIN, now));
    assert_true(heard_bytes < (size_t)size);
    for (; l.stream.more; turns++) {
        unsigned before = heard_times;

        assert_true(hf__link_timeout(&l) == 0);
        now += 2 * HF__MS;
        hf__link_advance(&l, now);
        assert_in_range(heard_times - before, 1, 4);
    }
    assert_int_equal(heard_bytes, size);
    assert_true(turns > 0);
    assert_true(hf__link_timeout(&l) > now); /* it waits for an event again */
    hf__link_fini(&l);
    close(fds[1]);
}

CASES_MAIN(NULL, NULL);
