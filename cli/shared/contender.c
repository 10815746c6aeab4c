/*
 * One process of contenders. The holder of an exclusive lock checks and changes
 * the cell of the lock's name without atomic operations. Two holders at once
 * therefore show as a foreign mark or as a lost increment.
 */
#include "contender.h"

#include "values.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    CALIBRATION = 256, /* after so many pairs (an acquire and its release),
                          their mean time decides how many acquires are timed */
    FAST_NS = 2000,    /* if a pair takes less, reading the clock would
                          noticeably slow the pairs down, so only a sample is
                          timed */
    SAMPLE_EVERY = 61, /* the sample: one acquire in so many */
};

struct contender {
    struct contender_group *group;
    unsigned number;
    pthread_t thread;
    hf_acquire_options how;
    hf_error err;
};

void contender_fail(struct arena *arena, int code, const hf_error *err)
{
    struct shared *shared = arena->shared;
    int none = 0;

    if (atomic_compare_exchange_strong(&shared->failed, &none, code)) {
        shared->error.code = code;
        snprintf(shared->error.text, sizeof shared->error.text, "%s",
                 err && err->text[0] ? err->text : hf_error_text(code));
    }
    atomic_store(&shared->stop, true);
    (void)!write(arena->ready[1], "", 1); /* the parent may be waiting for this
                                             byte */
}

static void contender_enter_exclusive(struct cell *cell, struct counts *counts,
                                      uint32_t me)
{
    uint64_t entries = cell->entries;

    if (cell->inside != 0)
        counts->violations++;
    cell->inside = me;
    if (cell->last != me) {
        cell->last = me;
        counts->handovers++;
    }
    cell->entries = entries + 1;
    if (cell->inside != me)
        counts->violations++;
    cell->inside = 0;
}

static void contender_enter_shared(struct cell *cell, struct counts *counts,
                                   uint32_t limit)
{
    if (atomic_fetch_add(&cell->sharing, 1) >= limit || cell->inside != 0)
        counts->violations++;
    atomic_fetch_sub(&cell->sharing, 1);
}

static void contender_visit(const struct contend *contend, struct cell *cell,
                            struct counts *counts, uint32_t me)
{
    counts->entries++;
    if (contend->kind == HF_SEMAPHORE)
        contender_enter_shared(cell, counts, contend->permits);
    else if (contend->mode == HF_READ)
        contender_enter_shared(cell, counts, UINT32_MAX);
    else
        contender_enter_exclusive(cell, counts, me);
}

/* Records the time of a handover, if this contender was already waiting when
 * another contender released the lock. */
static void contender_time_handover(const struct cell *cell,
                                    struct counts *counts, uint32_t me,
                                    int64_t called_at, int64_t now)
{
    if (cell->last != me && called_at < cell->released_at)
        hist_add(&counts->handovers_ns, now - cell->released_at);
}

static int contender_acquire(struct contender *self, size_t name, bool timed)
{
    struct arena *arena = self->group->arena;
    struct counts *counts = &arena->counts[self->number];
    int64_t called_at = timed ? cli_now_ns(CLOCK_MONOTONIC) : 0, now;
    int rc;

    rc = hf_lock_acquire(self->group->locks[name], &self->how, &self->err);
    if (rc == HF_OK && timed) {
        now = cli_now_ns(CLOCK_MONOTONIC);
        hist_add(&counts->waits, now - called_at);
        if (arena->contend->time_handovers)
            contender_time_handover(&arena->cells[name], counts,
                                    self->number + 1, called_at, now);
    }
    return rc;
}

