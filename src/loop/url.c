/*
 * Parses URLs:
 *   scheme:[//[user[:password]@]host[:port][,host...]][/path][?key=value&...]
 *
 * All parts are in one block of memory, which is wiped when it is freed. An
 * error message quotes only the scheme, a key, or a host and port without a
 * scheme, because any other part may contain a password.
 */
#include "loop/url.h"

#include "base/error.h"
#include "core/client.h"
#include "core/hooks.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The end of the error messages about a bad %xx. */
#define ESCAPES "; it must be two hex digits (not 00), and %%25 for a %%"

/* Decodes %xx in place. Returns 0, or EINVAL for a bad %xx or a NUL. */
static int url_decode(char *s)
{
    char *to = s;

    for (; *s; s++) {
        char hex[3] = "";

        if (*s == '%') {
            memcpy(hex, s + 1, strnlen(s + 1, 2));
            if (!isxdigit((unsigned char)hex[0]) ||
                !isxdigit((unsigned char)hex[1]) || !strcmp(hex, "00"))
                return HF_EINVAL;
            s += 2;
        }
        *to++ = *hex ? (char)strtoul(hex, NULL, 16) : *s;
    }
    *to = '\0';
    return 0;
}

/* Cuts s at the first ch. Returns what follows, or NULL if there is no ch. */
static char *url_cut(char *s, int ch)
{
    char *at = strchr(s, ch);

    if (at)
        *at++ = '\0';
    return at;
}

static int url_parse_port(const char *text, uint16_t *port)
{
    unsigned long value;
    char *end;

    if (!isdigit((unsigned char)*text))
        return HF_EINVAL;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || *end || value == 0 || value > 65535)
        return HF_EINVAL;
    *port = (uint16_t)value;
    return 0;
}

/* Fails without quoting the string. It might not be a port but a part of a
 * password that contains a / or is not followed by a host. */
static int url_bad_port(const char *port, hf_error *err)
{
    return hf__fail(err, HF_EINVAL,
                    "the URL has a port that is no number from 1 to 65535%s",
                    port[strspn(port, "0123456789")]
                        ? " (in a password / must be written as %2F, ? as %3F)"
                        : "");
}

static int url_parse_host(struct hf__host *host, char *text, hf_error *err)
{
    char *port = NULL;

    if (*text == '[') { /* IPv6 */
        char *end = strchr(text, ']');

        if (!end || (end[1] && end[1] != ':'))
            return hf__fail(err, HF_EINVAL,
                            "the URL's host begins with [ and does not end "
                            "with ]");
        *end = '\0';
        port = end[1] ? end + 2 : NULL;
        text++;
    } else {
        port = url_cut(text, ':');
    }
    if (port && url_parse_port(port, &host->port))
        return url_bad_port(port, err);
    if (!*text)
        return hf__fail(err, HF_EINVAL,
                        "the URL has an empty host; it must be "
                        "host[:port][,host...]");
    if (url_decode(text))
        return hf__fail(err, HF_EINVAL,
                        "the URL has a host with a bad %%xx" ESCAPES);
    host->name = text;
    return 0;
}

static int url_parse_authority(struct hf__url *url, char *text, hf_error *err)
{
    char *at = strrchr(text, '@'), *next;
    int rc = 0;

    if (at) {
        *at = '\0';
        url->user = text;
        text = at + 1;
        url->password = url_cut(url->user, ':');
        if (!url->password)
            url->password = at;
        if (url_decode(url->user) || url_decode(url->password))
            return hf__fail(
                err, HF_EINVAL,
                "the URL's user or password has a bad %%xx" ESCAPES);
    }
    next = *text ? text : NULL;
    while (!rc && (text = next)) {
        size_t max = sizeof(url->hosts) / sizeof(*url->hosts);

        next = url_cut(text, ',');
        if (url->hosts_len == max)
            return hf__fail(err, HF_EINVAL,
                            "the URL has over %zu hosts; it may have up to %zu "
                            "(redlock: 15)",
                            max, max);
        rc = url_parse_host(&url->hosts[url->hosts_len++], text, err);
    }
    return rc;
}

