/* A fake server speaks HTTP/2 as etcd does, knows nothing of locks, and sends
 * malformed or false replies to one or two kinds of call. */
#include "etcd_faults.h"

#include "../../lib/h2_frame.h"
#include "../../lib/proc.h"
#include "etcd.pb-c.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define STREAMS 4096
#define FRAME 16384 /* every HTTP/2 client accepts a frame of this length */

struct lie {
    const char *path; /* how the path of these calls ends */
    const char *data; /* the message, or NULL if the call fails */
    size_t len;
    int repeat;  /* how often the message is sent */
    bool is_raw; /* data is raw frames, not a message */
};

static struct liar {
    pthread_t thread;
    int listener, port;
    const struct lie *lie[2]; /* atomic; NULL if there is none */
    uint32_t stop;            /* atomic */
    uint32_t txns, watches;   /* atomic: number of calls received */
    int fd;
    nghttp2_session *http;
    int64_t lease, revision;
    char path[STREAMS][24]; /* how each stream's path ends */
    uint8_t body[STREAMS][1024];
    size_t len[STREAMS];
    bool is_begun[STREAMS];
} liar;

static void say(const void *data, size_t len)
{
    send(liar.fd, data, len, MSG_NOSIGNAL);
}

static void say_frame(uint8_t type, uint8_t flags, int32_t id,
                      const void *payload, size_t len)
{
    uint8_t head[H2_HEAD];

    h2_head(head, type, flags, id, len);
    say(head, sizeof(head));
    if (len)
        say(payload, len);
}

static void say_message(int32_t id, const void *data, size_t len, bool is_last)
{
    static const char head[] = "\x88\0\x0c"
                               "content-type\x10"
                               "application/grpc";
    static const char tail[] = "\0\x0b"
                               "grpc-status\1"
                               "0";
    uint8_t prefix[5] = {0, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                         (uint8_t)(len >> 8), (uint8_t)len};

    if (!liar.is_begun[id])
        say_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, head,
                  sizeof(head) - 1);
    liar.is_begun[id] = true;
    say_frame(NGHTTP2_DATA, 0, id, prefix, sizeof(prefix));
    for (size_t at = 0, some; at < len; at += some) {
        some = len - at < FRAME ? len - at : FRAME;
        say_frame(NGHTTP2_DATA, 0, id, (const char *)data + at, some);
    }
    if (is_last)
        say_frame(NGHTTP2_HEADERS,
                  NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id, tail,
                  sizeof(tail) - 1);
}

/* Fails the call, as a server that does not know the service does. */
static void say_failed(int32_t id)
{
    static const char only[] = "\x88\0\x0c"
                               "content-type\x10"
                               "application/grpc\0\x0b"
                               "grpc-status\2"
                               "12";

    say_frame(NGHTTP2_HEADERS,
              NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id, only,
              sizeof(only) - 1);
}

static void say_packed(int32_t id, const void *message, bool is_last)
{
    uint8_t data[256] = {0};
    size_t len = protobuf_c_message_pack(message, data);

    say_message(id, data, len, is_last);
}

/* Replies that every request of the transaction was executed, and that there is
 * no entry of another client. */
static void say_done(int32_t id, Etcd__Header *h)
{
    Etcd__TxnAnswer t = ETCD__TXN_ANSWER__INIT;
    Etcd__PutAnswer put = ETCD__PUT_ANSWER__INIT;
    Etcd__DeleteAnswer deleted = ETCD__DELETE_ANSWER__INIT;
    Etcd__RangeAnswer range = ETCD__RANGE_ANSWER__INIT;
    Etcd__OpAnswer op[8], *ops[8];
    Etcd__Txn *ask =
        etcd__txn__unpack(NULL, liar.len[id] - 5, liar.body[id] + 5);

    deleted.deleted = 1;
    for (size_t i = 0; ask && i < ask->n_success && i < 8; i++) {
        etcd__op_answer__init(&op[i]);
        ops[i] = &op[i];
        op[i].op_case = (Etcd__OpAnswer__OpCase)ask->success[i]->op_case;
        if (op[i].op_case == ETCD__OP_ANSWER__OP_PUT)
            op[i].put = &put;
        else if (op[i].op_case == ETCD__OP_ANSWER__OP_DELETE)
            op[i].delete_ = &deleted;
        else
            op[i].range = &range;
        t.n_responses++;
    }
    if (ask)
        etcd__txn__free_unpacked(ask, NULL);
    t.header = h;
    t.succeeded = true;
    t.responses = ops;
    say_packed(id, &t, true);
}

