/*
 * The smallest complete networked backend: a mutex, at a server that keeps a
 * queue. It is there to be read (docs/backend.md goes through it) and is built
 * for the tests alone; tests/lib/example_server.py is its server.
 *
 *   example://host[:7007]
 *
 * Lines of text, in both directions. A client is a random number, a hold is a
 * client and the core's hold id; numbers are decimal, times are ms, a name is
 * in hexadecimal because it may have any byte in it.
 *
 *   HELLO client                   WELCOME clock
 *   TAKE hold lease queue name     GRANTED hold token | QUEUED hold | BUSY hold
 *   DROP hold                      DROPPED hold was_held
 *   KEEP hold lease until          KEPT hold 0: not there, 1: kept, 2: too late
 *                                  TURN hold     it is first: TAKE it now
 *                                  LOST hold     it has ended, or was broken
 *
 * The server answers in the order of asking. What makes lost answers harmless:
 * - TAKE, DROP and KEEP find what they are about by the hold alone, so that the
 *   same line, sent again, does the same. TAKE of a hold that is there makes
 *   it last longer and says the same token.
 * - A hold lasts as long as its lease, by the server's clock; a place in the
 *   queue lasts as long as its connection.
 * - The HELLO of a client ends its former connection: nothing that is still on
 *   its way there is done after what was sent on the new one.
 *
 * Everything here runs with the client's mutex held, so there is no lock. No
 * slot reports anything by core->done() itself: a stream that breaks while it
 * is written to is found by advance().
 */
#include "../../net/endpoint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define PORT 7007
#define LINE_MAX 80       /* any line, but for the name in it */
#define OUT_HIGH 65536    /* with so much to write nothing more is taken */
#define LIVED_MS 1000     /* a connection that was up for so long was good */
#define PAUSE_MAX_MS 1000 /* between two attempts to connect */

enum state {
    PAUSING,    /* not connected; the next attempt is at `timer` */
    CONNECTING, /* until `timer` at most */
    GREETING,   /* connected, HELLO is sent; the same */
    UP
};

/* What we know about a line of the core's. */
struct line {
    struct line *next, **at; /* in lines */
    struct hf__remote *remote;
    uint64_t hold_id; /* of the last TAKE; 0: none */
    bool queued;      /* the last answer to it was QUEUED */
};

struct example {
    const struct hf__core *core;
    hf_client *client;
    struct net_endpoint peer;
    struct net_walk walk;
    struct net_stream stream;
    enum state state;
    hf__time timer;
    hf__time up_at, heard_at;
    uint32_t connect_ms, open_ms, silence_ms, pause_max_ms;
    uint64_t me;                 /* the client's number at the server */
    uint64_t clock;              /* of the server, in ms, */
    hf__time clock_at;           /* and when we heard of it */
    struct hf__req *first, **to; /* pending, in the order of sending */
    struct line *lines;
    bool put_off; /* a slot has said LATER, and we owe a go_on() */
    bool opened;
    int open_code; /* why it could not be opened */
    char text[200];
    size_t in_len;
    char in[256];
};

/* ---- pending requests -------------------------------------------------- */

/* The core owns them; `next` is ours while they are pending. */
static void append(struct example *x, struct hf__req *req)
{
    req->next = NULL;
    *x->to = req;
    x->to = &req->next;
}

static void take_out(struct example *x, struct hf__req **at)
{
    *at = (*at)->next;
    if (!*at)
        x->to = at;
}

/* The first of one of these kinds, with that hold id (0: any). */
static struct hf__req **find(struct example *x, unsigned ops, uint64_t hold_id)
{
    struct hf__req **at = &x->first;

    while (*at &&
           !(ops & 1u << (*at)->op && (!hold_id || (*at)->hold_id == hold_id)))
        at = &(*at)->next;
    return at;
}

static void finish(struct example *x, struct hf__req **at, int result)
{
    struct hf__req *req = *at;

    take_out(x, at); /* before done(): then it is the core's again */
    req->result = (int16_t)result;
    x->core->done(x->client, req);
}

static struct line *line_of(struct example *x, uint64_t hold_id)
{
    struct line *l = x->lines;

    while (l && l->hold_id != hold_id) /* a table, if they were thousands */
        l = l->next;
    return l;
}

