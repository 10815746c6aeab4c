/*
 * One trial: a client holds a lock of each kind, a second client waits for each
 * of these locks, and a third one has died, as far as the file shows. One bit
 * is flipped, and all clients continue to the end. Calls may return anything.
 */
#include "flips.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The delays of this thread and of the machine when the trial began. The time
 * that is added to them during a call is subtracted from the call's duration.
 * The delays of other threads are not subtracted, because a call that takes
 * long is mostly asleep. */
static _Thread_local int64_t waited_before;
static int64_t stood_before;

static int64_t stood(void)
{
    return wait_stolen() + canary_stood_by_now(&flips_canary);
}

void flips_begin(void)
{
    stood_before = wait_stolen() + canary_stood(&flips_canary);
    flips_thread_begins();
}

void flips_thread_begins(void)
{
    waited_before = cpu_wait_of_thread();
}

void flips_call_ended(int64_t then, int limit_ms, const char *call)
{
    int64_t took = wait_now() - then;
    int64_t limit = (limit_ms + 1000 + WAIT_SLACK_MS) * INT64_C(1000000);

    atomic_fetch_add(&flips_note->calls, 1);
    if (took <= limit || took - (stood() - stood_before) -
                                 (cpu_wait_of_thread() - waited_before) <=
                             limit)
        return;
    snprintf(flips_note->fault, sizeof(flips_note->fault),
             "%s took %lld ms, the limit is %d ms", call,
             (long long)(took / 1000000), limit_ms);
    _exit(FLIPS_LATE);
}

void flips_bit(size_t offset, int bit)
{
    atomic_store(&flips_note->offset, offset);
    atomic_store(&flips_note->bit, bit);
    __atomic_fetch_xor((uint8_t *)flips_file + offset, (uint8_t)(1u << bit),
                       __ATOMIC_SEQ_CST);
}

struct kind {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
    uint32_t permits;
};

static const struct kind kinds[LOCKS] = {
    [FAIR] = {"fair", HF_MUTEX, HF_FAIR, 0},
    [UNFAIR] = {"unfair", HF_MUTEX, HF_UNFAIR, 0},
    [RWLOCK] = {"rwlock", HF_RWLOCK, HF_FAIR_DEFAULT, 0},
    [SEMAPHORE] = {"semaphore", HF_SEMAPHORE, HF_FAIR_DEFAULT, 3}};
static const struct kind dead_kind = {"dead", HF_MUTEX, HF_FAIR, 0};

static hf_lock *handle(hf_client *client, const struct kind *k)
{
    hf_lock *lock = NULL;

    WITHIN(TABLES_MS,
           hf_lock_new(client, k->name, HF_CSTRING,
                       KIND(k->kind, .fairness = k->fairness,
                            .flags = HF_OWNER_HANDLE, .permits = k->permits),
                       &lock, NULL));
    return lock;
}

static void on_event(void *arg, const hf_event *e)
{
    (void)arg;
    (void)e;
}

void party_come(struct party *p)
{
    memset(p, 0, sizeof(*p));
    if (WITHIN(OPEN_MS, hf_open(flips_url, CLIENT(.on_event = on_event),
                                &p->client, NULL)))
        return;
    for (int i = 0; i < LOCKS; i++)
        p->lock[i] = handle(p->client, &kinds[i]);
    WITHIN(TABLES_MS, hf_latch_new(p->client, "latch", 5, &p->latch, NULL));
}

static int acquire(hf_lock *lock, enum hf_mode mode, uint32_t permits,
                   int64_t wait_ms, int64_t lease_ms)
{
    if (!lock)
        return HF_EINVAL;
    return WITHIN((int)wait_ms,
                  hf_lock_acquire(lock,
                                  HOW(wait_ms, .mode = mode, .permits = permits,
                                      .lease_ms = lease_ms),
                                  NULL));
}

