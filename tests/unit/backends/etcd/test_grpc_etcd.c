/* gRPC with a real etcd: its answers to calls, streams, tokens and TLS, and how
 * the client notices that the server has failed. Uses the real clock and
 * sockets. */
#include "../../cases.h"
#include "etcd.pb-c.h"
#include "net/grpc/grpc.h"
#include "net/tls.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

#include "../../../../lab/servers/port.h"
#include "../../../lib/bare_core.h"
#include "../../../lib/etcd_server.h"
#include "../../../lib/loopback.h"
#include "../../../lib/wait.h"

#define PASSWORD "Geheimnis-7391"

struct scene {
    struct etcd_server *server;
    struct net_endpoint peer;
    uint32_t tags;
    struct grpc g;
    unsigned ups, downs, renewals;
    int down_code;
    bool signs_in;
    struct one *hello; /* the Authenticate call */
};

struct one {
    struct grpc_call call; /* first member: callbacks cast it to struct one */
    struct scene *t;
    int overs, messages;
    enum grpc_end end;
    int status;
    char text[200];
    Etcd__WatchAnswer *event; /* the last event of a watch */
    Etcd__KeepAliveAnswer *kept;
};

static bool drive(struct scene *t)
{
    struct net_stream *s = &t->g.link.stream;
    hf__time at = hf__grpc_timeout(&t->g), n = now();
    int ms = at <= n ? 0 : at - n > 20 * HF__MS ? 20 : 1;
    struct pollfd p = {.fd = s->fd, .events = (short)watched};

    if (poll(&p, s->fd >= 0, ms) > 0)
        hf__grpc_ready(&t->g, s->tag, (uint32_t)p.revents, now());
    hf__grpc_advance(&t->g, now());
    return true;
}

#define DRIVE_UNTIL(t, condition)                                              \
    WAIT_FOR((condition) || (drive(t) && (condition)))

static int over(struct grpc_call *c, hf__time at)
{
    struct one *o = (struct one *)c;

    o->overs++;
    o->end = c->end;
    o->status = c->status;
    strcpy(o->text, c->text);
    return 0;
}

static int watch_message(struct grpc_call *c, const uint8_t *p, size_t len,
                         hf__time at)
{
    struct one *o = (struct one *)c;

    if (o->event)
        etcd__watch_answer__free_unpacked(o->event, NULL);
    o->event = etcd__watch_answer__unpack(NULL, len, p);
    assert_non_null(o->event);
    o->messages++;
    return 0;
}

static int keep_message(struct grpc_call *c, const uint8_t *p, size_t len,
                        hf__time at)
{
    struct one *o = (struct one *)c;

    if (o->kept)
        etcd__keep_alive_answer__free_unpacked(o->kept, NULL);
    o->kept = etcd__keep_alive_answer__unpack(NULL, len, p);
    assert_non_null(o->kept);
    o->messages++;
    return 0;
}

static int signed_in(struct grpc_call *c, hf__time at)
{
    struct one *o = (struct one *)c;
    struct scene *t = o->t;
    Etcd__AuthenticateAnswer *a;
    const uint8_t *p;
    size_t len;

    over(c, at);
    if (o->end != GRPC_ANSWERED || o->status) {
        if (t->g.link.state == NET_GREETING)
            return hf__link_why(&t->g.link, HF_EAUTH, "%s", o->text);
        return hf__grpc_token(&t->g, NULL, o->status, o->text);
    }
    p = hf__grpc_answer(c, &len);
    a = etcd__authenticate_answer__unpack(NULL, len, p);
    assert_non_null(a);
    assert_int_equal(hf__grpc_token(&t->g, a->token, 0, ""), 0);
    etcd__authenticate_answer__free_unpacked(a, NULL);
    if (t->g.link.state == NET_GREETING)
        hf__grpc_up(&t->g, at);
    return 0;
}

#define METHOD(service, name)                                                  \
    {                                                                          \
        .path = "/etcdserverpb." service "/" name, .most = 1 << 20,            \
        .over = over                                                           \
    }

