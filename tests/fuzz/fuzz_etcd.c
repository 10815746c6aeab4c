/*
 * Feeds the etcd backend anything that a server may send: HTTP/2 frames, gRPC
 * messages in them, and protobuf data in these. The backend must not crash; it
 * must report each request once, and grant nothing without a token and a lease.
 *
 * The input is a byte of flags and a list of steps: each step is a byte that
 * says what to do, a length, and that many bytes (see step()). This is a target
 * of clang's fuzzer; with PLAIN_MAIN it is a program that generates the steps
 * from a seed, which it prints:
 *
 *     fuzz_etcd [TIMES [SEED]]
 */
#include "../lib/h2_frame.h"
#include "backends/etcd/etcd.h"
#include "fuzz_core.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUERIES 10
#define LEASE 0x707070707070707LL /* the value that random_bytes() makes */

enum state { FREE, WAITS, HELD, UNSURE, LETTING };

static const struct kind {
    uint8_t kind;
    bool is_read, fair;
    uint32_t permits;
} kinds[] = {{HF_MUTEX, false, true, 0},     {HF_MUTEX, false, false, 0},
             {HF_RWLOCK, false, true, 0},    {HF_RWLOCK, true, true, 0},
             {HF_SEMAPHORE, false, true, 3}, {HF_LATCH, false, true, 0}};

enum { WRITER = 2, READER = 3 };

#define LINES (sizeof(kinds) / sizeof(*kinds))

struct line {
    struct hf__remote remote;
    struct hf__req ask, let_go;
    enum state state;
    uint64_t id;
};

static struct scene {
    const struct hf__backend *be;
    struct etcd *e;
    int server; /* the server's end of the connection */
    int sent;   /* the number of requests that were sent */
    uint64_t ids;
    struct line line[LINES];
    struct hf__batch batch;
    struct hf__renewal item[LINES];
    struct hf__query query[QUERIES];
    struct hf__listener listener;
    hf_diagnosis diagnosis;
} s;

static void is_told(struct hf__req *req)
{
    struct line *l = s.line;

    while (l < s.line + LINES && req != &l->ask && req != &l->let_go)
        l++;
    if (l == s.line + LINES)
        return;
    if (req == &l->let_go) {
        if (l->state == LETTING && req->hold_id == l->id)
            l->state = req->result == HF__DONE || req->result == HF_ENOTOWNER
                           ? FREE
                           : UNSURE;
    } else if (req->result == HF__GRANTED) {
        must(req->token || l->remote.kind == HF_LATCH, "a grant, no token");
        must(req->session_ms && req->sent_at <= clock_ns, "without a lease");
        l->state = l->remote.kind == HF_LATCH ? FREE : HELD;
    } else {
        l->state = req->result == HF__QUEUED ? WAITS
                   : req->result == HF__BUSY || req->result == HF_EMISMATCH
                       ? FREE
                       : UNSURE;
    }
}

static void submit(struct hf__req *req, int rc)
{
    req->flying = rc == HF__PENDING;
    s.sent += req->flying;
    if (!req->flying && rc != HF__LATER) { /* the request ends at once */
        req->result = (int16_t)rc;
        is_told(req);
    }
}

static void attempt(struct line *l, bool may_queue, uint8_t how)
{
    if (l->state == FREE)
        l->id = ++s.ids;
    l->ask = (struct hf__req){.remote = &l->remote,
                              .hold_id = l->id,
                              .lease_ms = 5000,
                              .fixed = how & 1,
                              .permits = 1 + (how >> 1) % 3,
                              .op = HF__ATTEMPT,
                              .may_queue = may_queue,
                              .flying = true};
    l->remote.attempt = &l->ask;
    l->state = UNSURE;
    submit(&l->ask, s.be->attempt(s.e, &l->ask));
}

static void let_go(struct line *l)
{
    bool is_held = l->state == HELD;

    if (l->let_go.flying)
        return;
    l->let_go = (struct hf__req){.remote = &l->remote,
                                 .hold_id = l->id,
                                 .op = is_held ? HF__RELEASE : HF__ABANDON,
                                 .flying = true};
    if (!is_held && l->ask.flying) { /* the attempt's result is no longer
                                        wanted */
        l->ask.flying = false;
        s.sent--;
    }
    l->state = LETTING;
    submit(&l->let_go, is_held ? s.be->release(s.e, &l->let_go)
                               : s.be->abandon(s.e, &l->let_go));
}

