/* hf_open(): creates a client, lets the helper thread open its backend, and
 * waits until the client is connected. loop/config.c reads the URL and the
 * options. */
#include "base/error.h"
#include "base/futex.h"
#include "base/text.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/last_error.h"
#include "core/wakeup.h"
#include "loop/config.h"
#include "loop/driver.h"
#include "loop/helper_thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static const hf_client_options by_default = HF_CLIENT_OPTIONS_INIT;

static int open_check_resources(hf_client *c, hf_error *err)
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

struct open_wait {
    hf_client *client;
    hf__time until;
    int result;
};

static bool open_ready(void *arg, hf__time now, hf__time *until)
{
    struct open_wait *w = arg;

    HF__HOLDING(&w->client->mu);
    w->result = w->client->be->opened ? w->client->be->opened(w->client->self)
                                      : HF__DONE;
    *until = w->until;
    return w->result != HF__PENDING || now >= w->until;
}

/* Returns the first address in the URL, for an error message. */
static struct hf__shown open_first_address(const struct hf__url *url)
{
    struct hf__shown shown =
        hf__show(url->hosts_len ? url->hosts[0].name : url->path);
    size_t len = strlen(shown.text);

    if (url->hosts_len && url->hosts[0].port)
        snprintf(shown.text + len, sizeof(shown.text) - len, ":%u",
                 url->hosts[0].port);
    return shown;
}

static int open_connect_backend(hf_client *c, hf__time until, hf_error *err)
{
    struct open_wait w = {c, until, HF__PENDING};
    struct hf__sleeper s;

    hf__sleeper_init(&s, NULL);
    hf__driver_wait(c, &s, open_ready, &w);
    if (w.result != HF__PENDING)
        return w.result ? hf__fail_why(c, err, w.result) : 0;
    hf__fail(err, HF_EBACKEND,
             "%s: no connection to %s within %s; check that the "
             "server runs and answers, its address in the URL, and that no "
             "firewall is in between",
             c->be->name, open_first_address(c->config->url).text,
             hf__span(c->config->open_timeout_ms).text);
    return hf__fail_passing(c, err, HF_EBACKEND);
}

static int open_client(hf_client *c, const char *url,
                       const hf_client_options *opt, hf_error *err,
                       bool *given_up)
{
    int rc = open_check_resources(c, err);
    hf__time until = hf__now();

    if (!rc)
        rc = hf__config_make(c, url, opt, err);
    if (rc)
        return rc;
    until += (hf__time)c->config->open_timeout_ms * HF__MS;
    rc = hf__helper_start(c, until, err, given_up);
    if (rc)
        return rc;
    rc = open_connect_backend(c, until, err);
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
    if (rc == HF_EUNKNOWN) { /* no request can still be under way */
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
        hf__config_free(c);
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
