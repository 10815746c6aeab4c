/* A client: opened, closed, and what of it outlives the closing. */
#include "core/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMMON_OPTIONS                                                         \
    "ttl, connect_timeout, op_timeout, fair, prefix, password_file"

static const hf_client_options by_default = HF_CLIENT_OPTIONS_INIT;

/* A page that is empty in a child: telling a fork by it costs a load. */
static const uint32_t *make_fork_mark(void)
{
    uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, 4096, MADV_WIPEONFORK)) {
        munmap(page, 4096);
        return NULL;
    }
    *page = 1;
    return page;
}

static void hf__config_free(hf_client *c)
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

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void hf__client_free(hf_client *c)
{
    hf_hooks hooks = c->hooks;

    hf__config_free(c);
    hf__event_drop_all_locked(c);
    while (c->exchanges) {
        struct hf__exchange *x = c->exchanges;

        c->exchanges = x->next;
        hf__words_free(c, x);
        hf__free(c, x);
    }
    hf__free(c, c->timers.heap);
    hf__free(c, c->buckets);
    hf__free(c, c->prefix);
    hf__free(c, c->label);
    hf__free(c, c->place);
    close_fd(c->epfd);
    close_fd(c->wake_fd);
    close_fd(c->ready_fd);
    close_fd(c->outer_fd);
    if (c->parent)
        munmap((void *)(uintptr_t)c->parent, 4096);
    hf__free_by(&hooks, c);
}

static hf_client *hf__client_new(const hf_client_options *opt)
{
    hf_client boot = {0}, *c;

    if (opt->hooks)
        boot.hooks = *opt->hooks;
    if (!boot.hooks.alloc || !boot.hooks.free)
        boot.hooks.alloc = NULL, boot.hooks.free = NULL;
    c = hf__alloc(&boot, sizeof(*c));
    if (!c)
        return NULL;
    c->hooks = boot.hooks;
    c->on_event = opt->on_event;
    c->event_arg = opt->event_arg;
    c->outer_fd = -1;
    c->epfd = epoll_create1(EPOLL_CLOEXEC);
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->parent = make_fork_mark();
    return c;
}

static int check_resources(hf_client *c, hf_error *err)
{
    if (c->epfd < 0 || c->wake_fd < 0 || c->ready_fd < 0)
        return hf__fail(err, HF_EBACKEND, "out of descriptors: %m");
    if (!c->parent)
        return hf__fail(err, HF_EBACKEND,
                        "no page that is wiped on fork: %m (Linux 4.14 or "
                        "later is needed)");
    if (hf__driver_watch(c, c->wake_fd, EPOLLIN, HF__TAG_WAKE))
        return hf__fail(err, HF_EBACKEND, "epoll: %m");
    return 0;
}

/* ---- options ----------------------------------------------------------- */

