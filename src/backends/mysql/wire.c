#include "wire.h"

#include "conn.h"

#include <string.h>

#define OK 0x00
#define LOCAL_INFILE 0xfb
#define END_OF_FILE 0xfe
#define ERR 0xff
#define NULL_VALUE 0xfb

#define MORE_RESULTS 0x0008 /* a bit of the status: more results follow */
#define COLUMNS_MAX 4096    /* a greater number of columns is refused */

enum my_at {
    AT_FIRST,   /* the first packet of a result */
    AT_COLUMNS, /* column descriptions, which are skipped */
    AT_COLUMNS_END,
    AT_ROWS,
};

/* ---- a cursor ----------------------------------------------------------- */

static uint64_t wire_went_over(struct my_cursor *c)
{
    c->bad = true;
    c->len = 0;
    return 0;
}

const void *hf__my_get_bytes(struct my_cursor *c, uint64_t len)
{
    const void *p = c->at;

    if (c->bad || len > c->len) {
        wire_went_over(c);
        return NULL;
    }
    c->at += len;
    c->len -= len;
    return p;
}

uint64_t hf__my_get(struct my_cursor *c, size_t bytes)
{
    const unsigned char *p = hf__my_get_bytes(c, bytes);
    uint64_t n = 0;

    for (size_t i = bytes; p && i-- > 0;)
        n = n << 8 | p[i];
    return n;
}

/* Reads a length-encoded number. */
static uint64_t wire_get_length(struct my_cursor *c)
{
    uint64_t n = hf__my_get(c, 1);

    switch (n) {
    case 0xfb: /* NULL */
    case 0xff:
        return wire_went_over(c);
    case 0xfc:
        return hf__my_get(c, 2);
    case 0xfd:
        return hf__my_get(c, 3);
    case 0xfe:
        return hf__my_get(c, 8);
    default:
        return n;
    }
}

const char *hf__my_get_text(struct my_cursor *c, size_t *len)
{
    const unsigned char *end = c->len ? memchr(c->at, 0, c->len) : NULL;
    const char *p;

    *len = end ? (size_t)(end - c->at) : c->len;
    p = hf__my_get_bytes(c, *len);
    if (end)
        hf__my_get_bytes(c, 1);
    return p;
}

/* An error before the login has no SQLSTATE. */
uint16_t hf__my_get_error(struct my_cursor *c, char *text, size_t size)
{
    uint16_t code = (uint16_t)hf__my_get(c, 2);
    size_t len;

    if (c->len >= 6 && c->at[0] == '#')
        hf__my_get_bytes(c, 6);
    len = c->len < size - 1 ? c->len : size - 1;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(c->at[i] < ' ' || c->at[i] == 127 ? '?' : c->at[i]);
    text[len] = '\0';
    return c->bad ? 0 : code;
}

int hf__my_packet_next(const char *bytes, size_t len, size_t max,
                       struct my_packet *p)
{
    struct my_cursor c = {(const unsigned char *)bytes, len, false};

    if (len < MY_HEADER)
        return 0;
    p->len = hf__my_get(&c, 3);
    p->seq = (uint8_t)hf__my_get(&c, 1);
    if (p->len == 0 || p->len >= MY_PACKET_MAX || p->len > max)
        return HF_EPROTO;
    p->body = (struct my_cursor){c.at, p->len, false};
    return c.len >= p->len;
}

/* ---- an answer ---------------------------------------------------------- */

void hf__my_answer_reset(struct my_conn *c)
{
    hf__arena_reset(&c->arena);
    c->answer = (struct my_gather){0};
}

static void *wire_take(struct my_conn *c, size_t size, int *rc)
{
    void *p = hf__arena_take(&c->arena, size);

    if (!p)
        *rc = hf__arena_is_full(&c->arena) ? HF_EPROTO : HF_ENOMEM;
    return p;
}

