#include "record.h"

#include "options.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

/* events that one owner can write; most of the file stays unwritten */
#define EVENTS (1 << 18)
#define USES (1 << 20)
#define MS ((int64_t)1000000)

struct log {
    uint64_t len;    /* atomic: number of complete events */
    uint64_t grants; /* atomic */
    struct history_event event[EVENTS];
};

struct record {
    uint32_t ready;            /* atomic: 0, 1 while being prepared, then 2 */
    uint32_t over;             /* atomic */
    pthread_mutex_t mu;        /* robust; guards the resource */
    uint64_t token, exclusive; /* highest token accepted; highest one accepted
                                  from an exclusive hold */
    uint64_t value, writes;
    struct log log[RECORD_OWNERS];
    uint64_t uses_len; /* atomic */
    struct history_event uses[USES];
};

static void make_ready(struct record *r)
{
    pthread_mutexattr_t attr;
    uint32_t none = 0;

    if (!__atomic_compare_exchange_n(&r->ready, &none, 1, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(&r->ready, __ATOMIC_ACQUIRE) != 2)
            wait_tick();
        return;
    }
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&r->mu, &attr);
    pthread_mutexattr_destroy(&attr);
    __atomic_store_n(&r->ready, 2, __ATOMIC_RELEASE);
}

struct record *record_map(const char *path)
{
    struct record *r;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, sizeof(*r))) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (r == MAP_FAILED)
        return NULL;
    make_ready(r);
    return r;
}

void record_unmap(struct record *r)
{
    if (r)
        munmap(r, sizeof(*r));
}

static void append(struct history_event *event, uint64_t room, uint64_t *len,
                   const struct history_event *e)
{
    uint64_t at = __atomic_load_n(len, __ATOMIC_RELAXED);

    if (at == room)
        abort();
    event[at] = *e;
    __atomic_store_n(len, at + 1, __ATOMIC_RELEASE);
}

static void note(const struct record_owner *o, struct history_event e)
{
    struct log *log = &o->record->log[o->owner];

    e.owner = o->owner;
    e.process = o->process;
    append(log->event, EVENTS, &log->len, &e);
    if (e.kind == HISTORY_RETURN && !e.result)
        __atomic_add_fetch(&log->grants, 1, __ATOMIC_RELEASE);
}

/* Raises the limits after a use of the resource. The token of an exclusive hold
 * must not be below any token that the resource saw. Shared holds exist at the
 * same time and use the resource in any order, so a shared token may be lower
 * than one that the resource saw, but not lower than the last exclusive
 * token. */
static void raise_to(struct record *r, uint64_t token, bool exclusive)
{
    if (token > r->token)
        r->token = token;
    if (exclusive)
        r->exclusive = token;
}

/* Locks the resource. If a process was killed while it had the resource locked,
 * restores the state from the events, because that process may have written its
 * event without changing the state accordingly. */
static void enter(struct record *r)
{
    if (pthread_mutex_lock(&r->mu) != EOWNERDEAD)
        return;
    r->value = r->writes = r->token = r->exclusive = 0;
    for (uint64_t i = 0; i < r->uses_len; i++) {
        const struct history_event *e = &r->uses[i];

        if (!e->result)
            raise_to(r, e->token, !e->share);
        if (e->kind == HISTORY_WRITE && !e->result) {
            r->value = e->value;
            r->writes++;
        }
    }
    pthread_mutex_consistent(&r->mu);
}

/* Uses the resource. Returns 0, or HF_ELOST if a holder with a higher token
 * (for a shared use: an exclusive holder) has used the resource before. */
