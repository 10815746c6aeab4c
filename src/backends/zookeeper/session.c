#include "session.h"

#include "call.h"
#include "changes.h"
#include "cleanup.h"
#include "connect.h"
#include "keepalive.h"
#include "node.h"
#include "notify.h"
#include "session_proof.h"
#include "socket.h"
#include "watch.h"
#include "words.h"
#include "zookeeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define PACKETS_MAX 256 /* one advance() reads at most this many packets */
#define CONNECTS_MAX 4  /* one advance() tries at most this many addresses */
#define RETRY_MS 1000   /* pause after a failure to begin a session */
#define PAUSE_MS 500    /* longest pause after all servers were tried */
#define LIVED_MS 1000   /* a connection that lasted longer was useful */
/* The pause after a connection that was not useful is random, between half of a
 * limit and the limit. The limit is SHORT_MS at first, and doubles with each
 * further such connection, up to SHORT_MAX_MS. */
#define SHORT_MS 10
#define SHORT_MAX_MS 200
/* The time limit of the first attempt to reconnect. The limit grows after each
 * attempt that took too long. */
#define PATIENCE_MS 1000
/* If an answer is later than this, close() does not wait for the server. */
#define SILENT_MS 300
/* The time between polls where no event wakes the client. */
#define POLL (10 * HF__MS)
#define USUAL_MS 4000 /* shortest session that a server grants by default */

/* The library computes twice the timeout in an int, which must not overflow. */
#define TTL_MAX_MS (INT32_MAX / 2)

/* ---- a handle ----------------------------------------------------------- */

/* Creates a handle, which begins a new session. The handle needs no watcher,
 * because this unit reads the state of the session from the handle. */
static int session_make_handle(struct zk *z)
{
    int rc = z->core->random(z->salt, sizeof(z->salt));
    zhandle_t *zh;

    if (rc)
        return z->core->lasts(z->client, rc, "getrandom failed");
    hf__zk_speak_for(z);
    errno = 0;
    zh = zookeeper_init2(z->addrs->text, NULL,
                         (int)hf__min_time(z->ttl_ms, TTL_MAX_MS), NULL, z,
                         ZOO_NO_LOG_CLIENTENV, hf__zk_on_log);
    if (!zh && errno == ENOMEM)
        return HF_ENOMEM;
    if (!zh)
        return z->core->why(z->client, HF_EBACKEND, "%s: %s", z->hosts,
                            strerror(errno));
    zoo_set_servers_resolution_delay(zh, -1);
    /* The library keeps user and password and sends them to each server. */
    if (z->secret && zoo_add_auth(zh, "digest", z->secret,
                                  (int)strlen(z->secret), NULL, NULL) != ZOK) {
        zookeeper_close(zh);
        return HF_ENOMEM;
    }
    z->zh = zh;
    z->timer = 0;
    z->beating = false;
    hf__zk_socket_gone(z);
    hf__zk_nowhere(z);
    return 0;
}

static int session_first_lookup(struct zk *z)
{
    struct hf__lookup *found = z->core->lookup(z->hosts, true);
    int rc = found ? found->code : HF_ENOMEM;

    if (rc == HF_EBACKEND)
        (found->may_pass ? z->core->why : z->core->lasts)(z->client, rc, "%s",
                                                          found->why);
    if (!rc) {
        hf__zk_addrs(found, z->addrs);
        rc = z->addrs->len ? 0 : HF_EBACKEND;
    }
    z->core->lookup_leave(found);
    return rc;
}

int hf__zk_session_open(struct zk *z)
{
    int rc;

    z->addrs = z->core->alloc(z->client, sizeof(*z->addrs));
    rc = z->addrs ? session_first_lookup(z) : HF_ENOMEM;
    z->lookup_at = HF__NEVER;
    /* Makes the library keep the order of the hosts. To shuffle them, it would
     * seed random(3), which belongs to the program. */
    zoo_deterministic_conn_order(1);
    if (!rc) {
        z->numeric = strncmp(z->addrs->text, z->hosts, strlen(z->hosts)) == 0;
        hf__zk_first_round(z, z->addrs->len);
        rc = session_make_handle(z);
    }
    return rc;
}

