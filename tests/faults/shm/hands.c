/*
 * A process is stopped at every step, in turn. It continues when a cell has
 * changed hands: the owner has released the cell, and another client uses it
 * for another name ("y"). The process must not do to the new owner what it had
 * decided to do to the old one.
 */
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 20000, LEASE_MS = 60000 };

static struct seat here; /* the client that inspects */
static int hands;        /* how often a cell has changed hands */
static int all_pauses;

static void hand_over(struct seat *s, int n)
{
    if (enter(s, LONG_MS, 0, NULL))
        _exit(3);
    atomic_store(&stage->phase, 1);
    while (atomic_load(&stage->phase) != 2)
        nap_us(20);
    stage_arm(n);
    leave(s, NULL);
}

static void break_it(struct seat *s, int n)
{
    stage_arm(n);
    hf_break(s->client, "x", 1, NULL);
}

static pid_t begin(void (*play)(struct seat *, int), int n)
{
    struct seat s = {NULL, NULL, VICTIM, NULL};
    pid_t pid = fork();

    if (pid)
        return pid;
    if (sit(&s, VICTIM, NULL))
        _exit(3);
    play(&s, n);
    victim_stays(&s);
}

/* Waits until the victim has reached this phase or is paused. */
static void await_phase(int phase)
{
    int64_t until = now_ns() + LONG_MS * 1000000LL;

    while (atomic_load(&stage->phase) < phase && !atomic_load(&stage->paused)) {
        if (now_ns() > until) {
            stage_blame("the victim is stuck");
            return;
        }
        nap_us(20);
    }
}

/* Lets the victim continue to its end; returns whether it was paused. */
static bool go_on(void)
{
    bool was_paused = atomic_load(&stage->paused);

    atomic_store(&stage->go, 1);
    atomic_store(&stage->paused, 0);
    await_phase(3);
    return was_paused;
}

static void end(pid_t victim)
{
    int status = 0;

    atomic_store(&stage->go, 2);
    waitpid(victim, &status, 0);
    if (status)
        stage_blame("the victim failed by itself");
}

static hf_info *inspect(const char *name)
{
    hf_info *info = NULL;

    if (hf_inspect(here.client, name, HF_CSTRING, &info, NULL))
        stage_blame("inspect");
    return info;
}

/* Returns the holder's pid; stores in *is_leased whether its hold has a
 * lease. */
static pid_t holder_of(const char *name, bool *is_leased)
{
    hf_info *info = inspect(name);
    pid_t pid = 0;

    if (info && info->holders_len) {
        pid = (pid_t)info->holders[0].pid;
        *is_leased = info->holders[0].left_ms >= 0;
    }
    hf_info_free(info);
    return pid;
}

static bool is_waited_for(const char *name)
{
    hf_info *info = inspect(name);
    bool is = info && info->waiters_len;

    hf_info_free(info);
    return is;
}

/* The waiter was not notified, so signals make it poll until it has the
 * lock. */
static void waiter_looks_and_has_it(void)
{
    int64_t until = now_ns() + LONG_MS * 1000000LL;
    struct answer a = {-1, 0, 0, ""};

    do
        kill(waiter.pid, SIGUSR2);
    while (!actor_hear(&waiter, &a, 1) && now_ns() < until);
    if (a.rc)
        stage_blame("the waiter did not get the lock");
}

static void waiter_waits_for_another(void)
{
    actor_tell(&waiter, 'm', LONG_MS, LEASE_MS);
    if (!WAIT_FOR_MS(is_waited_for("y"), LONG_MS))
        stage_blame("the waiter does not wait for another name");
}

/* The waiter gets the lock "x" while the victim is paused. Before the victim
 * continues, the waiter also waits for "y", with a lease. The victim must not
 * write that lease into the hold of "x". */
static bool hand_over_to_one_who_goes_on(const void *scenario, int n)
{
    pid_t pid = begin(hand_over, n);
    bool is_leased = false, was_paused, has_it = false;
    struct answer a = {-1, 0, 0, ""};

    (void)scenario;
    await_phase(1);
    actor_tell(&waiter, 'a', LONG_MS, 0);
    await_queue(1, 0);
    atomic_store(&stage->phase, 2);
    await_phase(3);
    if (atomic_load(&stage->paused) &&
        holder_of("x", &is_leased) == waiter.pid) {
        has_it = true;
        waiter_looks_and_has_it();
        waiter_waits_for_another();
        hands++;
    }
    was_paused = go_on();
    if (!has_it && (!actor_hear(&waiter, &a, LONG_MS) || a.rc))
        stage_blame("the waiter is stuck");
    if (holder_of("x", &is_leased) != waiter.pid)
        stage_blame("the waiter does not hold it");
    if (is_leased)
        stage_blame("the waiter holds it with the lease of another wait");
    if (has_it) {
        actor_ask(&holder, 'n', 0, 0);
        if (!actor_hear(&waiter, &a, LONG_MS) || a.rc)
            stage_blame("the waiter is stuck with another name");
        actor_ask(&waiter, 'n', 0, 0);
        actor_ask(&holder, 'm', LONG_MS, 0);
    }
    actor_ask(&waiter, 'r', 0, 0);
    end(pid);
    return was_paused;
}