/* ---- the connection ---------------------------------------------------- */

/* The connection is over, or was not made. What was asked and not answered may
 * have been done, or not: EUNKNOWN, and the core asks again. (What was never
 * written could go back by core->unsent(), which spares a question.) */
static void down(struct example *x, hf__time now, int code, const char *why)
{
    bool was_up = x->state == UP;
    uint32_t chance = 0;

    snprintf(x->text, sizeof(x->text), "%s: %s", x->peer.where, why);
    hf__net_close(&x->stream);
    x->in_len = 0;
    x->state = PAUSING;
    x->core->trouble(x->client, x->text);
    if (was_up) {
        x->core->log(x->client, "example: lost the connection to %s", x->text);
        x->core->session(x->client, HF_EVENT_DOWN, NULL);
        if (now - x->up_at >= LIVED_MS * HF__MS)
            x->walk = (struct net_walk){0};
    }
    x->core->why(x->client, HF_EUNKNOWN, "%s", x->text);
    while (x->first)
        finish(x, &x->first, HF_EUNKNOWN);
    /* Their places are gone, and nobody would tell them. */
    for (struct line *l = x->lines; l; l = l->next)
        if (l->queued) {
            l->queued = false;
            x->core->bell(x->client, l->remote);
        }
    x->timer = now;
    if (!was_up && hf__net_next(&x->peer, &x->walk))
        return; /* the host has another address */
    x->core->random(&chance, sizeof(chance));
    x->timer += hf__net_pause(&x->peer, &x->walk, x->pause_max_ms, chance);
    if (!x->opened)
        x->open_code = code;
    /* It is there, but it is none of ours: those who wait shall hear that. */
    if (code == HF_EPROTO) {
        x->core->why(x->client, code, "%s", x->text);
        x->core->refuse(x->client, code);
    }
}

static void greet(struct example *x, hf__time now)
{
    struct net_out *o = &x->stream.out;

    if (hf__net_reserve(&x->stream, LINE_MAX)) {
        down(x, now, HF_ENOMEM, "out of memory");
        return;
    }
    o->len += (size_t)snprintf(o->data + o->len, LINE_MAX,
                               "HELLO %" PRIu64 "\n", x->me);
    x->state = GREETING;
    hf__net_flush(&x->stream);
}

/* What hf__net_open() or hf__net_go_on() came to. */
static void connected(struct example *x, int rc, hf__time now)
{
    if (rc == 0)
        greet(x, now);
    else if (rc != HF__PENDING)
        down(x, now, HF_EBACKEND, hf__net_why(&x->stream));
}

/* A tag of its own for each descriptor: an event of the last one may come
 * late. */
static void connect_now(struct example *x, hf__time now)
{
    const struct net_addr *a = hf__net_addr(&x->peer, &x->walk);
    uint32_t ms = x->opened ? x->connect_ms : x->open_ms;

    x->state = CONNECTING;
    x->timer = now + (hf__time)ms * HF__MS / (hf__time)x->peer.len;
    connected(x, hf__net_open(&x->stream, a, x->stream.tag + 1), now);
}

static void welcome(struct example *x, uint64_t clock, hf__time now)
{
    x->state = UP;
    x->up_at = x->heard_at = now;
    x->clock = clock;
    x->clock_at = x->core->now();
    hf__net_settle(&x->peer);
    x->core->trouble(x->client, NULL);
    if (x->opened)
        x->core->session(x->client, HF_EVENT_UP, NULL);
    x->opened = true;
}

/* ---- sending ----------------------------------------------------------- */

/* By the server's clock; 0: always. We heard of that clock a little after it
 * was read, so this is rather too early than too late: what is refused is not
 * done, but what is done after its caller has left is a lie. */
static uint64_t server_time(const struct example *x, hf__time at)
{
    if (at == HF__NEVER)
        return 0;
    return at > x->clock_at ? x->clock + (uint64_t)(at - x->clock_at) / HF__MS
                            : x->clock;
}

/* Every slot that sends begins here. 0: there is room for so many bytes; else
 * what the slot returns. Once LATER was said it is said until go_on(), so that
 * no request overtakes one that is parked. */