/* Shuts the socket down. Otherwise zookeeper_close() would wait 1.5 s for the
 * server's answer, and 3 s before that if the socket is full. */
static void session_expect_nothing(const struct zk *z)
{
    struct pollfd p = {.fd = z->own_fd, .events = POLLOUT};
    bool has_room = poll(&p, 1, 0) > 0 && (p.revents & POLLOUT);

    shutdown(z->own_fd, has_room ? SHUT_RD : SHUT_RDWR);
}

void hf__zk_session_close(struct zk *z)
{
    hf__time oldest = hf__zk_calls_since(z);

    z->closing = true;
    hf__zk_speak_for(NULL);
    if (z->own_fd >= 0 && oldest < z->core->now() - SILENT_MS * HF__MS)
        session_expect_nothing(z);
    if (z->zh)
        zookeeper_close(z->zh);
    z->zh = NULL;
    hf__zk_socket_gone(z);
    z->core->lookup_leave(z->job);
    z->core->free(z->client, z->addrs);
}

/* ---- the state of the connection ----------------------------------------- */

/* Returns false if the client is still being opened and the session's timeout
 * is shorter than the tick in the URL. Then open() fails. */
static bool session_fits(struct zk *z)
{
    if (z->opened || hf__zk_proof_fits(z)) {
        if (!z->opened && !z->tick_ms && z->timeout_ms < USUAL_MS)
            z->core->log(z->client,
                         "zookeeper: the session's timeout is %u ms; if the "
                         "servers' tickTime is above half of that, because "
                         "their minSessionTimeout was lowered, the URL must "
                         "say it: tick=2s",
                         z->timeout_ms);
        return true;
    }
    snprintf(z->text, sizeof(z->text),
             "the session's timeout is %u ms; ttl must be at least tick, %u ms",
             z->timeout_ms, z->tick_ms);
    z->open_code = HF_EINVAL;
    return false;
}

/* Resumes the deletion of entries that are no longer wanted, and watches the
 * entries of the holds. */
static void session_nodes_up(struct zk *z)
{
    struct zk_node *next;

    for (struct zk_node *node = z->nodes; node; node = next) {
        next = node->next;
        if (!node->lock)
            hf__zk_node_sweep(node);
        else if (node->role == ZK_ROLE_HELD)
            hf__zk_notify_listen(node); /* the watch may have been lost */
    }
}

static void session_went_up(struct zk *z)
{
    hf__zk_proof_begin(z);
    if (!session_fits(z))
        return;
    z->up = true;
    z->up_at = z->core->now();
    z->patience_ms = PATIENCE_MS;
    z->session_id = zoo_client_id(z->zh)->client_id;
    if (z->opened) {
        z->core->log(z->client, "zookeeper: connected again, session 0x%llx",
                     (unsigned long long)z->session_id);
        z->core->trouble(z->client, NULL);
        z->core->session(z->client, HF_EVENT_UP, NULL);
    }
    z->opened = true;
    z->text[0] = '\0';
    z->said = false;
    session_nodes_up(z);
    z->core->go_on(z->client);
}

/* Sets a pause before the next connection, unless the last one was useful. The
 * library reconnects at once, so without a pause a server that drops each
 * connection would get hundreds of them per second. */
static void session_set_pause(struct zk *z)
{
    hf__time now = z->core->now();
    uint32_t chance = 0;

    if (now - z->up_at >= LIVED_MS * HF__MS) {
        z->pause_ms = 0;
        return;
    }
    z->core->random(&chance, sizeof(chance));
    z->pause_ms = z->pause_ms ? z->pause_ms * 2 : SHORT_MS;
    if (z->pause_ms > SHORT_MAX_MS)
        z->pause_ms = SHORT_MAX_MS;
    z->pause_until =
        now + (z->pause_ms / 2 + chance % (z->pause_ms / 2)) * HF__MS;
}

static void session_went_down(struct zk *z)
{
    char why[200];

    z->up = false;
    session_set_pause(z);
    hf__zk_socket_gone(z);
    z->said = true;
    z->core->log(z->client, "zookeeper: lost the connection to %s",
                 hf__zk_why_down(z, why, sizeof(why)));
    hf__zk_watches_down(z);
    hf__zk_lookup_later(z, z->core->now());
    z->core->session(z->client, HF_EVENT_DOWN, NULL);
}

