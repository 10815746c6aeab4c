/*
 * Feeds the Redis backend anything that a server may send: with requests
 * pending, arbitrary bytes arrive in arbitrary pieces on the command and the
 * subscription connection. The backend must not crash, and must report each
 * request exactly once.
 *
 * This is a target of clang's fuzzer; with PLAIN_MAIN it is a program that
 * mutates valid replies at random and prints the seed:
 *
 *     fuzz_redis_reply [TIMES [SEED]]
 */
#include "backends/redis/cmd.h"
#include "backends/redis/flights.h"
#include "backends/redis/late_replies.h"
#include "backends/redis/lock.h"
#include "backends/redis/pipe.h"
#include "backends/redis/query.h"
#include "backends/redis/redis.h"
#include "backends/redis/renew.h"
#include "backends/redis/reply.h"
#include "backends/redis/requests.h"
#include "backends/redis/subscribe.h"
#include "fuzz_core.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMES 3
#define BATCH 300
#define DAY (86400000LL * HF__MS)

struct scene {
    struct redis *r;
    int cmd, sub; /* the server's ends of the two connections */
    struct hf__remote remote[NAMES];
    struct hf__req attempt[NAMES], let_go[NAMES];
    struct hf__batch batch;
    struct hf__renewal items[BATCH];
    struct hf__query query[3];
};

/* Connects without a server: the connection is up at once. Returns the server's
 * end. */
static int connect_pair(struct rd_pipe *p)
{
    int fds[2];

    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), "no pair");
    p->link.stream.fd = fds[0];
    p->link.state = NET_UP;
    p->link.pause_ms = p->link.connect_ms = p->link.silence_ms = 1000;
    p->link.peer = &((struct redis *)p->owner)->peer;
    p->link.tags = &((struct redis *)p->owner)->tags;
    p->link.lost = "fuzz";
    p->reader = hf__rd_reader_new(&p->arena);
    return fds[1];
}

static struct redis *make_redis(void)
{
    struct redis *r = calloc(1, sizeof(*r));

    r->core = r->peer.core = r->chans.table.core = &fake;
    r->opened = true;
    r->op_timeout_ms = 1000;
    r->chance = 1;
    memset(r->uuid, '0', HF__UUID_LEN);
    r->wake_len =
        (size_t)snprintf(r->wake, sizeof(r->wake), "holdfast:wake:%s", r->uuid);
    r->chans.state = RD_SUB_LIVE;
    hf__net_set_path(&r->peer, "/nonexistent");
    hf__rd_pipe_init(&r->cmd, &fake, NULL, &hf__rd_cmd, r,
                     sizeof(struct rd_flight));
    hf__rd_pipe_init(&r->sub, &fake, NULL, &hf__rd_sub, r,
                     sizeof(struct rd_sent));
    return r;
}

static int send_req(struct hf__req *req, int rc)
{
    req->flying = rc == HF__PENDING;
    return rc == HF__PENDING;
}

/* Sends, in this order: attempts, an abandon of one of them, a long batch of
 * renewals, and the queries `ops`. Returns the number of results to expect. */
static int fill(struct scene *s)
{
    static const uint8_t ops[] = {HF__INSPECT, HF__LIST, HF__BREAK};
    static const char *const texts[NAMES] = {"a", "b", "{a}"};
    int sent = 0;

    for (int i = 0; i < NAMES; i++) {
        s->remote[i] =
            (struct hf__remote){.name = texts[i],
                                .name_len = (uint16_t)strlen(texts[i]),
                                .kind = HF_MUTEX,
                                .fair = i == 1,
                                .label = ""};
        must(!hf__rd_attach(s->r, &s->remote[i]), "attach");
        s->attempt[i] = (struct hf__req){.remote = &s->remote[i],
                                         .hold_id = (uint64_t)i + 1,
                                         .lease_ms = 30000,
                                         .op = HF__ATTEMPT,
                                         .may_queue = true,
                                         .flying = true};
        s->remote[i].attempt = &s->attempt[i];
        sent += send_req(&s->attempt[i], hf__rd_attempt(s->r, &s->attempt[i]));
    }
    s->let_go[2] = (struct hf__req){.remote = &s->remote[2],
                                    .hold_id = 3,
                                    .op = HF__ABANDON,
                                    .flying = true};
    s->attempt[2].flying = false;
    sent += send_req(&s->let_go[2], hf__rd_abandon(s->r, &s->let_go[2])) - 1;
    for (int i = 0; i < BATCH; i++)
        s->items[i] = (struct hf__renewal){
            .remote = &s->remote[0], .hold_id = 1, .lease_ms = 30000};
    s->batch = (struct hf__batch){.req = {.op = HF__RENEW, .flying = true},
                                  .len = BATCH,
                                  .item = s->items};
    sent += send_req(&s->batch.req, hf__rd_renew(s->r, &s->batch));
    for (int i = 0; i < 3; i++) {
        s->query[i] = (struct hf__query){.req = {.op = ops[i],
                                                 .flying = true,
                                                 .meant_until = clock_ns + DAY},
                                         .name = "a",
                                         .name_len = 1,
                                         .info = &info,
                                         .names = &names};
        sent += send_req(&s->query[i].req, hf__rd_query(s->r, &s->query[i]));
    }
    return sent;
}

