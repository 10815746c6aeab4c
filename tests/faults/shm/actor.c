/* The actors: what each of them does, and how long it took. */
#include "stage.h"

#include "../../lib/cpu_wait.h"
#include "../../lib/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN_MS = 60000 }; /* the limit of a call on a busy machine */

const struct stage_cast *stage_cast;
struct actor holder, waiter, prober;
int64_t stage_worst_ns;
uint64_t stage_last_token;

static pid_t pid_of[ROLES]; /* the pids of living actors, otherwise 0 */

void stage_victim_is(pid_t pid)
{
    pid_of[VICTIM] = pid;
}

static void read_cpu_waits(int64_t *waits)
{
    for (int i = 0; i < ROLES; i++)
        waits[i] = pid_of[i] ? cpu_wait_of_first(pid_of[i]) : 0;
    waits[ROLES] = cpu_wait_of_first(getpid());
}

struct moment moment_now(void)
{
    struct moment m;

    memcpy(m.pid_of, pid_of, sizeof(pid_of));
    read_cpu_waits(m.cpu_waits);
    m.stalled = wait_stalled();
    m.stood = canary_stood(&stage_canary);
    m.at = now_ns();
    return m;
}

int64_t moment_until(const struct moment *since, int64_t at)
{
    int64_t waits[ROLES + 1], took = at - since->at, waited = 0, stalled, stood;

    if (took < 10000000) /* too short to matter */
        return took;
    stood = canary_stood_by_now(&stage_canary) - since->stood;
    read_cpu_waits(waits);
    for (int i = 0; i <= ROLES; i++)
        if (i == ROLES || since->pid_of[i] == pid_of[i])
            waited += waits[i] - since->cpu_waits[i];
    stalled = wait_stalled() - since->stalled;
    return took - stood - (waited > stalled ? waited : stalled);
}

/* The last column has the permits of each role, in this order: victim, holder,
 * waiter, prober, dead. */
static const struct stage_cast casts[] = {
    {"fair", HF_MUTEX, HF_FAIR, 1, {0}},
    {"unfair", HF_MUTEX, HF_UNFAIR, 1, {0}},
    {"all write", HF_RWLOCK, HF_FAIR, 4095, {0}},
    {"the victim reads", HF_RWLOCK, HF_FAIR, 4095, {1, 0, 0, 0, 0}},
    {"the waiters read", HF_RWLOCK, HF_FAIR, 4095, {1, 0, 1, 0, 0}},
    {"the holders read", HF_RWLOCK, HF_FAIR, 4095, {0, 1, 0, 0, 1}},
    {"all but the victim read", HF_RWLOCK, HF_FAIR, 4095, {0, 1, 1, 0, 1}},
    {"all but the prober read", HF_RWLOCK, HF_FAIR, 4095, {1, 1, 1, 0, 1}},
    {"1 of 5 each", HF_SEMAPHORE, HF_FAIR, 5, {1, 1, 1, 5, 1}},
    {"2 of 3 each", HF_SEMAPHORE, HF_FAIR, 3, {2, 2, 2, 3, 2}},
    {"1 and 2 of 3 wait", HF_SEMAPHORE, HF_FAIR, 3, {1, 3, 2, 3, 3}},
    {"1 waits behind 2 of 3", HF_SEMAPHORE, HF_FAIR, 3, {2, 2, 1, 3, 2}},
    {"latch", HF_LATCH, HF_FAIR_DEFAULT, 0, {0}},
};

static enum hf_kind kind_of(const char *name)
{
    return !strcmp(name, "mutex")       ? HF_MUTEX
           : !strcmp(name, "rwlock")    ? HF_RWLOCK
           : !strcmp(name, "semaphore") ? HF_SEMAPHORE
                                        : HF_LATCH;
}

const struct stage_cast *stage_next_cast(const char *kind,
                                         const struct stage_cast *c)
{
    const struct stage_cast *end = casts + sizeof(casts) / sizeof(casts[0]);

    for (c = c ? c + 1 : casts; c < end; c++)
        if (c->kind == kind_of(kind))
            return c;
    return NULL;
}

