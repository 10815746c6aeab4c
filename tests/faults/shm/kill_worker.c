#include "kill.h"

#include "../../lib/wait.h"

#include <holdfast.h>
#include <stdlib.h>

const struct kill_lock kill_locks[NAMES] = {
    {HF_MUTEX, HF_FAIR, 0},
    {HF_MUTEX, HF_UNFAIR, 0},
    {HF_RWLOCK, HF_FAIR, 0},
    {HF_SEMAPHORE, HF_FAIR, 3},
};

struct worker_self {
    struct worker *seat;
    uint32_t process;
    hf_client *client;
    hf_lock *lock[NAMES];
};

static void die(const char *what, const hf_error *err)
{
    printf("# %s: %s\n", what, err->text);
    atomic_fetch_add(&shared->errors, 1);
    _exit(1);
}

static struct history_event *next(struct worker_self *me, int kind, int name)
{
    uint32_t len = atomic_load(&me->seat->len);
    struct history_event *e = &me->seat->log[len];

    if (len >= LOG_ROOM)
        die("log", &(hf_error){.text = "full"});
    *e = (struct history_event){.kind = (uint8_t)kind,
                                .lock = (uint32_t)name,
                                .owner = me->process,
                                .process = me->process,
                                .until = HISTORY_NEVER,
                                .cap = HISTORY_NEVER,
                                .at = wait_now()};
    return e;
}

static void tell(struct worker_self *me)
{
    atomic_fetch_add(&me->seat->len, 1);
}

static void tell_simple(struct worker_self *me, int kind, int name, int result,
                        int64_t until)
{
    struct history_event *e = next(me, kind, name);

    e->result = result;
    e->until = until;
    tell(me);
}

static bool is_shared(int name, const hf_acquire_options *opt)
{
    return kill_locks[name].kind == HF_SEMAPHORE || opt->mode == HF_READ;
}

static void tell_call(struct worker_self *me, int name,
                      const hf_acquire_options *opt, int64_t until)
{
    struct history_event *e = next(me, HISTORY_CALL, name);

    e->until = until;
    if (kill_locks[name].kind == HF_SEMAPHORE) {
        e->share = opt->permits;
        e->whole = kill_locks[name].size;
    } else if (kill_locks[name].kind == HF_RWLOCK) {
        e->share = opt->mode == HF_READ ? 1 : HISTORY_MANY;
        e->whole = HISTORY_MANY;
    }
    tell(me);
}

static void tell_return(struct worker_self *me, int name, int result,
                        const hf_acquire_options *opt)
{
    struct history_event *e = next(me, HISTORY_RETURN, name);

    e->result = result;
    if (!result) {
        hf_lock_token(me->lock[name], &e->token);
        hf_lock_deadline(me->lock[name], &e->until);
        if (opt->lease_ms)
            e->cap = e->at + opt->lease_ms * 1000000;
    }
    tell(me);
}

/* While the lock is held: stores the token, and increments the counter if the
 * hold is exclusive. */
static void work(struct worker_self *me, int name,
                 const hf_acquire_options *opt, long spin)
{
    struct guarded *g = &shared->guarded[name];
    struct history_event *e;
    uint64_t value, token = 0;

    hf_lock_token(me->lock[name], &token);
    e = next(me, HISTORY_READ, name);
    e->result = token < g->token;
    e->token = token;
    g->token = token;
    e->value = value = g->counter;
    tell(me);
    for (volatile long i = 0; i < spin; i++)
        ;
    atomic_fetch_add(&shared->grants, 1);
    if (is_shared(name, opt))
        return;
    e = next(me, HISTORY_WRITE, name);
    e->token = token;
    e->value = value + 1;
    atomic_store(&me->seat->about_to, atomic_load(&me->seat->len) + 1);
    g->counter = value + 1;
    tell(me);
}

/* Downgrades; other readers may get the lock before the call returns. */
static void go_down(struct worker_self *me, int name)
{
    hf_error err = HF_ERROR_INIT;

    tell_simple(me, HISTORY_DOWNGRADE, name, 0, HISTORY_NEVER);
    if (hf_lock_downgrade(me->lock[name], &err))
        die("downgrade", &err);
}