static void session_on_greeted(void *owner, int rc,
                               const struct zk_reply *reply)
{
    struct zk *z = reply->z;

    (void)owner;
    z->greeted = z->greeting && !hf__zk_lost(rc) && rc != ZAUTHFAILED;
}

/* Sends the first request of a connection, a sync. A list that is sent after
 * the sync shows the effect of everything that was sent before the sync. The
 * answer to the sync also makes the library drop requests of an earlier
 * connection that will never be answered. If there is a user, the answer proves
 * that the server has accepted user and password. */
static void session_greet(struct zk *z)
{
    int rc = hf__zk_sync(z, session_on_greeted, NULL);

    z->greeted = false;
    z->greeting = rc == 0;
    if (rc == HF_ENOMEM && !z->opened)
        z->open_code = rc;
}

static void session_note_state(struct zk *z)
{
    bool connected = zoo_state(z->zh) == ZOO_CONNECTED_STATE;

    if (!connected)
        z->greeting = false;
    if (connected && !z->greeting)
        session_greet(z);
    if (connected && !z->up && z->greeting && (z->greeted || !z->secret))
        session_went_up(z);
    else if (!connected && z->up)
        session_went_down(z);
}

/* Handles the end of the session, with which its ephemeral nodes, all holds and
 * all places in queues are lost. */
static void session_lose(struct zk *z, hf__time now)
{
    bool refused = zoo_state(z->zh) == ZOO_AUTH_FAILED_STATE;
    bool had_one = z->session_id != 0;
    char why[64] = "the server refused the user and password (digest)";

    if (z->up)
        session_went_down(z);
    if (!refused)
        snprintf(why, sizeof(why), "the server has ended the session 0x%llx",
                 (unsigned long long)z->session_id);
    if (had_one)
        z->core->log(z->client, "zookeeper: session 0x%llx has ended",
                     (unsigned long long)z->session_id);
    z->session_id = 0;
    /* This does not block, because there is no connection. */
    zookeeper_close(z->zh);
    z->zh = NULL;
    z->timer = HF__NEVER;
    hf__zk_socket_gone(z);
    hf__zk_watches_lost(z);
    hf__zk_notify_fini(z);
    hf__zk_changes_lost(z);
    hf__zk_nodes_lost(z, why);
    z->again_at = now;
    if (refused || !had_one) /* the server may refuse the next session, too */
        z->again_at += RETRY_MS * HF__MS;
}

/* If a new session is due, begins it with the addresses that were found
 * last. */
static void session_begin_again(struct zk *z, hf__time now)
{
    if (now < z->again_at || session_make_handle(z) == 0)
        return;
    z->again_at = now + RETRY_MS * HF__MS;
}

static bool session_ended(struct zk *z, hf__time now)
{
    bool refused = zoo_state(z->zh) == ZOO_AUTH_FAILED_STATE;

    if (!is_unrecoverable(z->zh))
        return false;
    if (refused)
        snprintf(z->text, sizeof(z->text),
                 "%.60s: the server refuses the user and password (digest)",
                 z->hosts);
    z->timer = HF__NEVER;
    if (z->opened)
        session_lose(z, now);
    else
        z->open_code = refused ? HF_EAUTH : HF_EBACKEND;
    return true;
}

/* ---- driving ------------------------------------------------------------ */

static void session_failed(struct zk *z)
{
    if (!hf__zk_is_closed(z))
        return;
    hf__zk_socket_gone(z);
    if (!z->opened && !hf__zk_may_try_again(z))
        z->open_code = z->refusal ? z->refusal : HF_EBACKEND;
}

static void session_process(struct zk *z)
{
    int rc;

    if (z->unwatched)
        hf__zk_socket_poll(z);
    for (int i = 0; i < PACKETS_MAX && z->ready; i++) {
        int events = z->ready;

        z->ready &= ZOOKEEPER_READ; /* more packets may follow */
        hf__zk_refuse_foreign(z);
        rc = zookeeper_process(z->zh, events);
        if (rc != ZOK && rc != ZNOTHING && !z->up)
            session_failed(z);
        if (rc != ZOK)
            break;
        session_note_state(z);
        /* Stops reading if no answer is expected: when another packet arrives,
         * the socket becomes readable again. Until the client is up,
         * zookeeper_interest() must decide after each packet what comes
         * next. */
        if (!z->up || !z->calls_len)
            break;
    }
    z->ready = 0;
    session_note_state(z);
}