uint32_t stage_permits(enum stage_role role)
{
    uint32_t permits = stage_cast->permits[role];

    return permits ? permits : stage_cast->size;
}

bool stage_is_shared(enum stage_role a, enum stage_role b)
{
    return stage_permits(a) + stage_permits(b) <= stage_cast->size;
}

static hf_lock_options stage_lock_options(void)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    opt.kind = stage_cast->kind;
    opt.fairness = stage_cast->fairness;
    opt.permits = opt.kind == HF_SEMAPHORE ? stage_cast->size : 0;
    return opt;
}

static void on_event(void *arg, const hf_event *e)
{
    (void)arg;
    (void)e;
}

int sit(struct seat *s, enum stage_role role, hf_error *err)
{
    hf_lock_options opt = stage_lock_options();
    int rc;
    /* The holder's callback receives the events of breaks. */
    rc = hf_open(stage_shm.url,
                 CLIENT(.connect_timeout_ms = OPEN_MS,
                        .on_event = role == HOLDER ? on_event : NULL),
                 &s->client, err);
    s->role = role;
    s->lock = NULL;
    s->latch = NULL;
    if (!rc && opt.kind == HF_LATCH)
        return hf_latch_new(s->client, "x", 1, &s->latch, err);
    if (!rc)
        rc = hf_lock_new(s->client, "x", 1, &opt, &s->lock, err);
    return rc;
}

void stand_up(struct seat *s)
{
    hf_lock_free(s->lock);
    hf_latch_free(s->latch);
    hf_close(s->client);
}

/* Returns whether the process has ended. When a process is killed, the kernel
 * closes its files, which may free the lock, a moment before it reports the end
 * of the process. */
static bool is_gone(pid_t pid)
{
    struct pollfd p = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
    bool gone;

    if (p.fd < 0)
        return true;
    gone = poll(&p, 1, 50) == 1;
    close(p.fd);
    return gone;
}

static hf_cancel cancel = HF_CANCEL_INIT;
static int64_t entered_at; /* when the last call in enter() returned */

static void on_signal(int sig)
{
    (void)sig;
    hf_cancel_fire(&cancel); /* safe: NOLINT(bugprone-signal-handler) */
}

static void on_nudge(int sig)
{
    (void)sig;
}

static struct stage_hold *take_hold(int pid)
{
    for (int i = 0; i < STAGE_HOLDS; i++) {
        int none = 0;

        if (atomic_compare_exchange_strong(&stage->inside[i].pid, &none, pid))
            return &stage->inside[i];
    }
    abort();
}

void stage_nobody_inside(void)
{
    for (int i = 0; i < STAGE_HOLDS; i++) {
        atomic_store(&stage->inside[i].permits, 0);
        atomic_store(&stage->inside[i].pid, 0);
    }
}

static void go_out(int pid)
{
    for (int i = 0; i < STAGE_HOLDS; i++)
        if (atomic_load(&stage->inside[i].pid) == pid) {
            atomic_store(&stage->inside[i].permits, 0);
            atomic_store(&stage->inside[i].pid, 0);
        }
}

/* Returns whether the holders have more permits than exist. */
static bool is_too_much(void)
{
    uint32_t sum = 0;

    for (int i = 0; i < STAGE_HOLDS; i++)
        sum += (uint32_t)atomic_load(&stage->inside[i].permits);
    return sum > stage_cast->size;
}

static void carry_out_the_dead(void)
{
    for (int i = 0; i < STAGE_HOLDS; i++) {
        int pid = atomic_load(&stage->inside[i].pid);

        if (pid && pid != getpid() && is_gone(pid))
            go_out(pid);
    }
}

static struct stage_hold *my_hold; /* this process's last hold */

static void go_in(const struct seat *s)
{
    my_hold = take_hold(getpid());
    atomic_store(&my_hold->permits, (int)stage_permits(s->role));
    if (!is_too_much())
        return;
    carry_out_the_dead();
    if (is_too_much())
        atomic_fetch_add(&stage->overlaps, 1);
}