static int begin(struct example *x, struct hf__req *req, size_t size)
{
    const struct net_out *o = &x->stream.out;

    x->put_off = x->put_off || x->state != UP || x->stream.broken ||
                 o->len - o->from > OUT_HIGH;
    if (x->put_off)
        return HF__LATER;
    req->untouched = true; /* whatever goes wrong from here on */
    if (hf__net_reserve(&x->stream, size))
        return HF_ENOMEM;
    req->untouched = false;
    req->sent_at = x->core->now(); /* before a byte of it can be written */
    return 0;
}

static void put(struct example *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct example *x, const char *fmt, ...)
{
    struct net_out *o = &x->stream.out;
    va_list ap;

    va_start(ap, fmt);
    o->len += (size_t)vsnprintf(o->data + o->len, o->cap - o->len, fmt, ap);
    va_end(ap);
}

/* And ends here. Those that were parked come one after the other, and are
 * written together by advance(). */
static int end(struct example *x, struct hf__req *req)
{
    if (!x->first) {
        x->heard_at = req->sent_at; /* silence begins here */
        x->core->due(x->client, req->sent_at + x->silence_ms * HF__MS);
    }
    append(x, req);
    if (!req->parked)
        hf__net_flush(&x->stream);
    if (x->stream.broken)
        x->core->due(x->client, req->sent_at);
    return HF__PENDING;
}

/* ---- the verbs --------------------------------------------------------- */

static int example_attach(void *self, struct hf__remote *remote)
{
    struct example *x = self;
    struct line *l = x->core->alloc(x->client, sizeof(*l));

    if (!l)
        return HF_ENOMEM;
    l->remote = remote;
    l->next = x->lines;
    l->at = &x->lines;
    if (l->next)
        l->next->at = &l->next;
    x->lines = l;
    remote->impl = l;
    return 0;
}

static void example_detach(void *self, struct hf__remote *remote)
{
    struct example *x = self;
    struct line *l = remote->impl;

    if (!l)
        return;
    *l->at = l->next;
    if (l->next)
        l->next->at = l->at;
    x->core->free(x->client, l);
    remote->impl = NULL;
}

static int example_attempt(void *self, struct hf__req *req)
{
    struct example *x = self;
    const struct hf__remote *m = req->remote;
    struct line *l = m->impl;
    int rc = begin(x, req, LINE_MAX + 2 * (size_t)m->name_len);

    if (rc)
        return rc;
    l->hold_id = req->hold_id;
    l->queued = false;
    put(x, "TAKE %" PRIu64 " %u %d ", req->hold_id, req->lease_ms,
        req->may_queue);
    for (size_t i = 0; i < m->name_len; i++)
        put(x, "%02x", (unsigned char)m->name[i]);
    put(x, "\n");
    return end(x, req);
}

/* Of a hold, of a place, or of nothing at all: the server finds out. */
static int drop(struct example *x, struct hf__req *req)
{
    int rc = begin(x, req, LINE_MAX);

    if (rc)
        return rc;
    put(x, "DROP %" PRIu64 "\n", req->hold_id);
    return end(x, req);
}

static int example_release(void *self, struct hf__req *req)
{
    return drop(self, req);
}

/* The question may be pending still. The core has forgotten it, and will use
 * its memory again: so do we, first of all, even if the rest comes LATER. Its
 * answer will find nobody. */
static int example_abandon(void *self, struct hf__req *req)
{
    struct example *x = self;
    struct line *l = req->remote->impl;
    struct hf__req **ask = find(x, 1u << HF__ATTEMPT, req->hold_id);

    if (*ask)
        take_out(x, ask);
    if (l->hold_id == req->hold_id)
        l->queued = false;
    return drop(x, req);
}

static int example_renew(void *self, struct hf__batch *b)
{
    struct example *x = self;
    int rc = begin(x, &b->req, b->len * LINE_MAX);

    if (rc)
        return rc;
    for (size_t i = 0; i < b->len; i++) {
        b->item[i].result = HF_EUNKNOWN; /* until it is answered */
        put(x, "KEEP %" PRIu64 " %u %" PRIu64 "\n", b->item[i].hold_id,
            b->item[i].lease_ms, server_time(x, b->req.meant_until));
    }
    return end(x, &b->req);
}

