/*
 * The out buffer of a connection, and commands into it. Written by hand
 * instead of by redisFormatCommandArgv(), which allocates and fills a string
 * of its own for every command: here a request is formatted once, where it is
 * sent from, and in the usual case nothing is allocated.
 */
#include "redis.h"

#include <string.h>

/* Room for any one request with its script: what is let go needs no memory. */
#define FIRST_SIZE 16384

int hf__rd_out_reserve(struct redis *r, struct rd_out *o, size_t more)
{
    size_t used = o->len - o->from, cap = o->cap ? o->cap : FIRST_SIZE;
    char *data;

    if (o->cap - o->len >= more)
        return 0;
    if (o->from && o->cap - used >= more) {
        memmove(o->data, o->data + o->from, used);
        o->len = used;
        o->from = 0;
        return 0;
    }
    while (cap - used < more)
        cap *= 2;
    data = r->core->alloc(r->client, cap);
    if (!data)
        return HF_ENOMEM;
    if (o->data) {
        memcpy(data, o->data + o->from, used);
        if (o->secret)
            explicit_bzero(o->data, o->cap);
        r->core->free(r->client, o->data);
    }
    *o = (struct rd_out){data, 0, used, cap, o->secret};
    return 0;
}

void hf__rd_out_reset(struct rd_out *o)
{
    if (o->secret)
        explicit_bzero(o->data, o->cap);
    o->secret = false;
    o->from = o->len = 0;
}

void hf__rd_out_fini(struct redis *r, struct rd_out *o)
{
    hf__rd_out_reset(o);
    r->core->free(r->client, o->data);
    *o = (struct rd_out){0};
}

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

static void raw(struct rd_out *o, const void *p, size_t len)
{
    memcpy(o->data + o->len, p, len);
    o->len += len;
}

void hf__rd_put_count(struct rd_out *o, char type, size_t n)
{
    o->data[o->len++] = type;
    o->len += hf__rd_decimal(o->data + o->len, n);
    raw(o, "\r\n", 2);
}

void hf__rd_put(struct rd_out *o, const void *p, size_t len)
{
    hf__rd_put_count(o, '$', len);
    if (len)
        raw(o, p, len);
    raw(o, "\r\n", 2);
}

void hf__rd_put_two(struct rd_out *o, const void *a, size_t a_len,
                    const void *b, size_t b_len)
{
    hf__rd_put_count(o, '$', a_len + b_len);
    raw(o, a, a_len);
    raw(o, b, b_len);
    raw(o, "\r\n", 2);
}

void hf__rd_put_text(struct rd_out *o, const char *text)
{
    hf__rd_put(o, text, strlen(text));
}

void hf__rd_put_num(struct rd_out *o, int64_t n)
{
    char text[22];
    size_t len = 0;

    if (n < 0)
        text[len++] = '-';
    len += hf__rd_decimal(text + len, n < 0 ? -(uint64_t)n : (uint64_t)n);
    hf__rd_put(o, text, len);
}
