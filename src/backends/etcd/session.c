/*
 * The connection and the lease. The *greeting* is the sequence of requests with
 * which the client opens each connection. It has these steps; each begins after
 * the answer to the one before:
 *
 *   Authenticate   if the URL names a user
 *   LeaseGrant     if there is no lease, or if it is not known to be granted.
 *                  Before the first connection is up, a Status is sent in
 *                  this step, to refuse a server that is too old
 *   Put the guard  under the lease. No earlier ENTER can succeed after this
 *                  Put, and the answer shows that the member has a leader. A
 *                  full server refuses the Put, as it refuses every ENTER, but
 *                  still renews leases and deletes entries. So if the client
 *                  has written its guard under this lease before, the refusal
 *                  is ignored
 *
 * If the lease has ended, all keys under it are gone, and the next greeting
 * requests another lease.
 */
#include "session.h"

#include "net/tls.h"

#include "batch.h"
#include "changes.h"
#include "etcd.h"
#include "exchange.h"
#include "lease.h"
#include "lock.h"
#include "lock_state.h"
#include "refusal.h"
#include "watch.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CLOSE_MS 500 /* longest wait for the answer to the revocation */

/* ---- refusals ------------------------------------------------------------ */

static bool session_is_stale(struct grpc *g, const struct grpc_call *c)
{
    const struct etcd *e = g->owner;

    return e->user[0] &&
           (c->status == GRPC_UNAUTHENTICATED ||
            (c->status == 3 && (hf__et_says(c, "auth store is old") ||
                                hf__et_says(c, "user name is empty"))));
}

/* Returns the error code for a failed step of the greeting. (If a load balancer
 * answers in place of the server, the call ends as GRPC_ODD, too; with status
 * 14, unavailable, that is no protocol error.) */
static int session_code_of_step(const struct grpc_call *c)
{
    int code = hf__et_code_of(c);

    if (c->end == GRPC_ANSWERED)
        return code;
    return c->end != GRPC_ODD || c->status == 14 ? HF_EBACKEND
           : code == HF_EAUTH                    ? HF_EAUTH
                                                 : HF_EPROTO;
}

static bool session_is_full(const struct grpc_call *c)
{
    return c->end == GRPC_ANSWERED && c->status == GRPC_RESOURCE_EXHAUSTED;
}

static int session_not_greeted(struct etcd *e, const struct grpc_call *c,
                               hf__time now)
{
    int code = session_code_of_step(c);
    char text[ET_ADVICE];

    /* The connection was lost, and the error message is already set. */
    if (e->g.link.state == NET_PAUSING)
        return code;
    if (code == HF_EAUTH || session_is_full(c))
        e->g.link.refused_at = now;
    if (code == HF_EAUTH && !e->user[0])
        return hf__link_why(&e->g.link, code,
                            "the server wants a user and a password: "
                            "etcd://user@host, and HOLDFAST_PASSWORD or "
                            "password_file= (%.80s)",
                            c->text);
    return hf__link_why(&e->g.link, code, "%s%s", c->text,
                        hf__et_advice(e, c, text));
}

static bool session_is_ok(const struct grpc_call *c)
{
    return c->end == GRPC_ANSWERED && c->status == GRPC_OK;
}

/* ---- the greeting -------------------------------------------------------- */

static int session_version_reported(struct grpc_call *, hf__time);
static int session_guarded(struct grpc_call *, hf__time);
static int session_granted(struct grpc_call *, hf__time);
static int session_signed_in(struct grpc_call *, hf__time);
static int session_kept(struct grpc_call *, const uint8_t *, size_t, hf__time);
static int session_keep_over(struct grpc_call *, hf__time);

static const struct grpc_method sign_in = {
    .path = "/etcdserverpb.Auth/Authenticate",
    .is_greeting = true,
    .is_bare = true,
    .is_secret = true,
    .most = 64 << 10,
    .over = session_signed_in};