static void release(hf_lock *lock)
{
    if (lock)
        WITHIN(CALL_MS, hf_lock_release(lock, NULL));
}

static void hold_all(struct party *p)
{
    for (int i = 0; i < LOCKS; i++)
        acquire(p->lock[i], HF_WRITE, i == SEMAPHORE ? 2 : 0, WAIT_MS, 0);
    if (p->latch)
        WITHIN(TABLES_MS, hf_latch_set(p->latch, 1, NULL));
}

static void release_all(struct party *p)
{
    for (int i = 0; i < LOCKS; i++) {
        if (i == RWLOCK && p->lock[i])
            WITHIN(CALL_MS, hf_lock_downgrade(p->lock[i], NULL));
        release(p->lock[i]);
    }
    if (p->latch)
        WITHIN(TABLES_MS, hf_latch_down(p->latch, NULL, NULL));
}

void party_try(struct party *p, int64_t wait_ms, int64_t lease_ms)
{
    for (int i = 0; i < LOCKS; i++) {
        if (acquire(p->lock[i], i == RWLOCK && !lease_ms ? HF_READ : HF_WRITE,
                    0, wait_ms, lease_ms))
            continue;
        if (lease_ms)
            WITHIN(CALL_MS, hf_lock_renew(p->lock[i], lease_ms, NULL));
        release(p->lock[i]);
    }
    if (p->latch)
        WITHIN((int)wait_ms, hf_latch_wait(p->latch, wait_ms, NULL, NULL));
}

void party_look(struct party *p)
{
    static const char *const name[] = {"fair", "rwlock", "latch"};
    hf_names *names = NULL;
    hf_info *info = NULL;

    if (!p->client)
        return;
    for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++)
        if (!WITHIN(TABLES_MS,
                    hf_inspect(p->client, name[i], HF_CSTRING, &info, NULL)))
            hf_info_free(info);
    for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++)
        WITHIN(TABLES_MS, hf_ask(p->client, name[i], HF_CSTRING, NULL));
    if (!WITHIN(TABLES_MS, hf_list(p->client, NULL, &names, NULL)))
        hf_names_free(names);
}

/* Frees what can be freed, closes the client and frees the rest: the handle of
 * a lock that is still held can be freed only after its client has been
 * closed. */
void party_go(struct party *p)
{
    for (int i = 0; i < LOCKS; i++)
        if (p->lock[i] && !WITHIN(CALL_MS, hf_lock_free(p->lock[i])))
            p->lock[i] = NULL;
    if (p->client)
        WITHIN(CALL_MS, hf_close(p->client));
    for (int i = 0; i < LOCKS; i++)
        hf_lock_free(p->lock[i]);
    hf_latch_free(p->latch);
}

static void on_lock(void *arg, hf_lock *lock, int result)
{
    (void)lock;
    (void)result;
    ++*(int *)arg;
}

static void on_latch(void *arg, hf_latch *latch, int result)
{
    (void)latch;
    (void)result;
    ++*(int *)arg;
}

/* Begins asynchronous waits, which the helper thread drives, for all locks
 * except the fair mutex and the read-write lock; wait_main() waits for the fair
 * mutex. Returns the number of waits. */
static int wait_async(struct party *p, int *done)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int n = 0;

    opt.wait_ms = WAIT_MS;
    n += p->lock[UNFAIR] &&
         !hf_lock_acquire_async(p->lock[UNFAIR], &opt, on_lock, done, NULL);
    opt.permits = 2;
    n += p->lock[SEMAPHORE] &&
         !hf_lock_acquire_async(p->lock[SEMAPHORE], &opt, on_lock, done, NULL);
    n += p->latch &&
         !hf_latch_wait_async(p->latch, WAIT_MS, on_latch, done, NULL);
    return n;
}

static atomic_bool has_waited;

