#include "conn.h"

#include "login.h"
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COM_QUERY 3
/* The limit of the memory for an answer. It is higher than MY_ANSWER_MAX, the
 * limit of an answer's length, because small values grow: a NULL takes 1 byte
 * on the wire and 16 in a row. */
#define ARENA_MAX (4u * MY_ANSWER_MAX)
#define IN_MIN 1024
#define IN_KEPT 65536 /* a larger buffer is freed once it is empty */

static int conn_greet(void *, hf__time);
static int conn_data(void *, const char *, size_t, hf__time);
static void conn_down(void *, int, bool, hf__time);
static int conn_secured(void *, hf__time);

static const struct net_talk talk = {.greet = conn_greet,
                                     .data = conn_data,
                                     .down = conn_down,
                                     .secured = conn_secured};

void hf__my_conn_init(struct my_conn *c, const struct hf__core *core,
                      hf_client *client, const struct my_owner *type,
                      void *owner, size_t size)
{
    *c = (struct my_conn){.type = type, .owner = owner};
    hf__link_init(&c->link, core, client);
    c->link.talk = &talk;
    c->link.owner = c;
    c->link.doubt = "; is it MySQL or MariaDB?";
    c->link.stream.tls_later = true;
    hf__sent_init(&c->sents, core, client, size);
    hf__arena_init(&c->arena, core, client, ARENA_MAX);
}

static void conn_forget_input(struct my_conn *c)
{
    c->sents.core->free(c->sents.client, c->in.data);
    c->in = (struct net_out){0};
}

/* Drops the state of a connection that has ended. */
static void conn_clear(struct my_conn *c)
{
    conn_forget_input(c);
    hf__my_answer_reset(c);
    hf__sent_clear(&c->sents);
}

void hf__my_conn_stop(struct my_conn *c)
{
    hf__link_stop(&c->link);
    conn_clear(c);
}

void hf__my_conn_fini(struct my_conn *c)
{
    conn_clear(c);
    hf__sent_fini(&c->sents);
    hf__arena_fini(&c->arena);
    hf__link_fini(&c->link);
}

/* ---- statements --------------------------------------------------------- */

void hf__my_begin(struct my_conn *c)
{
    hf__my_packet_begin(c);
    hf__my_put_number(c, COM_QUERY, 1);
}

static void conn_put_hex(struct my_conn *c, const unsigned char *p, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char some[128];
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        some[n++] = digits[p[i] >> 4];
        some[n++] = digits[p[i] & 15];
        if (n == sizeof(some) || i + 1 == len) {
            hf__my_put(c, some, n);
            n = 0;
        }
    }
}

static void conn_put_decimal(struct my_conn *c, uint64_t n)
{
    char text[21];

    hf__my_put(
        c, text,
        (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)n));
}

void hf__my_bind_bytes(struct my_conn *c, char letter, char as,
                       const void *bytes, size_t len)
{
    c->param[letter - 'A'] = (struct my_param){bytes, len, as};
}

void hf__my_bind_number(struct my_conn *c, char letter, uint64_t n)
{
    c->param[letter - 'A'] = (struct my_param){.n = n, .as = 'u'};
}

static void conn_put_param(struct my_conn *c, const struct my_param *p)
{
    size_t quotes = p->as == 'x';

    if (p->as == 'u') {
        conn_put_decimal(c, p->n);
        return;
    }
    hf__my_put(c, "x'", 2 * quotes);
    conn_put_hex(c, p->bytes, p->n);
    hf__my_put(c, "'", quotes);
}

void hf__my_vsql(struct my_conn *c, const char *fmt, va_list ap)
{
    for (const char *p; *fmt; fmt = p) {
        struct my_param param = {0};
        const char *text;

        p = fmt + strcspn(fmt, "%");
        hf__my_put(c, fmt, (size_t)(p - fmt));
        if (!*p)
            return;
        switch (*++p) {
        case 'x':
        case 'h':
            param.as = *p;
            param.bytes = va_arg(ap, const void *);
            param.n = va_arg(ap, size_t);
            conn_put_param(c, &param);
            break;
        case 'u':
            conn_put_decimal(c, va_arg(ap, uint64_t));
            break;
        case 's':
            text = va_arg(ap, const char *);
            hf__my_put(c, text, strlen(text));
            break;
        case '%':
            hf__my_put(c, p, 1);
            break;
        default:
            conn_put_param(c, &c->param[*p - 'A']);
        }
        p++;
    }
}

void hf__my_sql(struct my_conn *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hf__my_vsql(c, fmt, ap);
    va_end(ap);
}

void *hf__my_end(struct my_conn *c, my_answer_fn *fn)
{
    struct my_sent *sent;

    if (hf__my_packet_end(c, 0))
        return NULL;
    sent = hf__sent_add(&c->sents, &c->link);
    if (!sent) {
        hf__my_packet_undo(c);
        return NULL;
    }
    sent->sent.start = c->start;
    sent->fn = fn;
    return sent;
}

int hf__my_say(struct my_conn *c, const char *sql, my_answer_fn *fn)
{
    hf__my_begin(c);
    hf__my_sql(c, sql);
    return hf__my_end(c, fn) ? 0 : HF_ENOMEM;
}

/* ---- answers ------------------------------------------------------------ */

static void conn_go_up_if_answered(struct my_conn *c, hf__time now)
{
    if (c->link.state != NET_GREETING || c->sents.len)
        return;
    hf__link_up(&c->link, now);
    c->type->up(c, now);
}

