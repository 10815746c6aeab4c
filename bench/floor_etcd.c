/*
 * The floor (the least that a lock can cost) on etcd: the two transactions of a
 * pair (one acquire and its release), sent by hand, in one thread, with
 * holdfast's gRPC client (src/net/grpc) and with nghttp2 on a blocking socket.
 * Also measures Go's concurrency.Mutex, in separate processes: the environment
 * variable HOLDFAST_GO is the path of the program of tests/interop/etcd/peer,
 * HOLDFAST_ETCD that of an etcd server newer than Debian's.
 */
#include "../tests/lib/bare_core.h"
#include "../tests/lib/etcd_server.h"
#include "../tests/lib/loopback.h"
#include "backends/etcd/txn.h"
#include "net/grpc/grpc.h"
#include "peers.h"
#include "ratios.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "holdfast-floor"
#define VALUE "1\nhost\nlabel\n0\n1700000000000\n1700000000000"
#define TXN "/etcdserverpb.KV/Txn"
#define GRANT "/etcdserverpb.Lease/LeaseGrant"
enum { LIMIT_MS = 1500, LEASE_S = 60, MESSAGE = 4096 };

#define WATCHERS "\netcd_debugging_mvcc_watcher_total "
#define STREAMS "\netcd_debugging_mvcc_watch_stream_total "

static struct etcd_server server[2]; /* Debian's, and a current one */

struct floor {
    /* Sends the message, and waits for the answer. Returns 0 or -1. */
    int (*ask)(struct floor *, const char *path, const void *message);
    const uint8_t *answer;
    size_t answer_len;
    int64_t lease, guard; /* the id of the etcd lease; the revision of
                             guard_key */
    char key[64], guard_key[64];

    /* With holdfast's gRPC client. */
    struct net_endpoint peer;
    uint32_t tags;
    struct grpc g;
    struct grpc_call call;
    bool is_over;

    /* Without the gRPC client: a blocking socket and nghttp2. */
    int fd;
    nghttp2_session *session;
    uint8_t out[MESSAGE], in[MESSAGE];
    size_t out_len, in_len;
    bool is_closed;
};

static int port_of(const char *url)
{
    return atoi(strrchr(url, ':') + 1);
}

/* Returns the revision of the answer, or -1 if the request failed or the
 * condition of the transaction was false. */
static int64_t ask_txn(struct floor *f, const struct et_txn *t)
{
    Etcd__TxnAnswer *a;
    int64_t revision;

    if (f->ask(f, TXN, &t->m))
        return -1;
    a = etcd__txn_answer__unpack(NULL, f->answer_len, f->answer);
    if (!a)
        return -1;
    revision = a->succeeded ? a->header->revision : -1;
    etcd__txn_answer__free_unpacked(a, NULL);
    return revision;
}

static int64_t take_it(struct floor *f)
{
    static const char below[] = NAME "/", end[] = NAME "0";
    struct et_txn t;
    Etcd__Range *r;

    hf__et_txn(&t);
    hf__et_if_created(&t, f->key, strlen(f->key), 0);
    hf__et_if_changed(&t, f->guard_key, strlen(f->guard_key), f->guard);
    hf__et_put(&t, ET_THEN, f->key, strlen(f->key), VALUE, strlen(VALUE),
               f->lease);
    r = hf__et_range(&t, ET_THEN, below, strlen(below));
    r->range_end = (ProtobufCBinaryData){strlen(end), (uint8_t *)end};
    r->limit = 8;
    r->sort_order = ETCD__RANGE__ORDER__DESCEND;
    r->sort_target = ETCD__RANGE__TARGET__CREATE;
    hf__et_range(&t, ET_ELSE, f->key, strlen(f->key))->keys_only = false;
    hf__et_range(&t, ET_ELSE, f->guard_key, strlen(f->guard_key));
    return ask_txn(f, &t);
}

static int64_t drop_it(struct floor *f, int64_t revision)
{
    struct et_txn t;

    hf__et_txn(&t);
    hf__et_if_created(&t, f->key, strlen(f->key), revision);
    hf__et_delete(&t, ET_THEN, f->key, strlen(f->key));
    return ask_txn(f, &t);
}

