#include "loop/config.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/text.h"
#include "base/time.h"
#include "core/client.h"
#include "core/hooks.h"
#include "loop/module.h"
#include "loop/url.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMON_OPTIONS                                                         \
    "ttl, connect_timeout, op_timeout, fair, prefix, password_file"

void hf__config_free(hf_client *c)
{
    struct hf__config *config = c->config;
    char *secret = config ? (char *)(uintptr_t)config->password : NULL;

    if (!config)
        return;
    hf__url_free(c, config->url);
    hf__free(c, config->url);
    if (secret)
        explicit_bzero(secret, strlen(secret));
    hf__free(c, secret);
    hf__free(c, config);
    c->config = NULL;
}

static int config_time_option(struct hf__url *url, const char *key,
                              int64_t given, int64_t least, int64_t otherwise,
                              uint32_t *ms, hf_error *err)
{
    const char *text = hf__url_option(url, key);
    int64_t value = otherwise;

    if (text &&
        (hf__parse_ms(text, &value) || value < least || value > HF__MS_MAX))
        return hf__fail(err, HF_EINVAL,
                        "%s=%.40s: it must be a time like 500ms, 30s or 5m, "
                        "from %lldms to %lldms",
                        key, text, (long long)least, (long long)HF__MS_MAX);
    if (given)
        value = given;
    if (value < least || value > HF__MS_MAX)
        return hf__fail(
            err, HF_EINVAL, "%s_ms is %lld; it must be %lld to %lld", key,
            (long long)value, (long long)least, (long long)HF__MS_MAX);
    *ms = (uint32_t)value;
    return 0;
}

static int config_times(hf_client *c, struct hf__url *url,
                        const hf_client_options *opt, hf_error *err)
{
    struct hf__config *config = c->config;
    int rc = config_time_option(url, "ttl", opt->ttl_ms, HF_LEASE_MIN_MS, 30000,
                                &c->ttl_ms, err);

    if (!rc)
        rc = config_time_option(url, "connect_timeout", opt->connect_timeout_ms,
                                1, 5000, &config->connect_timeout_ms, err);
    if (!rc)
        rc = config_time_option(url, "op_timeout", opt->op_timeout_ms, 1, 5000,
                                &c->op_timeout_ms, err);
    if (!rc && (opt->open_timeout_ms < 0 || opt->open_timeout_ms > HF__MS_MAX))
        rc =
            hf__fail(err, HF_EINVAL,
                     "open_timeout_ms is %lld; it must be 0 (no limit) to %lld",
                     (long long)opt->open_timeout_ms, (long long)HF__MS_MAX);
    if (!rc && opt->flags & ~(unsigned)HF_OPEN_EXISTING)
        rc = hf__fail(err, HF_EINVAL,
                      "the flags of hf_client_options are 0x%x; 0 and "
                      "HF_OPEN_EXISTING are known",
                      opt->flags);
    config->open_timeout_ms = config->connect_timeout_ms;
    if (!rc && opt->open_timeout_ms &&
        opt->open_timeout_ms < config->connect_timeout_ms)
        config->open_timeout_ms = (uint32_t)opt->open_timeout_ms;
    return rc;
}

/* Returns the scheme, hosts and path of the URL. Locks that have the same name
 * but belong to different clients are ordered by this string (api/multi.c). */
static char *config_place_of(hf_client *c, const struct hf__url *url)
{
    size_t size = strlen(url->scheme) + strlen(url->path) + 4, len;
    char *place;

    for (size_t i = 0; i < url->hosts_len; i++)
        size += strlen(url->hosts[i].name) + sizeof(",:65535");
    place = hf__alloc(c, size);
    if (!place)
        return NULL;
    len = (size_t)snprintf(place, size, "%s://", url->scheme);
    for (size_t i = 0; i < url->hosts_len; i++)
        len +=
            (size_t)snprintf(place + len, size - len, "%s%s:%u", i ? "," : "",
                             url->hosts[i].name, url->hosts[i].port);
    snprintf(place + len, size - len, "%s", url->path);
    return place;
}

static int config_texts(hf_client *c, struct hf__url *url,
                        const hf_client_options *opt, hf_error *err)
{
    const char *fair = hf__url_option(url, "fair");
    const char *prefix = hf__url_option(url, "prefix");

    if (fair && strcmp(fair, "yes") != 0 && strcmp(fair, "no") != 0)
        return hf__fail(err, HF_EINVAL, "fair=%.40s: it must be yes or no",
                        fair);
    c->fairness = !fair ? 0 : *fair == 'y' ? HF_FAIR : HF_UNFAIR;
    if (prefix && strlen(prefix) >= HF_NAME_MAX)
        return hf__fail(err, HF_EINVAL,
                        "prefix= has %zu bytes; it must have at most %d, to "
                        "leave room for names",
                        strlen(prefix), HF_NAME_MAX - 1);
    c->prefix = hf__strdup(c, prefix ? prefix : "");
    c->label = hf__strdup(c, opt->label ? opt->label : "");
    c->place = config_place_of(c, url);
    if (!c->prefix || !c->label || !c->place)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return 0;
}

#define PASSWORD_MAX 8191

/* Waits until fd can be read, at most until the time `until`. Returns false,
 * with errno set, if fd cannot be read by then. (A pipe that no program has
 * opened for writing has neither data nor an end.) */