static int conn_say_hello(struct my_conn *c, hf__time now)
{
    int rc;

    c->phase = MY_READY;
    c->seq = 1;
    rc = c->type->hello ? c->type->hello(c, now) : 0;
    if (!rc)
        conn_go_up_if_answered(c, now);
    return rc;
}

static int conn_answered(struct my_conn *c, hf__time now)
{
    const struct my_answer a = {.sent = hf__sent_take(&c->sents),
                                .first = c->answer.first,
                                .last = c->answer.last,
                                .now = now};
    int rc = a.sent->fn(c, &a);

    hf__my_answer_reset(c);
    c->seq = 1;
    if (!rc)
        conn_go_up_if_answered(c, now);
    else /* the request counts as unanswered */
        hf__sent_untake(&c->sents);
    return rc;
}

/* Handles a packet that answers no request. Before the server ends the
 * connection, it may send an ERR packet with the reason, with any sequence
 * number. Returns a code that ends the connection: HF_EBACKEND for such an ERR
 * packet, HF_EPROTO for any other packet. */
static int conn_said_end(struct my_conn *c, struct my_cursor body)
{
    char text[160];
    bool is_error = hf__my_get(&body, 1) == 0xff;
    uint16_t error = is_error ? hf__my_get_error(&body, text, sizeof(text)) : 0;

    return error && hf__my_error_ends(error)
               ? hf__link_why(&c->link, HF_EBACKEND, "%s", text)
               : HF_EPROTO;
}

static int conn_take_answer(struct my_conn *c, struct my_packet *p,
                            hf__time now)
{
    int rc;

    if (!c->sents.len || p->seq != c->seq)
        return c->answer.first ? HF_EPROTO : conn_said_end(c, p->body);
    c->seq++;
    rc = hf__my_answer_add(c, p->body);
    return rc == 1 ? conn_answered(c, now) : rc;
}

/* `rest` is the number of bytes that have arrived after the packet. */
static int conn_take_packet(struct my_conn *c, struct my_packet *p, size_t rest,
                            hf__time now)
{
    bool is_greeting = c->phase == MY_GREETING;
    int rc;

    if (c->phase == MY_READY)
        return conn_take_answer(c, p, now);
    if (p->seq != c->seq)
        return HF_EPROTO;
    c->seq++;
    rc = hf__my_login_packet(c, p, now);
    if (rc == 1)
        return conn_say_hello(c, now);
    if (!rc && is_greeting && rest)
        return hf__link_why(&c->link, HF_EPROTO,
                            "%zu bytes follow the server's greeting; is "
                            "there an attacker in between?",
                            rest);
    return rc;
}

/* Takes all complete packets, and stores the number of their bytes in *used. */
static int conn_take_packets(struct my_conn *c, const char *bytes, size_t len,
                             size_t *used, hf__time now)
{
    struct my_packet p;
    size_t max;
    int rc;

    for (*used = 0;; *used += MY_HEADER + p.len) {
        max = c->phase == MY_READY ? MY_ANSWER_MAX : MY_LOGIN_MAX;
        rc = hf__my_packet_next(bytes + *used, len - *used, max, &p);
        if (rc != 1)
            return rc;
        rc = conn_take_packet(c, &p, len - *used - MY_HEADER - p.len, now);
        if (rc)
            return rc;
    }
}

/* Keeps an incomplete packet. Memory grows with the bytes that have arrived,
 * not with the announced length, which a hostile server can choose. */
static int conn_keep_input(struct my_conn *c, const char *bytes, size_t len)
{
    struct net_out *in = &c->in;
    int rc = hf__net_grow(c->sents.core, c->sents.client, in, IN_MIN, len);

    if (rc)
        return rc;
    memcpy(in->data + in->len, bytes, len);
    in->len += len;
    return 0;
}

/* Packets are read directly from `bytes`, unless the beginning of a packet was
 * kept earlier. */
static int conn_feed(struct my_conn *c, const char *bytes, size_t len,
                     hf__time now)
{
    struct net_out *in = &c->in;
    size_t used = 0;
    int rc;

    if (!in->len) {
        rc = conn_take_packets(c, bytes, len, &used, now);
        return rc || used == len ? rc
                                 : conn_keep_input(c, bytes + used, len - used);
    }
    rc = conn_keep_input(c, bytes, len);
    if (!rc)
        rc = conn_take_packets(c, in->data + in->from, in->len - in->from,
                               &used, now);
    in->from += used;
    if (in->from == in->len)
        in->from = in->len = 0;
    if (!in->len && in->cap > IN_KEPT)
        conn_forget_input(c);
    return rc;
}

/* ---- the link ----------------------------------------------------------- */

static int conn_greet(void *self, hf__time now)
{
    struct my_conn *c = self;

    (void)now;
    c->phase = MY_GREETING;
    c->seq = 0;
    c->link.stream.tls = c->login->tls;
    return 0;
}

static int conn_secured(void *self, hf__time now)
{
    (void)now;
    return hf__my_login_send(self);
}

/* While the connection is being set up, this function flushes what it has
 * written: the link flushes after greet(), but not after data(). */
static int conn_data(void *self, const char *bytes, size_t len, hf__time now)
{
    struct my_conn *c = self;
    bool is_greeting = c->link.state == NET_GREETING;
    int rc = conn_feed(c, bytes, len, now);

    c->link.awaits = c->sents.len;
    if (!rc && is_greeting)
        hf__net_flush(&c->link.stream);
    return rc;
}

static void conn_down(void *self, int code, bool was_up, hf__time now)
{
    struct my_conn *c = self;

    if (!was_up)
        conn_clear(c); /* only the packets of the hello can be in flight */
    c->type->down(c, code, was_up, now);
    conn_clear(c);
}