static int step(void *arg)
{
    struct floor *f = arg;

    for (int i = 0; i < 1000; i++) {
        int64_t revision = take_it(f);

        if (revision < 0 || drop_it(f, revision) < 0) {
            fprintf(stderr, "etcd: a pair by hand has failed\n");
            return -1;
        }
    }
    return 0;
}

static double pairs(struct floor *f)
{
    Etcd__Grant grant = ETCD__GRANT__INIT;
    struct et_txn t;

    f->lease = cli_now_ns(CLOCK_REALTIME);
    grant.id = f->lease;
    grant.ttl = LEASE_S;
    snprintf(f->key, sizeof f->key, NAME "/%llx", (unsigned long long)f->lease);
    snprintf(f->guard_key, sizeof f->guard_key, "holdfast:client/%llx",
             (unsigned long long)f->lease);
    if (f->ask(f, GRANT, &grant))
        return -1;
    hf__et_txn(&t);
    hf__et_put(&t, ET_THEN, f->guard_key, strlen(f->guard_key), VALUE,
               strlen(VALUE), f->lease);
    f->guard = ask_txn(f, &t);
    return f->guard < 0 ? -1 : ns_per_pair(step, f);
}

static int over(struct grpc_call *c, hf__time at)
{
    struct floor *f = c->owner;

    (void)at;
    f->is_over = true;
    return 0;
}

static void down(struct grpc *g, int code, bool was_up, hf__time at)
{
    (void)g, (void)code, (void)was_up, (void)at;
}

static const struct grpc_method txn = {
    .path = TXN, .most = MESSAGE, .over = over};
static const struct grpc_method grant_it = {
    .path = GRANT, .most = MESSAGE, .over = over};

static void drive(struct floor *f)
{
    struct net_stream *s = &f->g.link.stream;
    struct pollfd p = {.fd = s->fd, .events = (short)watched};

    if (poll(&p, s->fd >= 0, s->fd >= 0 ? 1000 : 1) > 0)
        hf__grpc_ready(&f->g, s->tag, (uint32_t)p.revents, now());
    hf__grpc_advance(&f->g, now());
}

static int ask_grpc(struct floor *f, const char *path, const void *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *p;

    f->call.method = strcmp(path, TXN) == 0 ? &txn : &grant_it;
    p = hf__grpc_room(&f->call, len);
    if (!p)
        return -1;
    protobuf_c_message_pack(message, p);
    f->is_over = false;
    if (hf__grpc_start(&f->call, LIMIT_MS))
        return -1;
    hf__grpc_flush(&f->g);
    while (!f->is_over)
        drive(f);
    if (f->call.end != GRPC_ANSWERED || f->call.status) {
        fprintf(stderr, "etcd: %s: %s\n", path, f->call.text);
        return -1;
    }
    f->answer = hf__grpc_answer(&f->call, &f->answer_len);
    return 0;
}

static const struct grpc_header always = {"hasleader", "true"};

double floor_etcd_grpc(const char *url)
{
    static const struct grpc_owner owner = {.down = down};
    struct floor f = {.ask = ask_grpc};
    double ns = -1;

    f.peer.core = &core;
    if (hf__grpc_init(&f.g, &core, NULL, &owner, &f))
        return -1;
    f.g.link.peer = &f.peer;
    f.g.link.tags = &f.tags;
    f.g.link.lost = "ratios: lost it";
    f.g.link.connect_ms = f.g.link.silence_ms = f.g.link.pause_ms = 1000;
    f.g.headers = &always;
    f.g.headers_len = 1;
    f.g.ping_ms = 10000;
    add_address(&f.peer, port_of(url));
    hf__grpc_call_init(&f.call, &f.g, &txn, &f);
    hf__link_start(&f.g.link, now());
    for (int i = 0; i < 1000 && f.g.link.state != NET_UP; i++)
        drive(&f);
    if (f.g.link.state == NET_UP)
        ns = pairs(&f);
    else
        fprintf(stderr, "etcd: %s\n", f.g.link.text);
    hf__grpc_call_fini(&f.call);
    hf__grpc_fini(&f.g);
    hf__net_endpoint_fini(&f.peer);
    return ns;
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *buf,
                        size_t size, uint32_t *flags,
                        nghttp2_data_source *source, void *arg)
{
    struct floor *f = arg;

    (void)session, (void)id, (void)source;
    if (f->out_len > size)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    memcpy(buf, f->out, f->out_len);
    *flags = NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)f->out_len;
}