static int time_option(struct hf__url *url, const char *key, int64_t given,
                       int64_t least, int64_t otherwise, uint32_t *ms,
                       hf_error *err)
{
    const char *text = hf__url_option(url, key);
    int64_t value = otherwise;

    if (text &&
        (hf__parse_ms(text, &value) || value < least || value > HF__MS_MAX))
        return hf__fail(err, HF_EINVAL,
                        "%s=%.40s: a time like 500ms, 30s or 5m would be "
                        "right, from %lldms to %lldms",
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

static int times(hf_client *c, struct hf__url *url,
                 const hf_client_options *opt, hf_error *err)
{
    struct hf__config *config = c->config;
    int rc = time_option(url, "ttl", opt->ttl_ms, HF_LEASE_MIN_MS, 30000,
                         &c->ttl_ms, err);

    if (!rc)
        rc = time_option(url, "connect_timeout", opt->connect_timeout_ms, 1,
                         5000, &config->connect_timeout_ms, err);
    if (!rc)
        rc = time_option(url, "op_timeout", opt->op_timeout_ms, 1, 5000,
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

/* Where the locks are, so that those of two places have one order. */
static char *place_of(hf_client *c, const struct hf__url *url)
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

static int texts(hf_client *c, struct hf__url *url,
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
                        "prefix= has %zu bytes; up to %d would leave room for "
                        "names",
                        strlen(prefix), HF_NAME_MAX - 1);
    c->prefix = hf__strdup(c, prefix ? prefix : "");
    c->label = hf__strdup(c, opt->label ? opt->label : "");
    c->place = place_of(c, url);
    if (!c->prefix || !c->label || !c->place)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return 0;
}

#define PASSWORD_MAX 8191

/* Until there is something to read. A pipe that no program has opened for
 * writing yet has nothing, and no end either. */
static bool is_readable(int fd, hf__time until)
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

/* A line, without its end; a pipe may give it in parts. -1: errno says why. */
static ssize_t read_line(int fd, hf__time until, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n && len < size - 1 && !memchr(text, '\n', len)) {
        if (!is_readable(fd, until))
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

static int read_password(hf_client *c, const char *path, char **out,
                         hf_error *err)
{
    char text[PASSWORD_MAX + 2];
    hf__time until = hf__now() + c->config->open_timeout_ms * HF__MS;
    /* Opening a pipe would wait for its writer, for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    ssize_t len = fd < 0 ? -1 : read_line(fd, until, text, sizeof(text));

    if (len < 0 && fd >= 0 && errno == ETIMEDOUT)
        rc = hf__fail(err, HF_EINVAL,
                      "password_file=%s: no line came within %u ms; a pipe "
                      "needs a program that writes to it",
                      path, c->config->open_timeout_ms);
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
    close_fd(fd);
    return rc;
}

/* The options, the file, the URL, the environment: the first that has one. */
static int password(hf_client *c, struct hf__url *url,
                    const hf_client_options *opt, char **out, hf_error *err)
{
    const char *file = hf__url_option(url, "password_file");
    const char *env = secure_getenv("HOLDFAST_PASSWORD");
    const char *text = "";

    if (!opt->password && file)
        return read_password(c, file, out, err);
    if (opt->password)
        text = opt->password;
    else if (*url->password)
        text = url->password;
    else if (env)
        text = env;
    *out = hf__strdup(c, text);
    return *out ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

static bool known(const char *list, const char *key)
{
    size_t len = strlen(key);

    for (const char *p = list; (p = strstr(p, key)); p += len)
        if ((p == list || p[-1] == ' ') && (p[len] == ',' || !p[len]))
            return true;
    return false;
}

/* The option of a list that was meant, if one is similar: better than best. */
static void find_similar(const char *list, const char *key, unsigned *best,
                         struct hf__shown *meant)
{
    size_t len;

    for (const char *p = list; *p; p += len + strspn(p + len, ", ")) {
        unsigned n;

        len = strcspn(p, ",");
        n = hf__mistyped(key, p, len);
        if (n < *best && len < sizeof(meant->text)) {
            *best = n;
            memcpy(meant->text, p, len);
            meant->text[len] = '\0';
        }
    }
}

static int unknown_option(const hf_client *c, const char *key, const char *more,
                          hf_error *err)
{
    struct hf__shown meant = {""};
    unsigned best = UINT_MAX;

    find_similar(COMMON_OPTIONS, key, &best, &meant);
    find_similar(more, key, &best, &meant);
    return hf__fail(
        err, HF_EINVAL,
        "unknown option \"%.40s\"; %s%s%s%s has " COMMON_OPTIONS "%s%s", key,
        *meant.text ? "did you mean \"" : "", meant.text,
        *meant.text ? "\"? " : "", c->be->name, *more ? ", " : "", more);
}

static int check_unknown(hf_client *c, struct hf__url *url, hf_error *err)
{
    const char *more = c->be->options ? c->be->options : "";

    for (size_t i = 0; i < url->options_len; i++)
        if (!known(COMMON_OPTIONS, url->options[i].key) &&
            !known(more, url->options[i].key))
            return unknown_option(c, url->options[i].key, more, err);
    return 0;
}

/* What no kind of lock has cannot be the default. (A kind that has one way only
 * has that one whatever the URL says.) */
static int check_fairness(const hf_client *c, hf_error *err)
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

/* Everything of the URL and the options that the core understands. */
static int hf__config_make(hf_client *c, const char *text,
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
        (rc = check_unknown(c, url, err)) || (rc = times(c, url, opt, err)) ||
        (rc = texts(c, url, opt, err)) ||
        (rc = password(c, url, opt, &secret, err)))
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
    return check_fairness(c, err);
}

/* ---- open -------------------------------------------------------------- */

struct open_wait {
    hf_client *client;
    hf__time until;
    int result;
};

static bool open_ready(void *arg, hf__time now, hf__time *until)
{
    struct open_wait *w = arg;

    hf__mutex_lock(&w->client->mu);
    if (w->client->be->opened)
        w->result = w->client->be->opened(w->client->self);
    else
        w->result = HF__DONE;
    hf__mutex_unlock(&w->client->mu);
    *until = w->until;
    return w->result != HF__PENDING || now >= w->until;
}

/* Where the URL leads to, for a message. */
static struct hf__shown first_address(const struct hf__url *url)
{
    struct hf__shown shown =
        hf__show(url->hosts_len ? url->hosts[0].name : url->path);
    size_t len = strlen(shown.text);

    if (url->hosts_len && url->hosts[0].port)
        snprintf(shown.text + len, sizeof(shown.text) - len, ":%u",
                 url->hosts[0].port);
    return shown;
}

static int connect_backend(hf_client *c, hf__time until, hf_error *err)
{
    struct open_wait w = {c, until, HF__PENDING};
    struct hf__sleeper s;

    hf__sleeper_init(&s, NULL);
    hf__driver_wait(c, &s, open_ready, &w);
    if (w.result != HF__PENDING)
        return w.result ? hf__fail_why(c, err, w.result) : 0;
    hf__fail(err, HF_EBACKEND,
             "%s: no connection to %s within %u ms; check that the "
             "server runs and answers, its address in the URL, and that no "
             "firewall is in between",
             c->be->name, first_address(c->config->url).text,
             c->config->open_timeout_ms);
    if (err)
        err->may_pass = hf__may_pass(c, HF_EBACKEND);
    return HF_EBACKEND;
}

static int open_client(hf_client *c, const char *url,
                       const hf_client_options *opt, hf_error *err,
                       bool *given_up)
{
    int rc = check_resources(c, err);
    hf__time until = hf__now();

    if (!rc)
        rc = hf__config_make(c, url, opt, err);
    if (rc)
        return rc;
    until += (hf__time)c->config->open_timeout_ms * HF__MS;
    rc = hf__helper_start(c, until, err, given_up);
    if (rc)
        return rc;
    rc = connect_backend(c, until, err);
    if (rc)
        hf__helper_stop(c);
    return rc;
}

int hf_open(const char *url, const hf_client_options *opt, hf_client **out,
            hf_error *err)
{
    HF__UNCANCELLED;
    bool given_up = false;
    hf_client *c;
    int rc;

    if (out)
        *out = NULL;
    if (!out || !url)
        return hf__fail(err, HF_EINVAL, "%s is NULL", out ? "url" : "out");
    opt = opt ? opt : &by_default;
    if (opt->size != sizeof(*opt))
        return hf__fail(err, HF_EINVAL,
                        "the options were not set by HF_CLIENT_OPTIONS_INIT");
    c = hf__client_new(opt);
    if (!c)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = open_client(c, url, opt, err, &given_up);
    if (rc == HF_EUNKNOWN) { /* nothing is left that could be finished */
        rc = HF_EBACKEND;
        if (err) {
            err->code = rc;
            err->may_pass = 1;
        }
    }
    if (!rc) {
        hf__config_free(c);
        *out = c;
    } else if (!given_up) {
        hf__client_free(c);
    }
    return rc;
}

int hf_client_caps(const hf_client *c, enum hf_kind kind)
{
    if (!c || kind < HF_MUTEX || kind > HF_LATCH)
        return HF_EINVAL;
    return c->caps[kind];
}

/* ---- close ------------------------------------------------------------- */

/* Calls fn for every name, with name->mu held; was it true of all? New ones
 * cannot come. */
static bool each_line(hf_client *c, bool (*fn)(struct hf__line *))
{
    bool all = true;

    for (size_t i = 0; i < c->buckets_len; i++) {
        struct hf__line *n, *next;

        hf__mutex_lock(&c->mu);
        n = c->buckets[i];
        if (n)
            n->refs++;
        hf__mutex_unlock(&c->mu);
        for (; n; n = next) {
            hf__line_lock(n);
            all = fn(n) && all;
            hf__line_unlock(n);
            hf__mutex_lock(&c->mu);
            next = n->next_in_bucket;
            if (next)
                next->refs++;
            hf__line_unref_locked(n);
            hf__mutex_unlock(&c->mu);
        }
    }
    return all;
}

/* Nothing is to be let go any more, now or after a pause. */
static bool is_idle(struct hf__line *n)
{
    return hf__queue_idle(&n->queue);
}

/* The same, or the hold that is let go has ended by itself and the program does
 * not wait for the answer. */
static bool is_over(struct hf__line *n)
{
    return is_idle(n) ||
           (hf__lease_over(&n->queue.lease, hf__now()) && !n->releasers);
}

static bool end_line(struct hf__line *n)
{
    hf__time now = hf__now();

    hf__queue_fail(&n->queue, HF_ECLOSED, hf__line_wake);
    n->queue.owner = 0;
    n->queue.count = 0;
    hf__lease_drop(&n->queue.lease);
    hf__lease_hurry(&n->queue.lease, now); /* it may be allowed by now */
    hf__line_run(n, now);
    return is_idle(n);
}

/* What no answer will come for any more. */
static bool forget_line(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__exchange *x = hf__exchange_of(n);

    hf__line_finish_releases(n, 0, HF_EUNKNOWN);
    hf__mutex_lock(&c->mu);
    if (x) {
        n->refs -= x->attempt.flying + x->let_go.flying;
        x->attempt.flying = x->let_go.flying = false;
    }
    n->refs -= n->owes;
    n->owes = false;
    hf__mutex_unlock(&c->mu);
    return true;
}

int hf__client_usable(const hf_client *c, hf_error *err)
{
    int rc = c ? hf__client_check(c) : HF_EINVAL;

    if (!c)
        return hf__fail(err, rc, "client is NULL");
    return rc ? hf__fail(err, rc, "%s", hf_error_text(rc)) : 0;
}

bool hf__client_enter(hf_client *c)
{
    bool open;

    hf__mutex_lock(&c->mu);
    open = !__atomic_load_n(&c->closed, __ATOMIC_ACQUIRE);
    c->inside += open;
    hf__mutex_unlock(&c->mu);
    return open;
}

void hf__client_leave(hf_client *c)
{
    hf__mutex_lock(&c->mu);
    c->inside--;
    hf__mutex_unlock(&c->mu);
}

/* Answers that change nothing any more are not worth a wait of op_timeout: a
 * program beside a dead server ends within a second. */
#define SOON_MS 800

struct close_wait {
    hf_client *client;
    hf__time until; /* how long answers are waited for */
    hf__time soon;  /* the same for answers that change nothing any more */
    bool late;      /* the time is over; one more round reads what has come */
    int result;
};

/* Does an asynchronous verb wait for an answer, so that its callback can report
 * it? */
static bool is_awaited(hf_client *c)
{
    const struct hf__request *f;

    hf__mutex_lock(&c->mu);
    for (f = c->flights; f && (!f->async || f->delivered); f = f->next)
        ;
    hf__mutex_unlock(&c->mu);
    return f != NULL;
}

/* There is no limit for threads that are inside, because they use what is about
 * to go away (each leaves soon: its wait has failed, or lasts for op_timeout).
 */
static bool close_ready(void *arg, hf__time now, hf__time *until)
{
    struct close_wait *w = arg;
    bool alone, was_late = w->late;

    hf__mutex_lock(&w->client->mu);
    w->result = w->client->under_way ? HF__PENDING : 0;
    alone = w->client->inside == 0 &&
            __atomic_load_n(&w->client->firing, __ATOMIC_SEQ_CST) == 0;
    hf__mutex_unlock(&w->client->mu);
    /* A refusal: it is sent again. (Direct: it ends with the client.) */
    if (!w->result && !w->client->direct && !each_line(w->client, is_idle))
        w->result = HF__PENDING;
    *until = now + 20 * HF__MS;
    if (!alone || w->result != HF__PENDING)
        return alone;
    w->late = now >= w->until || (now >= w->soon && !is_awaited(w->client) &&
                                  each_line(w->client, is_over));
    return w->late && was_late;
}

/* It will not be answered. */
static void drop_request_locked(hf_client *c, struct hf__request *f)
{
    struct hf__async *a = f->async;

    if (a) {
        a->call.flight = NULL;
        hf__callback_queue_locked(c, a, HF_EUNKNOWN);
    }
    if (f->req.op == HF__RENEW)
        for (size_t i = 0; i < f->batch.len; i++)
            hf__line_unref_locked(hf__container(f->batch.item[i].remote,
                                                struct hf__line, remote));
    else
        hf__query_destroy(&f->query);
    hf__list_remove(c->flights, f);
    hf__free(c, f);
}

/* The backend is gone, and with it whatever it had not reported. */
static void tidy(hf_client *c)
{
    struct hf__request *f, *next;

    hf__mutex_lock(&c->mu);
    c->landed = NULL;
    while (c->outbox)
        hf__outbox_remove_locked(c, c->outbox);
    for (f = c->flights; f; f = next) {
        next = f->next;
        if (!f->delivered) /* else it waits for its callback */
            drop_request_locked(c, f);
    }
    hf__event_drop_all_locked(c);
    while (c->news) {
        struct hf__line *n = c->news;

        c->news = n->next_news;
        hf__line_unref_locked(n);
    }
    hf__mutex_unlock(&c->mu);
    each_line(c, forget_line);
}

int hf_close(hf_client *c)
{
    HF__UNCANCELLED;
    struct hf__sleeper s;
    struct close_wait w = {.client = c};
    struct hf__async *a;
    hf__time now;
    int rc;

    if (!c)
        return 0;
    rc = hf__client_check(c);
    if (!rc && hf__is_dispatching(c))
        rc = HF_EBUSY;
    if (rc)
        return rc;
    hf__mutex_lock(&c->mu);
    if (!__atomic_exchange_n(&c->closed, 1, __ATOMIC_ACQ_REL))
        c->handles++; /* ours: whoever frees the last one frees the client */
    else
        rc = HF_ECLOSED;
    hf__mutex_unlock(&c->mu);
    if (rc)
        return rc;
    each_line(c, end_line);
    now = hf__now();
    w.until = now + (hf__time)c->op_timeout_ms * HF__MS;
    w.soon = now + SOON_MS * HF__MS;
    hf__sleeper_init(&s, NULL);
    hf__driver_wait(c, &s, close_ready, &w);
    rc = w.result == HF__PENDING ? HF_EUNKNOWN : 0;
    hf__helper_stop(c);
    tidy(c);
    while ((a = hf__callback_next(c))) {
        hf__callback_run(a);
        if (hf__client_check(c) == HF_EFORK)
            return HF_EFORK; /* the child of a callback that forked */
    }
    hf__client_put(c);
    return rc;
}

void hf__client_put(hf_client *c)
{
    bool last;

    hf__mutex_lock(&c->mu);
    last = --c->handles == 0 && __atomic_load_n(&c->closed, __ATOMIC_ACQUIRE) &&
           !c->self;
    hf__mutex_unlock(&c->mu);
    if (last)
        hf__client_free(c);
}