static bool config_is_readable(int fd, hf__time until)
{
    struct pollfd reads = {.fd = fd, .events = POLLIN};
    int n;

    do {
        hf__time left = until - hf__now();

        left = left < 0 ? 0 : hf__min_time(left, HF__NAP);
        n = poll(&reads, 1, (int)((left + HF__MS - 1) / HF__MS));
    } while (n < 0 ? errno == EINTR : n == 0 && hf__now() < until);
    if (!n)
        errno = ETIMEDOUT;
    return n > 0;
}

/* Reads a line, without its newline; a pipe may deliver it in parts. Returns
 * the length of the line, or -1 with errno set. */
static ssize_t config_read_line(int fd, hf__time until, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n && len < size - 1 && !memchr(text, '\n', len)) {
        if (!config_is_readable(fd, until))
            return -1;
        n = read(fd, text + len, size - 1 - len);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        if (n > 0)
            len += (size_t)n;
    }
    text[len] = '\0';
    len = strcspn(text, "\r\n");
    text[len] = '\0';
    return (ssize_t)len;
}

static int config_read_password(hf_client *c, const char *path, char **out,
                                hf_error *err)
{
    char text[PASSWORD_MAX + 2];
    hf__time until = hf__now() + c->config->open_timeout_ms * HF__MS;
    /* Without O_NONBLOCK, opening a pipe would wait for a writer without limit.
     */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    ssize_t len = fd < 0 ? -1 : config_read_line(fd, until, text, sizeof(text));

    if (len < 0 && fd >= 0 && errno == ETIMEDOUT)
        rc = hf__fail(err, HF_EINVAL,
                      "password_file=%s: no line came within %s; a pipe "
                      "needs a program that writes to it",
                      path, hf__span(c->config->open_timeout_ms).text);
    else if (len < 0)
        rc = hf__fail(err, HF_EINVAL, "password_file=%s: %m", path);
    else if (len > PASSWORD_MAX)
        rc = hf__fail(err, HF_EINVAL,
                      "password_file=%s: its first line is longer than %d "
                      "bytes",
                      path, PASSWORD_MAX);
    else if (!(*out = hf__strdup(c, text)))
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    explicit_bzero(text, sizeof(text));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Takes the password from the first of these that gives one: the options, the
 * file, the URL, the environment. */
static int config_password(hf_client *c, struct hf__url *url,
                           const hf_client_options *opt, char **out,
                           hf_error *err)
{
    const char *file = hf__url_option(url, "password_file");
    const char *env = secure_getenv("HOLDFAST_PASSWORD");
    const char *text = "";

    if (!opt->password && file)
        return config_read_password(c, file, out, err);
    if (opt->password)
        text = opt->password;
    else if (*url->password)
        text = url->password;
    else if (env)
        text = env;
    *out = hf__strdup(c, text);
    return *out ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

static int config_check_unknown(hf_client *c, struct hf__url *url,
                                hf_error *err)
{
    const char *more = c->be->options ? c->be->options : "";
    char list[2048];

    snprintf(list, sizeof(list), COMMON_OPTIONS "%s%s", *more ? ", " : "",
             more);
    for (size_t i = 0; i < url->options_len; i++) {
        const char *key = url->options[i].key;
        size_t len = 0;
        const char *meant = hf__meant(key, list, &len);

        if (!meant || strncmp(meant, key, len) != 0 || key[len])
            return hf__fail(
                err, HF_EINVAL, "unknown option \"%.40s\"; %s%.*s%s%s has %s",
                key, meant ? "did you mean \"" : "", (int)len,
                meant ? meant : "", meant ? "\"? " : "", c->be->name, list);
    }
    return 0;
}

/* Checks that at least one kind of lock can have the fairness in the URL, if
 * the URL sets it. (A kind that can have only one fairness has that one,
 * whatever the URL says.) */
static int config_check_fairness(const hf_client *c, hf_error *err)
{
    bool fair = c->fairness == HF_FAIR;
    int cap = fair ? HF_CAP_FAIR : HF_CAP_UNFAIR, caps = 0;

    for (int kind = HF_MUTEX; kind <= HF_LATCH; kind++)
        caps |= c->caps[kind];
    if (!c->fairness || caps & cap)
        return 0;
    return hf__fail(err, HF_EINVAL, "fair=%s: the %s backend has %s locks only",
                    fair ? "yes" : "no", c->be->name, fair ? "unfair" : "fair");
}

int hf__config_make(hf_client *c, const char *text,
                    const hf_client_options *opt, hf_error *err)
{
    struct hf__config *config = hf__alloc(c, sizeof(*config));
    struct hf__url *url;
    char *secret = NULL;
    int rc;

    c->config = config;
    if (!config || !(config->url = hf__alloc(c, sizeof(*config->url))))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    url = config->url;
    if ((rc = hf__url_parse(c, text, url, err)) ||
        (rc = hf__backend_find(url->scheme, &c->be, err)) ||
        (rc = config_check_unknown(c, url, err)) ||
        (rc = config_times(c, url, opt, err)) ||
        (rc = config_texts(c, url, opt, err)) ||
        (rc = config_password(c, url, opt, &secret, err)))
        return rc;
    config->password = secret;
    config->label = c->label;
    c->least_ttl_ms = c->ttl_ms;
    config->ttl_ms = c->ttl_ms;
    config->op_timeout_ms = c->op_timeout_ms;
    memcpy(c->caps, c->be->caps, sizeof(c->caps));
    config->caps = c->caps;
    config->listens = c->on_event != NULL;
    config->existing = opt->flags & HF_OPEN_EXISTING;
    c->direct = c->be->flags & HF__DIRECT;
    c->endless = c->be->flags & HF__ENDLESS;
    c->session = c->be->flags & HF__SESSION;
    return config_check_fairness(c, err);
}
