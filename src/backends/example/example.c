/*
 * The smallest complete networked backend: a mutex, at a server that keeps a
 * queue. It is an example to read (docs/backend.md explains it) and is built
 * only for the tests; tests/lib/example_server.py is its server.
 *
 *   example://host[:7007]
 *
 * A message is a line of text. A client is identified by a random number, a
 * hold by its client and the core's hold id. Numbers are decimal, times are in
 * ms, and a name is hexadecimal because it may contain any byte.
 *
 *   HELLO client                   WELCOME clock
 *   TAKE hold lease queue name     GRANTED hold token | QUEUED hold | BUSY hold
 *   DROP hold                      DROPPED hold was_held
 *   KEEP hold lease until          KEPT hold 0: no hold, 1: kept, 2: too late
 *                                  TURN hold     its turn: TAKE it now
 *                                  LOST hold     it has ended or was broken
 *
 * The server answers in the order of the requests. Lost answers are harmless
 * because of these rules:
 * - TAKE, DROP and KEEP identify everything by the hold, so a message that is
 *   sent again has the same effect. TAKE of a hold that exists extends it, and
 *   is answered with the same token.
 * - A hold lasts as long as its lease, by the server's clock; a place in the
 *   queue lasts as long as its connection.
 * - The HELLO of a client ends its earlier connection: no message that is still
 *   under way there is executed after a message of the new connection.
 *
 * Every function is called with the client's mutex held, so there is no lock.
 * No slot calls core->done(): if a write of a slot fails, the following
 * advance() reports the pending requests.
 */
#include "net/link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PORT 7007
#define LINE_MAX 80 /* any line, without the name */

/* The state of a lock; remote->impl points to it. */
struct example_lock {
    struct example_lock *next;
    struct hf__remote *remote;
    uint64_t hold_id; /* hold id of the last TAKE, or 0 */
};

struct example {
    const struct hf__core *core;
    hf_client *client;
    struct net_endpoint peer;
    struct net_link link; /* connects, reconnects; calls `talk` */
    uint32_t tags;
    uint64_t me;                 /* the client's number at the server */
    uint64_t clock;              /* the server's clock in ms */
    hf__time clock_at;           /* when `clock` was read */
    struct hf__req *first, **to; /* pending, in the order of sending */
    struct example_lock *locks;
    bool put_off; /* a slot has returned LATER, so go_on() must follow */
    bool opened;  /* the client has been connected once */
    size_t in_len;
    char in[256]; /* the part of a line that has arrived */
};

/* Removes a request from the list of pending ones. The core owns the requests;
 * their `next` belongs to the backend while they are pending. */
static void example_take_out(struct example *x, struct hf__req **at)
{
    *at = (*at)->next;
    if (!*at)
        x->to = at;
}

/* Finds the first request of these kinds with this hold id (0 matches any). */
static struct hf__req **example_find(struct example *x, unsigned ops,
                                     uint64_t hold_id)
{
    struct hf__req **at = &x->first;

    while (*at &&
           (!(ops & 1u << (*at)->op) || (hold_id && (*at)->hold_id != hold_id)))
        at = &(*at)->next;
    return at;
}

static void example_finish(struct example *x, struct hf__req **at, int result)
{
    struct hf__req *req = *at;

    example_take_out(x, at); /* done() gives the request back to the core */
    req->result = (int16_t)result;
    x->core->done(x->client, req);
}

/* Called when the connection has ended or could not be established. A request
 * without an answer may or may not have been executed, so it ends as EUNKNOWN,
 * and the core sends it again. (A request of which nothing was written could
 * instead be given back by core->unsent(), which avoids the EUNKNOWN.) */
static void example_down(void *self, int code, bool was_up, hf__time now)
{
    struct example *x = self;

    (void)now;
    x->in_len = 0;
    x->core->trouble(x->client, x->link.text);
    if (was_up)
        x->core->session(x->client, HF_EVENT_DOWN, NULL);
    x->core->why(x->client, HF_EUNKNOWN, "%s", x->link.text);
    while (x->first)
        example_finish(x, &x->first, HF_EUNKNOWN);
    /* The places in the queue are lost with the connection, so no TURN will
     * arrive. A bell for a lock that does not wait has no effect. */
    for (struct example_lock *lock = x->locks; lock; lock = lock->next)
        x->core->bell(x->client, lock->remote);
    if (code == HF_EPROTO) { /* another program answers */
        x->core->why(x->client, code, "%s", x->link.text);
        x->core->refuse(x->client, code);
    }
}