static bool is_about(int32_t id, const char *path)
{
    return strcmp(liar.path[id], path) == 0;
}

static void say_truth(int32_t id)
{
    Etcd__Header h = ETCD__HEADER__INIT;
    Etcd__GrantAnswer grant = ETCD__GRANT_ANSWER__INIT;
    Etcd__PutAnswer put = ETCD__PUT_ANSWER__INIT;
    Etcd__KeepAliveAnswer keep = ETCD__KEEP_ALIVE_ANSWER__INIT;
    Etcd__WatchAnswer created = ETCD__WATCH_ANSWER__INIT;
    Etcd__StatusAnswer status = ETCD__STATUS_ANSWER__INIT;
    Etcd__Grant *ask;

    h.revision = ++liar.revision;
    grant.header = put.header = keep.header = created.header = &h;
    if (is_about(id, "LeaseGrant")) {
        ask = etcd__grant__unpack(NULL, liar.len[id] - 5, liar.body[id] + 5);
        liar.lease = ask ? ask->id : 0;
        if (ask)
            etcd__grant__free_unpacked(ask, NULL);
        grant.id = liar.lease;
        grant.ttl = 3;
        say_packed(id, &grant, true);
    } else if (is_about(id, "Put") || is_about(id, "LeaseRevoke")) {
        say_packed(id, &put, true);
    } else if (is_about(id, "Status")) {
        status.version = (char *)"3.4.0";
        say_packed(id, &status, true);
    } else if (is_about(id, "LeaseKeepAlive")) {
        keep.id = liar.lease;
        keep.ttl = 3;
        say_packed(id, &keep, false);
    } else if (is_about(id, "Watch")) {
        created.watch_id = 1;
        created.created = true;
        say_packed(id, &created, false);
    } else {
        say_done(id, &h);
    }
}

static const struct lie *lie_about(int32_t id)
{
    for (int i = 0; i < 2; i++) {
        const struct lie *lie = __atomic_load_n(&liar.lie[i], __ATOMIC_ACQUIRE);

        if (lie && is_about(id, lie->path))
            return lie;
    }
    return NULL;
}

static void respond(int32_t id)
{
    const struct lie *lie = lie_about(id);
    bool is_stream = is_about(id, "LeaseKeepAlive") || is_about(id, "Watch");

    if (is_about(id, "Txn"))
        __atomic_add_fetch(&liar.txns, 1, __ATOMIC_RELAXED);
    if (is_about(id, "Watch") && !liar.is_begun[id])
        __atomic_add_fetch(&liar.watches, 1, __ATOMIC_RELAXED);
    if (!lie)
        say_truth(id);
    else if (!lie->data)
        say_failed(id);
    for (int i = 0; lie && i < lie->repeat; i++)
        if (lie->is_raw)
            say(lie->data, lie->len);
        else
            say_message(id, lie->data, lie->len, !is_stream);
}