static const struct grpc_method put = METHOD("KV", "Put"),
                                range = METHOD("KV", "Range"),
                                txn = METHOD("KV", "Txn"),
                                grant = METHOD("Lease", "LeaseGrant"),
                                revokes = METHOD("Lease", "LeaseRevoke"),
                                nothing = METHOD("KV", "Nothing");
static const struct grpc_method watches = {.path = "/etcdserverpb.Watch/Watch",
                                           .is_stream = true,
                                           .most = 1 << 20,
                                           .message = watch_message,
                                           .over = over};
static const struct grpc_method keeps = {
    .path = "/etcdserverpb.Lease/LeaseKeepAlive",
    .is_stream = true,
    .most = 1 << 20,
    .message = keep_message,
    .over = over};
static const struct grpc_method signs_in = {
    .path = "/etcdserverpb.Auth/Authenticate",
    .is_greeting = true,
    .is_bare = true,
    .is_secret = true,
    .most = 4096,
    .over = signed_in};

static struct one *one_of(struct scene *t, const struct grpc_method *m)
{
    struct one *o = calloc(1, sizeof(*o));

    assert_non_null(o);
    hf__grpc_call_init(&o->call, &t->g, m, t);
    o->t = t;
    return o;
}

static void one_free(struct one *o)
{
    if (o->event)
        etcd__watch_answer__free_unpacked(o->event, NULL);
    if (o->kept)
        etcd__keep_alive_answer__free_unpacked(o->kept, NULL);
    hf__grpc_call_fini(&o->call);
    free(o);
}

static void say(struct one *o, const void *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *p = hf__grpc_room(&o->call, len);

    assert_non_null(p);
    protobuf_c_message_pack(message, p);
}

static void ask(struct one *o, const void *message, uint32_t limit_ms)
{
    say(o, message);
    assert_int_equal(hf__grpc_start(&o->call, limit_ms), 0);
}

/* Sends the request, waits for the answer and returns its status. */
static int asked(struct one *o, const void *message)
{
    int overs = o->overs;

    ask(o, message, WAIT_LONG_MS);
    assert_true(DRIVE_UNTIL(o->t, o->overs > overs));
    assert_int_equal(o->end, GRPC_ANSWERED);
    return o->status;
}

static ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static int put_it(struct one *o, const char *key, const char *value)
{
    Etcd__Put m = ETCD__PUT__INIT;

    m.key = bytes(key);
    m.value = bytes(value);
    return asked(o, &m);
}

#include "../../net/grpc_owner.h"

static void sign_in(struct scene *t)
{
    Etcd__Authenticate m = ETCD__AUTHENTICATE__INIT;

    m.name = "root";
    m.password = PASSWORD;
    ask(t->hello, &m, WAIT_LONG_MS);
}

static int owner_hello(struct grpc *g, hf__time at)
{
    struct scene *t = g->owner;

    if (t->signs_in)
        sign_in(t);
    else
        hf__grpc_up(g, at);
    return 0;
}

static int owner_renew(struct grpc *g, hf__time at)
{
    struct scene *t = g->owner;

    t->renewals++;
    sign_in(t);
    return 0;
}

static struct scene *scene_of(struct etcd_server *server)
{
    struct scene *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    t->server = server;
    own(t, WAIT_LONG_MS / 4, 10000);
    t->hello = one_of(t, &signs_in);
    add_address(&t->peer, server->port);
    return t;
}

static void connect_it(struct scene *t)
{
    hf__link_start(&t->g.link, now());
    assert_true(DRIVE_UNTIL(t, t->ups > 0));
}

static void scene_free(struct scene *t)
{
    struct net_tls *tls = t->g.link.stream.tls;

    one_free(t->hello);
    hf__grpc_fini(&t->g);
    hf__net_endpoint_fini(&t->peer);
    hf__tls_free(tls);
    free(t);
}

static struct etcd_server plain;