static void renew(uint8_t how)
{
    size_t n = 0;

    if (s.batch.req.flying)
        return;
    for (size_t i = 0; i < LINES; i++)
        if (s.line[i].state == HELD)
            s.item[n++] =
                (struct hf__renewal){.remote = &s.line[i].remote,
                                     .hold_id = s.line[i].id,
                                     .lease_ms = how & 1 ? 4000 + how : 0,
                                     .permits = 1};
    s.batch = (struct hf__batch){
        .req = {.op = HF__RENEW, .flying = true}, .len = n, .item = s.item};
    if (n)
        submit(&s.batch.req, s.be->renew(s.e, &s.batch));
    else
        s.batch.req.flying = false;
}

/* Returns a line that is held, or NULL. */
static struct line *held(void)
{
    for (size_t i = 0; i < LINES; i++)
        if (s.line[i].state == HELD)
            return &s.line[i];
    return NULL;
}

/* Downgrades: moves the hold from the writer's line to the reader's, and fills
 * in the query. Returns false if that is not possible now. */
static bool lower(struct hf__query *q)
{
    struct line *from = &s.line[WRITER], *into = &s.line[READER];

    if (from->state != HELD || into->state != FREE || into->ask.flying ||
        into->let_go.flying)
        return false;
    q->line = &from->remote;
    q->into = &into->remote;
    q->req.hold_id = into->id = from->id;
    into->state = HELD;
    from->state = FREE;
    return true;
}

static void ask(uint8_t what)
{
    static const uint8_t ops[QUERIES] = {
        HF__INSPECT,   HF__LIST,     HF__BREAK, HF__LATCH_SET, HF__LATCH_DOWN,
        HF__LATCH_GET, HF__DIAGNOSE, HF__PUT,   HF__LISTEN,    HF__DOWNGRADE};
    struct hf__query *q = &s.query[what % QUERIES];
    uint8_t op = ops[what % QUERIES];
    struct line *l = held();

    if (q->req.flying || (op == HF__PUT && !l) ||
        (op == HF__LISTEN && (!s.be->unlisten || s.listener.name)))
        return;
    if (op == HF__LISTEN)
        s.listener = (struct hf__listener){
            .name = "a", .name_len = 1, .is_prefix = what > 128};
    *q = (struct hf__query){.req = {.op = op,
                                    .flying = true,
                                    .hold_id = l ? l->id : 0,
                                    .meant_until = clock_ns + 5000 * HF__MS},
                            .name = op == HF__LIST ? "" : "a",
                            .name_len = op != HF__LIST,
                            .value = "v",
                            .value_len = 1,
                            .count = 2,
                            .request = ++s.ids,
                            .info = &info,
                            .names = &names,
                            .diagnosis = &s.diagnosis,
                            .listener = &s.listener};
    q->line = op == HF__PUT ? &l->remote : NULL;
    if (op == HF__DOWNGRADE && !lower(q))
        q->req.flying = false;
    else
        submit(&q->req, s.be->query(s.e, q));
}

static void act(uint8_t what, uint8_t how)
{
    struct line *l = &s.line[what % LINES];

    what /= LINES;
    if (what % 4 == 0 && !l->ask.flying && l->state != HELD &&
        l->state != LETTING)
        attempt(l, how > 7, how);
    else if (what % 4 == 1 && l->state != FREE && l->state != LETTING)
        let_go(l);
    else if (what % 4 == 2)
        renew(how);
    else if (what % 4 == 3)
        ask(how);
}

static void deliver(const void *data, size_t len)
{
    char buf[65536];

    if (s.e->g.link.state == NET_PAUSING || !s.e->g.session)
        return;
    if (len && send(s.server, data, len, MSG_NOSIGNAL) > 0)
        for (int i = 0; i < 8 && s.e->g.session; i++)
            s.be->ready(s.e, s.e->g.link.stream.tag, EPOLLIN, clock_ns);
    if (s.e->g.link.state != NET_PAUSING)
        s.be->advance(s.e, clock_ns);
    while (recv(s.server, buf, sizeof(buf), MSG_DONTWAIT) > 0)
        ;
}

static size_t frame(uint8_t *to, uint8_t type, uint8_t flags, int32_t id,
                    const void *payload, size_t len)
{
    h2_head(to, type, flags, id, len);
    memcpy(to + H2_HEAD, payload, len);
    return H2_HEAD + len;
}

static const char head[] = "\x88\x00\x0c"
                           "content-type\x10"
                           "application/grpc"; /* :status 200 */