static void *wait_main(void *arg)
{
    struct party *p = arg;

    flips_thread_begins();
    if (!acquire(p->lock[FAIR], HF_WRITE, 0, WAIT_MS, 50))
        release(p->lock[FAIR]);
    atomic_store(&has_waited, true);
    return NULL;
}

/* Dispatches until the callbacks have run, which they must do when the wait
 * time has passed. */
static void end_async(struct party *p, const int *done, int pending)
{
    int64_t then = wait_now();

    while (p->client && *done < pending) {
        hf_client_dispatch(p->client);
        if (*done < pending)
            wait_tick();
        flips_call_ended(then, WAIT_MS, "an asynchronous acquire");
    }
}

/* The places of the trial's objects in the file. */
static struct {
    unsigned holder, waiter, dead, unused;          /* indexes of slots */
    unsigned lock[LOCKS], latch;                    /* indexes of entries */
    unsigned waiting_cell, holding_cell, dead_cell; /* indexes of cells */
    /* index of the entry that the dead client holds */
    unsigned of_dead;
} at;

static unsigned entry_of(const char *name)
{
    for (unsigned i = 0; i < SHM_NAMES; i++)
        if (!strncmp(flips_file->entry[i].name, name, SHM_NAME_MAX))
            return i;
    return 0;
}

/* Returns the first cell of that client at that entry, or SHM_CELLS if there is
 * none. */
static unsigned cell_of(unsigned entry, unsigned slot)
{
    for (unsigned i = 0; i < SHM_CELLS; i++)
        if (atomic_load(&flips_file->entry[entry].cells[i / 64]) >> i % 64 &
                1 &&
            (atomic_load(&flips_file->cell[i].owner) & SHM_SLOT_MASK) == slot &&
            atomic_load(&flips_file->cell[i].name) == entry)
            return i;
    return SHM_CELLS;
}

static unsigned slot_of_holder(unsigned entry)
{
    return (unsigned)atomic_load(&flips_file->entry[entry].word) &
           SHM_SLOT_MASK;
}

static unsigned slot_after(unsigned slot)
{
    while (slot < SHM_SLOTS &&
           atomic_load(&flips_file->slot[slot].state) != SHM_SLOT_USED)
        slot++;
    return slot % SHM_SLOTS;
}

#define HOT offsetof(struct shm_entry, name)
#define ENTRY(what) offsetof(struct shm_file, entry[at.what])
#define SLOT(what) offsetof(struct shm_file, slot[at.what])
#define CELL(what) offsetof(struct shm_file, cell[at.what])

static const struct region {
    const char *name;
    size_t bytes;
} regions[] = {{"header", sizeof(struct shm_header)},
               {"hash", sizeof(shm_u32)},
               {"slot of the holder", sizeof(struct shm_slot)},
               {"slot of the waiter", sizeof(struct shm_slot)},
               {"slot of the dead", sizeof(struct shm_slot)},
               {"free slot", sizeof(struct shm_slot)},
               {"cell of the waiter", sizeof(struct shm_cell)},
               {"cell of the holder", sizeof(struct shm_cell)},
               {"cell of the dead", sizeof(struct shm_cell)},
               {"entry of the dead", HOT},
               {"unfair mutex", HOT},
               {"rwlock", HOT},
               {"semaphore", HOT},
               {"latch", HOT},
               {"fair mutex", sizeof(struct shm_entry)}};

unsigned scene_regions(void)
{
    return sizeof(regions) / sizeof(regions[0]);
}

const char *scene_region_name(unsigned region)
{
    return regions[region].name;
}

size_t scene_region_len(unsigned region)
{
    return regions[region].bytes * 8;
}

static size_t region_offset(unsigned region)
{
    const size_t offset[] = {0,
                             offsetof(struct shm_file, hash[at.lock[FAIR]]),
                             SLOT(holder),
                             SLOT(waiter),
                             SLOT(dead),
                             SLOT(unused),
                             CELL(waiting_cell),
                             CELL(holding_cell),
                             CELL(dead_cell),
                             ENTRY(of_dead),
                             ENTRY(lock[UNFAIR]),
                             ENTRY(lock[RWLOCK]),
                             ENTRY(lock[SEMAPHORE]),
                             ENTRY(latch),
                             ENTRY(lock[FAIR])};

    return offset[region];
}

