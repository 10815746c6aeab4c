/*
 * Stops a process at every step, in turn, and lets other processes do something
 * before it continues. Each run has one interruption, and the runs together
 * cover every step at which the scheduler could interrupt the process. Two
 * clients must never hold the lock at once, tokens must rise, no waiter may be
 * forgotten, and nothing may be left in the file.
 *
 *     shm_pauses [KIND [PART [MEANWHILE]]]
 *
 *     KIND       mutex, rwlock or semaphore
 *     PART       what the stopped process, the victim, does: see `parts`
 *     MEANWHILE  what happens while the victim is stopped: see `meanwhiles`
 *
 * `holder` holds the lock, or has held it; `waiter` waits for the lock, before
 * or after the victim; `prober` is a client that only tries to acquire.
 */
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* PATIENCE_MS is long enough that no actor gives up because the machine is
 * slow; whether a grant is in time is checked separately. The victim's limit is
 * longer still: a victim that is stuck must not give up before the test notices
 * it. */
enum {
    PATIENCE_MS = 20000,
    STUCK_MS = STAGE_STUCK_MS,
    VICTIM_MS = 2 * STUCK_MS
};

static bool holder_holds, waiter_waits, may_break;
static bool waiter_is_doomed; /* the waiter has the lock and will be killed */

static void acquire_release(struct seat *s)
{
    if (!enter(s, VICTIM_MS, 0, NULL)) {
        nap_us(200);
        leave(s, NULL);
    }
}

static void try_once(struct seat *s)
{
    if (!enter(s, 0, 0, NULL))
        leave(s, NULL);
}

static void give_up(struct seat *s)
{
    if (!enter(s, 3, 0, NULL))
        leave(s, NULL);
}

static void with_lease(struct seat *s)
{
    if (!enter(s, VICTIM_MS, 60000, NULL)) {
        hf_lock_renew(s->lock, 50000, NULL);
        leave(s, NULL);
    }
}

/* Acquires the lock and keeps it until the test says, with phase 2, that
 * another actor waits. */
static bool hold_until_wanted(struct seat *s)
{
    int start = 0;

    if (enter(s, VICTIM_MS, 0, NULL))
        return false;
    atomic_compare_exchange_strong(&stage->phase, &start, 1);
    while (atomic_load(&stage->phase) != 2)
        nap_us(20);
    return true;
}

static void hand_over(struct seat *s)
{
    if (hold_until_wanted(s))
        leave(s, NULL);
}

static void go_down_and_leave(struct seat *s)
{
    if (!hold_until_wanted(s))
        return;
    go_down(s, NULL);
    leave(s, NULL);
}

static void open_close(struct seat *s)
{
    struct seat other;

    (void)s;
    if (!sit(&other, VICTIM, NULL))
        stand_up(&other);
}

static void break_it(struct seat *s)
{
    hf_break(s->client, "x", 1, NULL);
}

enum before { FREE, HELD, HELD_AND_WAITED_FOR, WAITED_FOR_LATER };

static const struct part {
    const char *name;
    void (*play)(struct seat *);
    enum before before;
} parts[] = {
    {"acquire, free", acquire_release, FREE},
    {"acquire, held", acquire_release, HELD},
    {"acquire, queue", acquire_release, HELD_AND_WAITED_FOR},
    {"try, free", try_once, FREE},
    {"try, held", try_once, HELD},
    {"give up, held", give_up, HELD},
    {"give up, queue", give_up, HELD_AND_WAITED_FOR},
    {"lease, free", with_lease, FREE},
    {"lease, queue", with_lease, HELD_AND_WAITED_FOR},
    {"hand over", hand_over, WAITED_FOR_LATER},
    {"go down", go_down_and_leave, WAITED_FOR_LATER},
    {"open and close", open_close, HELD_AND_WAITED_FOR},
    {"break", break_it, HELD_AND_WAITED_FOR},
};

/* Returns whether the part is possible with this cast. */
static bool is_playable(const struct part *part)
{
    if (part->before == HELD_AND_WAITED_FOR && stage_is_shared(HOLDER, WAITER))
        return false;
    if (part->before == WAITED_FOR_LATER && stage_is_shared(VICTIM, WAITER))
        return false;
    return part->play != go_down_and_leave ||
           (stage_cast->kind == HF_RWLOCK &&
            stage_permits(VICTIM) == stage_cast->size);
}

static void lets_go(struct actor *actor)
{
    struct answer a = {-1, 0, 0, "no answer"};

    actor_tell(actor, 'r', 0, 0);
    actor_hear(actor, &a, STUCK_MS);
    if (a.rc && (a.rc != HF_ELOST || !may_break))
        stage_blame(a.text);
}

static void holder_lets_go(void)
{
    if (holder_holds)
        lets_go(&holder);
    holder_holds = false;
}

