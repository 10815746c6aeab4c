#include "pipe.h"

#include <string.h>

static int greet(void *, hf__time);
static int data(void *, const char *, size_t, hf__time);
static void down(void *, int, bool, hf__time);

static const struct net_talk talk = {greet, data, down};

void hf__rd_pipe_init(struct rd_pipe *p, const struct hf__core *core,
                      hf_client *client, const struct rd_owner *type,
                      void *owner, size_t size)
{
    *p = (struct rd_pipe){.type = type, .owner = owner, .size = size};
    hf__link_init(&p->link, core, client);
    p->link.talk = &talk;
    p->link.owner = p;
    hf__rd_arena_init(&p->arena, core, client);
}

/* What belongs to one connection. */
static void clear(struct rd_pipe *p)
{
    if (p->reader)
        redisReaderFree(p->reader);
    p->reader = NULL;
    hf__rd_arena_reset(&p->arena);
    p->head += p->len;
    p->len = 0;
}

void hf__rd_pipe_stop(struct rd_pipe *p)
{
    hf__link_stop(&p->link);
    clear(p);
}

void hf__rd_pipe_fini(struct rd_pipe *p)
{
    clear(p);
    hf__rd_arena_fini(&p->arena);
    p->arena.core->free(p->arena.client, p->ring);
    p->ring = NULL;
    hf__link_fini(&p->link);
}

/* ---- what is under way ------------------------------------------------- */

void *hf__rd_pipe_at(const struct rd_pipe *p, size_t i)
{
    return p->ring + ((p->head + i) & (p->cap - 1)) * p->size;
}

static int grow(struct rd_pipe *p)
{
    size_t cap = p->cap ? p->cap * 2 : 16;
    char *ring;

    if (p->len < p->cap)
        return 0;
    ring = p->arena.core->alloc(p->arena.client, cap * p->size);
    if (!ring)
        return HF_ENOMEM;
    for (size_t i = 0; i < p->len; i++)
        memcpy(ring + ((p->head + i) & (cap - 1)) * p->size,
               hf__rd_pipe_at(p, i), p->size);
    p->arena.core->free(p->arena.client, p->ring);
    p->ring = ring;
    p->cap = cap;
    return 0;
}

struct net_out *hf__rd_pipe_room(struct rd_pipe *p, size_t bytes)
{
    return hf__net_reserve(&p->link.stream, bytes) ? NULL : &p->link.stream.out;
}

void *hf__rd_pipe_send(struct rd_pipe *p, rd_reply_fn *fn, uint32_t replies,
                       size_t bytes)
{
    const struct net_out *o = hf__rd_pipe_room(p, bytes);
    struct rd_sent *sent;

    if (!o || grow(p))
        return NULL;
    sent = hf__rd_pipe_at(p, p->len++);
    memset(sent, 0, p->size);
    *sent =
        (struct rd_sent){fn, p->arena.core->now(),
                         p->link.stream.written + (o->len - o->from), replies};
    hf__link_await(&p->link, sent->at);
    return sent;
}

void *hf__rd_pipe_lost(struct rd_pipe *p)
{
    struct rd_sent *first = p->len ? hf__rd_pipe_at(p, 0) : NULL;

    if (!first || first->start >= p->link.stream.written)
        return NULL;
    p->head++;
    p->len--;
    return first;
}

void *hf__rd_pipe_unsent(struct rd_pipe *p)
{
    const struct rd_sent *last = p->len ? hf__rd_pipe_at(p, p->len - 1) : NULL;

    if (!last || last->start < p->link.stream.written)
        return NULL;
    return hf__rd_pipe_at(p, --p->len);
}

/* ---- hello ------------------------------------------------------------ */

static int said_ok(struct rd_pipe *p, struct rd_sent *sent,
                   const struct rd_node *reply, hf__time now)
{
    (void)p;
    (void)sent;
    (void)now;
    return hf__rd_is(reply, "OK") ? 0 : HF_EPROTO;
}

static int say_hello(struct rd_pipe *p, hf__time now)
{
    struct net_out *o = &p->link.stream.out;

    p->auth = p->password[0] || p->user[0];
    if (p->auth) {
        if (!hf__rd_pipe_send(p, said_ok, 1,
                              64 + strlen(p->user) + strlen(p->password)))
            return HF_ENOMEM;
        o->secret = true;
        hf__rd_put_count(o, '*', p->user[0] ? 3 : 2);
        hf__rd_put_text(o, "AUTH");
        if (p->user[0])
            hf__rd_put_text(o, p->user);
        hf__rd_put_text(o, p->password);
    }
    if (p->db) {
        if (!hf__rd_pipe_send(p, said_ok, 1, 64))
            return HF_ENOMEM;
        hf__rd_put_count(o, '*', 2);
        hf__rd_put_text(o, "SELECT");
        hf__rd_put_num(o, p->db);
    }
    return p->type->hello ? p->type->hello(p, now) : 0;
}