static const struct grpc_method get_version = {
    .path = "/etcdserverpb.Maintenance/Status",
    .is_greeting = true,
    .most = ET_ANSWER,
    .over = session_version_reported};
static const struct grpc_method grant = {.path =
                                             "/etcdserverpb.Lease/LeaseGrant",
                                         .is_greeting = true,
                                         .most = ET_ANSWER,
                                         .over = session_granted};
static const struct grpc_method put_guard = {.path = "/etcdserverpb.KV/Put",
                                             .is_greeting = true,
                                             .most = ET_ANSWER,
                                             .over = session_guarded};
static const struct grpc_method keep = {
    .path = "/etcdserverpb.Lease/LeaseKeepAlive",
    .is_stream = true,
    .most = ET_ANSWER,
    .message = session_kept,
    .over = session_keep_over};

/* Starts a call. During the greeting a call has no time limit of its own,
 * because the link has one. */
static int session_start(struct etcd *e, struct grpc_call *c,
                         const void *message)
{
    int rc = hf__et_pack(c, message);

    if (!rc)
        rc = hf__grpc_start(c, e->g.link.state == NET_UP ? ET_CALL_MS : 0);
    if (rc == HF__LATER)
        return hf__link_why(&e->g.link, HF_EBACKEND,
                            "the server ends the connection");
    return rc ? hf__et_no_memory(e) : 0;
}

static int session_step_guard(struct etcd *e)
{
    Etcd__Put m = ETCD__PUT__INIT;

    m.key.data = (uint8_t *)e->guard_key;
    m.key.len = e->guard_len;
    m.value.data = (uint8_t *)e->about;
    m.value.len = strlen(e->about);
    m.lease = e->lease;
    return session_start(e, &e->put_guard, &m);
}

static int session_step_lease(struct etcd *e, hf__time now)
{
    Etcd__Status status = ETCD__STATUS__INIT;
    Etcd__Grant m = ETCD__GRANT__INIT;
    int rc = e->was_up ? 0 : session_start(e, &e->get_version, &status);

    if (rc)
        return rc;
    if (e->lease && e->is_granted)
        return session_step_guard(e);
    while (e->lease <= 0) {
        if (e->core->random(&e->lease, sizeof(e->lease)))
            return hf__link_why(&e->g.link, HF_EBACKEND, "getrandom failed");
        e->lease &= INT64_MAX;
        e->guard = 0;
    }
    e->guard_len = (size_t)snprintf(e->guard_key, sizeof(e->guard_key),
                                    "%sholdfast:client/%llx", e->root,
                                    (unsigned long long)e->lease);
    m.id = e->lease;
    m.ttl = e->ttl_s;
    e->grant_sent_at = now;
    return session_start(e, &e->grant, &m);
}

static int session_step_user(struct etcd *e)
{
    Etcd__Authenticate m = ETCD__AUTHENTICATE__INIT;

    m.name = e->user;
    m.password = e->password;
    return session_start(e, &e->sign_in, &m);
}

static int session_hello(struct grpc *g, hf__time now)
{
    struct etcd *e = g->owner;

    e->is_guarded = false;
    return e->user[0] ? session_step_user(e) : session_step_lease(e, now);
}

/* Handles a failed Authenticate. If the server does not authenticate users, the
 * greeting continues without a token. A refusal after the greeting fails the
 * calls that wait for a new token. Any other failure ends the connection. */
static int session_not_signed_in(struct etcd *e, const struct grpc_call *c,
                                 hf__time now)
{
    bool is_greeting = e->g.link.state == NET_GREETING;

    if (is_greeting && c->end == GRPC_ANSWERED && c->status == 9 &&
        hf__et_says(c, "not enabled")) {
        hf__grpc_token(&e->g, NULL, 0, "");
        return session_step_lease(e, now);
    }
    if (is_greeting || session_code_of_step(c) != HF_EAUTH)
        return session_not_greeted(e, c, now);
    hf__grpc_token(&e->g, NULL, c->status, c->text);
    return 0;
}

