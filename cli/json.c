#include "json.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_first = true; /* the next value is the first one in its object or
                                array */

static void json_put_text(const unsigned char *s, size_t len)
{
    uint32_t c;

    putchar('"');
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = hf__utf8(s + i, len - i, &c);
        if (!n)
            fputs("\\ufffd", stdout);
        else if (c == '"' || c == '\\')
            printf("\\%c", (char)c);
        else if (hf__character(s + i, len - i))
            fwrite(s + i, 1, n, stdout);
        else /* control and invisible characters: all below U+10000 */
            printf("\\u%04x", c);
    }
    putchar('"');
}

static void json_begin(const char *key)
{
    if (!is_first)
        putchar(',');
    is_first = false;
    if (key) {
        json_put_text((const unsigned char *)key, strlen(key));
        putchar(':');
    }
}

void json_open(const char *key, char bracket)
{
    json_begin(key);
    putchar(bracket);
    is_first = true;
}

void json_close(char bracket)
{
    putchar(bracket);
    is_first = false;
}

void json_text(const char *key, const char *text)
{
    json_begin(key);
    json_put_text((const unsigned char *)text, strlen(text));
}

void json_number(const char *key, int64_t number)
{
    json_begin(key);
    printf("%" PRId64, number);
}

void json_unsigned(const char *key, uint64_t number)
{
    json_begin(key);
    printf("%" PRIu64, number);
}

void json_real(const char *key, double number, int digits)
{
    json_begin(key);
    printf("%.*f", digits, number);
}

void json_bool(const char *key, bool value)
{
    json_begin(key);
    fputs(value ? "true" : "false", stdout);
}

void json_null(const char *key)
{
    json_begin(key);
    fputs("null", stdout);
}

static bool json_is_utf8(const unsigned char *s, size_t len)
{
    uint32_t c;

    for (size_t i = 0, n; i < len; i += n) {
        n = hf__utf8(s + i, len - i, &c);
        if (!n)
            return false;
    }
    return true;
}

void json_name(const char *key, const void *bytes, size_t len)
{
    const unsigned char *s = bytes;

    json_begin(key);
    json_put_text(s, len);
    if (json_is_utf8(s, len))
        return;
    printf(",\"%s_hex\":\"", key);
    for (size_t i = 0; i < len; i++)
        printf("%02x", s[i]);
    putchar('"');
}

void json_end(void)
{
    putchar('\n');
    is_first = true;
}