static int use(const struct record_owner *o, int kind, uint64_t token,
               bool shared, uint64_t *value)
{
    struct record *r = o->record;
    struct history_event e = {.kind = (uint8_t)kind,
                              .token = token,
                              .share = shared,
                              .owner = o->owner,
                              .process = o->process};

    enter(r);
    e.result = token < (shared ? r->exclusive : r->token) ? HF_ELOST : 0;
    if (!e.result && kind == HISTORY_READ)
        *value = r->value;
    e.value = *value;
    e.at = wait_now();
    append(r->uses, USES, &r->uses_len, &e);
    if (!e.result) {
        raise_to(r, token, !shared);
        r->value = *value;
        r->writes += kind == HISTORY_WRITE;
    }
    pthread_mutex_unlock(&r->mu);
    return e.result;
}

uint64_t record_writes(const struct record *r)
{
    return r->writes;
}

static int64_t after(int64_t now, int64_t ms)
{
    return ms < 0 ? HISTORY_NEVER : now + ms * MS;
}

static void call(const struct record_owner *o, const hf_acquire_options *opt)
{
    int64_t now = wait_now();
    struct history_event e = {
        .kind = HISTORY_CALL,
        .at = now,
        /* A try returns when the server has replied, within op_timeout. */
        .until = after(now, opt->wait_ms ? opt->wait_ms : o->op_timeout_ms)};

    if (o->kind == HF_RWLOCK) {
        e.whole = HISTORY_MANY;
        e.share = opt->mode == HF_READ ? 1 : HISTORY_MANY;
    } else if (o->kind == HF_SEMAPHORE) {
        e.whole = o->size;
        e.share = opt->permits ? opt->permits : 1;
    }
    note(o, e);
}

static int take(const struct record_owner *o, const hf_acquire_options *opt,
                uint64_t *token)
{
    int64_t until = HISTORY_NEVER, now;
    int rc, seen;

    call(o, opt);
    seen = rc = hf_lock_acquire(o->lock, opt, NULL);
    if (!rc &&
        (hf_lock_token(o->lock, token) || hf_lock_deadline(o->lock, &until)))
        seen = HF_ELOST; /* lost before the token was read */
    now = wait_now();
    note(o,
         (struct history_event){.kind = HISTORY_RETURN,
                                .at = now,
                                .result = seen,
                                .token = *token,
                                .until = until,
                                .cap = opt->lease_ms ? after(now, opt->lease_ms)
                                                     : HISTORY_NEVER});
    return rc;
}

static int give(const struct record_owner *o)
{
    int64_t called = wait_now();
    int rc;

    note(o, (struct history_event){.kind = HISTORY_RELEASE,
                                   .at = called,
                                   .until = after(called, o->op_timeout_ms)});
    rc = hf_lock_release(o->lock, NULL);
    note(o, (struct history_event){
                .kind = HISTORY_RELEASED, .at = wait_now(), .result = rc});
    return rc;
}

static bool is_shared(const struct record_owner *o,
                      const hf_acquire_options *opt)
{
    return o->kind == HF_SEMAPHORE || opt->mode == HF_READ;
}

/* Downgrades. The event is recorded before the call, because other readers may
 * enter as soon as the call begins. */
static int turn_to_reading(const struct record_owner *o)
{
    int rc;

    note(o,
         (struct history_event){.kind = HISTORY_DOWNGRADE, .at = wait_now()});
    rc = hf_lock_downgrade(o->lock, NULL);
    return rc == HF_ELOST || rc == HF_EUNKNOWN ? 0 : rc;
}

/* Returns the code of the verb, or 0 if a fault explains the failure. */
static int weigh(const struct record_owner *o, int rc)
{
    return o->rough && (rc == HF_EBACKEND || rc == HF_EUNKNOWN) ? 0 : rc;
}

static int round_of(const struct record_owner *o, const hf_acquire_options *opt,
                    bool downgrades)
{
    uint64_t token = 0, value = 0;
    int rc = take(o, opt, &token);

    if (rc == HF_EBUSY || rc == HF_ETIMEDOUT)
        return 0;
    if (rc)
        return weigh(o, rc);
    if (token && !use(o, HISTORY_READ, token, is_shared(o, opt), &value) &&
        !is_shared(o, opt)) {
        value++;
        if (value % 8 == 0)
            sched_yield(); /* lets others try while the lock is held */
        use(o, HISTORY_WRITE, token, false, &value);
    }
    if (downgrades)
        rc = weigh(o, turn_to_reading(o));
    if (rc)
        return rc;
    rc = weigh(o, give(o));
    return rc == HF_ELOST ? 0 : rc;
}