static int on_header(nghttp2_session *http, const nghttp2_frame *f,
                     const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t len, uint8_t flags, void *arg)
{
    const char *end = memrchr(value, '/', len);

    if (name_len == 5 && !memcmp(name, ":path", 5) && end &&
        f->hd.stream_id < STREAMS)
        snprintf(liar.path[f->hd.stream_id], sizeof(liar.path[0]), "%.*s",
                 (int)(len - (size_t)(end + 1 - (char *)value)), end + 1);
    return 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t len, void *arg)
{
    for (size_t i = 0; i < len && id < STREAMS; i++)
        if (liar.len[id] < sizeof(liar.body[0]))
            liar.body[id][liar.len[id]++] = data[i];
    return 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *f, void *arg)
{
    if (f->hd.type == NGHTTP2_DATA && f->hd.stream_id < STREAMS)
        respond(f->hd.stream_id);
    return 0;
}

static void serve(void)
{
    static const nghttp2_settings_entry none[1];
    uint8_t buf[16384];
    const uint8_t *out;
    ssize_t n;

    nghttp2_submit_settings(liar.http, 0, none, 0);
    while (!__atomic_load_n(&liar.stop, __ATOMIC_ACQUIRE)) {
        struct pollfd p = {liar.fd, POLLIN, 0};

        while ((n = nghttp2_session_mem_send(liar.http, &out)) > 0)
            say(out, (size_t)n);
        if (poll(&p, 1, 20) <= 0)
            continue;
        n = recv(liar.fd, buf, sizeof(buf), 0);
        if (n <= 0 || nghttp2_session_mem_recv(liar.http, buf, (size_t)n) < 0)
            return;
    }
}

static void *run(void *arg)
{
    nghttp2_session_callbacks *cb;

    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    while (!__atomic_load_n(&liar.stop, __ATOMIC_ACQUIRE)) {
        struct pollfd p = {liar.listener, POLLIN, 0};

        if (poll(&p, 1, 20) <= 0)
            continue;
        liar.fd = accept(liar.listener, NULL, NULL);
        memset(liar.len, 0, sizeof(liar.len));
        memset(liar.is_begun, 0, sizeof(liar.is_begun));
        nghttp2_session_server_new(&liar.http, cb, NULL);
        serve();
        nghttp2_session_del(liar.http);
        close(liar.fd);
    }
    nghttp2_session_callbacks_del(cb);
    return arg;
}

static int begin(struct world *w)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);

    liar = (struct liar){.revision = 100};
    liar.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(liar.listener, (struct sockaddr *)&in, sizeof(in)) ||
        listen(liar.listener, 8) ||
        getsockname(liar.listener, (struct sockaddr *)&in, &len))
        return -1;
    liar.port = ntohs(in.sin_port);
    return pthread_create(&liar.thread, NULL, run, NULL);
}

static int end(struct world *w)
{
    world_close(w);
    __atomic_store_n(&liar.stop, 1, __ATOMIC_RELEASE);
    pthread_join(liar.thread, NULL);
    close(liar.listener);
    return 0;
}

GROUP("hostile", .begin = begin, .end = end);

static void lies(const struct lie *a, const struct lie *b)
{
    __atomic_store_n(&liar.lie[0], a, __ATOMIC_RELEASE);
    __atomic_store_n(&liar.lie[1], b, __ATOMIC_RELEASE);
}

static hf_lock *victim(struct world *w)
{
    return world_lock(w, text_of("etcd://127.0.0.1:%d", liar.port), 3000, 1000,
                      HF_FAIR);
}

/* Asserts that an acquire fails in time while the server gives the i-th false
 * reply, and succeeds once the server replies correctly. */
static void lies_in_vain(struct world *w, hf_lock *lock, size_t i)
{
    int64_t began = wait_fair();
    int rc = hf_lock_timed(lock, 700, &w->err);

    if (!rc || !wait_within(began, 700 + 1000))
        fail_msg("%zu: %d", i, rc);
    lies(NULL, NULL);
    COMES(hf_lock_timed(lock, 1000, NULL) == 0);
    OK(hf_lock_release(lock, NULL));
}

