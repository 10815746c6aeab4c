#include "pipe.h"

#include "backends/common/arena.h"
#include "reply.h"

#include <stdlib.h>
#include <string.h>

static int pipe_greet(void *, hf__time);
static int pipe_data(void *, const char *, size_t, hf__time);
static void pipe_down(void *, int, bool, hf__time);

static const struct net_talk talk = {
    .greet = pipe_greet, .data = pipe_data, .down = pipe_down};

void hf__rd_pipe_init(struct rd_pipe *p, const struct hf__core *core,
                      hf_client *client, const struct rd_owner *type,
                      void *owner, size_t size)
{
    *p = (struct rd_pipe){.type = type, .owner = owner};
    hf__link_init(&p->link, core, client);
    p->link.talk = &talk;
    p->link.owner = p;
    hf__arena_init(&p->arena, core, client, RD_ARENA_MAX);
    hf__sent_init(&p->sents, core, client, size);
}

/* Drops the state of a connection that has ended. */
static void pipe_clear(struct rd_pipe *p)
{
    if (p->reader)
        redisReaderFree(p->reader);
    p->reader = NULL;
    hf__arena_reset(&p->arena);
    hf__sent_clear(&p->sents);
}

void hf__rd_pipe_stop(struct rd_pipe *p)
{
    hf__link_stop(&p->link);
    pipe_clear(p);
}

void hf__rd_pipe_fini(struct rd_pipe *p)
{
    pipe_clear(p);
    hf__arena_fini(&p->arena);
    hf__sent_fini(&p->sents);
    hf__link_fini(&p->link);
}

/* ---- commands in flight ------------------------------------------------ */

struct net_out *hf__rd_pipe_room(struct rd_pipe *p, size_t bytes)
{
    return hf__net_reserve(&p->link.stream, bytes) ? NULL : &p->link.stream.out;
}

void *hf__rd_pipe_send(struct rd_pipe *p, rd_reply_fn *fn, uint32_t replies,
                       size_t bytes)
{
    struct rd_sent *sent = NULL;

    if (hf__rd_pipe_room(p, bytes))
        sent = hf__sent_add(&p->sents, &p->link);
    if (!sent)
        return NULL;
    sent->fn = fn ? fn : p->type->answer;
    sent->replies = replies;
    return sent;
}

/* ---- hello ------------------------------------------------------------ */

static int pipe_said_ok(struct rd_pipe *p, struct rd_sent *sent,
                        const struct rd_node *reply, hf__time now)
{
    (void)p;
    (void)sent;
    (void)now;
    return hf__rd_is(reply, "OK") ? 0 : HF_EPROTO;
}