static int came(nghttp2_session *session, uint8_t flags, int32_t id,
                const uint8_t *p, size_t len, void *arg)
{
    struct floor *f = arg;

    (void)session, (void)flags, (void)id;
    if (len > sizeof f->in - f->in_len)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    memcpy(f->in + f->in_len, p, len);
    f->in_len += len;
    return 0;
}

static int closed(nghttp2_session *session, int32_t id, uint32_t error,
                  void *arg)
{
    struct floor *f = arg;

    (void)session, (void)id, (void)error;
    f->is_closed = true;
    return 0;
}

/* Writes all pending frames by one call. */
static int send_all(struct floor *f)
{
    uint8_t all[2 * MESSAGE];
    const uint8_t *p;
    size_t len = 0;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(f->session, &p)) > 0) {
        if ((size_t)n > sizeof all - len)
            return -1;
        memcpy(all + len, p, (size_t)n);
        len += (size_t)n;
    }
    return n < 0 || (len && send(f->fd, all, len, MSG_NOSIGNAL) < 0) ? -1 : 0;
}

static int receive(struct floor *f)
{
    uint8_t buf[16384];
    ssize_t n = recv(f->fd, buf, sizeof buf, 0);

    return n <= 0 || nghttp2_session_mem_recv(f->session, buf, (size_t)n) < 0
               ? -1
               : 0;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int ask_bare(struct floor *f, const char *path, const void *message)
{
    const nghttp2_nv nv[] = {header(":method", "POST"),
                             header(":scheme", "http"),
                             header(":path", path),
                             header(":authority", "localhost"),
                             header("content-type", "application/grpc"),
                             header("te", "trailers"),
                             header("grpc-timeout", "1500m"),
                             header(always.name, always.value)};
    nghttp2_data_provider out = {.read_callback = read_out};
    uint32_t len = (uint32_t)protobuf_c_message_get_packed_size(message);
    uint32_t be = htonl(len);

    f->out[0] = 0;
    memcpy(f->out + 1, &be, 4);
    protobuf_c_message_pack(message, f->out + 5);
    f->out_len = len + 5;
    f->in_len = 0;
    f->is_closed = false;
    if (nghttp2_submit_request(f->session, NULL, nv, sizeof nv / sizeof *nv,
                               &out, NULL) < 0 ||
        send_all(f) < 0)
        return -1;
    while (!f->is_closed)
        if (receive(f) < 0)
            return -1;
    f->answer = f->in + 5;
    f->answer_len = f->in_len - 5;
    return f->in_len < 5 ? -1 : 0;
}

static int connect_bare(struct floor *f, const char *url)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port_of(url))};
    nghttp2_settings_entry push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    nghttp2_session_callbacks *cb;
    nghttp2_option *option;
    int one = 1;

    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(f->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(f->fd, (struct sockaddr *)&in, sizeof in) < 0 ||
        nghttp2_session_callbacks_new(&cb) || nghttp2_option_new(&option))
        return -1;
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, came);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, closed);
    nghttp2_option_set_no_auto_ping_ack(option, 1);
    if (nghttp2_session_client_new2(&f->session, cb, f, option))
        return -1;
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(option);
    nghttp2_submit_settings(f->session, 0, &push, 1);
    return send_all(f);
}

double floor_etcd_bare(const char *url)
{
    struct floor f = {.ask = ask_bare};
    double ns = connect_bare(&f, url) < 0 ? -1 : pairs(&f);

    nghttp2_session_del(f.session);
    close(f.fd);
    return ns;
}

static double go(const char *url, int n)
{
    static struct peers peers[2];
    const char *program = getenv("HOLDFAST_GO");
    const char *const argv[] = {program, url + strlen("etcd://"), "30000",
                                NULL};

    if (!program) {
        fprintf(stderr, "ratios: HOLDFAST_GO is not set\n");
        return -1;
    }
    return peers_race(&peers[url == server[1].url], argv, n, RUN_MS);
}

double floor_go_pair(const char *url)
{
    return go(url, 1);
}

