/* A connection to MySQL, tested without locks. Its server is a listening socket
 * of the test program, which sends what a case requires. */
#ifndef TESTS_MYSQL_FIXTURE_H
#define TESTS_MYSQL_FIXTURE_H

#include "../../cases.h"
#include "backends/mysql/conn.h"
#include "backends/mysql/login.h"
#include "backends/mysql/wire.h"
#include "net/tls.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../../../lib/bare_core.h"
#include "../../../lib/server_process.h"
#include "../../../lib/shm_dir.h"

#define SALT_TEXT "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24"
#define CAPS_SSL 0x0800u
#define CAPS_ALL 0xc1fff7ffu /* capabilities of the server, without TLS */
/* The capabilities that the client requests. They do not include compression,
 * LOCAL INFILE and FOUND_ROWS. */
#define CAPS_OURS 0x000ba208u

/* A statement that was sent. */
struct flight {
    struct my_sent sent;
    int number;
};

struct scene {
    char dir[64];
    int listener, server; /* -1: not connected */
    struct net_endpoint peer;
    uint32_t tags;
    struct my_login login;
    struct my_conn c;
    unsigned ups, downs;
    int down_code;
    int hello_statements;    /* number of statements in the hello */
    int code;                /* what answered() returns */
    char answers[512];       /* number of each answered statement, and its
                                answer */
    char lost[64], not [64]; /* numbers of the lost and of the unwritten
                                statements */
};

static inline void note_answer(struct scene *t, const char *fmt, ...)
{
    size_t len = strlen(t->answers);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(t->answers + len, sizeof(t->answers) - len, fmt, ap);
    va_end(ap);
}

static inline void note_rows(struct scene *t, const struct my_result *r)
{
    size_t rows = 0;

    for (const struct my_row *row = r->rows; row; row = row->next, rows++) {
        note_answer(t, "(");
        for (size_t i = 0; i < r->columns; i++) {
            const struct my_value *v = &row->value[i];

            assert_true(!v->text || v->text[v->len] == '\0');
            note_answer(t, "%s%s", i ? "," : "",
                        !v->text          ? "NULL"
                        : v->len > 20     ? "long"
                        : strlen(v->text) ? v->text
                                          : "''");
        }
        note_answer(t, ")");
    }
    assert_int_equal(rows, r->rows_len);
}

/* Appends the answer to t->answers, as a line such as
 *   1:done 5 7; (a,NULL)(b,''); error 1064 text
 * If t->code is set, appends nothing and ends the connection by returning that
 * code. */
static inline int answered(struct my_conn *c, const struct my_answer *a)
{
    const struct my_result *r = a->first;
    struct scene *t = c->owner;

    if (t->code)
        return t->code == HF_EPROTO
                   ? HF_EPROTO
                   : hf__link_why(&c->link, t->code, "as told");
    note_answer(t, "%d:", ((struct flight *)a->sent)->number);
    for (; r; r = r->next) {
        if (r->columns)
            note_rows(t, r);
        else if (!r->error)
            note_answer(t, "done %llu %llu", (unsigned long long)r->affected,
                        (unsigned long long)r->insert_id);
        if (r->error)
            note_answer(t, "error %u %s", r->error, r->text);
        note_answer(t, r->next ? "; " : "\n");
    }
    return 0;
}

static inline struct flight *submit(struct scene *t, int number)
{
    struct flight *a;

    hf__my_begin(&t->c);
    hf__my_sql(&t->c, "do %u", (uint64_t)number);
    a = hf__my_end(&t->c, answered);
    if (a)
        a->number = number;
    return a;
}

static inline int say_hello(struct my_conn *c, hf__time at)
{
    struct scene *t = c->owner;

    for (int i = 0; i < t->hello_statements; i++)
        if (!submit(t, 101 + i))
            return hf__link_why(&c->link, HF_ENOMEM, "out of memory");
    return 0;
}

static inline void up(struct my_conn *c, hf__time at)
{
    ((struct scene *)c->owner)->ups++;
}

static inline void down(struct my_conn *c, int code, bool was_up, hf__time at)
{
    struct scene *t = c->owner;
    uint64_t written = c->link.stream.written;
    const struct flight *a;
    size_t len = 0;

    t->downs++;
    t->down_code = code;
    assert_true(was_up || !c->sents.len);
    for (; (a = hf__sent_lost(&c->sents, written)); len++)
        t->lost[len % 60] = (char)('0' + a->number);
    for (len = 0; (a = hf__sent_unsent(&c->sents, written)); len++)
        t->not [len % 60] = (char)('0' + a->number);
}

static const struct my_owner owner = {say_hello, up, down};

static inline void set_up(struct scene *t)
{
    hf__my_conn_init(&t->c, &core, NULL, &owner, t, sizeof(struct flight));
    t->c.login = &t->login;
    t->c.link.peer = &t->peer;
    t->c.link.tags = &t->tags;
    t->c.link.lost = "lost";
    t->c.link.connect_ms = t->c.link.silence_ms = 1000;
    t->c.link.pause_ms = 100;
}