#define SAYS(path, text)                                                       \
    {                                                                          \
        path, text, sizeof(text) - 1, 1, false                                 \
    }
#define H "\x0a\x02\x18\x7f"       /* a header: revision 127 */
#define OLD "\x0a\x01\x6e\x10\x05" /* a key "n" with revision 5 */
/* A range that contains one entry with revision 5. */
#define BEFORE "\x1a\x0d\x0a\x0b\x12\x09\x0a\x05n/123\x10\x05"
#define EACH(all) for (size_t i = 0; i < sizeof(all) / sizeof(*(all)); i++)

/* hf_open() fails and creates no client. */
CASE(test_greeting_that_lies)
{
    static const struct lie all[] = {
        SAYS("LeaseGrant", "\xff\xff\xff\xff"),
        SAYS("LeaseGrant", ""),
        SAYS("LeaseGrant", H "\x10\x05"),
        SAYS("LeaseGrant", H "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        SAYS("LeaseGrant", H "\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        SAYS("LeaseGrant", "\x0a\x7f\x18\x03"),
        SAYS("Status", "\xff\xff\xff\xff"),
        SAYS("Status", "\x12\x7f"
                       "3.4"),
        SAYS("Put", ""),
        SAYS("Put", "\x0a\x00"),
        SAYS("Put", "\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        SAYS("Put", "\x12\x03xyz"),
        {"LeaseGrant", "\0\0\4\0\0\0\0\0\0HTTP", 13, 1, true},
        {"LeaseGrant", "\xff\xff\xff\0\0\0\0\0\1", 9, 1, true},
        {"LeaseGrant", "\0\0\1\0\0\0\0\0\1\0", 10, 50, true},
        {"LeaseGrant", "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 1, true},
        /* The headers of the reply never end. */
        {"LeaseGrant", "\0\0\2\1\0\0\0\0\1\0\0\0\0\2\x09\0\0\0\0\1\0\0", 22, 1,
         true},
    };
    char url[64];

    snprintf(url, sizeof(url), "etcd://127.0.0.1:%d", liar.port);
    EACH(all)
    {
        hf_client *c = NULL;
        int64_t began = wait_fair();
        int rc;

        lies(&all[i], NULL);
        rc = hf_open(url, CLIENT(.connect_timeout_ms = 500), &c, &w->err);
        if (rc != HF_EPROTO && rc != HF_EBACKEND)
            fail_msg("%zu: %d: %s", i, rc, w->err.text);
        assert_true(wait_within(began, 500 + 1000));
        assert_null(c);
    }
    lies(NULL, NULL);
    world_free_for_all(w, victim(w));
}

CASE(test_server_that_is_too_old)
{
    static const struct lie old[] = {SAYS("Status", H "\x12\x06"
                                                      "3.3.27"),
                                     SAYS("Status", "\x12\x05"
                                                    "2.3.8")};
    static const struct lie fit[] = {SAYS("Status", H "\x12\x05"
                                                      "3.4.0"),
                                     SAYS("Status", "\x12\x06"
                                                    "3.10.0"),
                                     SAYS("Status", "\x12\x05"
                                                    "4.0.1"),
                                     SAYS("Status", "\x12\x03"
                                                    "git"),
                                     SAYS("Status", H)};
    hf_client *c = NULL;
    const char *url = text_of("etcd://127.0.0.1:%d", liar.port);

    EACH(old)
    {
        lies(&old[i], NULL);
        EXPECT(HF_EBACKEND, hf_open(url, NULL, &c, &w->err));
        if (w->err.may_pass ||
            !strstr(w->err.text, i ? "etcd 2.3.8 is" : "etcd 3.3.27 is") ||
            !strstr(w->err.text, "too old: use etcd 3.4 or later"))
            fail_msg("%zu: %s", i, w->err.text);
    }
    EACH(fit)
    {
        lies(&fit[i], NULL);
        if (hf_open(url, NULL, &c, &w->err))
            fail_msg("%zu: %s", i, w->err.text);
        OK(hf_close(c));
    }
    lies(NULL, NULL);
}

/* False replies to transactions grant nothing, and the acquire ends in time. */
CASE(test_transactions_that_lie)
{
    static const struct lie all[] = {
        SAYS("Txn", "\xff\xff\xff"),
        SAYS("Txn", ""),
        SAYS("Txn", "\x10\x01"), /* no header */
        SAYS("Txn", "\x0a\x02\x18\x00\x10\x01"),
        SAYS("Txn", "\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10"
                    "\x01\x1a\x02\x12\x00\x1a\x02\x0a\x00"),
        SAYS("Txn", H "\x10\x01"),
        SAYS("Txn", H "\x10\x01\x1a\x00\x1a\x00"),
        SAYS("Txn", H "\x10\x01\x1a\x02\x12\x00\x1a\x02\x12\x00"),
        SAYS("Txn", H "\x10\x01\x1a\x02\x1a\x00"),
        SAYS("Txn", H), /* no success, and no replies to the requests */
        SAYS("Txn", H "\x1a\x02\x0a\x00\x1a\x02\x0a\x00"),
        SAYS("Txn", H "\x1a\x7f\x0a\x7f"),
        /* Each of these replies says that more keys follow, and lists the same
         * key every time. */
        SAYS("Txn", H "\x10\x01\x1a\x02\x12\x00\x1a\x0b\x0a\x09\x12\x05" OLD
                      "\x18\x01"),
        SAYS("Txn", H "\x10\x01\x1a\x0b\x0a\x09\x12\x05" OLD "\x18\x01"
                      "\x1a\x0b\x0a\x09\x12\x05" OLD "\x18\x01"),
    };
    hf_lock *lock = victim(w);

    EACH(all)
    {
        world_free_for_all(w, lock);
        lies(&all[i], NULL);
        lies_in_vain(w, lock, i);
    }
}

/* False replies to keep-alives never extend a hold beyond the deadline that the
 * true replies gave it. */
CASE(test_keep_alives_that_lie)
{
    static const struct lie all[] = {
        SAYS("LeaseKeepAlive", "\xff\xff"),
        SAYS("LeaseKeepAlive", ""),
        SAYS("LeaseKeepAlive", H "\x10\x05\x18\xe8\x07"), /* another lease */
        SAYS("LeaseKeepAlive",
             H "\x10\x05\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        {"LeaseKeepAlive", H "\x10\x05\x18\xe8\x07", 9, 1000, false},
    };
    hf_lock *lock = victim(w);

    EACH(all)
    {
        COMES(hf_lock_timed(lock, 1000, NULL) == 0);
        lies(&all[i], NULL);
        while (hf_lock_check(lock) == 0) {
            int64_t deadline = 0;

            if (!hf_lock_deadline(lock, &deadline))
                assert_true(deadline < wait_now() + 3100 * 1000000LL);
            wait_tick();
        }
        lies(NULL, NULL);
        EXPECT(HF_ELOST, hf_lock_release(lock, NULL));
    }
}

/* False events do not let a waiter acquire: it polls and finds the same
 * state. */
CASE(test_events_that_lie)
{
    static const struct lie waits = SAYS("Txn", H "\x10\x01" BEFORE BEFORE);
    static const struct lie all[] = {
        SAYS("Watch", "\xff\xff"),
        SAYS("Watch", ""),
        SAYS("Watch", H "\x10\x63\x5a\x02\x08\x01"), /* unknown watch; no key */
        SAYS("Watch", H "\x10\x01\x5a\x04\x08\x01\x12\x00"),
        SAYS("Watch", H "\x10\x01\x18\x01\x20\x01"),
        SAYS("Watch", "\x20\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        SAYS("Watch", H "\x10\x02\x18\x01\x5a\x10\x08\x01\x12\x0c\x18\xff\xff"
                        "\xff\xff\xff\xff\xff\xff\xff\x01\x08"),
        {"Watch", H "\x10\x02\x5a\x06\x08\x01\x12\x02\x18\x7f", 14, 300, false},
    };
    EACH(all)
    {
        hf_lock *lock;

        lies(&all[i], &waits);
        lock = victim(w);
        lies_in_vain(w, lock, i);
        OK(hf_lock_free(lock));
        hf_close(w->clients[0]);
        w->len = 0;
    }
}

/* A client whose watches fail polls instead. */
CASE(test_watches_that_fail)
{
    static const struct lie waits = SAYS("Txn", H "\x10\x01" BEFORE BEFORE);
    static const struct lie fails = {"Watch", NULL, 0, 0, false};
    uint32_t watches, txns;
    struct taker *t;

    lies(&fails, &waits);
    t = taker_start(w, victim(w), 10 * WAIT_LONG_MS);
    COMES(__atomic_load_n(&liar.watches, __ATOMIC_RELAXED) > 1);
    watches = __atomic_load_n(&liar.watches, __ATOMIC_RELAXED);
    txns = __atomic_load_n(&liar.txns, __ATOMIC_RELAXED);
    assert_true(NEVER_MS(taker_back(t), 3000));
    watches = __atomic_load_n(&liar.watches, __ATOMIC_RELAXED) - watches;
    txns = __atomic_load_n(&liar.txns, __ATOMIC_RELAXED) - txns;
    if (watches > 4 || txns > 20)
        fail_msg("%u streams, %u polls in 3 s", watches, txns);
    lies(NULL, NULL);
    taker_gets_it(t, 3000);
}

static long given, most_given; /* atomic: bytes in use, currently and at most */

static void *give(void *ctx, size_t size)
{
    void *p = malloc(size);
    long now = __atomic_add_fetch(&given, (long)malloc_usable_size(p),
                                  __ATOMIC_RELAXED);

    if (now > __atomic_load_n(&most_given, __ATOMIC_RELAXED))
        __atomic_store_n(&most_given, now, __ATOMIC_RELAXED);
    return p;
}

static void take_back(void *ctx, void *p)
{
    __atomic_sub_fetch(&given, (long)malloc_usable_size(p), __ATOMIC_RELAXED);
    free(p);
}

/* The server sends a reply of almost the maximum length in which every two
 * bytes encode a key. */
CASE(test_answer_that_swells)
{
    enum { KEYS = 2000000, LEN = 2 * KEYS };
    static const char head[] = H "\x10\x01\x1a\x02\x12\x00" /* a put */
                                 "\x1a\x85\x92\xf4\x01"     /* LEN + 5 */
                                 "\x0a\x80\x92\xf4\x01";    /* LEN */
    hf_hooks hooks = {.alloc = give, .free = take_back};
    size_t len = sizeof(head) - 1 + LEN;
    char *data = malloc(len), url[64];
    struct lie swells = {"Txn", data, len, 1, false};
    hf_client *c;
    hf_lock *lock;

    memcpy(data, head, sizeof(head) - 1);
    for (size_t i = sizeof(head) - 1; i < len; i += 2)
        memcpy(data + i, "\x12", 2);
    lies(&swells, NULL);
    snprintf(url, sizeof(url), "etcd://127.0.0.1:%d", liar.port);
    c = world_open(w, url, CLIENT(.hooks = &hooks, .ttl_ms = 3000));
    lock = world_handle(w, c, "n", NULL);
    FAILS(hf_lock_timed(lock, 3000, &w->err));
    if (__atomic_load_n(&most_given, __ATOMIC_RELAXED) > 32 << 20)
        fail_msg("%ld bytes", most_given);
    lies(NULL, NULL);
    COMES(hf_lock_timed(lock, 1000, NULL) == 0);
    OK(hf_lock_release(lock, NULL));
    free(data);
}