static int session_signed_in(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;
    bool is_greeting = e->g.link.state == NET_GREETING;
    Etcd__AuthenticateAnswer *a;
    const uint8_t *p;
    size_t len;
    int rc;

    if (!session_is_ok(c))
        return session_not_signed_in(e, c, now);
    p = hf__grpc_answer(c, &len);
    a = etcd__authenticate_answer__unpack(&e->memory, len, p);
    if (!a)
        return hf__et_odd(e);
    rc = hf__grpc_token(&e->g, a->token, 0, "");
    explicit_bzero(a->token, strlen(a->token));
    etcd__authenticate_answer__free_unpacked(a, &e->memory);
    if (rc)
        return hf__et_no_memory(e);
    if (is_greeting)
        return session_step_lease(e, now);
    /* The stream of watches was opened with the old authentication token, so it
     * must be opened again with the new token. */
    hf__grpc_cancel(&e->watch);
    hf__et_watches_down(e);
    e->watch_at = e->stream_at = now;
    return 0;
}

static int session_renew_token(struct grpc *g, hf__time now)
{
    (void)now;
    return session_step_user(g->owner);
}

/* Handles the answer to LeaseGrant. Status 9, "already exists", means that an
 * earlier grant was carried out and its answer was lost. A keep-alive then
 * tells how long the lease lasts. */
static int session_granted(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;
    Etcd__GrantAnswer *a;
    const uint8_t *p;
    int64_t ttl;
    size_t len;

    if (c->end == GRPC_ANSWERED && c->status == 9) {
        e->is_granted = true;
        return session_step_guard(e);
    }
    if (!session_is_ok(c))
        return session_not_greeted(e, c, now);
    p = hf__grpc_answer(c, &len);
    a = etcd__grant_answer__unpack(&e->memory, len, p);
    ttl = a ? a->ttl : 0;
    etcd__grant_answer__free_unpacked(a, &e->memory);
    if (ttl <= 0 || ttl > UINT32_MAX / 1000)
        return hf__et_odd(e);
    e->term_ms = (uint32_t)ttl * 1000;
    e->proved = e->grant_sent_at;
    e->is_granted = true;
    return session_step_guard(e);
}

/* Ends the greeting once the guard is written and the Status, if it was sent,
 * is answered. */
static int session_guarded_and_known(struct etcd *e, hf__time now)
{
    if (e->is_guarded && hf__grpc_is_idle(&e->get_version))
        hf__grpc_up(&e->g, now);
    return 0;
}

/* Returns whether the version is too old. A version that does not begin with
 * two numbers counts as recent enough. */
static bool session_is_old(const char *version)
{
    unsigned major = 0, minor = 0;

    return sscanf(version, "%5u.%5u", &major, &minor) == 2 &&
           (major < 3 || (major == 3 && minor < 4));
}

/* Handles the answer to Status. A server that does not report its version is
 * accepted. */
static int session_version_reported(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;
    Etcd__StatusAnswer *a = NULL;
    const uint8_t *p;
    size_t len;
    int rc = 0;

    if (e->g.link.state != NET_GREETING)
        return 0;
    if (session_is_ok(c)) {
        p = hf__grpc_answer(c, &len);
        a = etcd__status_answer__unpack(&e->memory, len, p);
        if (!a)
            return hf__et_odd(e);
    }
    if (a && session_is_old(a->version)) {
        e->g.link.lasts = true;
        e->g.link.refused_at = now;
        rc = hf__link_why(&e->g.link, HF_EBACKEND,
                          "etcd %.40s is too old: use etcd 3.4 or later",
                          a->version);
    }
    etcd__status_answer__free_unpacked(a, &e->memory);
    return rc ? rc : session_guarded_and_known(e, now);
}