static int pipe_say_hello(struct rd_pipe *p, hf__time now)
{
    struct net_out *o = &p->link.stream.out;

    p->auth = p->password[0] || p->user[0];
    if (p->auth) {
        if (!hf__rd_pipe_send(p, pipe_said_ok, 1,
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
        if (!hf__rd_pipe_send(p, pipe_said_ok, 1, 64))
            return HF_ENOMEM;
        hf__rd_put_count(o, '*', 2);
        hf__rd_put_text(o, "SELECT");
        hf__rd_put_num(o, p->db);
    }
    return p->type->hello ? p->type->hello(p, now) : 0;
}

/* Called when every command of the hello has been answered. */
static void pipe_go_up(struct rd_pipe *p, hf__time now)
{
    hf__link_up(&p->link, now);
    p->type->up(p, now);
}

static int pipe_greet(void *self, hf__time now)
{
    struct rd_pipe *p = self;

    p->reader = hf__rd_reader_new(&p->arena);
    if (!p->reader || pipe_say_hello(p, now))
        return HF_ENOMEM;
    if (!p->sents.len)
        pipe_go_up(p, now);
    return 0;
}

/* Sets the error message for a refused hello. The server's reply to AUTH is not
 * shown, because it might quote the command. */
static int pipe_hello_refused(struct rd_pipe *p, const char *text, hf__time now)
{
    struct net_link *l = &p->link;
    char advice[sizeof(l->text) - 200] = "";

    l->lasts = !hf__rd_may_pass(text);
    l->refused_at = now;
    if (strncmp(text, "NOAUTH", 6) == 0)
        return hf__link_why(l, HF_EAUTH,
                            "the server wants a password: in "
                            "HOLDFAST_PASSWORD, by password_file=, or in the "
                            "URL");
    if (!p->auth || strstr(text, "max number of clients")) {
        int code = hf__rd_error_code(text), len = hf__rd_error_len(text);

        if (code == HF_EAUTH && p->type->advise)
            p->type->advise(p, advice, sizeof(advice));
        if (strncmp(text, "ERR unknown command", 19) == 0)
            return hf__link_why(l, code,
                                "%.40s; a sentinel has no such command: if "
                                "this is one, use the address of its master",
                                text);
        if (strstr(text, "DB index is out of range"))
            return hf__link_why(l, code,
                                "the server has no database %u: its setting "
                                "databases is too low",
                                (unsigned)p->db);
        return hf__link_why(l, code, "%.*s%s", len < 120 ? len : 120, text,
                            advice);
    }
    if (strstr(text, "without any password") ||
        strstr(text, "no password is set"))
        return hf__link_why(l, HF_EAUTH,
                            "the server wants no password, and one was given");
    return hf__link_why(l, HF_EAUTH,
                        "the server refused the user name or password");
}

static int pipe_hello_reply(struct rd_pipe *p, struct rd_sent *sent,
                            const struct rd_node *reply, hf__time now)
{
    int rc;

    if (reply->type == REDIS_REPLY_ERROR)
        return pipe_hello_refused(p, reply->text, now);
    p->auth = false;
    rc = sent->fn(p, sent, reply, now);
    if (rc == HF_EPROTO)
        return hf__link_why(&p->link, rc, "is this a Redis server?");
    if (!rc && !p->sents.len)
        pipe_go_up(p, now);
    return rc;
}

/* ---- answers ----------------------------------------------------------- */

int hf__rd_pipe_reply(struct rd_pipe *p, const struct rd_node *reply,
                      hf__time now)
{
    struct rd_sent *sent = p->sents.len ? hf__sent_at(&p->sents, 0) : NULL;
    bool is_last = sent && --sent->replies == 0;
    int rc;

    p->link.understood = true;
    if (is_last)
        hf__sent_take(&p->sents);
    if (p->link.state == NET_GREETING && sent)
        return pipe_hello_reply(p, sent, reply, now);
    rc = sent            ? sent->fn(p, sent, reply, now)
         : p->type->push ? p->type->push(p, reply, now)
                         : HF_EPROTO; /* no command waits for this reply */
    if (rc && is_last)                /* the command counts as unanswered */
        hf__sent_untake(&p->sents);
    return rc;
}

static int pipe_data(void *self, const char *bytes, size_t len, hf__time now)
{
    struct rd_pipe *p = self;
    struct rd_node *reply;
    int rc = redisReaderFeed(p->reader, bytes, len) == REDIS_OK ? 0 : HF_ENOMEM;

    while (!rc &&
           (rc = hf__rd_reader_next(p->reader, &p->arena, &reply)) == 1) {
        rc = hf__rd_pipe_reply(p, reply, now);
        hf__arena_reset(&p->arena);
        if (rc)
            return rc;
    }
    p->link.awaits = p->sents.len;
    return rc != HF_EPROTO || !p->reader->err
               ? rc
               : hf__link_why(&p->link, rc,
                              "an answer we do not understand: %s%s",
                              p->reader->errstr, hf__link_doubt(&p->link));
}

static void pipe_down(void *self, int code, bool was_up, hf__time now)
{
    struct rd_pipe *p = self;

    if (!was_up)
        pipe_clear(p); /* only the commands of the hello are in flight */
    p->type->down(p, code, was_up, now);
    pipe_clear(p);
}

/* ---- commands ----------------------------------------------------------
 *
 * redisFormatCommandArgv() allocates a string for every command. These
 * functions write directly to the send buffer, usually without an
 * allocation. */

size_t hf__rd_decimal(char to[21], uint64_t n)
{
    char digits[20];
    size_t len = 0;

    do
        digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    for (size_t i = 0; i < len; i++)
        to[i] = digits[len - 1 - i];
    return len;
}

static void pipe_raw(struct net_out *o, const void *p, size_t len)
{
    memcpy(o->data + o->len, p, len);
    o->len += len;
}

void hf__rd_put_count(struct net_out *o, char type, size_t n)
{
    o->data[o->len++] = type;
    o->len += hf__rd_decimal(o->data + o->len, n);
    pipe_raw(o, "\r\n", 2);
}

void hf__rd_put(struct net_out *o, const void *p, size_t len)
{
    hf__rd_put_count(o, '$', len);
    if (len)
        pipe_raw(o, p, len);
    pipe_raw(o, "\r\n", 2);
}

void hf__rd_put_two(struct net_out *o, const void *a, size_t a_len,
                    const void *b, size_t b_len)
{
    hf__rd_put_count(o, '$', a_len + b_len);
    pipe_raw(o, a, a_len);
    pipe_raw(o, b, b_len);
    pipe_raw(o, "\r\n", 2);
}

void hf__rd_put_text(struct net_out *o, const char *text)
{
    hf__rd_put(o, text, strlen(text));
}

void hf__rd_put_num(struct net_out *o, int64_t n)
{
    char text[22];
    size_t len = 0;

    if (n < 0)
        text[len++] = '-';
    len += hf__rd_decimal(text + len, n < 0 ? -(uint64_t)n : (uint64_t)n);
    hf__rd_put(o, text, len);
}

int hf__rd_refuse_old(struct rd_pipe *p, const char *info, int oldest,
                      hf__time now)
{
    struct rd_value v = hf__rd_value(info, "redis_version");
    long major = strtol(v.text, NULL, 10);

    if (major <= 0 || major >= oldest)
        return 0;
    p->link.lasts = true;
    p->link.refused_at = now;
    return hf__link_why(&p->link, HF_EBACKEND,
                        "Redis %.20s is too old: use Redis %d.0 or later",
                        v.text, oldest);
}