static int url_parse_options(struct hf__url *url, char *text, hf_error *err)
{
    size_t max = sizeof(url->options) / sizeof(*url->options);
    char *next;

    for (; text && *text; text = next) {
        struct hf__option *o = &url->options[url->options_len];

        next = url_cut(text, '&');
        if (url->options_len == max)
            return hf__fail(err, HF_EINVAL, "the URL has over %zu options",
                            max);
        o->key = text;
        o->value = url_cut(text, '=');
        if (!o->value)
            return hf__fail(err, HF_EINVAL,
                            "the URL has an option that is not key=value, as "
                            "in ?ttl=10s");
        if (!*o->key)
            return hf__fail(err, HF_EINVAL,
                            "the URL has an option without a name; it must be "
                            "key=value, as in ?ttl=10s");
        if (url_decode(o->key) || url_decode(o->value))
            return hf__fail(err, HF_EINVAL,
                            "the URL has an option with a bad %%xx" ESCAPES);
        for (size_t i = 0; i < url->options_len; i++)
            if (!strcmp(url->options[i].key, o->key))
                return hf__fail(err, HF_EINVAL,
                                "the URL has the option \"%s\" twice", o->key);
        url->options_len++;
    }
    return 0;
}

/* Returns the scheme that a URL probably lacks, or NULL. The URL begins like
 * "host:6379", and the port tells the scheme; a path or options may follow. If
 * the host must not be quoted, returns NULL. */
static const char *url_missing_scheme(const char *host, const char *rest)
{
    static const struct {
        const char *port, *scheme;
    } usual[] = {
        {"6379", "redis"}, {"2181", "zk"}, {"2379", "etcd"}, {"3306", "mysql"}};
    size_t len = rest ? strcspn(rest, "/?") : 0;

    if (!*host || host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_")])
        return NULL;
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        if (strlen(usual[i].port) == len && !strncmp(usual[i].port, rest, len))
            return usual[i].scheme;
    return NULL;
}

static int url_parse_scheme(struct hf__url *url, char **rest, hf_error *err)
{
    char *s = url->memory + 1;
    const char *scheme;

    *rest = url_cut(s, ':');
    for (char *p = s; *rest && *p; p++)
        *p = (char)tolower((unsigned char)*p); /* RFC 3986, 3.1 */
    scheme = url_missing_scheme(s, *rest);
    if (scheme)
        return hf__fail(err, HF_EINVAL,
                        "not a URL: a scheme is missing; did you mean "
                        "%s://%.253s:%.4s?",
                        scheme, s, *rest);
    if (!*rest || !isalpha((unsigned char)*s) ||
        strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+-") != strlen(s))
        return hf__fail(err, HF_EINVAL,
                        "not a URL: a scheme and a colon are missing, as in "
                        "shm:, redis://host, redlock://host,host,host, "
                        "zk://host, etcd://host or mysql://host");
    url->scheme = s;
    return 0;
}

int hf__url_parse(hf_client *c, const char *text, struct hf__url *url,
                  hf_error *err)
{
    char *rest, *options, *slash, *authority;
    int rc;

    memset(url, 0, sizeof(*url));
    url->memory_len = strlen(text) + 4;
    /* The first byte stays NUL: absent parts point to it. */
    url->memory = hf__alloc(c, url->memory_len);
    if (!url->memory)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    memcpy(url->memory + 1, text, strlen(text));
    url->user = url->password = url->path = url->memory;
    rc = url_parse_scheme(url, &rest, err);
    if (rc)
        return rc;
    options = url_cut(rest, '?');
    authority = !strncmp(rest, "//", 2) ? rest + 2 : NULL;
    slash = strchr(authority ? authority : rest, '/');
    if (authority && slash) {
        /* Move the authority one byte to the left, in order to make room for a
         * NUL before the path. */
        memmove(authority - 1, authority, (size_t)(slash - authority));
        slash[-1] = '\0';
        authority--;
    }
    if (slash)
        url->path = slash;
    else if (!authority)
        url->path = rest;
    if (url_decode(url->path))
        return hf__fail(err, HF_EINVAL,
                        "the URL's path has a bad %%xx" ESCAPES);
    rc = authority ? url_parse_authority(url, authority, err) : 0;
    return rc ? rc : url_parse_options(url, options, err);
}

void hf__url_free(hf_client *c, struct hf__url *url)
{
    if (!url || !url->memory)
        return;
    explicit_bzero(url->memory, url->memory_len);
    hf__free(c, url->memory);
    memset(url, 0, sizeof(*url));
}

const char *hf__url_option(struct hf__url *url, const char *key)
{
    for (size_t i = 0; i < url->options_len; i++)
        if (!strcmp(url->options[i].key, key))
            return url->options[i].value;
    return NULL;
}