/* Adds an empty result to the end of the answer. */
static int wire_add_result(struct my_conn *c)
{
    struct my_gather *a = &c->answer;
    int rc = 0;
    struct my_result *r = wire_take(c, sizeof(*r), &rc);

    if (!r)
        return rc;
    *r = (struct my_result){0};
    if (a->last)
        a->last->next = r;
    else
        a->first = r;
    a->last = r;
    a->row = NULL;
    return 0;
}

/* Ends a result whose last packet was read. */
static int wire_end_result(struct my_conn *c, uint64_t status)
{
    c->answer.at = AT_FIRST;
    return !(status & MORE_RESULTS);
}

static int wire_add_done(struct my_conn *c, struct my_cursor *body)
{
    uint64_t affected = wire_get_length(body);
    uint64_t insert_id = wire_get_length(body);
    uint64_t status = hf__my_get(body, 2);
    int rc = body->bad ? HF_EPROTO : wire_add_result(c);

    if (rc)
        return rc;
    c->answer.last->affected = affected;
    c->answer.last->insert_id = insert_id;
    return wire_end_result(c, status);
}

/* Adds an error, which replaces a result or ends its rows early. */
static int wire_add_error(struct my_conn *c, struct my_cursor *body)
{
    char text[512];
    uint16_t code = hf__my_get_error(body, text, sizeof(text));
    size_t size = strlen(text) + 1;
    char *copy;
    int rc = !code                      ? HF_EPROTO
             : c->answer.at == AT_FIRST ? wire_add_result(c)
                                        : 0;

    copy = rc ? NULL : wire_take(c, size, &rc);
    if (!copy)
        return rc;
    c->answer.last->error = code;
    c->answer.last->text = memcpy(copy, text, size);
    return 1;
}

static int wire_begin_rows(struct my_conn *c, struct my_cursor *body)
{
    uint64_t columns = wire_get_length(body);
    int rc;

    if (body->bad || body->len || !columns || columns > COLUMNS_MAX)
        return HF_EPROTO;
    rc = wire_add_result(c);
    if (rc)
        return rc;
    c->answer.last->columns = c->answer.columns = columns;
    c->answer.at = AT_COLUMNS;
    return 0;
}

static int wire_read_value(struct my_conn *c, struct my_cursor *body,
                           struct my_value *v)
{
    uint64_t len;
    const char *text;
    char *copy;
    int rc = HF_EPROTO;

    *v = (struct my_value){0};
    if (body->len && body->at[0] == NULL_VALUE) {
        hf__my_get(body, 1);
        return 0;
    }
    len = wire_get_length(body);
    text = hf__my_get_bytes(body, len);
    copy = text ? wire_take(c, len + 1, &rc) : NULL;
    if (!copy)
        return rc;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *v = (struct my_value){copy, len};
    return 0;
}

static int wire_add_row(struct my_conn *c, struct my_cursor *body)
{
    struct my_gather *a = &c->answer;
    size_t columns = a->last->columns;
    struct my_row *row;
    int rc = 0;

    if (body->len < columns) /* each value takes at least a byte */
        return HF_EPROTO;
    row = wire_take(c, sizeof(*row) + columns * sizeof(*row->value), &rc);
    if (!row)
        return rc;
    row->next = NULL;
    for (size_t i = 0; i < columns && !rc; i++)
        rc = wire_read_value(c, body, &row->value[i]);
    if (rc || body->len)
        return rc ? rc : HF_EPROTO;
    if (a->row)
        a->row->next = row;
    else
        a->last->rows = row;
    a->row = row;
    a->last->rows_len++;
    return 0;
}

/* Returns true for the packet that ends a result. A row that begins with the
 * same byte is longer. */
static bool wire_is_end(const struct my_cursor *body)
{
    return body->at[0] == END_OF_FILE && body->len == 5;
}

static uint64_t wire_end_status(struct my_cursor *body)
{
    hf__my_get(body, 3); /* skips the type and the number of warnings */
    return hf__my_get(body, 2);
}

