/*
 * Commands, into the out buffer of a connection. Written by hand
 * instead of by redisFormatCommandArgv(), which allocates and fills a string
 * of its own for every command: here a request is formatted once, where it is
 * sent from, and in the usual case nothing is allocated.
 */
#include "pipe.h"

#include <string.h>

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

static void raw(struct net_out *o, const void *p, size_t len)
{
    memcpy(o->data + o->len, p, len);
    o->len += len;
}

void hf__rd_put_count(struct net_out *o, char type, size_t n)
{
    o->data[o->len++] = type;
    o->len += hf__rd_decimal(o->data + o->len, n);
    raw(o, "\r\n", 2);
}

void hf__rd_put(struct net_out *o, const void *p, size_t len)
{
    hf__rd_put_count(o, '$', len);
    if (len)
        raw(o, p, len);
    raw(o, "\r\n", 2);
}

void hf__rd_put_two(struct net_out *o, const void *a, size_t a_len,
                    const void *b, size_t b_len)
{
    hf__rd_put_count(o, '$', a_len + b_len);
    raw(o, a, a_len);
    raw(o, b, b_len);
    raw(o, "\r\n", 2);
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