static void holder_dies(void)
{
    actor_end(&holder, SIGKILL);
    holder_holds = false;
}

static void waiter_comes(void)
{
    if (!waiter_waits)
        actor_tell(&waiter, 'a', PATIENCE_MS, 0);
    waiter_waits = true;
    nap_us(500);
}

static void waiter_gives_up(void)
{
    struct answer a = {-1, 0, 0, ""};

    if (!waiter_waits)
        return;
    waiter_waits = false;
    kill(waiter.pid, SIGUSR1);
    if (!actor_hear(&waiter, &a, STUCK_MS))
        stage_blame("the waiter cannot be cancelled");
    if (!a.rc)
        lets_go(&waiter);
}

static void waiter_dies(void)
{
    actor_end(&waiter, SIGKILL);
    waiter_waits = false;
}

static void waiter_comes_and_dies(void)
{
    waiter_comes();
    waiter_dies();
}

/* The prober tries briefly to acquire. Whether it gets the lock depends on
 * where the victim is. */
static void prober_visits(void)
{
    struct answer a = {-1, 0, 0, ""};

    actor_tell(&prober, 'a', 3, 0);
    if (!actor_hear(&prober, &a, STUCK_MS))
        stage_blame("the prober is stuck");
    if (!a.rc)
        lets_go(&prober);
}

static void holder_lets_go_prober_visits(void)
{
    holder_lets_go();
    prober_visits();
}

static void holder_passes_to_waiter(void)
{
    holder_lets_go();
    waiter_comes();
}

/* The holder releases. If the waiter then gets the lock, it will be killed
 * later. If the victim has the lock already, the waiter does not get it and is
 * not killed. */
static void waiter_has_it_and_dies_later(void)
{
    struct answer a = {-1, 0, 0, ""};

    holder_lets_go();
    waiter_is_doomed = waiter_waits && actor_hear(&waiter, &a, 30) && !a.rc;
}

static void nothing(void)
{
    nap_us(5000);
}

static const struct meanwhile {
    const char *name;
    void (*happen)(void);
} meanwhiles[] = {
    {"nothing", nothing},
    {"holder lets go", holder_lets_go},
    {"holder dies", holder_dies},
    {"waiter comes", waiter_comes},
    {"waiter gives up", waiter_gives_up},
    {"waiter dies", waiter_dies},
    {"waiter comes and dies", waiter_comes_and_dies},
    {"prober visits", prober_visits},
    {"holder lets go, prober visits", holder_lets_go_prober_visits},
    {"holder passes to waiter", holder_passes_to_waiter},
    {"waiter has it and dies later", waiter_has_it_and_dies_later},
};

static void set_scene(const struct part *part)
{
    holder_holds = waiter_waits = waiter_is_doomed = false;
    may_break = part->play == break_it;
    if (!holder.pid)
        actor_begin(&holder, HOLDER);
    if (!waiter.pid)
        actor_begin(&waiter, WAITER);
    if (part->before == FREE || part->before == WAITED_FOR_LATER)
        return;
    actor_ask(&holder, 'a', PATIENCE_MS, 0);
    holder_holds = true;
    if (part->before == HELD_AND_WAITED_FOR) {
        waiter_comes();
        await_queue(1, 0);
    }
}

/* Waits until the waiter gets the lock, which must happen in time, and lets it
 * release the lock for the victim. */
static void free_waiter(void)
{
    struct answer a = {-1, 0, INT64_MAX, ""};
    struct moment since = moment_now();

    if (!waiter_waits)
        return;
    if (!actor_hear(&waiter, &a, STUCK_MS))
        stage_blame("the waiter is stuck");
    else
        check_in_time(&a, &since, STAGE_LIMIT_MS, "waiter");
    if (!a.rc)
        lets_go(&waiter);
    waiter_waits = false;
}

static bool is_anybody_watched(void)
{
    unsigned high = atomic_load(&stage_file->header.cells_high) % SHM_CELLS;

    for (unsigned i = 0; i <= high; i++)
        if (atomic_load(&stage_file->cell[i].watching[0]))
            return true;
    return false;
}

static void await_phase_3(void)
{
    int64_t until = now_ns() + STUCK_MS * 1000000LL;

    while (atomic_load(&stage->phase) != 3 && now_ns() < until)
        nap_us(20);
}

/* Kills the waiter, which has the lock, as soon as the victim sleeps or after
 * 50 ms. */
static void kill_waiter(void)
{
    int64_t until = now_ns() + 50000000LL;
    struct moment since;
    struct answer victim = {0, 0, INT64_MAX, ""};

    while (!is_anybody_watched() && now_ns() < until)
        nap_us(20);
    nap_us(200);
    since = moment_now();
    waiter_dies();
    await_phase_3();
    victim.at = now_ns();
    check_in_time(&victim, &since, STAGE_LIMIT_MS, "victim");
}

