/*
 * The session: a handle of the library, driven by us. The library reconnects by
 * itself and keeps the session as long as the server does; when the server has
 * ended it, the handle is of no use any more and a new one is made, on the
 * keeper, since that looks names up.
 *
 * The library never ends a session by itself, however long nobody answers: a
 * hold's end is the core's business, by its deadline.
 */
#include "zookeeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#define PACKETS_MAX 256 /* in one go */
#define CONNECTS_MAX 4  /* in one go */
#define RETRY_MS 1000   /* a lookup that failed */
#define BEAT_PART 6     /* of the timeout: proofs, while somebody waits */
#define FRESH_PART 4    /* a proof that is younger is as good as new */
#define TOUCHES 8       /* the last of them span two half ticks */
#define DOUBT_PART 20   /* less than that is left: not a good beginning */
#define TOUCH_PART 4    /* a sign of life, at least */
#define NUDGE (200 * HF__MS)
#define SLACK (10 * HF__MS) /* the library rounds its timeouts */

/* ---- the library's words ------------------------------------------------ */

static __thread struct zk *speaking;

void hf__zk_speak_for(struct zk *z)
{
    speaking = z;
}

/* "Socket 127.0.0.1:1 zk retcode=-4, errno=111(Connection refused): server
 * refused to accept the client" -> "127.0.0.1:1: Connection refused" */
static void shorten(const char *text, char *out, size_t size)
{
    const char *error = strstr(text, "errno="), *open, *close;

    open = error ? strchr(error, '(') : NULL;
    close = open ? strstr(open, "):") : NULL;
    if (strncmp(text, "Socket ", 7) == 0 && close) {
        /* At the end of a stream errno says nothing. */
        const char *why = strncmp(error, "errno=11(", 9) ? open + 1 : close + 3;
        int len = why == open + 1 ? (int)(close - why) : (int)strlen(why);

        snprintf(out, size, "%.*s: %.*s", (int)strcspn(text + 7, " "), text + 7,
                 len, why);
    } else {
        snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    }
}

/* A line with time, thread, level, function and text; no word of whose. */
static void on_log(const char *line)
{
    struct zk *z = speaking;
    const char *level = strstr(line, ":ZOO_"), *text;
    char brief[sizeof(z->text)];

    if (!z || !level || (level[5] != 'E' && level[5] != 'W'))
        return;
    text = strstr(level, ": ");
    if (!text)
        return;
    shorten(text + 2, brief, sizeof(brief));
    if (level[5] == 'E')
        memcpy(z->text, brief, sizeof(brief));
    z->core->log(z->client, "zookeeper: %s", brief);
}

/* ---- a handle ----------------------------------------------------------- */

/* Session events are read off the handle's state where it is driven. */
static void on_event(zhandle_t *zh, int type, int state, const char *path,
                     void *arg)
{
    (void)zh;
    (void)type;
    (void)state;
    (void)path;
    (void)arg;
}

/* Looks names up. */
static zhandle_t *make_handle(struct zk *z)
{
    zhandle_t *zh = zookeeper_init2(z->hosts, on_event, (int)z->ttl_ms, NULL, z,
                                    ZOO_NO_LOG_CLIENTENV, on_log);

    if (!zh)
        return NULL;
    zoo_set_servers_resolution_delay(zh, -1);
    /* The library keeps it, and says it to each server it connects to. */
    if (z->secret && zoo_add_auth(zh, "digest", z->secret,
                                  (int)strlen(z->secret), NULL, NULL) != ZOK) {
        zookeeper_close(zh);
        return NULL;
    }
    return zh;
}

/* The library closes its socket when it likes. A child that was forked may
 * have it open still, and then epoll(7) would tell of it for ever: so what is
 * watched is a descriptor of our own. */
static void unwatch(struct zk *z)
{
    z->fd = -1;
    if (z->own_fd < 0)
        return;
    z->core->watch(z->client, z->own_fd, 0);
    close(z->own_fd);
    z->own_fd = -1;
}

/* Who we are in this session. */
static int take_handle(struct zk *z, zhandle_t *zh)
{
    int rc = z->core->random(z->salt, sizeof(z->salt));

    z->zh = zh;
    unwatch(z);
    z->timer = 0;
    z->beating = false;
    hf__zk_nowhere(z);
    return rc ? z->core->why(z->client, rc, "getrandom failed") : 0;
}