CASE(test_calls_and_refusals)
{
    struct scene *t = scene_of(&plain);
    struct one *p = one_of(t, &put), *r = one_of(t, &range),
               *x = one_of(t, &nothing);
    Etcd__Put m = ETCD__PUT__INIT;
    Etcd__Range q = ETCD__RANGE__INIT;
    Etcd__RangeAnswer *a;
    const uint8_t *got;
    char *big = calloc(1, 3 << 20);
    size_t len;

    connect_it(t);
    assert_int_equal(put_it(p, "calls/a", "1"), 0);
    q.key = bytes("calls/a");
    assert_int_equal(asked(r, &q), 0);
    got = hf__grpc_answer(&r->call, &len);
    a = etcd__range_answer__unpack(NULL, len, got);
    assert_int_equal(a->n_kvs, 1);
    assert_memory_equal(a->kvs[0]->value.data, "1", 1);
    assert_true(a->header->revision > 1);
    etcd__range_answer__free_unpacked(a, NULL);
    m.key = bytes("calls/a");
    m.lease = 4711; /* a lease that does not exist */
    assert_int_equal(asked(p, &m), 5);
    assert_non_null(strstr(p->text, "requested lease not found"));
    assert_int_equal(asked(p, &(Etcd__Put)ETCD__PUT__INIT), 3);
    assert_non_null(strstr(p->text, "key is not provided"));
    assert_int_equal(asked(x, &q), 12); /* no such method */
    assert_non_null(big);
    m.lease = 0;
    m.value = (ProtobufCBinaryData){2000000, (uint8_t *)big};
    assert_int_equal(asked(p, &m), 3); /* larger than the first window */
    assert_non_null(strstr(p->text, "too large"));
    m.value.len = 3 << 20;
    assert_int_equal(asked(p, &m), 8);
    assert_int_equal(put_it(p, "calls/a", "2"), 0);
    assert_int_equal(t->downs, 0);
    free(big);
    one_free(p);
    one_free(r);
    one_free(x);
    scene_free(t);
}

/* An answer larger than the client's flow control windows arrives in many
 * pieces. The same answer exceeds the limit of another method. */
CASE(test_long_answers)
{
    struct scene *t = scene_of(&plain);
    struct grpc_method longer = range;
    struct one *p = one_of(t, &put), *r, *small = one_of(t, &range);
    char *big = calloc(1, 1400001), key[32];
    Etcd__Range q = ETCD__RANGE__INIT;
    size_t len;

    assert_non_null(big);
    longer.most = 8 << 20;
    r = one_of(t, &longer);
    memset(big, 'x', 1400000);
    connect_it(t);
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof(key), "long/%d", i);
        assert_int_equal(put_it(p, key, big), 0);
    }
    q.key = bytes("long/");
    q.range_end = bytes("long0");
    assert_int_equal(asked(r, &q), 0);
    assert_non_null(hf__grpc_answer(&r->call, &len));
    assert_true(len > 7000000);
    ask(small, &q, WAIT_LONG_MS);
    assert_true(DRIVE_UNTIL(t, small->overs));
    assert_int_equal(small->end, GRPC_ODD);
    assert_int_equal(put_it(p, "long/0", ""), 0);
    assert_int_equal(t->downs, 0);
    free(big);
    one_free(p);
    one_free(r);
    one_free(small);
    scene_free(t);
}

CASE(test_many_at_a_time)
{
    enum { N = 1000 };
    struct scene *t = scene_of(&plain);
    struct one *o[N];
    Etcd__Put m = ETCD__PUT__INIT;
    char key[32];
    int n = 0;

    connect_it(t);
    for (int i = 0; i < N; i++) {
        o[i] = one_of(t, &put);
        snprintf(key, sizeof(key), "many/%d", i);
        m.key = bytes(key);
        ask(o[i], &m, WAIT_LONG_MS);
    }
    for (int i = 0; i < N; i++) {
        assert_true(DRIVE_UNTIL(t, o[i]->overs));
        n += o[i]->end == GRPC_ANSWERED && o[i]->status == 0;
        one_free(o[i]);
    }
    assert_int_equal(n, N);
    scene_free(t);
}