static inline int begin(void **state)
{
    struct scene *t = calloc(1, sizeof(*t));
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    assert_non_null(t);
    assert_non_null(shm_dir_make(t->dir, sizeof(t->dir), "holdfast-mysql"));
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", t->dir);
    t->peer.core = &core;
    assert_int_equal(hf__net_set_path(&t->peer, sa.sun_path), 0);
    t->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    t->server = -1;
    assert_int_equal(bind(t->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(t->listener, 8), 0);
    t->login = (struct my_login){"me", "secret", "locks", NULL};
    set_up(t);
    *state = t;
    return 0;
}

static inline int end(void **state)
{
    struct scene *t = *state;

    fail_in = 0;
    hf__my_conn_fini(&t->c);
    hf__net_endpoint_fini(&t->peer);
    hf__tls_free(t->login.tls);
    close(t->listener);
    if (t->server >= 0)
        close(t->server);
    server_dir_remove(t->dir);
    free(t);
    return 0;
}

static inline void connect_it(struct scene *t)
{
    t->answers[0] = '\0';
    hf__link_start(&t->c.link, clock_ns);
    clock_ns += 200 * HF__MS; /* longer than the pause before connecting */
    hf__link_advance(&t->c.link, clock_ns);
    if (t->server >= 0)
        close(t->server);
    t->server = accept(t->listener, NULL, NULL);
    assert_true(t->server >= 0);
}

/* Lets the connection read what the server has sent. */
static inline void turn(struct scene *t)
{
    hf__link_ready(&t->c.link, t->c.link.stream.tag, EPOLLIN, clock_ns);
    hf__link_advance(&t->c.link, clock_ns);
}

static inline void says_raw(struct scene *t, const void *bytes, size_t len)
{
    assert_int_equal(send(t->server, bytes, len, MSG_NOSIGNAL), len);
    turn(t);
}

/* Writes a packet to `to`; returns its length. */
static inline size_t packet(unsigned char *to, unsigned seq, const void *bytes,
                            size_t len)
{
    to[0] = (unsigned char)len;
    to[1] = (unsigned char)(len >> 8);
    to[2] = (unsigned char)(len >> 16);
    to[3] = (unsigned char)seq;
    memcpy(to + 4, bytes, len);
    return len + 4;
}

static inline void says(struct scene *t, unsigned seq, const void *bytes,
                        size_t len)
{
    unsigned char buf[4096];

    assert_true(len + 4 <= sizeof(buf));
    says_raw(t, buf, packet(buf, seq, bytes, len));
}
/* Sends a string constant, which may contain zero bytes. */
#define SAYS(t, seq, text) says(t, seq, text, sizeof(text) - 1)

/* Reads the next packet at the server into `to`; returns the length of its
 * payload. */
static inline size_t hears(struct scene *t, unsigned seq, char *to, size_t size)
{
    unsigned char head[4];
    size_t len;

    assert_int_equal(recv(t->server, head, 4, MSG_DONTWAIT), 4);
    assert_int_equal(head[3], seq);
    len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    assert_true(len < size);
    if (len)
        assert_int_equal(recv(t->server, to, len, MSG_DONTWAIT), len);
    to[len] = '\0';
    return len;
}

static inline bool hears_nothing(struct scene *t)
{
    char byte;

    return recv(t->server, &byte, 1, MSG_DONTWAIT) <= 0;
}

static inline size_t greeting(unsigned char *to, unsigned caps,
                              const char *version, const char *plugin)
{
    unsigned char body[256] = {10};
    size_t n = 1;

    strcpy((char *)body + n, version);
    n += strlen(version) + 1;
    memcpy(body + n, "\x2a\1\0\0", 4); /* connection id 298 */
    memcpy(body + n + 4, SALT_TEXT, 8);
    n += 13;
    body[n++] = (unsigned char)caps;
    body[n++] = (unsigned char)(caps >> 8);
    n += 3;
    body[n++] = (unsigned char)(caps >> 16);
    body[n++] = (unsigned char)(caps >> 24);
    body[n++] = 21;
    n += 10;
    memcpy(body + n, SALT_TEXT + 8, 13);
    n += 13;
    strcpy((char *)body + n, plugin);
    n += strlen(plugin) + 1;
    return packet(to, 0, body, n);
}

static inline void greets(struct scene *t, unsigned caps, const char *plugin)
{
    unsigned char buf[512];

    says_raw(t, buf, greeting(buf, caps, "8.0.46", plugin));
}

#define OK_PACKET "\0\0\0\2\0\0\0"

/* Connects and logs in. */
static inline void log_in(struct scene *t)
{
    char got[512];

    connect_it(t);
    greets(t, CAPS_ALL, "mysql_native_password");
    hears(t, 1, got, sizeof(got));
    SAYS(t, 2, OK_PACKET);
    assert_int_equal(t->downs, 0);
}

#endif