int hf__zk_session_open(struct zk *z)
{
    zhandle_t *zh;

    z->parked_tail = &z->parked;
    hf__zk_speak_for(z);
    /* Or it would seed the program's random(3), to shuffle the hosts. */
    zoo_deterministic_conn_order(1);
    errno = 0;
    zh = make_handle(z);
    if (zh)
        return take_handle(z, zh);
    if (errno == ENOMEM)
        return HF_ENOMEM;
    return z->core->why(z->client, HF_EBACKEND, "%s: %s", z->hosts,
                        z->text[0] ? z->text : strerror(errno));
}

void hf__zk_session_close(struct zk *z)
{
    zhandle_t *fresh = __atomic_exchange_n(&z->fresh, NULL, __ATOMIC_ACQ_REL);

    z->closing = true;
    hf__zk_speak_for(NULL);
    if (z->zh)
        zookeeper_close(z->zh);
    if (fresh)
        zookeeper_close(fresh);
    z->zh = NULL;
    unwatch(z);
}

void hf__zk_session_background(struct zk *z)
{
    zhandle_t *zh;

    if (!__atomic_exchange_n(&z->want_fresh, false, __ATOMIC_ACQ_REL))
        return;
    hf__zk_speak_for(NULL); /* z->text is guarded by the mutex */
    zh = make_handle(z);
    zh = __atomic_exchange_n(&z->fresh, zh, __ATOMIC_ACQ_REL);
    if (zh) /* nobody came for the last one */
        zookeeper_close(zh);
}

static void want_fresh(struct zk *z, hf__time now)
{
    z->timer = now + RETRY_MS * HF__MS;
    __atomic_store_n(&z->want_fresh, true, __ATOMIC_RELEASE);
    z->core->need_background(z->client);
}

/* ---- for how long it lives
 * ---------------------------------------------------
 *
 * The session ends when the leader has not heard of us for the timeout. If we
 * are connected to a follower, it tells the leader of its clients with its
 * pings, twice a tick, and not with what it forwards. So a write that was
 * acknowledged proves no more than this: all that the follower had heard of us
 * half a tick before it was sent, the leader knows. From then on the timeout
 * counts, even if the two cannot talk any more. We do not know the tick, but
 * the timeout is two of them at least.
 */

static hf__time part(const struct zk *z, int of)
{
    return (hf__time)z->timeout_ms * HF__MS / of;
}

/* At most: a session lasts for two ticks at least. */
static hf__time half_tick(const struct zk *z)
{
    return part(z, 4);
}

/* The newest sign of life that the leader knew of when this was sent. */
static hf__time known(const struct zk *z, hf__time sent_at)
{
    unsigned at = z->touched_at;

    for (unsigned i = 1; i < TOUCHES; i++, at = (at + TOUCHES - 1) % TOUCHES)
        if (z->touched[at] <= sent_at - half_tick(z))
            break;
    return z->touched[at];
}

void hf__zk_session_heard(struct zk *z, hf__time sent_at, bool by_leader)
{
    z->nudged = false;
    if (by_leader && sent_at > z->proved) {
        z->proved = sent_at;
        z->good_until = known(z, sent_at) + part(z, 1);
    }
    if (sent_at < z->touched[z->touched_at] + half_tick(z) / (TOUCHES / 2))
        return;
    z->touched_at = (z->touched_at + 1) % TOUCHES;
    z->touched[z->touched_at] = sent_at;
}

uint32_t hf__zk_session_ms(const struct zk *z, hf__time since)
{
    hf__time ms = (z->good_until - since) / HF__MS;

    return ms > 1 ? (uint32_t)ms : 1;
}

bool hf__zk_proved(const struct zk *z)
{
    hf__time now = z->core->now();

    return now - z->proved < part(z, FRESH_PART) &&
           z->good_until - now > part(z, FRESH_PART);
}

/* We were silent for nearly as long as the timeout: a word of ours is to reach
 * the leader before we rely on it. */
hf__time hf__zk_session_doubt(const struct zk *z)
{
    if (z->good_until - z->core->now() > part(z, DOUBT_PART))
        return 0;
    return z->core->now() + half_tick(z) + HF__MS;
}

/* The leader has opened the session, or heard of it, after we began to
 * connect. */