static size_t trailers(uint8_t *to, int32_t id, bool is_all, uint8_t status)
{
    char block[64];
    size_t n = is_all ? sizeof(head) - 1 : 0;
    int len;

    memcpy(block, head, n);
    len = snprintf(block + n, sizeof(block) - n, "%c%c%s%c%c", 0, 11,
                   "grpc-status", status > 9 ? 2 : 1,
                   status > 9 ? '1' : '0' + status);
    n += (size_t)len;
    if (status > 9)
        block[n++] = (char)('0' + status % 10);
    return frame(to, NGHTTP2_HEADERS,
                 NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id, block,
                 n);
}

/* Returns the n-th open call, or NULL. */
static struct grpc_call *call_of(unsigned n)
{
    struct grpc_call *c = s.e->g.calls.first;

    for (n %= s.e->g.open ? (unsigned)s.e->g.open : 1; c && n; n--)
        c = c->next;
    return c && c->state == GRPC_OPEN && c->id > 0 ? c : NULL;
}

/* Sends a message of the server to the call, in valid frames. */
static void answer(const struct grpc_call *c, const uint8_t *message,
                   size_t len)
{
    static uint8_t out[20000], body[16000];
    bool is_stream = c->method->is_stream;
    size_t n = 0;

    body[0] = body[1] = body[2] = 0;
    body[3] = (uint8_t)(len >> 8);
    body[4] = (uint8_t)len;
    memcpy(body + 5, message, len);
    if (!c->http)
        n = frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, c->id, head,
                  sizeof(head) - 1);
    n += frame(out + n, NGHTTP2_DATA, 0, c->id, body, len + 5);
    if (!is_stream)
        n += trailers(out + n, c->id, false, 0);
    deliver(out, n);
}

static struct good {
    size_t len;
    uint8_t data[300];
} good[16];
static size_t goods;

static void add(const void *message)
{
    must(protobuf_c_message_get_packed_size(message) <= sizeof(good[0].data),
         "a long message");
    good[goods].len = protobuf_c_message_pack(message, good[goods].data);
    goods++;
}

static Etcd__Header header = ETCD__HEADER__INIT;

static void kv_of(Etcd__KeyValue *kv, const char *key, int64_t rev)
{
    etcd__key_value__init(kv);
    kv->key.data = (uint8_t *)(uintptr_t)key;
    kv->key.len = strlen(key);
    kv->create_revision = kv->mod_revision = rev;
    kv->lease = LEASE;
}

/* Adds to `good` the reply to a transaction: the result of a put, of a delete
 * or of neither, followed by the results of two ranges. */
static void add_txn(bool succeeded, Etcd__OpAnswer__OpCase first,
                    const char *key, int64_t rev, const char *second)
{
    Etcd__TxnAnswer t = ETCD__TXN_ANSWER__INIT;
    Etcd__OpAnswer op[3], *ops[3] = {op, op + 1, op + 2};
    Etcd__RangeAnswer range[2];
    Etcd__KeyValue kv[2], *kvs[2] = {kv, kv + 1};
    Etcd__PutAnswer put = ETCD__PUT_ANSWER__INIT;
    Etcd__DeleteAnswer deleted = ETCD__DELETE_ANSWER__INIT;
    unsigned n = 0;

    deleted.deleted = 1;
    kv_of(&kv[0], key, rev);
    kv_of(&kv[1], second, rev - 1);
    for (int i = 0; i < 3; i++)
        etcd__op_answer__init(&op[i]);
    if (first == ETCD__OP_ANSWER__OP_PUT)
        op[n].put = &put;
    else
        op[n].delete_ = &deleted;
    if (first != ETCD__OP_ANSWER__OP__NOT_SET)
        op[n++].op_case = first;
    for (int i = 0; i < 2; i++) {
        etcd__range_answer__init(&range[i]);
        range[i].n_kvs = key[0] ? (i ? 1 : 2) : 0;
        range[i].kvs = kvs;
        op[n].range = &range[i];
        op[n++].op_case = ETCD__OP_ANSWER__OP_RANGE;
    }
    t.header = &header;
    t.succeeded = succeeded;
    t.n_responses = n;
    t.responses = ops;
    add(&t);
}

static void add_watch(int64_t id, bool created, bool canceled, bool has_event)
{
    Etcd__WatchAnswer w = ETCD__WATCH_ANSWER__INIT;
    Etcd__Event event = ETCD__EVENT__INIT, *events = &event;
    Etcd__KeyValue kv;

    kv_of(&kv, "a/1", 90);
    event.type = ETCD__EVENT__TYPE__DELETE;
    event.kv = &kv;
    w.header = &header;
    w.watch_id = id;
    w.created = created;
    w.canceled = canceled;
    w.compact_revision = canceled && id > 0 ? 50 : 0;
    w.n_events = has_event;
    w.events = &events;
    add(&w);
}