static void drain(int fd)
{
    char buf[65536];

    while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
        ;
}

/* Sends the data in pieces. The byte before each piece gives its connection and
 * its length. */
static void play(struct scene *s, const uint8_t *data, size_t len)
{
    while (len > 1) {
        struct net_link *l = data[0] & 1 ? &s->r->sub.link : &s->r->cmd.link;
        int fd = data[0] & 1 ? s->sub : s->cmd;
        size_t some = data[0] >> 1 ? (size_t)(data[0] >> 1) * 8 : len;

        data++, len--;
        some = some < len ? some : len;
        if (l->state == NET_UP && send(fd, data, some, MSG_NOSIGNAL) > 0)
            hf__link_ready(l, l->stream.tag, EPOLLIN, clock_ns);
        drain(s->cmd);
        drain(s->sub);
        hf__rd_pump(s->r);
        data += some, len -= some;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct scene *s = calloc(1, sizeof(*s));
    int sent;

    reported = 0;
    parties_len = 0;
    s->r = make_redis();
    s->cmd = connect_pair(&s->r->cmd);
    s->sub = connect_pair(&s->r->sub);
    sent = fill(s);
    play(s, data, len);
    /* When the connection breaks, every pending request must be reported. */
    if (s->r->cmd.link.state == NET_UP)
        hf__link_fail(&s->r->cmd.link, HF_EBACKEND, clock_ns);
    must(reported == sent, "a request was forgotten");
    for (int i = 0; i < NAMES; i++)
        hf__rd_detach(s->r, &s->remote[i]);
    hf__rd_pipe_fini(&s->r->cmd);
    hf__rd_pipe_fini(&s->r->sub);
    hf__rd_late_fini(s->r);
    hf__rd_sub_fini(s->r);
    free(s->r);
    close(s->cmd);
    close(s->sub);
    free(s);
    return 0;
}

#ifdef PLAIN_MAIN
#define U "00000000-0000-0000-0000-000000000000"
static const char *const good[] = {
    /* Each string is a byte for play() and a sequence of whole replies, in the
     * order of the requests. */
    "\x00*3\r\n:2\r\n:1700000000000000\r\n:1700000000000001\r\n"
    "*5\r\n:3\r\n:1700000000000000\r\n:30000\r\n:0\r\n:1\r\n:4\r\n:1\r\n",
    "\x00*5\r\n:3\r\n:1700000000000000\r\n:-1\r\n:1\r\n:9\r\n"
    "-NOSCRIPT No matching script.\r\n*2\r\n:5\r\n:1700000000000000\r\n:0\r\n",
    "\x00*2\r\n:6\r\n:1700000000000000\r\n-WRONGTYPE x\r\n-NOPERM y\r\n:1\r\n"
    "$4\r\n0101\r\n",
    "\x01*3\r\n$9\r\nsubscribe\r\n$50\r\nholdfast:wake:00000000000000000000000"
    "0000000000000\r\n:1\r\n",
    "\x01*3\r\n$7\r\nmessage\r\n$26\r\nredisson_lock__channel:{a}\r\n$1\r\n0"
    "\r\n*3\r\n$7\r\nmessage\r\n$50\r\nholdfast:wake:000000000000000000000000"
    "000000000000\r\n$23\r\nu1 1700 1700000000000 a\r\n",
    "\x01*2\r\n$4\r\npong\r\n$0\r\n\r\n-NOPERM channel\r\n",
};

#define GOOD (sizeof(good) / sizeof(*good))

/* Writes two valid sequences of replies, with a few bytes changed. */
static size_t mutate(uint8_t *to, size_t first)
{
    static const char bytes[] = "*$:+-\r\n0123456789\xff\x00 {}";
    size_t len = 0, changes = draw(6);

    for (int i = 0; i < 2; i++) {
        const char *g = good[i ? draw(GOOD) : first];
        size_t n = 1 + strlen(g + 1);

        memcpy(to + len, g, n);
        if (draw(3) == 0)
            to[len] = (uint8_t)((to[len] & 1) | draw(64) << 1);
        len += n;
    }
    for (size_t i = 0; i < changes; i++)
        to[draw(len)] = (uint8_t)bytes[draw(sizeof(bytes) - 1)];
    return draw(4) ? len : draw(len) + 1;
}

/* Each case begins with a different reply. */
int main(int argc, char **argv)
{
    const struct fuzzer f = {GOOD, 3500, mutate, "runs", NULL};

    return run_fuzzer(&f, argc, argv);
}
#endif