static void begin_life(struct zk *z)
{
    z->timeout_ms = (uint32_t)zoo_recv_timeout(z->zh);
    for (unsigned i = 0; i < TOUCHES; i++)
        z->touched[i] = z->connect_at;
    z->proved = z->connect_at;
    z->good_until = z->connect_at + part(z, 1);
}

/* ---- its state ---------------------------------------------------------- */

static void went_up(struct zk *z)
{
    z->up = true;
    begin_life(z);
    z->session_id = zoo_client_id(z->zh)->client_id;
    if (z->opened)
        z->core->session(z->client, HF_EVENT_UP);
    z->opened = true;
    /* What is listed from here on shows all that we sent before. (And if the
     * library has kept requests of the last connection, whose answers will
     * never come, it notices by the answer to this.) */
    hf__zk_sync(z, NULL, NULL);
    hf__zk_nodes_up(z);
    hf__zk_ask_parked(z);
}

static void went_down(struct zk *z)
{
    z->up = false;
    unwatch(z);
    z->core->session(z->client, HF_EVENT_DOWN);
}

/* Ephemeral nodes are gone, and with them all that we held or waited for. */
static void lose(struct zk *z, hf__time now)
{
    bool refused = zoo_state(z->zh) == ZOO_AUTH_FAILED_STATE;

    z->core->log(z->client, "zookeeper: session 0x%llx has ended",
                 (unsigned long long)z->session_id);
    if (z->up)
        went_down(z);
    /* Not connected, it does not block. */
    zookeeper_close(z->zh);
    z->zh = NULL;
    hf__zk_watches_lost(z);
    hf__zk_ears_fini(z);
    hf__zk_nodes_lost(z);
    if (refused)
        z->timer = now + RETRY_MS * HF__MS; /* it may be so again */
    else
        want_fresh(z, now);
}

static void note_state(struct zk *z)
{
    bool up = zoo_state(z->zh) == ZOO_CONNECTED_STATE;

    if (up && !z->up)
        went_up(z);
    else if (!up && z->up)
        went_down(z);
}

static bool ended(struct zk *z, hf__time now)
{
    if (!is_unrecoverable(z->zh))
        return false;
    if (!z->opened && zoo_state(z->zh) == ZOO_AUTH_FAILED_STATE)
        z->open_code = HF_EAUTH;
    else if (z->opened)
        lose(z, now);
    return true;
}

/* ---- driving ------------------------------------------------------------ */

/* A connection that is being made must not be asked before it can tell. */
static int ready(const struct zk *z)
{
    struct pollfd p = {.fd = z->fd, .events = POLLIN};

    if (z->up)
        return ZOOKEEPER_READ | (z->interest & ZOOKEEPER_WRITE);
    if (z->interest & ZOOKEEPER_WRITE)
        p.events |= POLLOUT;
    if (z->fd < 0 || poll(&p, 1, 0) <= 0)
        return 0;
    return (p.revents & (POLLIN | POLLHUP | POLLERR) ? ZOOKEEPER_READ : 0) |
           (p.revents & (POLLOUT | POLLHUP | POLLERR)
                ? z->interest & ZOOKEEPER_WRITE
                : 0);
}

static void process(struct zk *z)
{
    for (int i = 0; i < PACKETS_MAX; i++) {
        int events = ready(z);

        if (!events || zookeeper_process(z->zh, events) != ZOK)
            break;
        note_state(z);
        /* Nothing is expected: what comes nevertheless will be seen. And what
         * a new connection waits for next is the library's to say. */
        if (!z->up || !z->calls_len)
            break;
    }
    note_state(z);
}

