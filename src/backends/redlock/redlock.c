/*
 * The backend's table; opening, closing and driving a client.
 *
 *   redlock://[user[:password]@]host[:6379],host[:6379],...[/db]
 *   tls=yes              all with TLS; cacert=FILE&cert=FILE&key=FILE
 *   server_timeout=50ms  a server that has not replied by then has no vote
 *   max_lease=TIME       the longest TTL of any lock (default: ttl=); must be
 *                        the same in all clients. 0: no limit, because the
 *                        servers keep their keys through a restart
 */
#include "redlock.h"

#include "backends/common/about.h"
#include "backends/redis/login.h"
#include "backends/redis/rules.h"
#include "diagnose.h"
#include "hold.h"
#include "server.h"
#include "servers.h"
#include "vote.h"

#include <stdio.h>
#include <string.h>

#define PORT 6379
#define SERVER_TIMEOUT_MS 50
#define SERVER_TIMEOUT_MAX_MS 60000
#define LEAVE_MAX_MS 1000

/* ---- open ---------------------------------------------------------------- */

static int redlock_parse_time(struct redlock *rl, struct hf__url *url,
                              const char *key, int64_t least, int64_t most,
                              uint32_t *ms)
{
    const char *text = rl->core->option(url, key);
    int64_t n = *ms;

    if (text && (rl->core->parse_ms(text, &n) || n < least || n > most))
        return rl->core->why(rl->client, HF_EINVAL,
                             "%s=%.40s: must be from %lld to %lld ms", key,
                             text, (long long)least, (long long)most);
    *ms = (uint32_t)n;
    return 0;
}

static int redlock_port_of(const struct hf__host *host)
{
    return host->port ? host->port : PORT;
}

static int redlock_parse_hosts(struct redlock *rl, const struct hf__url *url)
{
    int rc = 0;

    if (url->hosts_len < 3 || url->hosts_len % 2 == 0)
        return rl->core->why(rl->client, HF_EINVAL,
                             "the number of servers is %zu: it must be odd, "
                             "and at least 3 and at most 15, as in "
                             "redlock://a,b,c",
                             url->hosts_len);
    for (size_t i = 0; !rc && i < url->hosts_len; i++) {
        for (size_t j = 0; j < i; j++)
            if (!strcmp(url->hosts[i].name, url->hosts[j].name) &&
                redlock_port_of(&url->hosts[i]) ==
                    redlock_port_of(&url->hosts[j]))
                return rl->core->why(rl->client, HF_EINVAL,
                                     "the server %.80s:%d is listed twice",
                                     url->hosts[i].name,
                                     redlock_port_of(&url->hosts[i]));
        hf__rl_server_init(&rl->server[i], rl);
        rl->len++;
        rc = hf__net_set_hosts(&rl->server[i].peer, &url->hosts[i], 1, PORT);
    }
    rl->majority = rl->len / 2 + 1;
    return rc;
}

static int redlock_parse(struct redlock *rl, const struct hf__config *config)
{
    struct hf__url *url = config->url;
    const char *tls = rl->core->option(url, "tls");
    bool has_tls = tls && strcmp(tls, "yes") == 0;
    int rc = redlock_parse_hosts(rl, url);

    rl->op_timeout_ms = config->op_timeout_ms;
    rl->server_timeout_ms = SERVER_TIMEOUT_MS;
    rl->max_lease_ms = config->ttl_ms;
    if (!rc && tls && !has_tls && strcmp(tls, "no") != 0)
        rc = rl->core->why(rl->client, HF_EINVAL,
                           "tls=%.40s: must be yes or no", tls);
    if (!rc)
        rc = redlock_parse_time(rl, url, "server_timeout", 1,
                                SERVER_TIMEOUT_MAX_MS, &rl->server_timeout_ms);
    if (!rc)
        rc = redlock_parse_time(rl, url, "max_lease", 0, UINT32_MAX / 2,
                                &rl->max_lease_ms);
    if (!rc && rl->max_lease_ms && rl->max_lease_ms < config->ttl_ms)
        rc = rl->core->why(rl->client, HF_EINVAL,
                           "max_lease is %u ms, and ttl %u ms: max_lease "
                           "must not be less than the ttl of any client",
                           rl->max_lease_ms, config->ttl_ms);
    rl->login.doubt = "; is it Redis? With TLS it is ?tls=yes";
    return rc ? rc
              : hf__rd_login(rl->core, rl->client, config,
                             has_tls ? NULL : "tls=yes", &rl->login);
}