int enter(struct seat *s, int64_t wait_ms, int64_t lease_ms, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int rc;

    hf_cancel_init(&cancel);
    opt.cancel = &cancel;
    opt.wait_ms = wait_ms;
    opt.lease_ms = lease_ms;
    if (stage_cast->kind == HF_SEMAPHORE)
        opt.permits = stage_permits(s->role);
    else if (stage_permits(s->role) < stage_cast->size)
        opt.mode = HF_READ;
    if (s->latch)
        rc = hf_latch_wait(s->latch, wait_ms, &cancel, err);
    else
        rc = hf_lock_acquire(s->lock, &opt, err);
    entered_at = now_ns();
    if (!rc && s->lock)
        go_in(s);
    return rc;
}

int leave(struct seat *s, hf_error *err)
{
    go_out(getpid());
    return hf_lock_release(s->lock, err);
}

int go_down(struct seat *s, hf_error *err)
{
    atomic_store(&my_hold->permits, 1);
    return hf_lock_downgrade(s->lock, err);
}

static hf_lock *more[8];
static unsigned more_len;

/* Acquires "y" with a new handle: one permit if it is a semaphore, otherwise
 * the whole lock. */
static int take_more(struct seat *s, int64_t wait_ms, int64_t lease_ms,
                     hf_error *err)
{
    hf_lock_options how = stage_lock_options();
    int rc;

    if (more_len == sizeof(more) / sizeof(more[0]))
        abort();
    rc = hf_lock_new(s->client, "y", 1, &how, &more[more_len], err);
    return rc ? rc
              : hf_lock_acquire(more[more_len++],
                                HOW(wait_ms, .lease_ms = lease_ms), err);
}

/* Releases all holds of "y" and returns the first error. */
static int drop_more(hf_error *err)
{
    int rc = 0;

    while (more_len) {
        hf_lock *lock = more[--more_len];

        if (!rc)
            rc = hf_lock_release(lock, err);
        hf_lock_free(lock);
    }
    return rc;
}

struct order {
    char verb;
    int64_t wait_ms, lease_ms;
};

static int obey(struct seat *s, const struct order *o, hf_error *err)
{
    switch (o->verb) {
    case 'a':
        return enter(s, o->wait_ms, o->lease_ms, err);
    case 'r':
        return leave(s, err);
    case 's':
        return hf_latch_set(s->latch, (uint64_t)o->lease_ms, err);
    case 'd':
        return hf_latch_down(s->latch, NULL, err);
    case 'm':
        return take_more(s, o->wait_ms, o->lease_ms, err);
    case 'n':
        return drop_more(err);
    case 'b':
        return hf_break(s->client, "x", 1, err);
    case 'o':
        stand_up(s);
        return sit(s, s->role, err);
    default:
        stand_up(s);
        _exit(0);
    }
}

static bool hear_order(int fd, struct order *o)
{
    ssize_t n;

    do
        n = read(fd, o, sizeof(*o));
    while (n < 0 && errno == EINTR); /* a nudge may arrive late */
    return n == sizeof(*o);
}

static void actor_main(int fd, enum stage_role role)
{
    struct seat s = {NULL, NULL, role, NULL};
    hf_error err = HF_ERROR_INIT;
    struct sigaction nudge = {.sa_handler = on_nudge}; /* no SA_RESTART */
    struct order o;
    int rc = sit(&s, role, &err);

    signal(SIGUSR1, on_signal);
    sigaction(SIGUSR2, &nudge, NULL);
    for (;;) {
        struct answer a = {rc, 0, entered_at, {0}};

        snprintf(a.text, sizeof(a.text), "%.150s", err.text);
        if (!rc && s.lock)
            hf_lock_token(s.lock, &a.token);
        if (write(fd, &a, sizeof(a)) != sizeof(a) || !hear_order(fd, &o))
            _exit(0);
        rc = obey(&s, &o, &err);
    }
}

void actor_begin(struct actor *a, enum stage_role role)
{
    struct answer answer;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        perror("socketpair");
        exit(2);
    }
    a->fd = fds[0];
    a->role = role;
    a->pid = fork();
    if (!a->pid) {
        close(fds[0]);
        actor_main(fds[1], role);
    }
    pid_of[role] = a->pid;
    close(fds[1]);
    if (!actor_hear(a, &answer, OPEN_MS + 2000) || answer.rc)
        stage_blame("an actor could not open");
}