double floor_go_eight(const char *url)
{
    return go(url, PEERS);
}

enum { NAMES = 1000, WATCHED_MS = 6000 };

static hf_lock *locks[NAMES];

static hf_client *open_locks(const char *url)
{
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    char name[64];
    int rc = hf_open(url, NULL, &client, &err);

    options.flags = HF_OWNER_HANDLE;
    for (int i = 0; i < NAMES && rc == HF_OK; i++) {
        snprintf(name, sizeof name, "holdfast-many-%d", i);
        rc = hf_lock_new(client, name, HF_CSTRING, &options, &locks[i], &err);
    }
    if (rc != HF_OK)
        complain("many", rc, &err);
    return client;
}

static void close_locks(hf_client *client)
{
    for (int i = 0; i < NAMES; i++)
        hf_lock_free(locks[i]);
    hf_close(client);
}

static void ended(void *arg, hf_lock *lock, int result)
{
    (void)lock, (void)result;
    *(int *)arg += 1;
}

/* Waits for the locks of all names until the process is killed. */
static _Noreturn void wait_for_all(const char *url)
{
    hf_client *client = open_locks(url);
    struct pollfd pfd = {hf_client_fd(client), POLLIN, 0};
    hf_error err = HF_ERROR_INIT;
    int done = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < NAMES; i++)
        if (hf_lock_acquire_async(locks[i], NULL, ended, &done, &err))
            complain("many", HF_EINVAL, &err);
    while (done == 0) {
        poll(&pfd, 1, -1);
        hf_client_dispatch(client);
    }
    fprintf(stderr, "ratios: a wait has ended\n");
    _exit(1);
}

static double cpu_of(pid_t pid)
{
    struct timespec t = {0};
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(int ms)
{
    poll(NULL, 0, ms);
}

/* Waits until the server's count of watchers shows that the client waits for
 * all names, and then for three more seconds. */
static int wait_for_watchers(const struct etcd_server *s, double wanted)
{
    double seen = -1;

    for (int i = 0; i < 300 && seen < wanted; i++) {
        nap(100);
        seen = etcd_server_metric(s, WATCHERS);
    }
    if (seen < wanted)
        fprintf(stderr, "ratios: %.0f watchers of %.0f\n", seen, wanted);
    nap(3000);
    return seen < wanted ? -1 : 0;
}

/* Returns the processor time of the waiting client in per cent of a core. Sets
 * *streams to the number of the client's streams. */
static double watch_waiter(const struct etcd_server *s, double *streams)
{
    double before = etcd_server_metric(s, STREAMS), percent = -1, cpu;
    double watchers = etcd_server_metric(s, WATCHERS);
    pid_t pid = fork();

    if (pid == 0)
        wait_for_all(s->url);
    if (wait_for_watchers(s, watchers + NAMES) == 0) {
        cpu = cpu_of(pid);
        nap(WATCHED_MS);
        percent = (cpu_of(pid) - cpu) / (WATCHED_MS / 1000.0) * 100;
        *streams = etcd_server_metric(s, STREAMS) - before;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return percent;
}

static double many(const char *url, bool is_streams)
{
    static double percent = -1, streams = -1; /* one run measures both */
    hf_client *client;
    hf_error err = HF_ERROR_INIT;
    int rc = HF_OK;

    if (percent >= 0)
        return is_streams ? streams : percent;
    client = open_locks(url);
    for (int i = 0; i < NAMES && rc == HF_OK; i++)
        rc = hf_lock_acquire(locks[i], NULL, &err);
    if (rc == HF_OK)
        percent = watch_waiter(&server[0], &streams);
    else
        complain("many", rc, &err);
    close_locks(client);
    return is_streams ? streams : percent;
}

double etcd_many_cpu(const char *url)
{
    return many(url, false);
}

double etcd_many_streams(const char *url)
{
    return many(url, true);
}

int etcd_start(const char **url, const char **current)
{
    *url = server[0].url;
    *current = server[1].url;
    server[1].program = getenv("HOLDFAST_ETCD");
    return etcd_server_start(&server[0]) || etcd_server_start(&server[1]) ? -1
                                                                          : 0;
}

void etcd_end(void)
{
    for (int i = 0; i < 2; i++)
        etcd_server_end(&server[i]);
}