static int wire_add_first(struct my_conn *c, struct my_cursor *body)
{
    switch (body->at[0]) {
    case OK:
        hf__my_get(body, 1);
        return wire_add_done(c, body);
    case LOCAL_INFILE: /* the server wants to read our files */
    case END_OF_FILE:
        return HF_EPROTO;
    default:
        return wire_begin_rows(c, body);
    }
}

int hf__my_answer_add(struct my_conn *c, struct my_cursor body)
{
    struct my_gather *a = &c->answer;

    a->bytes += MY_HEADER + body.len;
    if (a->bytes > MY_ANSWER_MAX)
        return HF_EPROTO;
    if (body.at[0] == ERR) {
        hf__my_get(&body, 1);
        return wire_add_error(c, &body);
    }
    switch (a->at) {
    case AT_COLUMNS:
        if (--a->columns == 0)
            a->at = AT_COLUMNS_END;
        return 0;
    case AT_COLUMNS_END:
        a->at = AT_ROWS;
        return wire_is_end(&body) ? 0 : HF_EPROTO;
    case AT_ROWS:
        return wire_is_end(&body) ? wire_end_result(c, wire_end_status(&body))
                                  : wire_add_row(c, &body);
    default:
        return wire_add_first(c, &body);
    }
}

const struct my_result *hf__my_at(const struct my_result *r, size_t i)
{
    for (; r && i; i--)
        r = r->next;
    return r;
}

bool hf__my_number(const struct my_value *v, uint64_t *to)
{
    uint64_t n = 0;

    if (!v || !v->text || !v->len)
        return false;
    for (size_t i = 0; i < v->len; i++) {
        unsigned digit = (unsigned)(v->text[i] - '0');

        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *to = n;
    return true;
}

uint64_t hf__my_num(const struct my_row *row, size_t i)
{
    uint64_t n = 0;

    return row && hf__my_number(&row->value[i], &n) ? n : 0;
}

/* ---- out ---------------------------------------------------------------- */

/* Returns the position of the unfinished packet, which may move when room is
 * reserved. */
static size_t wire_packet_at(const struct my_conn *c)
{
    const struct net_stream *s = &c->link.stream;

    return s->out.from + (size_t)(c->start - s->written);
}

void hf__my_packet_undo(struct my_conn *c)
{
    c->link.stream.out.len = wire_packet_at(c);
}

void hf__my_put(struct my_conn *c, const void *p, size_t len)
{
    struct net_stream *s = &c->link.stream;

    if (c->failed)
        return;
    c->failed =
        len >= MY_PACKET_MAX + MY_HEADER - (s->out.len - wire_packet_at(c)) ||
        hf__net_reserve(s, len);
    if (c->failed || !len)
        return;
    memcpy(s->out.data + s->out.len, p, len);
    s->out.len += len;
}

void hf__my_packet_begin(struct my_conn *c)
{
    const struct net_stream *s = &c->link.stream;

    c->start = s->written + (s->out.len - s->out.from);
    c->failed = false;
    hf__my_put(c, "\0\0\0", MY_HEADER); /* filled in by packet_end() */
}

void hf__my_put_number(struct my_conn *c, uint64_t n, size_t bytes)
{
    unsigned char le[8];

    for (size_t i = 0; i < bytes; i++)
        le[i] = (unsigned char)(n >> 8 * i);
    hf__my_put(c, le, bytes);
}

void hf__my_put_text(struct my_conn *c, const char *text)
{
    hf__my_put(c, text, strlen(text) + 1);
}

int hf__my_packet_end(struct my_conn *c, uint8_t seq)
{
    struct net_out *o = &c->link.stream.out;
    size_t len = o->len - wire_packet_at(c) - MY_HEADER;
    unsigned char *header;

    if (c->failed) {
        hf__my_packet_undo(c);
        return HF_ENOMEM;
    }
    header = (unsigned char *)o->data + wire_packet_at(c);
    for (int i = 0; i < 3; i++)
        header[i] = (unsigned char)(len >> 8 * i);
    header[3] = seq;
    return 0;
}