/* Waits until the victim is paused or has ended. Actors that the victim waits
 * for release the lock. */
static void await_pause(const struct part *part, pid_t pid)
{
    int64_t began = now_ns();
    struct answer a;

    while (!atomic_load(&stage->paused) && !has_ended(pid) &&
           atomic_load(&stage->phase) != 3 &&
           now_ns() < began + PATIENCE_MS * 1000000LL) {
        if (part->before == WAITED_FOR_LATER &&
            atomic_load(&stage->phase) == 1) {
            waiter_comes();
            atomic_store(&stage->phase, 2);
        }
        /* The victim waits for the holder and cannot reach the pause before the
         * holder releases. */
        if (holder_holds && queued() > waiter_waits &&
            now_ns() > began + 3000000)
            holder_lets_go();
        if (!holder_holds && waiter_waits && part->before != WAITED_FOR_LATER &&
            actor_hear(&waiter, &a, 0)) {
            waiter_waits = false;
            lets_go(&waiter);
        }
        nap_us(20);
    }
}

static void end_scene(pid_t pid)
{
    struct moment since;

    holder_lets_go();
    if (waiter_is_doomed)
        kill_waiter();
    else
        free_waiter();
    await_phase_3();
    if (atomic_load(&stage->phase) != 3) {
        stage_blame("the victim is stuck");
        kill(pid, SIGKILL);
    }
    since = moment_now();
    actor_tell(&prober, 'a', PATIENCE_MS, 0);
    check_gets_it(&prober, &since, STAGE_LIMIT_MS, "prober");
    actor_ask(&prober, 'r', 0, 0);
    if (atomic_load(&stage->overlaps) && !may_break)
        stage_blame("two held it at once");
    atomic_store(&stage->go, 2);
    waitpid(pid, NULL, 0);
    stage_victim_is(0);
    actor_ask(&prober, 'o', 0, 0); /* opening cleans up after dead clients */
    check_leaks(1 + !!holder.pid + !!waiter.pid);
}

static void victim_main(const struct part *part, int n)
{
    struct seat s = {NULL, NULL, VICTIM, NULL};

    if (sit(&s, VICTIM, NULL))
        _exit(3);
    stage_arm(n);
    part->play(&s);
    victim_stays(&s);
}

struct scenario {
    const struct part *part;
    const struct meanwhile *meanwhile;
};

/* Runs the scenario with a pause at the n-th step; returns false if there is no
 * such step. */
static bool run(const void *scenario, int n)
{
    const struct scenario *sc = scenario;
    const struct part *part = sc->part;
    bool was_paused;
    int go_on;
    pid_t pid;

    set_scene(part);
    pid = fork();
    if (!pid)
        victim_main(part, n);
    stage_victim_is(pid);
    await_pause(part, pid);
    was_paused = atomic_load(&stage->paused);
    if (was_paused) {
        sc->meanwhile->happen();
        stage_note_place();
    }
    go_on = atomic_load(&stage->phase);
    while (go_on < 2 && !atomic_compare_exchange_weak(&stage->phase, &go_on, 2))
        ;
    atomic_store(&stage->go, 1);
    end_scene(pid);
    return was_paused;
}

static int walk(const struct part *part, const struct meanwhile *m, int *runs)
{
    int faults = 0;

    *runs += stage_walk(
        &(struct stage_walk){.name = part->name,
                             .meanwhile = m->name,
                             .run = run,
                             .scenario = &(struct scenario){part, m}},
        &faults);
    return faults;
}

/* Plays the part with each of the things that can happen during a pause, or
 * only with `during`. */
static void play_part(const struct part *part, const char *during, int *runs)
{
    int faults = 0, before = *runs;

    for (size_t i = 0; i < sizeof(meanwhiles) / sizeof(meanwhiles[0]); i++)
        if (!during || !strcmp(during, meanwhiles[i].name))
            faults += walk(part, &meanwhiles[i], runs);
    if (*runs == before)
        faults++; /* without any pause, nothing is tested */
    stage_case(faults, "%s, %s: paused at each step, %d times in all",
               part->name, stage_cast->name, *runs - before);
}

static void play_all(const struct stage_cast *cast, const char *only,
                     const char *during, int *runs)
{
    stage_cast = cast;
    actor_begin(&prober, PROBER);
    stage_map();
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
        if ((!only || !strcmp(only, parts[k].name)) && is_playable(&parts[k]))
            play_part(&parts[k], during, runs);
    actors_end();
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "mutex";
    const char *only = argc > 2 ? argv[2] : NULL;
    const char *during = argc > 3 ? argv[3] : NULL;
    const struct stage_cast *cast = NULL;
    int runs = 0;

    stage_build("shm_pauses");
    stage_at_point = stage_pause;
    while ((cast = stage_next_cast(kind, cast)))
        play_all(cast, only, during, &runs);
    return stage_end(runs, "pauses");
}