/* A watch and keep-alives run alongside calls, on one connection. */
CASE(test_streams)
{
    struct scene *t = scene_of(&plain);
    struct one *w = one_of(t, &watches), *k = one_of(t, &keeps),
               *p = one_of(t, &put), *g = one_of(t, &grant),
               *v = one_of(t, &revokes);
    Etcd__Watch m = ETCD__WATCH__INIT;
    Etcd__WatchCreate create = ETCD__WATCH_CREATE__INIT;
    Etcd__Grant lease = ETCD__GRANT__INIT;
    Etcd__Revoke end = ETCD__REVOKE__INIT;
    Etcd__KeepAlive keep = ETCD__KEEP_ALIVE__INIT;
    Etcd__Put key = ETCD__PUT__INIT;

    connect_it(t);
    create.key = bytes("streams/a");
    create.watch_id = 7;
    m.request_case = ETCD__WATCH__REQUEST_CREATE;
    m.create = &create;
    ask(w, &m, 0);
    assert_true(DRIVE_UNTIL(t, w->messages == 1));
    assert_true(w->event->created);
    assert_int_equal(w->event->watch_id, 7);
    lease.id = end.id = keep.id = key.lease = 0x7711223344556677;
    lease.ttl = 60;
    assert_int_equal(asked(g, &lease), 0);
    assert_int_equal(asked(g, &lease), 9);
    key.key = bytes("streams/a");
    assert_int_equal(asked(p, &key), 0);
    assert_true(DRIVE_UNTIL(t, w->messages == 2));
    assert_int_equal(w->event->n_events, 1);
    assert_int_equal(w->event->events[0]->type, ETCD__EVENT__TYPE__PUT);
    ask(k, &keep, 0);
    for (int i = 1; i <= 20; i++) {
        assert_true(DRIVE_UNTIL(t, k->messages == i));
        assert_int_equal(k->kept->ttl, 60);
        say(k, &keep);
    }
    assert_int_equal(asked(v, &end), 0);
    assert_true(DRIVE_UNTIL(t, w->messages == 3));
    assert_int_equal(w->event->events[0]->type, ETCD__EVENT__TYPE__DELETE);
    assert_true(DRIVE_UNTIL(t, k->messages == 21));
    say(k, &keep);
    assert_true(DRIVE_UNTIL(t, k->messages == 22));
    assert_int_equal(k->kept->ttl, 0); /* the lease has ended */
    hf__grpc_cancel(&w->call);
    key.lease = 0;
    assert_int_equal(asked(p, &key), 0);
    assert_int_equal(w->messages, 3);
    assert_int_equal(w->overs + k->overs + (int)t->downs, 0);
    one_free(w);
    one_free(k);
    one_free(p);
    one_free(g);
    one_free(v);
    scene_free(t);
}