__attribute__((format(printf, 2, 3))) static void
example_put(struct example *x, const char *fmt, ...)
{
    struct net_out *o = &x->link.stream.out;
    va_list ap;

    va_start(ap, fmt);
    o->len += (size_t)vsnprintf(o->data + o->len, o->cap - o->len, fmt, ap);
    va_end(ap);
}

/* Called when the connection is established. Until example_welcome() the link
 * is not up, and only this HELLO is sent. */
static int example_greet(void *self, hf__time now)
{
    struct example *x = self;

    (void)now;
    if (hf__net_reserve(&x->link.stream, LINE_MAX))
        return hf__link_why(&x->link, HF_ENOMEM, "out of memory");
    example_put(x, "HELLO %" PRIu64 "\n", x->me);
    return 0;
}

static int example_welcome(struct example *x, uint64_t clock)
{
    x->clock = clock;
    x->clock_at = x->core->now();
    hf__link_up(&x->link, x->clock_at);
    x->core->trouble(x->client, NULL);
    if (x->opened)
        x->core->session(x->client, HF_EVENT_UP, NULL);
    x->opened = true; /* advance() follows, and calls go_on() */
    return 0;
}

/* Begins each slot that sends. Returns 0 if there is room for `size` bytes,
 * otherwise the result of the slot. After a LATER all slots return LATER until
 * go_on(), so that no request overtakes a parked one. */
static int example_begin(struct example *x, struct hf__req *req, size_t size)
{
    x->put_off = !hf__link_wanted(&x->link) || x->put_off;
    if (x->put_off)
        return HF__LATER;
    req->untouched = true; /* nothing has been sent for it */
    if (hf__net_reserve(&x->link.stream, size))
        return HF_ENOMEM;
    req->untouched = false;
    req->sent_at = x->core->now(); /* before a byte of it can be written */
    return 0;
}

/* Ends each slot that sends. Parked requests are not written here, because
 * advance() writes them together. due() makes the driver call advance() in time
 * to notice that the server is silent, or that the write has failed. */
static int example_end(struct example *x, struct hf__req *req)
{
    hf__link_await(&x->link, req->sent_at);
    req->next = NULL;
    *x->to = req;
    x->to = &req->next;
    if (!req->parked)
        hf__net_flush(&x->link.stream);
    x->core->due(x->client, hf__link_timeout(&x->link));
    return HF__PENDING;
}

static int example_attempt(void *self, struct hf__req *req)
{
    struct example *x = self;
    const struct hf__remote *m = req->remote;
    int rc = example_begin(x, req, LINE_MAX + 2 * (size_t)m->name_len);

    if (rc)
        return rc;
    ((struct example_lock *)m->impl)->hold_id = req->hold_id;
    example_put(x, "TAKE %" PRIu64 " %u %d ", req->hold_id, req->lease_ms,
                req->may_queue);
    for (size_t i = 0; i < m->name_len; i++)
        example_put(x, "%02x", (unsigned char)m->name[i]);
    example_put(x, "\n");
    return example_end(x, req);
}

/* Releases the hold or the place in the queue with this id, if it exists. */
static int example_release(void *self, struct hf__req *req)
{
    struct example *x = self;
    int rc = example_begin(x, req, LINE_MAX);

    if (rc)
        return rc;
    example_put(x, "DROP %" PRIu64 "\n", req->hold_id);
    return example_end(x, req);
}

/* The attempt may still be pending. The core will reuse its memory, so the
 * attempt is removed from the list first, even if the slot returns LATER. The
 * answer will then find no request. */
static int example_abandon(void *self, struct hf__req *req)
{
    struct hf__req **attempt =
        example_find(self, 1u << HF__ATTEMPT, req->hold_id);

    if (*attempt)
        example_take_out(self, attempt);
    return example_release(self, req);
}

/* `until` is meant_until by the server's clock, or 0 for no limit. We read the
 * clock a little after the server has sent it, so `until` is too early rather
 * than too late: a renewal must not succeed after the caller has given it
 * up. */