/* Sets the time at which the library must run next. If the core cannot watch
 * the descriptor, the client polls the descriptor at that time. */
static void session_set_timer(struct zk *z, hf__time now,
                              const struct timeval *tv)
{
    z->timer = now + tv->tv_sec * 1000 * HF__MS + tv->tv_usec * 1000;
    if (z->fd < 0)
        z->timer = hf__min_time(z->timer, now + PAUSE_MS * HF__MS);
    if (z->unwatched ||
        (!z->greeting && zoo_state(z->zh) == ZOO_CONNECTED_STATE))
        z->timer = hf__min_time(z->timer, now + POLL);
    /* If no request is pending, there may be no driver and so no thread that
     * polls the socket. An attempt to connect could then succeed unnoticed, and
     * time out before anything was sent. Therefore the timer makes the driver,
     * or else the helper thread, call advance(), less often the longer the
     * attempt takes. */
    if (!z->up && z->opened && z->fd >= 0)
        z->timer =
            hf__min_time(z->timer, now + POLL + (now - z->connect_at) / 4);
}

/* Lets the library connect, send a ping, or wait. */
static void session_interest(struct zk *z, hf__time now)
{
    struct timeval tv = {0};
    int fd = -1, wanted = 0, rc = ZCONNECTIONLOSS;

    for (int i = 0; i < CONNECTS_MAX && rc != ZOK && !z->open_code &&
                    now >= z->pause_until;
         i++) {
        rc = zookeeper_interest(z->zh, &fd, &wanted, &tv);
        if (is_unrecoverable(z->zh))
            return;
        if (rc != ZOK)
            session_failed(z);
        session_note_state(z);
    }
    if (rc != ZOK) {
        z->timer = z->pause_until > now ? z->pause_until : now + POLL;
        return;
    }
    if (!z->up && z->fd < 0 && fd >= 0)
        z->connect_at = now;
    hf__zk_socket_watch(z, fd, wanted);
    session_set_timer(z, now, &tv);
}

static void session_report_trouble(struct zk *z)
{
    char why[200];

    if (z->up || !z->opened || !z->said)
        return;
    z->said = false;
    z->core->trouble(z->client, hf__zk_why_down(z, why, sizeof(why)));
}

static void session_move(struct zk *z, hf__time now)
{
    if (z->zh) {
        hf__zk_give_up_late(z, now);
        session_process(z);
        if (session_ended(z, now))
            return;
    }
    if (z->open_code)
        return;
    hf__zk_lookup_move(z, now);
    if (!z->zh)
        session_begin_again(z, now);
    if (!z->zh)
        return;
    session_interest(z, now);
    if (session_ended(z, now))
        return;
    hf__zk_keepalive_move(z, now);
    hf__zk_watches_move(z, now);
    hf__zk_nodes_sweep(z, now);
}

void hf__zk_session_move(void *self, hf__time now)
{
    struct zk *z = self;

    if (z->open_code) /* opening has failed, and its error text must stay */
        return;
    hf__zk_speak_for(z);
    z->moving = true;
    session_move(z, now);
    z->moving = false;
    hf__zk_changes_move(z);
    session_report_trouble(z);
}

hf__time hf__zk_session_timeout(void *self)
{
    const struct zk *z = self;
    hf__time at = hf__min_time(hf__zk_keepalive_timeout(z), z->timer);

    at = hf__min_time(at, hf__zk_watches_timeout(z));
    if (z->open_code)
        return HF__NEVER;
    if (z->sweep_at)
        at = hf__min_time(at, z->sweep_at);
    if (!z->zh)
        at = hf__min_time(at, z->again_at);
    return hf__min_time(
        at, hf__min_time(hf__zk_late_at(z), hf__zk_lookup_timeout(z)));
}