/* The transaction of a fair lock: puts its entry and reads the older ones. */
CASE(test_transaction)
{
    struct scene *t = scene_of(&plain);
    struct one *x = one_of(t, &txn);
    Etcd__Compare is_new = ETCD__COMPARE__INIT, *compares[] = {&is_new};
    Etcd__Put key = ETCD__PUT__INIT;
    Etcd__Range who = ETCD__RANGE__INIT;
    Etcd__Op ops[] = {ETCD__OP__INIT, ETCD__OP__INIT};
    Etcd__Op *then[] = {&ops[0], &ops[1]};
    Etcd__Txn m = ETCD__TXN__INIT;
    Etcd__TxnAnswer *a;
    const uint8_t *p;
    size_t len;

    connect_it(t);
    is_new.target = ETCD__COMPARE__TARGET__CREATE;
    is_new.key = key.key = bytes("txn/1");
    is_new.with_case = ETCD__COMPARE__WITH_CREATE_REVISION;
    who.key = bytes("txn/");
    who.range_end = bytes("txn0");
    who.limit = 2;
    who.sort_order = ETCD__RANGE__ORDER__DESCEND;
    who.sort_target = ETCD__RANGE__TARGET__CREATE;
    ops[0].op_case = ETCD__OP__OP_PUT;
    ops[0].put = &key;
    ops[1].op_case = ETCD__OP__OP_RANGE;
    ops[1].range = &who;
    m.compare = compares;
    m.n_compare = 1;
    m.success = then;
    m.n_success = 2;
    m.failure = then + 1;
    m.n_failure = 1;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(asked(x, &m), 0);
        p = hf__grpc_answer(&x->call, &len);
        a = etcd__txn_answer__unpack(NULL, len, p);
        assert_non_null(a);
        assert_int_equal(a->succeeded, !i);
        assert_int_equal(a->n_responses, 2 - i);
        assert_int_equal(a->responses[1 - i]->range->n_kvs, 1);
        etcd__txn_answer__free_unpacked(a, NULL);
    }
    one_free(x);
    scene_free(t);
}

/* A stopped server still accepts what is sent to it, a killed one does not. In
 * both cases the client connects to the next address. */
CASE(test_next_address_takes_over)
{
    struct etcd_server other = {0};
    struct scene *t;
    struct one *p, *w;
    Etcd__Put m = ETCD__PUT__INIT;
    Etcd__Watch create = ETCD__WATCH__INIT;
    Etcd__WatchCreate what = ETCD__WATCH_CREATE__INIT;

    assert_int_equal(etcd_server_start(&other), 0);
    t = scene_of(&other);
    add_address(&t->peer, plain.port);
    p = one_of(t, &put);
    w = one_of(t, &watches);
    connect_it(t);
    assert_int_equal(put_it(p, "next/a", "1"), 0);
    what.key = bytes("next/a");
    create.request_case = ETCD__WATCH__REQUEST_CREATE;
    create.create = &what;
    ask(w, &create, 0);
    assert_true(DRIVE_UNTIL(t, w->messages == 1));
    assert_int_equal(etcd_server_stop(&other), 0);
    t->g.link.silence_ms = t->g.link.connect_ms = 300;
    m.key = bytes("next/a");
    p->overs = 0;
    ask(p, &m, 200);
    hf__grpc_flush(&t->g);
    assert_true(DRIVE_UNTIL(t, p->overs == 1));
    assert_int_equal(p->end, GRPC_LATE);
    assert_true(DRIVE_UNTIL(t, t->downs)); /* the server is stopped */
    assert_int_equal(w->end, GRPC_LOST);
    t->g.link.connect_ms = 2000; /* for trying every address once */
    assert_true(DRIVE_UNTIL(t, t->ups == 2));
    assert_non_null(strstr(t->g.link.where, strchr(plain.url + 7, ':')));
    assert_int_equal(put_it(p, "next/a", "2"), 0);
    etcd_server_end(&other);
    one_free(p);
    one_free(w);
    scene_free(t);
}

CASE(test_killed_and_started_again)
{
    struct etcd_server other = {0};
    struct scene *t;
    struct one *p, *w;
    Etcd__Watch create = ETCD__WATCH__INIT;
    Etcd__WatchCreate what = ETCD__WATCH_CREATE__INIT;

    assert_int_equal(etcd_server_start(&other), 0);
    t = scene_of(&other);
    p = one_of(t, &put);
    w = one_of(t, &watches);
    connect_it(t);
    what.key = bytes("killed/a");
    create.request_case = ETCD__WATCH__REQUEST_CREATE;
    create.create = &what;
    ask(w, &create, 0);
    assert_true(DRIVE_UNTIL(t, w->messages == 1));
    etcd_server_kill(&other);
    assert_true(DRIVE_UNTIL(t, w->overs));
    assert_int_equal(w->end, GRPC_LOST);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_int_equal(etcd_server_again(&other), 0);
    assert_true(DRIVE_UNTIL(t, t->ups == 2));
    assert_int_equal(put_it(p, "killed/a", "2"), 0);
    etcd_server_end(&other);
    one_free(p);
    one_free(w);
    scene_free(t);
}