static int example_renew(void *self, struct hf__batch *b)
{
    struct example *x = self;
    hf__time at = b->req.meant_until;
    int rc = example_begin(x, &b->req, b->len * LINE_MAX);
    uint64_t until =
        at == HF__NEVER ? 0 : x->clock + (uint64_t)(at - x->clock_at) / HF__MS;

    if (rc)
        return rc;
    for (size_t i = 0; i < b->len; i++) {
        b->item[i].result = HF_EUNKNOWN; /* until the item is answered */
        example_put(x, "KEEP %" PRIu64 " %u %" PRIu64 "\n", b->item[i].hold_id,
                    b->item[i].lease_ms, until);
    }
    return example_end(x, &b->req);
}

static int example_attach(void *self, struct hf__remote *remote)
{
    struct example *x = self;
    struct example_lock *lock = x->core->alloc(x->client, sizeof(*lock));

    if (!lock)
        return HF_ENOMEM;
    lock->remote = remote;
    lock->next = x->locks;
    x->locks = remote->impl = lock;
    return 0;
}

static void example_detach(void *self, struct hf__remote *remote)
{
    struct example *x = self;
    struct example_lock **at = &x->locks, *lock = remote->impl;

    while (*at != lock)
        at = &(*at)->next;
    *at = lock->next;
    x->core->free(x->client, lock);
}

/* Answers arrive in order, so a KEPT is for the first pending batch; the KEPT
 * of the last item finishes that batch. */
static int example_kept(struct example *x, uint64_t hold_id, uint64_t what)
{
    static const int16_t result[] = {HF_ENOTOWNER, HF__DONE, HF_EUNKNOWN};
    struct hf__req **at = example_find(x, 1u << HF__RENEW, 0);
    struct hf__batch *b = (struct hf__batch *)*at;
    size_t i = 0;

    while (b && i < b->len && b->item[i].hold_id != hold_id)
        i++;
    if (!b || i == b->len || what > 2)
        return HF_EPROTO;
    b->item[i].result = result[what];
    if (i + 1 == b->len)
        example_finish(x, at, HF__DONE);
    return 0;
}

/* Handles the answer to a TAKE. After an abandon it finds no request. */
static int example_taken(struct example *x, uint64_t hold_id, int result,
                         uint64_t token)
{
    struct hf__req **at = example_find(x, 1u << HF__ATTEMPT, hold_id);

    if (!*at)
        return 0;
    if (result == HF__QUEUED)
        (*at)->poll_at = HF__NEVER; /* TURN or example_down() will ring */
    else
        (*at)->token = token;
    example_finish(x, at, result);
    return 0;
}

static int example_dropped(struct example *x, uint64_t hold_id, bool was_held)
{
    struct hf__req **at =
        example_find(x, 1u << HF__RELEASE | 1u << HF__ABANDON, hold_id);

    if (!*at)
        return HF_EPROTO;
    was_held = was_held || (*at)->op == HF__ABANDON;
    example_finish(x, at, was_held ? HF__DONE : HF_ENOTOWNER);
    return 0;
}

/* Handles TURN and LOST, whose hold may have been released already. */
static int example_announced(struct example *x, uint64_t hold_id, bool is_lost)
{
    struct example_lock *lock = x->locks;

    while (lock && lock->hold_id != hold_id) /* slow with thousands of locks */
        lock = lock->next;
    if (lock && is_lost)
        x->core->lost(x->client, lock->remote, hold_id, NULL);
    else if (lock)
        x->core->bell(x->client, lock->remote);
    return 0;
}

/* Handles a message. Returns 0, or EPROTO, which closes the connection because
 * the answers no longer match the requests. */
static int example_answer(struct example *x, const char *line)
{
    char word[16];
    uint64_t id, n = 0;
    int fields = sscanf(line, "%15s %" SCNu64 " %" SCNu64, word, &id, &n);

    if (fields < 2 || (x->link.state == NET_UP) == !strcmp(word, "WELCOME"))
        return HF_EPROTO;
    if (x->link.state != NET_UP)
        return example_welcome(x, id);
    if (!strcmp(word, "GRANTED") && n)
        return example_taken(x, id, HF__GRANTED, n);
    if (!strcmp(word, "QUEUED") || !strcmp(word, "BUSY"))
        return example_taken(x, id, *word == 'Q' ? HF__QUEUED : HF__BUSY, 0);
    if (!strcmp(word, "DROPPED") && fields == 3)
        return example_dropped(x, id, n != 0);
    if (!strcmp(word, "KEPT") && fields == 3)
        return example_kept(x, id, n);
    if (!strcmp(word, "TURN") || !strcmp(word, "LOST"))
        return example_announced(x, id, *word == 'L');
    return HF_EPROTO;
}