static int session_guarded(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;
    Etcd__PutAnswer *a;
    const uint8_t *p;
    int64_t revision;
    size_t len;

    if (c->end == GRPC_ANSWERED && c->status == 5)
        return hf__et_lease_over(e, "the server ended the client's lease");
    if (session_is_full(c) && e->guard) {
        hf__grpc_up(&e->g, now);
        return 0;
    }
    if (!session_is_ok(c))
        return session_not_greeted(e, c, now);
    p = hf__grpc_answer(c, &len);
    a = etcd__put_answer__unpack(&e->memory, len, p);
    revision = a && a->header ? a->header->revision : 0;
    etcd__put_answer__free_unpacked(a, &e->memory);
    if (revision <= 0)
        return hf__et_odd(e);
    e->guard = revision;
    if (!e->heard) /* earlier hf_ask calls concern no hold of this lease */
        hf__et_heard(e, e->guard);
    for (struct et_lock *l = e->locks; l; l = l->next)
        l->doubt = false;
    e->is_guarded = true;
    return session_guarded_and_known(e, now);
}

/* Creates missing watches, those of listeners first. */
static void session_watch(struct etcd *e, hf__time now)
{
    if (!hf__et_watch_is_due(e, now))
        return;
    hf__et_changes_up(e);
    hf__et_watch_all(e);
}

static void session_up(struct grpc *g, hf__time now)
{
    struct etcd *e = g->owner;

    e->core->trouble(e->client, NULL);
    if (e->was_up)
        e->core->session(e->client, HF_EVENT_UP, NULL);
    e->was_up = true;
    e->kept_len = 0;
    hf__et_keep(e, now);
    e->watch_at = e->stream_at = now;
    session_watch(e, now);
}

/* ---- the lease ----------------------------------------------------------- */

/* Handles the answer to a keep-alive. If the client has no lease now, the
 * answer is about its previous lease, and is ignored, because the connection is
 * about to end. */
static int session_kept(struct grpc_call *c, const uint8_t *p, size_t len,
                        hf__time now)
{
    struct etcd *e = c->owner;
    Etcd__KeepAliveAnswer *a =
        e->lease ? etcd__keep_alive_answer__unpack(&e->memory, len, p) : NULL;
    int64_t ttl = a ? a->ttl : 0,
            rev = a && a->header ? a->header->revision : 0;
    bool is_ours = a && a->id == e->lease && e->kept_len;

    if (!e->lease)
        return 0;
    etcd__keep_alive_answer__free_unpacked(a, &e->memory);
    if (!is_ours || ttl < 0 || ttl > UINT32_MAX / 1000)
        return hf__et_odd(e);
    if (!ttl)
        return hf__et_lease_over(e, "the server ended the client's lease");
    e->term_ms = (uint32_t)ttl * 1000;
    hf__et_heard_all(e, rev);
    e->proved = e->kept_at[0];
    memmove(e->kept_at, e->kept_at + 1, --e->kept_len * sizeof(e->kept_at[0]));
    hf__et_renew_kept(e);
    if ((!hf__et_locks_proved(e) || e->batches) && !e->kept_len)
        hf__et_keep(e, now);
    return 0;
}

/* Handles the end of the stream of keep-alives: opens it again soon. If the
 * member is unavailable (status 14: it has no leader, or shuts down), ends the
 * connection, so that the client tries another member. */
static int session_keep_over(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;

    e->kept_len = 0;
    e->keep_at = now + 100 * HF__MS; /* grants and renewals wait */
    hf__et_renew_failed(e, HF_EUNKNOWN);
    return c->end == GRPC_ANSWERED && c->status == 14
               ? hf__link_why(&e->g.link, HF_EBACKEND, "%s", c->text)
               : 0;
}

/* ---- the end of a connection --------------------------------------------- */

