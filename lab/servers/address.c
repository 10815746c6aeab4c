#include "address.h"

#include "../../cli/shared/values.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int address_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies [from, end) and decodes %XX. Returns false if `out' is too small, or
 * if a %XX is invalid. */
static bool address_decode(const char *from, const char *end, char *out,
                           size_t size)
{
    size_t n = 0;

    for (; from < end; n++) {
        int c = (unsigned char)*from++;

        if (c == '%') {
            if (end - from < 2 || address_hex(from[0]) < 0 ||
                address_hex(from[1]) < 0)
                return false;
            c = address_hex(from[0]) * 16 + address_hex(from[1]);
            from += 2;
        }
        if (!c || n + 1 == size)
            return false;
        out[n] = (char)c;
    }
    out[n] = '\0';
    return true;
}

static const char *address_find(const char *from, const char *end, char c)
{
    const char *at = from < end ? memchr(from, c, (size_t)(end - from)) : NULL;

    return at ? at : end;
}

static const char *address_parse_user(const char *from, const char *end,
                                      struct lab_address *out)
{
    const char *colon = address_find(from, end, ':');

    if (!address_decode(from, colon, out->user, sizeof(out->user)))
        return "the user is too long, or has a % that is not followed by two "
               "hexadecimal digits";
    if (colon < end &&
        !address_decode(colon + 1, end, out->password, sizeof(out->password)))
        return "the password is too long, or has a % that is not followed by "
               "two hexadecimal digits (a % itself is %25)";
    return NULL;
}

static const char *address_parse_host(const char *from, const char *end,
                                      struct lab_address *out)
{
    bool bracket = *from == '[';
    const char *close = bracket ? address_find(from, end, ']') : from;
    const char *colon = address_find(close, end, ':');
    char text[8] = "";
    uint64_t port = 0;

    if (bracket && close == end)
        return "the address in brackets does not end with a bracket";
    if (!address_decode(from + bracket, bracket ? close : colon, out->host,
                        sizeof(out->host)))
        return "the host name is too long";
    if (colon < end && (!address_decode(colon + 1, end, text, sizeof(text)) ||
                        cli_number(text, 1, 65535, &port)))
        return "the port must be a number from 1 to 65535";
    out->port = (int)port;
    return NULL;
}

const char *lab_address_parse(const char *url, struct lab_address *out)
{
    const char *end = url + strcspn(url, "?");
    const char *at = strstr(url, "://"), *slash, *middle;
    const char *wrong = NULL;

    memset(out, 0, sizeof(*out));
    if (!at || at > end ||
        !address_decode(url, at, out->scheme, sizeof(out->scheme)))
        return "not a URL: SCHEME:// is missing";
    for (char *c = out->scheme; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    at += 3;
    slash = address_find(at, end, '/');
    middle = slash;
    while (middle > at && middle[-1] != '@')
        middle--;
    if (middle > at) {
        wrong = address_parse_user(at, middle - 1, out);
        at = middle;
    }
    if (!wrong)
        wrong = address_parse_host(at, slash, out);
    if (!wrong && slash < end &&
        !address_decode(slash + !strstr(out->scheme, "+unix"), end, out->path,
                        sizeof(out->path)))
        wrong = "the path is too long, or has a % that is not followed by two "
                "hexadecimal digits";
    if (!wrong && *end && strlen(end) > sizeof(out->options))
        wrong = "the options are too long";
    else if (!wrong && *end)
        snprintf(out->options, sizeof(out->options), "%s", end + 1);
    return wrong;
}

bool lab_address_option(const struct lab_address *address, const char *key,
                        char *out, size_t size)
{
    size_t len = strlen(key), n;

    for (const char *at = address->options; *at; at += *at == '&') {
        n = strcspn(at, "&");
        if (n > len && !strncmp(at, key, len) && at[len] == '=')
            return address_decode(at + len + 1, at + n, out, size);
        at += n;
    }
    return false;
}