int record_round(const struct record_owner *o, const hf_acquire_options *opt)
{
    return round_of(o, opt, false);
}

int record_any_round(const struct record_owner *o, unsigned number)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    switch (number % 8) {
    case 0:
        opt.wait_ms = 0;
        break;
    case 1:
        opt.wait_ms = 1 + number % 5;
        break;
    case 2:
        opt.lease_ms = 500;
        break;
    default:
        break;
    }
    if (o->kind == HF_RWLOCK && number % 5)
        opt.mode = HF_READ;
    if (o->kind == HF_SEMAPHORE) /* never all permits, which would exclude
                                    others */
        opt.permits = 1 + number % (o->size - 1);
    return round_of(o, &opt,
                    o->kind == HF_RWLOCK && opt.mode == HF_WRITE && number % 2);
}

int record_rounds(const struct record_owner *o)
{
    struct record *r = o->record;
    int rc = 0;

    for (unsigned i = o->owner; !rc; i++) {
        if (__atomic_load_n(&r->over, __ATOMIC_ACQUIRE) ||
            r->log[o->owner].len + 8 > EVENTS)
            break;
        rc = record_any_round(o, i);
        wait_tick(); /* lets other threads and processes run */
    }
    return rc;
}

void record_over(struct record *r)
{
    __atomic_store_n(&r->over, 1, __ATOMIC_RELEASE);
}

uint64_t record_grants(const struct record *r, uint32_t owner)
{
    return __atomic_load_n(&r->log[owner].grants, __ATOMIC_ACQUIRE);
}

/* Returns the time just after the last event that the process wrote, or `then`
 * if that is later. */
static int64_t after_last(const struct history_event *event,
                          const uint64_t *len, uint32_t process, int64_t then)
{
    uint64_t i = __atomic_load_n(len, __ATOMIC_ACQUIRE);

    while (i && event[i - 1].process != process)
        i--;
    return i && event[i - 1].at >= then ? event[i - 1].at + 1 : then;
}

/* The death is recorded just after the last event of the process, not later:
 * the process was running when it wrote that event, but other owners may have
 * been granted its locks as soon as it was dead. */
void record_killed(struct record *r, struct history *h, uint32_t process,
                   int64_t before)
{
    int64_t at = after_last(r->uses, &r->uses_len, process, before);

    for (int i = 0; i < RECORD_OWNERS; i++)
        at = after_last(r->log[i].event, &r->log[i].len, process, at);
    history_add(h, &(struct history_event){
                       .kind = HISTORY_KILLED, .process = process, .at = at});
}

void record_stopped(struct history *h, uint32_t process, int64_t before)
{
    history_add(h, &(struct history_event){.kind = HISTORY_STOPPED,
                                           .process = process,
                                           .at = before});
}

void record_continued(struct history *h, uint32_t process)
{
    history_add(h, &(struct history_event){.kind = HISTORY_CONTINUED,
                                           .process = process,
                                           .at = wait_now()});
}

static void gather(const struct history_event *event, const uint64_t *len,
                   struct history *h)
{
    uint64_t n = __atomic_load_n(len, __ATOMIC_ACQUIRE);

    for (uint64_t i = 0; i < n; i++)
        history_add(h, &event[i]);
}

void record_gather(struct record *r, struct history *h)
{
    for (int i = 0; i < RECORD_OWNERS; i++)
        gather(r->log[i].event, &r->log[i].len, h);
    gather(r->uses, &r->uses_len, h);
    history_add(h,
                &(struct history_event){.kind = HISTORY_END, .at = wait_now()});
    history_sort(h);
}