static void watch(struct zk *z, int fd, int interest)
{
    uint32_t events = (interest & ZOOKEEPER_READ ? EPOLLIN : 0) |
                      (interest & ZOOKEEPER_WRITE ? EPOLLOUT : 0);

    /* A new socket may have the number of the old one. */
    if (z->up && fd == z->fd && interest == z->interest)
        return;
    if (!z->up || fd != z->fd) {
        unwatch(z);
        if (fd >= 0)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        if (fd >= 0)
            z->own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    z->fd = fd;
    z->interest = interest;
    if (z->own_fd >= 0)
        z->core->watch(z->client, z->own_fd, events);
}

/* What the library wants next: a connection, a ping, nothing. */
static void interest(struct zk *z, hf__time now)
{
    struct timeval tv = {0};
    int fd = -1, wanted = 0, rc = ZCONNECTIONLOSS;

    for (int i = 0; i < CONNECTS_MAX && rc != ZOK; i++) {
        rc = zookeeper_interest(z->zh, &fd, &wanted, &tv);
        if (is_unrecoverable(z->zh))
            return;
    }
    note_state(z);
    if (!z->up && z->fd < 0 && fd >= 0)
        z->connect_at = now;
    if (rc == ZOK)
        watch(z, fd, wanted);
    else
        unwatch(z);
    z->timer = now + tv.tv_sec * 1000 * HF__MS + tv.tv_usec * 1000;
    if (rc != ZOK)
        z->timer = now + 10 * HF__MS;
    if (rc == ZOK && fd < 0 && !z->opened) /* all were tried */
        z->open_code = HF_EBACKEND;
}

/* While somebody waits: what is granted by a word of the server then needs no
 * question more. */
static hf__time beat_at(const struct zk *z)
{
    return z->up && z->waiting && !z->beating ? z->proved + part(z, BEAT_PART)
                                              : HF__NEVER;
}

/* The library would ping, but does not tell when. And a follower of 3.8 may
 * fall asleep over a commit that it has received, if nobody asks it anything
 * else: one question more wakes it. */
static hf__time touch_at(const struct zk *z)
{
    hf__time at = z->sent + part(z, TOUCH_PART);

    if (!z->up)
        return HF__NEVER;
    if (z->calls_len && !z->nudged && z->sent + NUDGE < at)
        at = z->sent + NUDGE;
    return at;
}

static void touch(struct zk *z)
{
    z->nudged = true;
    hf__zk_exists(z, z->nowhere, NULL, NULL);
}

static void on_beat(struct zk *z, void *owner, int rc,
                    const struct zk_reply *reply)
{
    (void)owner;
    (void)rc;
    (void)reply;
    z->beating = false;
}

int hf__zk_beat(struct zk *z)
{
    int rc;

    if (z->beating)
        return 0;
    rc = hf__zk_delete(z, z->nowhere, on_beat, NULL);
    z->beating = !rc;
    return rc;
}

void hf__zk_prove(struct zk *z, const struct hf__req *req)
{
    if (req->fixed || !hf__zk_proved(z))
        hf__zk_beat(z);
}

static bool have_handle(struct zk *z, hf__time now)
{
    zhandle_t *fresh;

    if (z->zh)
        return true;
    fresh = __atomic_exchange_n(&z->fresh, NULL, __ATOMIC_ACQ_REL);
    if (fresh && take_handle(z, fresh) == 0)
        return true;
    if (fresh)
        zookeeper_close(fresh);
    z->zh = NULL;
    if (now >= z->timer)
        want_fresh(z, now);
    return false;
}

static void move(struct zk *z, hf__time now)
{
    if (!have_handle(z, now))
        return;
    process(z);
    if (ended(z, now))
        return;
    interest(z, now);
    if (ended(z, now))
        return;
    if (now >= beat_at(z))
        hf__zk_beat(z);
    if (now >= touch_at(z))
        touch(z);
    hf__zk_nodes_sweep(z, now);
}

void hf__zk_session_move(struct zk *z, hf__time now)
{
    hf__zk_speak_for(z);
    z->moving = true;
    move(z, now);
    z->moving = false;
}

hf__time hf__zk_session_timeout(const struct zk *z)
{
    hf__time at = beat_at(z) < touch_at(z) ? beat_at(z) : touch_at(z);

    if (z->sweep_at && z->sweep_at < at)
        at = z->sweep_at;
    return z->timer < at ? z->timer : at;
}

void hf__zk_session_sent(struct zk *z)
{
    struct timeval tv;
    int fd, wanted;

    /* The socket may be full, or broken: the library tells in interest(), but
     * does other things there too when they are due. */
    if (z->moving)
        return;
    if (zoo_state(z->zh) != ZOO_CONNECTED_STATE ||
        z->core->now() + SLACK >= z->timer) {
        z->timer = 0;
        z->core->need_background(z->client);
        return;
    }
    if (zookeeper_interest(z->zh, &fd, &wanted, &tv) == ZOK)
        watch(z, fd, wanted);
}