/* Splits the received bytes into lines. */
static int example_data(void *self, const char *p, size_t len, hf__time now)
{
    struct example *x = self;
    int rc = 0;

    (void)now;
    for (; len && !rc; p++, len--) {
        x->in[x->in_len++] = *p == '\n' ? '\0' : *p;
        if (*p == '\n') {
            x->in_len = 0;
            rc = example_answer(x, x->in);
        } else if (x->in_len == sizeof(x->in)) {
            rc = HF_EPROTO;
        }
    }
    x->link.awaits = x->first;
    return rc ? hf__link_why(&x->link, rc,
                             "an answer that we do not "
                             "understand")
              : 0;
}

static const struct net_talk talk = {
    .greet = example_greet, .data = example_data, .down = example_down};

static void example_ready(void *self, uint32_t tag, uint32_t events,
                          hf__time now)
{
    hf__link_ready(&((struct example *)self)->link, tag, events, now);
}

static hf__time example_next_timeout(void *self)
{
    return hf__link_timeout(&((struct example *)self)->link);
}

static void example_advance(void *self, hf__time now)
{
    struct example *x = self;

    hf__link_advance(&x->link, now);
    hf__net_flush(&x->link.stream);
    if (x->put_off && x->link.state == NET_UP) {
        x->put_off = false;
        x->core->go_on(x->client); /* the core calls the slots and advance() */
    }
}

static void example_close(void *self)
{
    struct example *x = self;

    hf__link_fini(&x->link);
    hf__net_endpoint_fini(&x->peer);
    x->core->free(x->client, x);
}

static int example_prepare(struct example *x, const struct hf__config *config)
{
    const struct hf__url *url = config->url;
    uint32_t third = config->ttl_ms / 3, op_ms = config->op_timeout_ms;
    int rc;

    if (url->hosts_len != 1 || !url->hosts[0].name[0] || url->path[0])
        return x->core->why(x->client, HF_EINVAL,
                            "there must be one host and no path, as in "
                            "example://host:%d",
                            PORT);
    x->link.connect_ms = config->connect_timeout_ms;
    x->link.pause_ms = op_ms / 8; /* short, to find a restarted server soon */
    /* After a silence of a third of the TTL, there is time to renew once
     * more. */
    x->link.silence_ms = third < 200 ? 200 : third < op_ms ? third : op_ms;
    rc = x->core->random(&x->me, sizeof(x->me));
    if (!rc)
        rc = hf__net_set_hosts(&x->peer, url->hosts, 1, PORT);
    return rc ? rc : hf__net_find(&x->peer); /* blocks, as open() may */
}

static int example_open(hf_client *client, const struct hf__core *core,
                        const struct hf__config *config, void **self)
{
    struct example *x = core->alloc(client, sizeof(*x));
    int rc;

    if (!x)
        return HF_ENOMEM;
    x->core = x->peer.core = core;
    x->client = x->peer.client = client;
    x->to = &x->first;
    hf__link_init(&x->link, core, client);
    x->link.talk = &talk;
    x->link.owner = x;
    x->link.peer = &x->peer;
    x->link.tags = &x->tags;
    x->link.lost = "example: lost the connection";
    rc = example_prepare(x, config);
    if (rc) {
        example_close(x);
        return rc;
    }
    hf__link_start(&x->link, core->now()); /* advance() connects */
    *self = x;
    return 0;
}

static int example_opened(void *self)
{
    return hf__link_opened(&((struct example *)self)->link);
}

static const struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "example",
    .caps = {[HF_MUTEX] = HF_CAP_FAIR | HF_CAP_LEASE | HF_CAP_EVENTS},
    .fair_by_default = true,
    .taken = "it is no longer on the server (broken, or lost by a restart)",
    .open = example_open,
    .opened = example_opened,
    .close = example_close,
    .ready = example_ready,
    .advance = example_advance,
    .next_timeout = example_next_timeout,
    .attach = example_attach,
    .detach = example_detach,
    .attempt = example_attempt,
    .release = example_release,
    .abandon = example_abandon,
    .renew = example_renew, /* there is no .query: nothing can be inspected */
};

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    (void)scheme;
    return abi == HF__ABI ? &backend : NULL;
}