/* Starts a client. A host that cannot be resolved is tolerated if enough
 * servers remain. */
static int start_redlock(struct redlock *rl, const struct hf__config *config)
{
    hf__time now = rl->core->now();
    size_t found = 0;
    int rc = 0;

    for (size_t i = 0; i < rl->len; i++) {
        struct rl_server *s = &rl->server[i];
        int last;

        hf__rd_login_aim(&s->pipe, &s->peer, &rl->login, &rl->tags,
                         config->open_timeout_ms, rl->op_timeout_ms);
        s->pipe.link.lost = "redlock: lost the connection";
        last = hf__net_find(&s->peer);
        if (last)
            hf__net_expect(&s->peer);
        rc = last ? last : rc;
        found += !last;
        hf__link_start(&s->pipe.link, now);
    }
    rl->opens_until = now + rl->server_timeout_ms * HF__MS;
    return found >= rl->majority ? 0 : rc;
}

static int redlock_introduce(struct redlock *rl)
{
    uint8_t b[24];
    int rc = rl->core->random(b, sizeof(b));

    if (rc)
        return rl->core->lasts(rl->client, rc, "getrandom failed");
    hf__uuid(b, rl->uuid);
    memcpy(&rl->chance, b + 16, 8);
    rl->chance |= 1;
    return 0;
}

static void redlock_close(void *self)
{
    struct redlock *rl = self;

    uint32_t ms = rl->server_timeout_ms < LEAVE_MAX_MS ? rl->server_timeout_ms
                                                       : LEAVE_MAX_MS;
    hf__time until = rl->core->now() + ms * HF__MS;
    struct rl_hold *h;

    for (size_t i = 0; i < rl->len; i++)
        hf__rl_leave(&rl->server[i], until);
    while ((h = rl->debtors)) {
        rl->debtors = h->next_debtor;
        hf__rl_hold_drop(rl, h);
    }
    hf__rl_checkups_fini(rl);
    for (size_t i = 0; i < rl->len; i++)
        hf__rl_server_fini(&rl->server[i]);
    hf__rd_login_fini(rl->core, rl->client, &rl->login);
    rl->core->free(rl->client, rl);
}

static const struct rl_calls calls = {.voted = hf__rl_voted,
                                      .failed = hf__rl_failed,
                                      .unchecked = hf__rl_checkup_drop};

static int redlock_open(hf_client *client, const struct hf__core *core,
                        const struct hf__config *config, void **self)
{
    struct redlock *rl = core->alloc(client, sizeof(*rl));
    int rc;

    if (!rl)
        return HF_ENOMEM;
    rl->core = core;
    rl->client = client;
    rl->calls = &calls;
    rc = redlock_parse(rl, config);
    if (!rc)
        rc = redlock_introduce(rl);
    if (!rc)
        rc = start_redlock(rl, config);
    if (rc) {
        redlock_close(rl);
        return rc;
    }
    *self = rl;
    return 0;
}

/* ---- which servers can vote ----------------------------------------------
 */

/* Writes how many servers can vote, and why the others cannot vote. */
static void redlock_count_up(const struct redlock *rl, char *to, size_t size)
{
    hf__time now = rl->core->now();
    int n = snprintf(to, size, "%d of %zu servers can be asked, %zu must: ",
                     __builtin_popcount(hf__rl_usable(rl, now)), rl->len,
                     rl->majority);

    hf__rl_describe(rl, NULL, now, to + n, size - (size_t)n);
}

/* Writes advice if a server accepts the user but refuses commands; otherwise an
 * empty string. */
static void redlock_advise(const struct redlock *rl, char *to, size_t size)
{
    char rules[200];
    bool is_forbidden = false;

    to[0] = '\0';
    for (size_t i = 0; i < rl->len; i++)
        is_forbidden |= strstr(rl->server[i].pipe.link.text, "NOPERM") != NULL;
    if (is_forbidden)
        snprintf(
            to, size, ". " RD_RUN "%s%s%s",
            rl->login.user[0] ? rl->login.user : "default",
            rl->login.db ? " +select" : "",
            hf__rd_rules(rules, sizeof(rules), RD_RULES_REDLOCK, NULL, false));
}