static void check_permits(void)
{
    uint32_t high = atomic_load(&stage_file->header.names_high);
    char text[60];

    for (uint32_t i = 0; i < high % (SHM_NAMES + 1); i++) {
        unsigned used = shm_used(atomic_load(&stage_file->entry[i].word));

        snprintf(text, sizeof(text), "%c is not held, but %u permits are used",
                 stage_file->entry[i].name[0], used);
        if (atomic_load(&stage_file->hash[i]) && used)
            stage_blame(text);
    }
}

/* Returns the cell of this process, which uses only one: for its hold of
 * "x". */
static unsigned cell_of(pid_t pid)
{
    for (unsigned i = 0; i < SHM_CELLS; i++) {
        uint32_t slot = atomic_load(&stage_file->cell[i].owner) & SHM_SLOT_MASK;

        if (slot && atomic_load(&stage_file->slot[slot].pid) == (uint32_t)pid)
            return i;
    }
    stage_blame("the holder has no cell");
    return 0;
}

static bool is_of_prober(unsigned cell)
{
    uint32_t slot = atomic_load(&stage_file->cell[cell].owner) & SHM_SLOT_MASK;

    return atomic_load(&stage_file->slot[slot].pid) == (uint32_t)prober.pid;
}

/* The holder closes its client, and the prober acquires some permits of "y".
 * Adds 1 to `hands` if one of the prober's cells is now the cell that the
 * holder had. The word of "x" names the waiter's cell. */
static void holder_leaves_its_cell_to_prober(void)
{
    unsigned cell = cell_of(holder.pid);

    actor_end(&holder, 0);
    actor_ask(&prober, 'm', 0, 0);
    actor_ask(&prober, 'm', 0, 0);
    if (is_of_prober(cell))
        hands++;
}

static bool break_what_has_changed_hands(const void *scenario, int n)
{
    bool was_paused;
    pid_t pid;

    (void)scenario;
    actor_begin(&holder, HOLDER);
    actor_ask(&holder, 'a', 0, 0);
    actor_ask(&waiter, 'a', 0, 0); /* now the word names the waiter's cell */
    actor_ask(&prober, 'm', 0, 0);
    pid = begin(break_it, n);
    await_phase(3);
    if (atomic_load(&stage->paused))
        holder_leaves_its_cell_to_prober();
    was_paused = go_on();
    if (holder.pid)
        actor_end(&holder, 0);
    actor_tell(&waiter, 'r', 0, 0);
    actor_hear(&waiter, &(struct answer){0}, LONG_MS); /* may fail, because its
                                                          hold was broken */
    actor_ask(&prober, 'n', 0, 0);
    check_permits();
    actor_ask(&prober, 'a', 0, 0); /* fails if any permits are still taken */
    actor_ask(&prober, 'r', 0, 0);
    end(pid);
    return was_paused;
}

static void walk(bool (*run)(const void *, int), const char *what)
{
    int faults = 0, pauses;

    hands = 0;
    pauses = stage_walk(
        &(struct stage_walk){.name = what, .run = run, .once = true}, &faults);
    all_pauses += pauses;
    if (!hands)
        faults++; /* unless a cell changes hands, nothing is tested */
    stage_case(faults,
               "%s, %s: paused at each of %d steps, %d cells changed "
               "hands",
               what, stage_cast->name, pauses, hands);
}

static void play(const struct stage_cast *cast, bool (*run)(const void *, int),
                 const char *what)
{
    stage_cast = cast;
    actor_begin(&prober, PROBER); /* the actors must begin in the order in which
                                     they use cells */
    if (cast->kind == HF_MUTEX) {
        actor_begin(&holder, HOLDER);
        actor_ask(&holder, 'm', 0, 0);
    }
    actor_begin(&waiter, WAITER);
    if (sit(&here, PROBER, NULL))
        stage_blame("open");
    stage_map();
    walk(run, what);
    stand_up(&here);
    actors_end();
}

static const struct stage_cast *cast_of(const char *kind, const char *name)
{
    const struct stage_cast *cast = NULL;

    while ((cast = stage_next_cast(kind, cast)) && strcmp(cast->name, name))
        ;
    return cast;
}

int main(void)
{
    stage_build("shm_hands");
    stage_at_point = stage_pause;
    play(cast_of("mutex", "fair"), hand_over_to_one_who_goes_on,
         "hand over to one who goes on");
    play(cast_of("semaphore", "1 of 5 each"), break_what_has_changed_hands,
         "break");
    return stage_end(all_pauses, "pauses");
}