static void find_places(void)
{
    for (int i = 0; i < LOCKS; i++)
        at.lock[i] = entry_of(kinds[i].name);
    at.latch = entry_of("latch");
    at.of_dead = entry_of("dead");
    at.holder = slot_of_holder(at.lock[FAIR]);
    at.waiter = slot_after(at.holder + 1);
    at.dead = slot_of_holder(at.of_dead);
    at.unused = 1;
    while (at.unused < SHM_SLOTS - 1 &&
           atomic_load(&flips_file->slot[at.unused].state))
        at.unused++;
    at.holding_cell = cell_of(at.lock[RWLOCK], at.holder) % SHM_CELLS;
    at.dead_cell = cell_of(at.lock[RWLOCK], at.dead) % SHM_CELLS;
    at.waiting_cell = cell_of(at.lock[FAIR], at.waiter) % SHM_CELLS;
}

static bool is_queued(void)
{
    unsigned fair = entry_of("fair");

    return cell_of(fair, slot_after(slot_of_holder(fair) + 1)) != SHM_CELLS;
}

enum { NO_PID = 1 << 22 }; /* greater than any process id */

/* Makes the file look as if the slot's process had been killed. */
static void pretend_death(unsigned slot)
{
    struct shm_slot *s = &flips_file->slot[slot];

    atomic_store(&s->pid, NO_PID);
    atomic_store(&s->has_byte, 0);
    atomic_store((shm_u32 *)&s->alive, FUTEX_OWNER_DIED);
}

static void after_the_flip(struct party *holder, struct party *newcomer,
                           hf_lock **dead)
{
    party_look(holder);
    release_all(holder);
    party_come(newcomer);
    party_try(newcomer, 2, 0);
    party_try(newcomer, 2, 30);
    *dead = NULL;
    if (!newcomer->client)
        return;
    WITHIN(TABLES_MS, hf_break(newcomer->client, "fair", 4, NULL));
    *dead = handle(newcomer->client, &dead_kind);
    if (!acquire(*dead, HF_WRITE, 0, 2, 0))
        release(*dead);
}

/* Repeats until the client is open, because the machine may stall for the whole
 * timeout, and only calls after the flip may fail. */
static void come_surely(struct party *p)
{
    do
        party_come(p);
    while (!p->client);
}

void scene_play(unsigned region, size_t bit)
{
    struct party holder, waiter, dead, newcomer;
    hf_lock *of_dead = NULL, *taken;
    int done = 0, pending;
    pthread_t thread;

    come_surely(&holder);
    come_surely(&waiter);
    come_surely(&dead);
    of_dead = handle(dead.client, &dead_kind);
    acquire(of_dead, HF_WRITE, 0, 2, 0);
    acquire(dead.lock[RWLOCK], HF_READ, 0, 2, 0);
    release(dead.lock[RWLOCK]); /* the client keeps the hold's cell */
    hold_all(&holder);
    pending = wait_async(&waiter, &done);
    atomic_store(&has_waited, false);
    pthread_create(&thread, NULL, wait_main, &waiter);
    while (!is_queued() && !atomic_load(&has_waited))
        sched_yield();
    find_places();
    pretend_death(at.dead);
    flips_bit(region_offset(region) + bit / 8, (int)(bit % 8));
    after_the_flip(&holder, &newcomer, &taken);
    pthread_join(thread, NULL);
    end_async(&waiter, &done, pending);
    party_go(&waiter);
    party_go(&holder);
    party_go(&newcomer);
    party_go(&dead);
    hf_lock_free(taken);
    hf_lock_free(of_dead);
}