/* Checks that the kernel has marked the clients of a killed process. The kernel
 * does so when their threads end, before it reports the end of the process.
 * Without the mark, other clients would notice the death only by their poll
 * every 2 s. */
static void check_marked(pid_t pid)
{
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        const struct shm_slot *slot = &stage_file->slot[i];
        uint32_t alive = atomic_load(&slot->alive);

        if (atomic_load(&slot->pid) == (uint32_t)pid && alive &&
            !(alive & FUTEX_OWNER_DIED) &&
            atomic_load(&slot->state) == SHM_SLOT_USED)
            stage_blame("the kernel has not marked a killed client");
    }
}

void actor_end(struct actor *a, int sig)
{
    if (sig)
        kill(a->pid, sig);
    else
        actor_tell(a, 'q', 0, 0);
    waitpid(a->pid, NULL, 0);
    if (sig == SIGKILL)
        check_marked(a->pid);
    close(a->fd);
    pid_of[a->role] = a->pid = 0;
}

void actors_begin(void)
{
    actor_begin(&holder, HOLDER);
    actor_begin(&waiter, WAITER);
    actor_begin(&prober, PROBER);
    stage_map();
}

void actors_end(void)
{
    if (holder.pid)
        actor_end(&holder, 0);
    if (waiter.pid)
        actor_end(&waiter, 0);
    if (prober.pid)
        actor_end(&prober, 0);
}

void actor_tell(struct actor *a, char verb, int64_t wait_ms, int64_t lease_ms)
{
    struct order o = {verb, wait_ms, lease_ms};

    if (write(a->fd, &o, sizeof(o)) != sizeof(o))
        perror("actor_tell");
}

bool actor_hear(struct actor *a, struct answer *answer, int timeout_ms)
{
    struct pollfd p = {a->fd, POLLIN, 0};

    return poll(&p, 1, timeout_ms) == 1 &&
           read(a->fd, answer, sizeof(*answer)) == sizeof(*answer);
}

/* Checks that the token has risen, or, if the grant does not take the whole
 * lock, that it has not fallen. A latch has no token. */
static void check_token(const struct actor *a, uint64_t token)
{
    bool is_alone = stage_permits(a->role) == stage_cast->size &&
                    stage_cast->kind != HF_LATCH;

    if (is_alone ? token <= stage_last_token : token < stage_last_token)
        stage_blame("a token did not rise");
    stage_last_token = token;
}

struct answer actor_ask(struct actor *a, char verb, int64_t wait_ms,
                        int64_t lease_ms)
{
    struct answer answer = {-1, 0, 0, "no answer"};

    actor_tell(a, verb, wait_ms, lease_ms);
    if (!actor_hear(a, &answer, OPEN_MS + 2000) || answer.rc)
        stage_blame(answer.text);
    else if (verb == 'a' && (answer.token || !lease_ms))
        /* A hold whose fixed lease has already ended has no token. */
        check_token(a, answer.token);
    return answer;
}

bool check_in_time(const struct answer *a, const struct moment *since,
                   int limit_ms, const char *who)
{
    int64_t took = moment_until(since, a->at);
    char text[120];

    if (a->rc || took > limit_ms * 1000000LL) {
        snprintf(text, sizeof(text),
                 "the %s got it after %.1f ms, %.1f ms of that waiting for a "
                 "CPU or stalled (%d)",
                 who, (double)(a->at - since->at) / 1e6,
                 (double)(a->at - since->at - took) / 1e6, a->rc);
        stage_blame(text);
        return false;
    }
    if (took > stage_worst_ns && limit_ms == STAGE_LIMIT_MS)
        stage_worst_ns = took;
    return true;
}

void check_grant(const struct actor *actor, const struct answer *a,
                 const struct moment *since, int limit_ms, const char *who)
{
    if (check_in_time(a, since, limit_ms, who))
        check_token(actor, a->token);
}

void check_gets_it(struct actor *actor, const struct moment *since,
                   int limit_ms, const char *who)
{
    struct answer a = {-1, 0, INT64_MAX, "not granted"};

    actor_hear(actor, &a, STAGE_STUCK_MS);
    check_grant(actor, &a, since, limit_ms, who);
}