static void contender_nap(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    if (ms > 0)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static int contender_pair(struct contender *self, size_t name, bool timed)
{
    struct arena *arena = self->group->arena;
    const struct contend *contend = arena->contend;
    hf_lock *lock = self->group->locks[name];
    int rc = contender_acquire(self, name, timed);

    if (rc == HF_OK) {
        contender_visit(contend, &arena->cells[name],
                        &arena->counts[self->number], self->number + 1);
        contender_nap(contend->hold_ms);
        if (contend->time_handovers)
            arena->cells[name].released_at = cli_now_ns(CLOCK_MONOTONIC);
        rc = contend->nowait ? hf_lock_release_nowait(lock, &self->err)
                             : hf_lock_release(lock, &self->err);
    }
    if (rc != HF_OK)
        contender_fail(arena, rc, &self->err);
    return rc;
}

static bool contender_is_over(const struct arena *arena)
{
    return atomic_load_explicit(&arena->shared->stop, memory_order_relaxed);
}

static uint32_t contender_next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void contend_until_over(struct contender *self)
{
    struct arena *arena = self->group->arena;
    struct counts *counts = &arena->counts[self->number];
    unsigned names = self->group->names, until_timed = 1, every = 1;
    uint32_t random = 2463534242U + self->number * 7919U;
    int64_t begin = cli_now_ns(CLOCK_MONOTONIC);

    while (!contender_is_over(arena)) {
        size_t name = names > 1 ? contender_next_random(&random) % names : 0;
        bool timed = --until_timed == 0;

        if (contender_pair(self, name, timed) != HF_OK)
            return;
        if (timed)
            until_timed = every;
        if (contender_is_over(arena))
            return; /* too late to count */
        if (++counts->pairs == CALIBRATION && !arena->contend->time_handovers &&
            cli_now_ns(CLOCK_MONOTONIC) - begin < CALIBRATION * FAST_NS)
            every = SAMPLE_EVERY;
        contender_nap(arena->contend->think_ms);
    }
}

static void *contender_thread_main(void *arg)
{
    struct contender *self = arg;
    struct arena *arena = self->group->arena;
    char end;

    /* One pair for each name, before the start, creates everything that is
     * created on first use, such as connections, scripts and memory. */
    for (unsigned i = 0; i < self->group->names; i++) {
        if (contender_pair(self, i, false) != HF_OK)
            return NULL;
    }
    if (write(arena->ready[1], "", 1) != 1)
        return NULL;
    while (read(arena->go[0], &end, 1) < 0 && errno == EINTR) {
    }
    contend_until_over(self);
    return NULL;
}

void contender_name(const struct arena *arena, unsigned i, char out[64])
{
    /* Different kinds, fairness and parent processes use different names. */
    snprintf(out, 64, "holdfast-bench-%d-%d-%d-%u", (int)arena->owner,
             (int)arena->contend->kind, (int)arena->contend->fairness, i);
}

int contender_open(struct contender_group *group, hf_error *err)
{
    const struct contend *contend = group->arena->contend;
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    char name[64];
    int rc;

    options.kind = contend->kind;
    options.fairness = contend->fairness;
    options.handoff = contend->handoff;
    options.permits = contend->permits;
    group->locks = calloc(group->names, sizeof *group->locks);
    if (!group->locks)
        return HF_ENOMEM;
    rc = hf_open(contend->url, NULL, &group->client, err);
    for (unsigned i = 0; rc == HF_OK && i < group->names; i++) {
        contender_name(group->arena, i, name);
        rc = hf_lock_new(group->client, name, HF_CSTRING, &options,
                         &group->locks[i], err);
    }
    return rc;
}

void contender_close(struct contender_group *group)
{
    for (unsigned i = 0; group->locks && i < group->names; i++)
        hf_lock_free(group->locks[i]);
    free(group->locks);
    hf_close(group->client);
}

static int contender_run_threads(struct contender_group *group)
{
    unsigned n = group->arena->contend->threads, started = 0;
    struct contender *contenders = calloc(n, sizeof *contenders);

    if (!contenders)
        return HF_ENOMEM;
    for (; started < n; started++) {
        struct contender *one = &contenders[started];

        one->group = group;
        one->number = group->first + started;
        one->how = (hf_acquire_options)HF_ACQUIRE_OPTIONS_INIT;
        one->how.mode = group->arena->contend->mode;
        if (pthread_create(&one->thread, NULL, contender_thread_main, one) != 0)
            break;
    }
    if (started < n) /* stops the contenders that have started */
        contender_fail(group->arena, HF_ENOMEM,
                       &(hf_error){.text = "no more threads can be started"});
    for (unsigned i = 0; i < started; i++)
        pthread_join(contenders[i].thread, NULL);
    free(contenders);
    return HF_OK;
}

void contender_pin(unsigned n)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return;
    n %= (unsigned)CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || n-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

_Noreturn void contender_main(struct arena *arena, unsigned number)
{
    struct contender_group group = {.arena = arena,
                                    .names = arena->contend->names,
                                    .first = number * arena->contend->threads};
    hf_error err = HF_ERROR_INIT;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != arena->owner)
        _exit(0); /* the parent died before prctl() */
    if (arena->contend->pin)
        contender_pin(number);
    close(arena->ready[0]);
    close(arena->go[1]);
    rc = contender_open(&group, &err);
    if (rc == HF_OK)
        rc = contender_run_threads(&group);
    if (rc != HF_OK)
        contender_fail(arena, rc, &err);
    contender_close(&group);
    _exit(0);
}