enum { GOOD_GRANT, GOOD_PUT };

static void make_good(void)
{
    Etcd__GrantAnswer grant = ETCD__GRANT_ANSWER__INIT;
    Etcd__PutAnswer put = ETCD__PUT_ANSWER__INIT;
    Etcd__KeepAliveAnswer keep = ETCD__KEEP_ALIVE_ANSWER__INIT;

    if (goods)
        return;
    header.revision = 60;
    grant.header = put.header = &header;
    grant.id = keep.id = LEASE;
    grant.ttl = keep.ttl = 30;
    add(&grant);
    add(&put);
    add(&keep);
    add_txn(true, ETCD__OP_ANSWER__OP_PUT, "", 0, "");
    add_txn(true, ETCD__OP_ANSWER__OP_PUT, "a/1", 55, "a/2");
    add_txn(true, ETCD__OP_ANSWER__OP_PUT, "a/lock", 55, "a/latch");
    add_txn(true, ETCD__OP_ANSWER__OP_DELETE, "a/1", 55, "a/2");
    add_txn(false, ETCD__OP_ANSWER__OP__NOT_SET, "a/1", 60, "holdfast:");
    add_txn(true, ETCD__OP_ANSWER__OP__NOT_SET, "a/write/0123456789abcdef-1",
            55, "a/permit/0123456789abcdef-1.2.3");
    add_txn(true, ETCD__OP_ANSWER__OP__NOT_SET, "", 0, "");
    add_watch(1, true, false, false);
    add_watch(2, false, false, true);
    add_watch(-1, true, true, false);
    add_watch(3, false, true, false);
}

static struct hf__lookup *look_up(const char *hosts, bool here)
{
    static struct sockaddr_in in = {.sin_family = AF_INET};
    static struct addrinfo at = {.ai_family = AF_INET,
                                 .ai_addrlen = sizeof(in)};
    static struct hf__lookup found = {.len = 1, .list = {&at}};

    (void)hosts, (void)here;
    at.ai_addr = (struct sockaddr *)&in;
    return &found;
}

static bool look_up_over(const struct hf__lookup *found)
{
    (void)found;
    return true;
}

static void look_up_leave(struct hf__lookup *found)
{
    (void)found;
}

static const char *no_option(struct hf__url *url, const char *key)
{
    (void)url, (void)key;
    return NULL;
}

static void close_server(void)
{
    if (s.server >= 0)
        close(s.server);
    s.server = -1;
}

/* Connects to the server. If `greets`, the connection is established
 * completely; otherwise the client still waits for the server's greeting. */
static void plug(bool greets)
{
    static const uint8_t settings[9] = {[3] = NGHTTP2_SETTINGS};
    struct net_link *l = &s.e->g.link;
    int fds[2];

    close_server();
    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), "no pair");
    s.server = fds[1];
    l->stream.fd = fds[0];
    l->stream.tag = ++*l->tags;
    l->state = NET_GREETING;
    l->timer = HF__NEVER;
    must(!l->talk->greet(l->owner, clock_ns), "no greeting");
    deliver(settings, greets ? sizeof(settings) : 0);
    for (int i = 0; greets && i < 2 && l->state == NET_GREETING; i++) {
        const struct grpc_call *c = call_of(0);
        const struct good *g = &good[c == &s.e->grant ? GOOD_GRANT : GOOD_PUT];

        must(c != NULL, "no step of the greeting");
        answer(c, g->data, g->len);
    }
}

static void begin(void)
{
    static struct hf__core with_names;
    static char empty[] = "", host[] = "h";
    struct hf__url url = {.scheme = empty,
                          .user = empty,
                          .path = empty,
                          .hosts_len = 1,
                          .hosts = {{host, 1}}};
    struct hf__config config = {.url = &url,
                                .password = "",
                                .label = "",
                                .ttl_ms = 30000,
                                .op_timeout_ms = 5000,
                                .open_timeout_ms = 5000,
                                .listens = true};

    s = (struct scene){.be = hf_module(HF__ABI, "etcd"), .server = -1};
    with_names = fake;
    with_names.lookup = look_up;
    with_names.lookup_over = look_up_over;
    with_names.lookup_leave = look_up_leave;
    with_names.option = no_option;
    when_done = is_told;
    reported = 0;
    parties_len = 0;
    make_good();
    must(!s.be->open(NULL, &with_names, &config, (void **)&s.e), "open");
    for (size_t i = 0; i < LINES; i++) {
        s.line[i].remote =
            (struct hf__remote){.name = "a",
                                .name_len = 1,
                                .kind = kinds[i].kind,
                                .mode = kinds[i].is_read ? HF_READ : HF_WRITE,
                                .fair = kinds[i].fair,
                                .permits = kinds[i].permits,
                                .label = ""};
        must(!s.be->attach(s.e, &s.line[i].remote), "attach");
    }
}