CASE(test_tokens)
{
    struct etcd_server s = {0};
    struct scene *t;
    struct one *p;
    char out[256];

    assert_int_equal(etcd_server_start(&s), 0);
    assert_int_equal(
        etcd_server_ctl(&s, "user add root:" PASSWORD, out, sizeof(out)), 0);
    etcd_server_ctl(&s, "user grant-role root root", out, sizeof(out));
    assert_int_equal(etcd_server_ctl(&s, "auth enable", out, sizeof(out)), 0);
    t = scene_of(&s);
    p = one_of(t, &put);
    connect_it(t); /* without a user name */
    assert_int_equal(put_it(p, "tokens/a", "1"), 3);
    assert_non_null(strstr(p->text, "user name is empty"));
    hf__grpc_stop(&t->g);
    t->ups = 0;
    t->signs_in = true;
    connect_it(t);
    assert_int_equal(put_it(p, "tokens/a", "1"), 0);
    assert_int_equal(hf__grpc_token(&t->g, "of-another-time.1", 0, ""), 0);
    assert_int_equal(put_it(p, "tokens/a", "2"), 0);
    assert_int_equal(t->renewals, 1);
    assert_int_equal(put_it(p, "tokens/a", "3"), 0);
    assert_int_equal(t->renewals, 1);
    one_free(p);
    scene_free(t);
    etcd_server_end(&s);
}

static void use_tls(struct scene *t, const struct etcd_server *s,
                    const char *ca_name, bool certificate)
{
    char ca[128], cert[128], key[128];
    struct net_tls_files files = {.cacert = ca, .alpn = "h2"};

    snprintf(ca, sizeof(ca), "%s/%s.pem", s->dir, ca_name);
    snprintf(cert, sizeof(cert), "%s/client.pem", s->dir);
    snprintf(key, sizeof(key), "%s/client.key", s->dir);
    if (certificate) {
        files.cert = cert;
        files.key = key;
    }
    assert_int_equal(hf__tls_new(&core, NULL, &files, &t->g.link.stream.tls),
                     0);
}

static void fails_with(struct scene *t, int code, const char *text)
{
    hf__link_start(&t->g.link, now());
    assert_true(DRIVE_UNTIL(t, t->downs));
    if (code)
        assert_int_equal(t->down_code, code);
    if (!strstr(t->g.link.text, text))
        fail_msg("%s", t->g.link.text);
    scene_free(t);
}

CASE(test_tls)
{
    struct etcd_server s = {.tls = "server", .asks_certificate = true};
    struct scene *t;
    struct one *p;

    assert_int_equal(etcd_server_start(&s), 0);
    t = scene_of(&s);
    use_tls(t, &s, "ca", true);
    p = one_of(t, &put);
    connect_it(t);
    assert_int_equal(put_it(p, "tls/a", "1"), 0);
    one_free(p);
    scene_free(t);
    t = scene_of(&s);
    use_tls(t, &s, "ca", false);
    fails_with(t, HF_EAUTH, "certificate");
    t = scene_of(&s);
    use_tls(t, &s, "stranger", true);
    fails_with(t, HF_EAUTH, "not trusted");
    /* The client connects without TLS to a server that requires it. The server
     * closes the connection, possibly after an error message. */
    fails_with(scene_of(&s), 0, "is it etcd?");
    t = scene_of(&plain);
    use_tls(t, &s, "ca", true);
    fails_with(t, 0, "is it etcd?");
    etcd_server_end(&s);
}

static int start(void **state)
{
    clock_ns = 0;
    return etcd_server_start(&plain);
}

static int stop(void **state)
{
    etcd_server_end(&plain);
    return 0;
}

CASES_MAIN(start, stop);