/* ---- answers ----------------------------------------------------------- */

/* Answers come in order, so this is about the first batch that is pending, and
 * the batch is over with its last item. */
static int kept(struct example *x, uint64_t hold_id, uint64_t what)
{
    static const int16_t result[] = {HF_ENOTOWNER, HF__DONE, HF_EUNKNOWN};
    struct hf__req **at = find(x, 1u << HF__RENEW, 0);
    struct hf__batch *b = (struct hf__batch *)*at;
    size_t i = 0;

    while (b && i < b->len && b->item[i].hold_id != hold_id)
        i++;
    if (!b || i == b->len || what > 2)
        return HF_EPROTO;
    b->item[i].result = result[what];
    if (i + 1 == b->len)
        finish(x, at, HF__DONE);
    return 0;
}

/* A question that was abandoned meanwhile is not found: nobody is told. */
static int taken(struct example *x, uint64_t hold_id, int result,
                 uint64_t token)
{
    struct hf__req **at = find(x, 1u << HF__ATTEMPT, hold_id);
    struct line *l;

    if (!*at)
        return 0;
    l = (*at)->remote->impl;
    l->queued = result == HF__QUEUED;
    if (result == HF__GRANTED)
        (*at)->token = token;
    else
        (*at)->look_at = HF__NEVER; /* TURN, or down(), is sure to ring */
    finish(x, at, result);
    return 0;
}

static int dropped(struct example *x, uint64_t hold_id, bool was_held)
{
    struct hf__req **at =
        find(x, 1u << HF__RELEASE | 1u << HF__ABANDON, hold_id);

    if (!*at)
        return HF_EPROTO;
    finish(x, at,
           was_held || (*at)->op == HF__ABANDON ? HF__DONE : HF_ENOTOWNER);
    return 0;
}

/* What the server says by itself may be about a hold that we have let go. */
static int told(struct example *x, uint64_t hold_id, bool is_lost)
{
    struct line *l = line_of(x, hold_id);

    if (l && is_lost)
        x->core->lost(x->client, l->remote, hold_id, NULL);
    else if (l && l->queued)
        x->core->bell(x->client, l->remote);
    return 0;
}

/* 0, or EPROTO: then the connection is left, because nobody knows any more
 * what the next answer is about. */
static int answer(struct example *x, const char *line, hf__time now)
{
    char word[16];
    uint64_t hold_id, n = 0;
    int fields = sscanf(line, "%15s %" SCNu64 " %" SCNu64, word, &hold_id, &n);

    if (fields < 2 || (x->state == UP) != (strcmp(word, "WELCOME") != 0))
        return HF_EPROTO;
    if (x->state != UP)
        welcome(x, hold_id, now);
    else if (!strcmp(word, "GRANTED") && n)
        return taken(x, hold_id, HF__GRANTED, n);
    else if (!strcmp(word, "QUEUED"))
        return taken(x, hold_id, HF__QUEUED, 0);
    else if (!strcmp(word, "BUSY"))
        return taken(x, hold_id, HF__BUSY, 0);
    else if (!strcmp(word, "DROPPED") && fields == 3)
        return dropped(x, hold_id, n != 0);
    else if (!strcmp(word, "KEPT") && fields == 3)
        return kept(x, hold_id, n);
    else if (!strcmp(word, "TURN") || !strcmp(word, "LOST"))
        return told(x, hold_id, *word == 'L');
    else
        return HF_EPROTO;
    return 0;
}

/* The lines that are complete; what is left is the beginning of the next. */
static int digest(struct example *x, hf__time now)
{
    char *from = x->in, *end_of;
    int rc = 0;

    while (!rc &&
           (end_of = memchr(from, '\n', x->in_len - (size_t)(from - x->in)))) {
        *end_of = '\0';
        rc = answer(x, from, now);
        from = end_of + 1;
    }
    x->in_len -= (size_t)(from - x->in);
    memmove(x->in, from, x->in_len);
    return rc || x->in_len == sizeof(x->in) ? HF_EPROTO : 0;
}