static int redlock_opened(void *self)
{
    struct redlock *rl = self;
    size_t failed = 0, lasting = 0, up = hf__rl_connected(rl);
    bool is_over = rl->core->now() >= rl->opens_until;
    char text[240], advice[320];
    int code = 0;

    for (size_t i = 0; i < rl->len; i++) {
        const struct net_link *l = &rl->server[i].pipe.link;

        failed += l->state != NET_UP && l->open_code;
        lasting += l->state != NET_UP && l->open_code && l->lasts;
        if (l->open_code && (!code || code == HF_EBACKEND))
            code = l->open_code;
    }
    if (up + failed < rl->len && !is_over)
        /* Wait until each server is connected, or its error is known. */
        return HF__PENDING;
    if (up >= rl->majority) {
        rl->is_open = true;
        return HF__DONE;
    }
    if (failed <= rl->len - rl->majority)
        return HF__PENDING;
    redlock_count_up(rl, text, sizeof(text));
    redlock_advise(rl, advice, sizeof(advice));
    return (lasting > rl->len - rl->majority ? rl->core->lasts : rl->core->why)(
        rl->client, code, "%s%s", text, advice);
}

/* ---- driving ----------------------------------------------------------------
 */

static void redlock_ready(void *self, uint32_t tag, uint32_t events,
                          hf__time now)
{
    struct redlock *rl = self;

    for (size_t i = 0; i < rl->len; i++)
        if (hf__link_ready(&rl->server[i].pipe.link, tag, events, now))
            return;
}

/* Reports to the core whether a majority of the servers can vote, and whether a
 * majority is connected. */
static void redlock_report_state(struct redlock *rl, hf__time now)
{
    bool is_down = !hf__rl_has_majority(rl, now);
    char text[200];

    if (is_down) {
        redlock_count_up(rl, text, sizeof(text));
        rl->core->trouble(rl->client, text);
    } else if (rl->is_down && !rl->is_unheard) {
        rl->core->trouble(rl->client, NULL);
    }
    rl->is_down = is_down;
    if (rl->is_up == (hf__rl_connected(rl) >= rl->majority))
        return;
    rl->is_up = !rl->is_up;
    if (rl->is_open)
        rl->core->session(rl->client, rl->is_up ? HF_EVENT_UP : HF_EVENT_DOWN,
                          NULL);
}

static void redlock_advance(void *self, hf__time now)
{
    struct redlock *rl = self;

    for (size_t i = 0; i < rl->len; i++)
        hf__link_advance(&rl->server[i].pipe.link, now);
    for (size_t i = 0; i < rl->len; i++)
        hf__rl_pay_again(&rl->server[i], now);
    hf__rl_vote_move(rl, now);
    hf__rl_checkup_move(rl, now);
    hf__rl_flush(rl);
    /* Read the clock again: slots that ran during the calls above may have used
     * a later time than `now`. */
    redlock_report_state(rl, rl->core->now());
    if (rl->put_off && !rl->is_down) {
        rl->put_off = false;
        rl->core->go_on(rl->client);
    }
}

static hf__time redlock_next_timeout(void *self)
{
    struct redlock *rl = self;
    hf__time at = hf__rl_vote_timeout(rl), now = rl->core->now();

    at = hf__min_time(at, hf__rl_checkup_timeout(rl));
    if (rl->opens_until > now)
        at = hf__min_time(at, rl->opens_until);

    for (size_t i = 0; i < rl->len; i++) {
        const struct rl_server *s = &rl->server[i];

        at = hf__min_time(at, hf__link_timeout(&s->pipe.link));
        at = hf__min_time(at, hf__rl_pay_timeout(s, now));
        if (s->out_until > now)
            at = hf__min_time(at, s->out_until);
    }
    return at;
}

const struct hf__backend hf__rl_backend = {
    .abi = HF__ABI,
    .name = "redlock",
    .caps = {[HF_MUTEX] = HF_CAP_UNFAIR | HF_CAP_LEASE},
    .options = "server_timeout, max_lease, tls, db, cacert, cert, key",
    .taken = "it is no longer on enough servers (deleted or evicted, or "
             "servers restarted empty)",
    .open = redlock_open,
    .opened = redlock_opened,
    .close = redlock_close,
    .ready = redlock_ready,
    .advance = redlock_advance,
    .next_timeout = redlock_next_timeout,
    .attach = hf__rl_attach,
    .detach = hf__rl_detach,
    .attempt = hf__rl_attempt,
    .release = hf__rl_release,
    .abandon = hf__rl_abandon,
    .renew = hf__rl_renew,
    .query = hf__rl_query,
};