static int acquire(struct worker_self *me, int name,
                   const hf_acquire_options *opt, hf_error *err)
{
    int64_t until = opt->wait_ms == HF_FOREVER
                        ? HISTORY_NEVER
                        : wait_now() + opt->wait_ms * 1000000;
    int rc;

    atomic_store(&me->seat->busy_with, name);
    atomic_store(&me->seat->doing, ACQUIRING);
    tell_call(me, name, opt, until);
    rc = hf_lock_acquire(me->lock[name], opt, err);
    tell_return(me, name, rc, opt);
    atomic_store(&me->seat->doing, rc ? IDLE : HOLDING);
    return rc;
}

static void release(struct worker_self *me, int name)
{
    hf_error err = HF_ERROR_INIT;
    int rc;

    tell_simple(me, HISTORY_RELEASE, name, 0, wait_now());
    rc = hf_lock_release(me->lock[name], &err);
    tell_simple(me, HISTORY_RELEASED, name, rc, HISTORY_NEVER);
    if (rc)
        die("release", &err);
    atomic_store(&me->seat->doing, IDLE);
}

static void open_all(struct worker_self *me)
{
    hf_error err = HF_ERROR_INIT;

    if (hf_open(place.url, NULL, &me->client, &err))
        die("open", &err);
    for (int i = 0; i < NAMES; i++) {
        char name[16];

        snprintf(name, sizeof(name), "name-%d", i);
        if (hf_lock_new(
                me->client, name, HF_CSTRING,
                KIND((enum hf_kind)kill_locks[i].kind,
                     .fairness = (enum hf_fairness)kill_locks[i].fairness,
                     .permits = kill_locks[i].size),
                &me->lock[i], &err))
            die("new", &err);
    }
}

static void close_all(struct worker_self *me)
{
    for (int i = 0; i < NAMES; i++)
        hf_lock_free(me->lock[i]);
    hf_close(me->client);
}

static void one_lock(struct worker_self *me, uint64_t *seed)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int name = (int)(chance(seed) % NAMES), rc;
    hf_error err = HF_ERROR_INIT;

    switch (chance(seed) % 8) {
    case 0:
        opt.wait_ms = 0;
        break;
    case 1:
    case 2:
        opt.wait_ms = 1 + chance(seed) % 3;
        break;
    case 3:
        opt.lease_ms = 5000; /* longer than the machine ever stalls here */
        break;
    }
    if (kill_locks[name].kind == HF_SEMAPHORE)
        opt.permits = 1 + chance(seed) % kill_locks[name].size;
    else if (kill_locks[name].kind == HF_RWLOCK && chance(seed) % 3)
        opt.mode = HF_READ;
    rc = acquire(me, name, &opt, &err);
    if (rc == HF_EBUSY || rc == HF_ETIMEDOUT) {
        atomic_fetch_add(&shared->given_up, 1);
        return;
    }
    if (rc)
        die("acquire", &err);
    work(me, name, &opt, chance(seed) % 4000);
    if (kill_locks[name].kind == HF_RWLOCK && opt.mode == HF_WRITE &&
        chance(seed) % 2)
        go_down(me, name);
    if (chance(seed) % 4 == 0)
        nap_us(chance(seed) % 200);
    release(me, name);
}

void worker_main(int seat, uint32_t process, uint64_t seed)
{
    struct worker_self me = {&shared->worker[seat], process, NULL, {NULL}};

    open_all(&me);
    while (!atomic_load(&shared->stop)) {
        one_lock(&me, &seed);
        if (chance(&seed) % 2)
            nap_us(chance(&seed) % 300);
        if (chance(&seed) % 256 == 0) { /* so that some kills hit opening and
                                           closing */
            close_all(&me);
            open_all(&me);
        }
    }
    close_all(&me);
    _exit(0);
}

void prober_main(uint32_t process, int in, int out)
{
    struct worker_self me = {&shared->worker[PROBER], process, NULL, {NULL}};
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    unsigned char name;

    opt.wait_ms = 10000;
    open_all(&me);
    while (read(in, &name, 1) == 1) {
        hf_error err = HF_ERROR_INIT;
        int64_t at = -1;

        opt.permits = kill_locks[name].size;
        if (acquire(&me, name, &opt, &err)) {
            printf("# prober: %s\n", err.text);
        } else {
            at = wait_now();
            work(&me, name, &opt, 10);
            release(&me, name);
        }
        if (write(out, &at, sizeof(at)) != sizeof(at))
            break;
    }
    close_all(&me);
    _exit(0);
}