static void session_down(struct grpc *g, int code, bool was_up, hf__time now)
{
    struct etcd *e = g->owner;
    const struct net_link *l = &g->link;

    if (e->is_closing)
        return;
    e->core->trouble(e->client, l->text);
    if (was_up)
        e->core->session(e->client, HF_EVENT_DOWN, NULL);
    e->kept_len = 0;
    hf__et_renew_failed(e, HF_EUNKNOWN);
    hf__et_watches_down(e);
    e->core->why(e->client, HF_EUNKNOWN, "%s", l->text);
    hf__et_locks_down(e);
    hf__et_changes_down(e);
    e->core->why(e->client, code, "%s", l->text);
    if (code == HF_EPROTO && l->timer > now)
        e->core->refuse(e->client, code);
    /* A refusal ends all parked requests, unless the link tries another address
     * at once. */
    else if (l->refused_at == now && l->timer > now)
        e->core->refuse(e->client, code);
}

static const struct grpc_owner owner = {.hello = session_hello,
                                        .up = session_up,
                                        .down = session_down,
                                        .is_stale = session_is_stale,
                                        .renew = session_renew_token};

/* ---- opening, driving, closing ------------------------------------------- */

int hf__et_session_init(struct etcd *e)
{
    int rc = hf__grpc_init(&e->g, e->core, e->client, &owner, e);

    hf__grpc_call_init(&e->sign_in, &e->g, &sign_in, e);
    hf__grpc_call_init(&e->get_version, &e->g, &get_version, e);
    hf__grpc_call_init(&e->grant, &e->g, &grant, e);
    hf__grpc_call_init(&e->put_guard, &e->g, &put_guard, e);
    hf__grpc_call_init(&e->keep, &e->g, &keep, e);
    hf__grpc_call_init(&e->watch, &e->g, &hf__et_watch, e);
    return rc;
}

void hf__et_session_fini(struct etcd *e)
{
    struct net_tls *tls = e->g.link.stream.tls;

    hf__grpc_call_fini(&e->sign_in);
    hf__grpc_call_fini(&e->get_version);
    hf__grpc_call_fini(&e->grant);
    hf__grpc_call_fini(&e->put_guard);
    hf__grpc_call_fini(&e->keep);
    hf__grpc_call_fini(&e->watch);
    hf__table_fini(&e->watches);
    hf__grpc_fini(&e->g);
    hf__tls_free(tls);
}

void hf__et_session_move(struct etcd *e, hf__time now)
{
    if (e->g.link.state == NET_UP) {
        if (now >= e->keep_at)
            hf__et_keep(e, now);
        session_watch(e, now);
    }
    hf__grpc_advance(&e->g, now);
}

static int session_revoked(struct grpc_call *c, hf__time now)
{
    (void)now;
    *(bool *)c->owner = true;
    return 0;
}

void hf__et_session_close(struct etcd *e)
{
    static const struct grpc_method revoke = {
        .path = "/etcdserverpb.Lease/LeaseRevoke",
        .most = ET_ANSWER,
        .over = session_revoked};
    hf__time until = e->core->now() + CLOSE_MS * HF__MS, now;
    Etcd__Revoke m = ETCD__REVOKE__INIT;
    struct grpc_call c = {0};
    bool done = false;

    hf__grpc_call_init(&c, &e->g, &revoke, &done);
    m.id = e->lease;
    if (e->lease && !hf__et_pack(&c, &m) && !hf__grpc_start(&c, CLOSE_MS)) {
        hf__grpc_flush(&e->g);
        while (!done && (now = e->core->now()) < until) {
            struct net_stream *s = &e->g.link.stream;
            struct pollfd p = {.fd = s->fd, .events = POLLIN};

            if (poll(&p, s->fd >= 0, 20) > 0)
                hf__grpc_ready(&e->g, s->tag, (uint32_t)p.revents, now);
            hf__grpc_advance(&e->g, e->core->now());
        }
    }
    hf__grpc_call_fini(&c);
}