/* Sends a valid message with some bytes changed. */
static void send_good(const struct grpc_call *c, const uint8_t *data,
                      size_t len)
{
    struct good g = good[data[0] % goods];

    for (size_t i = 1; i + 1 < len; i += 2)
        if (data[i] < g.len)
            g.data[data[i]] = data[i + 1];
    answer(c, g.data, g.len);
}

/* Executes a step. The lowest three bits of `what` are the kind of step, the
 * others choose the call. */
static void step(uint8_t what, const uint8_t *data, size_t len)
{
    const struct grpc_call *c = call_of(what >> 3);
    uint8_t out[128];

    switch (what & 7) {
    case 0: /* raw bytes */
        deliver(data, len);
        break;
    case 1: /* a message */
        if (c)
            answer(c, data, len);
        break;
    case 2:
    case 3:
        if (c && len)
            send_good(c, data, len);
        break;
    case 4: /* the end of a call */
        if (c && len)
            deliver(out, trailers(out, c->id, !c->http, data[0] % 20));
        break;
    case 5: /* time passes */
        clock_ns += (len ? data[0] : 1) * 10 * HF__MS;
        deliver(NULL, 0);
        break;
    case 6: /* requests of the core */
        for (size_t i = 0; i + 1 < len; i += 2)
            act(data[i], data[i + 1]);
        break;
    case 7: /* the connection breaks and is opened again */
        if (s.e->g.link.state != NET_PAUSING && len && data[0] & 1)
            hf__link_fail(&s.e->g.link, HF_EBACKEND, clock_ns);
        break;
    }
    if (s.e->g.link.state == NET_PAUSING)
        plug(what != 7);
}

static void print_forgotten(void)
{
    for (size_t i = 0; i < LINES; i++)
        if (s.line[i].ask.flying || s.line[i].let_go.flying)
            fprintf(stderr, "line %zu: %s\n", i,
                    s.line[i].ask.flying ? "ask" : "let go");
    for (size_t i = 0; i < QUERIES; i++)
        if (s.query[i].req.flying)
            fprintf(stderr, "query %zu\n", i);
    if (s.batch.req.flying)
        fprintf(stderr, "batch\n");
}

static void end(void)
{
    if (s.e->g.link.state != NET_PAUSING)
        hf__link_fail(&s.e->g.link, HF_EBACKEND, clock_ns);
    if (reported != s.sent) {
        print_forgotten();
        must(false, "a request was forgotten");
    }
    if (s.listener.name)
        s.be->unlisten(s.e, &s.listener);
    for (size_t i = 0; i < LINES; i++)
        s.be->detach(s.e, &s.line[i].remote);
    s.be->close(s.e);
    close_server();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    begin();
    plug(!len || !(data[0] & 1));
    for (size_t i = 0; i < 2 * LINES; i++)
        if (len && data[0] & 2)
            act((uint8_t)(i % LINES + 3 * LINES * (i >= LINES)),
                (uint8_t)(8 + i));
    for (size_t i = 1; i + 2 < len;) {
        size_t some = data[i + 1];

        if (some > len - i - 2)
            some = len - i - 2;
        step(data[i], data + i + 2, some);
        i += 2 + some;
    }
    end();
    return 0;
}

#ifdef PLAIN_MAIN
/* Generates valid steps with their data, then changes some bytes. */
static size_t draw_steps(uint8_t *to, size_t first)
{
    size_t n = 0, size = 64 + draw(900), changes = draw(4);

    to[n++] = (uint8_t)(draw(8) ? 2 : draw(4));
    while (n + 40 < size) {
        size_t what = n > 1 ? draw(8) : first;
        size_t some = what == 6 ? 2 * (1 + draw(4)) : 1 + 2 * draw(3);

        if (what < 2 && draw(3)) /* random bytes rarely get far */
            what = 2;
        to[n++] = (uint8_t)(what | draw(32) << 3);
        to[n++] = (uint8_t)some;
        for (size_t i = 0; i < some; i++)
            to[n++] = (uint8_t)draw(256);
    }
    for (size_t i = 0; i < changes; i++)
        to[draw(n)] = (uint8_t)draw(256);
    return n;
}

/* Each case begins with a different step. */
int main(int argc, char **argv)
{
    const struct fuzzer f = {8, 600, draw_steps, "runs", NULL};

    return run_fuzzer(&f, argc, argv);
}
#endif