/* All of the hello is answered. */
static void go_up(struct rd_pipe *p, hf__time now)
{
    hf__link_up(&p->link, now);
    p->type->up(p, now);
}

static int greet(void *self, hf__time now)
{
    struct rd_pipe *p = self;

    p->reader = hf__rd_reader_new(&p->arena);
    if (!p->reader || say_hello(p, now))
        return hf__link_why(&p->link, HF_ENOMEM, "out of memory");
    if (!p->len)
        go_up(p, now);
    return 0;
}

/* The text of an error may quote what was sent, so AUTH's is not shown. */
static int hello_refused(struct rd_pipe *p, const char *text, hf__time now)
{
    struct net_link *l = &p->link;

    l->lasts = !hf__rd_may_pass(text);
    l->refused_at = now;
    if (strncmp(text, "NOAUTH", 6) == 0)
        return hf__link_why(l, HF_EAUTH,
                            "the server wants a password: in "
                            "HOLDFAST_PASSWORD, by password_file=, or in the "
                            "URL");
    if (!p->auth || strstr(text, "max number of clients"))
        return hf__link_why(l, hf__rd_error_code(text), "%.120s", text);
    if (strstr(text, "without any password") ||
        strstr(text, "no password is set"))
        return hf__link_why(l, HF_EAUTH,
                            "the server wants no password, and one was given");
    return hf__link_why(l, HF_EAUTH,
                        "the server refused the user name or password");
}

static int hello_reply(struct rd_pipe *p, struct rd_sent *sent,
                       const struct rd_node *reply, hf__time now)
{
    if (reply->type == REDIS_REPLY_ERROR)
        return hello_refused(p, reply->text, now);
    p->auth = false;
    if (sent->fn(p, sent, reply, now))
        return hf__link_why(&p->link, HF_EPROTO, "is this a Redis server?");
    if (!p->len)
        go_up(p, now);
    return 0;
}

/* ---- answers ----------------------------------------------------------- */

static int not_understood(struct rd_pipe *p)
{
    bool is_odd = p->reader && p->reader->err;

    return hf__link_why(&p->link, HF_EPROTO,
                        "an answer we do not understand%s%s%s",
                        is_odd ? ": " : "", is_odd ? p->reader->errstr : "",
                        hf__link_doubt(&p->link));
}

int hf__rd_pipe_reply(struct rd_pipe *p, const struct rd_node *reply,
                      hf__time now)
{
    struct rd_sent *sent = p->len ? hf__rd_pipe_at(p, 0) : NULL;
    bool is_last = sent && --sent->replies == 0;
    int rc;

    p->link.understood = true;
    p->head += is_last;
    p->len -= is_last;
    if (p->link.state == NET_GREETING && sent)
        return hello_reply(p, sent, reply, now);
    rc = sent            ? sent->fn(p, sent, reply, now)
         : p->type->push ? p->type->push(p, reply, now)
                         : HF_EPROTO; /* nobody has asked */
    if (rc && is_last) { /* back in front: the failure is about it */
        p->head--;
        p->len++;
    }
    return rc == HF_EPROTO ? not_understood(p) : rc;
}

static int data(void *self, const char *bytes, size_t len, hf__time now)
{
    struct rd_pipe *p = self;
    struct rd_node *reply;
    int rc = redisReaderFeed(p->reader, bytes, len) == REDIS_OK ? 0 : HF_ENOMEM;

    while (!rc &&
           (rc = hf__rd_reader_next(p->reader, &p->arena, &reply)) == 1) {
        rc = hf__rd_pipe_reply(p, reply, now);
        hf__rd_arena_reset(&p->arena);
        if (rc)
            return rc;
    }
    p->link.awaits = p->len;
    if (rc == HF_EPROTO)
        return not_understood(p);
    return rc ? hf__link_why(&p->link, rc, "out of memory") : 0;
}

static void down(void *self, int code, bool was_up, hf__time now)
{
    struct rd_pipe *p = self;

    if (!was_up)
        clear(p); /* nothing of the owner's */
    p->type->down(p, code, was_up, now);
    clear(p);
}