static void read_all(struct example *x, hf__time now)
{
    do {
        ssize_t n = hf__net_read(&x->stream, x->in + x->in_len,
                                 sizeof(x->in) - x->in_len);

        if (n < 0) {
            down(x, now, HF_EBACKEND, hf__net_why(&x->stream));
            return;
        }
        if (n > 0)
            x->heard_at = now;
        x->in_len += (size_t)n;
        if (digest(x, now)) {
            down(x, now, HF_EPROTO, "an answer that we do not understand");
            return;
        }
    } while (x->stream.more);
}

/* ---- driving ----------------------------------------------------------- */

static void example_ready(void *self, uint32_t tag, uint32_t events,
                          hf__time now)
{
    struct example *x = self;

    if (tag != x->stream.tag || x->stream.fd < 0)
        return; /* of a descriptor that was closed since */
    if (x->state == CONNECTING) {
        connected(x, hf__net_go_on(&x->stream), now);
        return;
    }
    if (events & EPOLLOUT)
        hf__net_flush(&x->stream);
    if (events & ~(uint32_t)EPOLLOUT)
        read_all(x, now);
}

static hf__time example_next_timeout(void *self)
{
    struct example *x = self;

    if (x->stream.broken)
        return 0;
    if (x->state != UP)
        return x->timer;
    return x->first ? x->heard_at + x->silence_ms * HF__MS : HF__NEVER;
}

static void example_advance(void *self, hf__time now)
{
    struct example *x = self;

    if (x->stream.broken)
        down(x, now, HF_EBACKEND, hf__net_why(&x->stream));
    else if (now >= example_next_timeout(x) && x->state != PAUSING)
        down(x, now, HF_EBACKEND, "no answer");
    if (x->state == PAUSING && now >= x->timer)
        connect_now(x, now);
    if (x->state != UP)
        return;
    hf__net_flush(&x->stream);
    if (x->put_off && x->stream.out.len - x->stream.out.from <= OUT_HIGH) {
        x->put_off = false;
        x->core->go_on(x->client);
    }
}

/* ---- open, close ------------------------------------------------------- */

static void example_close(void *self)
{
    struct example *x = self;

    hf__net_fini(&x->stream);
    hf__net_endpoint_fini(&x->peer);
    x->core->free(x->client, x);
}

static int parse(struct example *x, const struct hf__config *config)
{
    const struct hf__url *url = config->url;
    uint32_t third = config->ttl_ms / 3;

    if (url->hosts_len != 1 || !url->hosts[0].name[0] || url->path[0])
        return x->core->why(x->client, HF_EINVAL,
                            "one host and no path would be right, as in "
                            "example://host:%d",
                            PORT);
    x->connect_ms = config->connect_timeout_ms;
    x->open_ms = config->open_timeout_ms;
    /* So that a renewal that gets no answer can be sent again elsewhere. */
    third = third > 200 ? third : 200;
    x->silence_ms =
        third < config->op_timeout_ms ? third : config->op_timeout_ms;
    x->pause_max_ms = config->op_timeout_ms / 8 < PAUSE_MAX_MS
                          ? config->op_timeout_ms / 8
                          : PAUSE_MAX_MS;
    return hf__net_set_host(&x->peer, url->hosts[0].name,
                            url->hosts[0].port ? url->hosts[0].port : PORT);
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
    hf__net_init(&x->stream, core, client);
    rc = parse(x, config);
    if (!rc)
        rc = core->random(&x->me, sizeof(x->me));
    if (!rc)
        rc = hf__net_find(&x->peer); /* blocks, as open() alone may */
    if (rc) {
        example_close(x);
        return rc;
    }
    x->timer = core->now(); /* advance() connects */
    *self = x;
    return 0;
}

static int example_opened(void *self)
{
    struct example *x = self;

    if (x->opened)
        return HF__DONE;
    return x->open_code ? x->core->why(x->client, x->open_code, "%s", x->text)
                        : HF__PENDING;
}

static const struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "example",
    .caps = {[HF_MUTEX] = HF_CAP_FAIR | HF_CAP_LEASE | HF_CAP_EVENTS},
    .fair_by_default = true,
    .taken = "its lease ended at the server, or the server forgot it",
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
    .renew = example_renew,
    /* No query: nothing can be inspected. */
};

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    (void)scheme;
    return abi == HF__ABI ? &backend : NULL;
}
