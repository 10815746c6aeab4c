/*
 * Kills a process, the victim, at every step, in turn: the n-th of the points
 * in the backend ends the victim, for n = 1, 2, 3 ... until it survives. The
 * victim is killed as holder and as waiter, while it hands the lock over, gives
 * up, takes a dead client's lock, cleans up after that client, creates the
 * file, breaks, asks or renews.
 *
 * The actors `holder` and `waiter` live alongside the victim. Afterwards the
 * waiter and then a third actor, the prober, must get the lock within 100 ms,
 * with rising tokens, and the file must contain only what belongs to the living
 * actors.
 *
 *     shm_points mutex|rwlock|semaphore [scenario [n]]
 */
#include "stage.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct actor dead;

struct scenario {
    const char *name;
    /* Runs in the victim, whose client is open unless `early` is set. */
    void (*victim)(struct seat *);
    /* Run in the parent, prepare() before the victim starts and drive() while
     * it runs. */
    void (*prepare)(void);
    void (*drive)(pid_t victim);
    bool early;        /* the victim itself opens its client */
    bool waiter_waits; /* prepare() or drive() makes the waiter acquire */
    enum excluded {
        VICTIM_AND_WAITER = 1,
        HOLDER_AND_WAITER = 2,
        HOLDER_AND_DEAD = 4,
        VICTIM_WRITES = 8, /* needs a victim that writes */
    } excluded;            /* pairs of roles with which the scenario is
                              impossible if they share the lock */
};

static void v_acquire_release(struct seat *s)
{
    if (!enter(s, 10000, 0, NULL))
        leave(s, NULL);
}

static void await_phase_2(void)
{
    atomic_store(&stage->phase, 1);
    while (atomic_load(&stage->phase) != 2)
        nap_us(20);
}

static void v_acquire_later(struct seat *s)
{
    await_phase_2();
    v_acquire_release(s);
}

static void v_everything(struct seat *s)
{
    if (!sit(s, VICTIM, NULL)) {
        v_acquire_release(s);
        stand_up(s);
    }
}

static void v_open_close(struct seat *s)
{
    if (!sit(s, VICTIM, NULL))
        stand_up(s);
}

static void v_hand_over(struct seat *s)
{
    enter(s, 10000, 0, NULL);
    await_phase_2();
    leave(s, NULL);
}

static void v_give_up(struct seat *s)
{
    if (!enter(s, 5, 0, NULL))
        leave(s, NULL);
}

static void v_give_up_at_grant(struct seat *s)
{
    if (!enter(s, 3, 0, NULL))
        leave(s, NULL);
}

static void v_lease(struct seat *s)
{
    if (enter(s, 10000, 60000, NULL))
        return;
    await_phase_2();
    hf_lock_renew(s->lock, 50000, NULL);
    leave(s, NULL);
}

static void v_break(struct seat *s)
{
    hf_break(s->client, "x", 1, NULL);
}

static void v_ask(struct seat *s)
{
    hf_ask(s->client, "x", 1, NULL);
}

static void v_go_down(struct seat *s)
{
    enter(s, 10000, 0, NULL);
    await_phase_2();
    go_down(s, NULL);
    leave(s, NULL);
}

static void v_close_held(struct seat *s)
{
    enter(s, 10000, 0, NULL);
    await_phase_2();
    stage_nobody_inside();
    hf_close(s->client);
}

static void d_nothing(pid_t victim)
{
    (void)victim;
}

static void p_nothing(void)
{
}

static void p_held(void)
{
    actor_ask(&holder, 'a', 10000, 0);
}

static void await_phase_1(pid_t victim)
{
    while (!atomic_load(&stage->phase) && !has_ended(victim))
        nap_us(20);
}

static void waiter_waits_for(pid_t victim)
{
    await_phase_1(victim);
    actor_tell(&waiter, 'a', 10000, 0);
}

/* The waiter joins the queue while the victim has the lock. */
static void d_wait_for_victim(pid_t victim)
{
    waiter_waits_for(victim);
    if (!has_ended(victim))
        await_settled(1, victim);
    atomic_store(&stage->phase, 2);
}

static void p_another_waiter(void)
{
    actor_begin(&dead, DEAD);
}

/* Two actors join the queue. Both must get the lock after the victim has
 * released it, together or in turn. */
static void d_two_wait_for_victim(pid_t victim)
{
    struct moment since;
    bool is_early;

    waiter_waits_for(victim);
    await_settled(1, victim);
    /* If the victim has ended, the lock is free, and a second actor would race
     * the waiter for it. */
    is_early = has_ended(victim);
    if (!is_early) {
        actor_tell(&dead, 'a', 10000, 0);
        /* The second actor must be in the queue before the lock is free. */
        await_settled(2, victim);
    }
    atomic_store(&stage->phase, 2);
    await_end(victim);
    since = moment_now();
    check_gets_it(&waiter, &since, STAGE_LIMIT_MS, "waiter");
    if (!stage_is_shared(WAITER, DEAD)) {
        actor_ask(&waiter, 'r', 0, 0);
        since = moment_now();
    }
    if (!is_early) {
        check_gets_it(&dead, &since, STAGE_LIMIT_MS, "other waiter");
        actor_ask(&dead, 'r', 0, 0);
    }
    if (stage_is_shared(WAITER, DEAD))
        actor_ask(&waiter, 'r', 0, 0);
    actor_end(&dead, 0);
}

/* The victim joins the queue after the holder, and the waiter after the victim.
 * Then the holder releases. */
static void d_victim_in_front(pid_t victim)
{
    await_queue(1, victim);
    actor_tell(&waiter, 'a', 10000, 0);
    nap_us(500);
    actor_ask(&holder, 'r', 0, 0);
}

static void d_victim_behind(pid_t victim)
{
    struct moment since;

    await_queue(2, victim);
    nap_us(500);
    since = moment_now();
    actor_ask(&holder, 'r', 0, 0);
    check_gets_it(&waiter, &since, STAGE_LIMIT_MS, "waiter");
    actor_ask(&waiter, 'r', 0, 0);
}

static void p_held_and_waited_for(void)
{
    actor_ask(&holder, 'a', 10000, 0);
    actor_tell(&waiter, 'a', 10000, 0);
    await_settled(1, 0);
}

/* The victim gives up, with the waiter after it or before it in the queue. Then
 * the holder releases. */
static void d_gives_up_in_front(pid_t victim)
{
    await_queue(1, victim);
    actor_tell(&waiter, 'a', 10000, 0);
    await_end(victim);
    actor_ask(&holder, 'r', 0, 0);
}

static void d_gives_up_behind(pid_t victim)
{
    await_end(victim);
    actor_ask(&holder, 'r', 0, 0);
}

/* The client that holds the lock is killed, and the victim is the first to
 * notice. */
static void p_dead_holds(void)
{
    actor_begin(&dead, DEAD);
    actor_ask(&dead, 'a', 10000, 0);
}

static void d_kill_the_holder(pid_t victim)
{
    await_queue(1, victim);
    actor_tell(&waiter, 'a', 10000, 0);
    nap_us(500);
    actor_end(&dead, SIGKILL);
}

/* The holder is killed after the victim has opened its client. No actor waits,
 * so none has noticed the death. */
static void d_kill_unnoticed(pid_t victim)
{
    await_phase_1(victim);
    actor_end(&dead, SIGKILL);
    atomic_store(&stage->phase, 2);
}

static void p_dead_held(void)
{
    actor_begin(&dead, DEAD);
    actor_ask(&dead, 'a', 10000, 0);
    actor_end(&dead, SIGKILL);
}

/* A waiter in the middle of the queue is killed; the victim is behind it. */
static void p_dead_waits(void)
{
    p_held();
    actor_begin(&dead, DEAD);
    actor_tell(&dead, 'a', 10000, 0);
    await_queue(1, 0);
}

static void p_dead_waited(void)
{
    p_dead_waits();
    actor_end(&dead, SIGKILL);
}

static void d_kill_the_waiter(pid_t victim)
{
    await_queue(2, victim);
    actor_tell(&waiter, 'a', 10000, 0);
    nap_us(500);
    actor_end(&dead, SIGKILL);
    nap_us(1000);
    actor_ask(&holder, 'r', 0, 0);
}

/* The holder is stopped, its lease ends, and the victim acquires the lock. */
static void p_lease_ends(void)
{
    actor_begin(&dead, DEAD);
    actor_ask(&dead, 'a', 10000, 30);
    kill(dead.pid, SIGSTOP);
}

static void d_lease_ends(pid_t victim)
{
    await_queue(1, victim);
    actor_tell(&waiter, 'a', 10000, 0);
    nap_us(35000);
    actor_end(&dead, SIGKILL);
}

static void p_no_file(void)
{
    actors_end();
    unlink(stage_shm.file);
}

/* Changes the file's namespace from ours to another one, or back. */
static void change_namespace(void)
{
    off_t at = offsetof(struct shm_header, world);
    int fd = open(stage_shm.file, O_RDWR | O_CLOEXEC);
    uint64_t ns = 0;
    bool ok = pread(fd, &ns, sizeof(ns), at) == sizeof(ns);

    ns ^= 1;
    if (!ok || pwrite(fd, &ns, sizeof(ns), at) != sizeof(ns))
        stage_blame("the namespace cannot be changed");
    close(fd);
}

static uint64_t our_namespace;

static void p_other_namespace(void)
{
    our_namespace = stage_file->header.world;
    actors_end();
    change_namespace();
}

static void d_no_file(pid_t victim)
{
    await_end(victim);
    actors_begin();
}

/* If the victim was killed early, the other namespace is still in the file.
 * Restores our namespace then. */
static void d_other_namespace(pid_t victim)
{
    await_end(victim);
    if (stage_file->header.world != our_namespace)
        change_namespace();
    d_no_file(victim);
}

static void d_give_up_race(pid_t victim)
{
    await_queue(1, victim);
    actor_tell(&waiter, 'a', 10000, 0);
    nap_us(2000 + now_ns() % 1000); /* until about the time when the victim
                                       gives up */
    actor_ask(&holder, 'r', 0, 0);
}

static void d_release(pid_t victim)
{
    await_end(victim);
    /* Any answer is right, because the hold may be broken. */
    actor_tell(&holder, 'r', 0, 0);
    actor_hear(&holder, &(struct answer){0}, 5000);
}

static const struct scenario scenarios[] = {
    {"open to close", v_everything, p_nothing, d_nothing, true, false, 0},
    {"make the file", v_everything, p_no_file, d_no_file, true, false, 0},
    {"file of another namespace", v_everything, p_other_namespace,
     d_other_namespace, true, false, 0},
    {"uncontended", v_acquire_release, p_nothing, d_nothing, false, false, 0},
    {"hand over", v_hand_over, p_nothing, d_wait_for_victim, false, true,
     VICTIM_AND_WAITER},
    {"hand over to two", v_hand_over, p_another_waiter, d_two_wait_for_victim,
     false, false, VICTIM_AND_WAITER},
    {"go down", v_go_down, p_nothing, d_wait_for_victim, false, true,
     VICTIM_WRITES},
    {"go down before two", v_go_down, p_another_waiter, d_two_wait_for_victim,
     false, false, VICTIM_WRITES},
    {"wait, first", v_acquire_release, p_held, d_victim_in_front, false, true,
     0},
    {"wait, second", v_acquire_release, p_held_and_waited_for, d_victim_behind,
     false, false, HOLDER_AND_WAITER},
    {"give up, first", v_give_up, p_held, d_gives_up_in_front, false, true, 0},
    {"give up, second", v_give_up, p_held_and_waited_for, d_gives_up_behind,
     false, true, HOLDER_AND_WAITER},
    {"give up at the grant", v_give_up_at_grant, p_held, d_give_up_race, false,
     true, 0},
    {"holder dies", v_acquire_release, p_dead_holds, d_kill_the_holder, false,
     true, 0},
    {"holder is dead", v_acquire_later, p_dead_holds, d_kill_unnoticed, false,
     false, 0},
    {"open beside the dead", v_everything, p_dead_held, d_nothing, true, false,
     0},
    {"open beside a dead waiter", v_open_close, p_dead_waited, d_release, true,
     false, HOLDER_AND_DEAD},
    {"one before it dies", v_acquire_release, p_dead_waits, d_kill_the_waiter,
     false, true, HOLDER_AND_DEAD},
    {"lease", v_lease, p_nothing, d_wait_for_victim, false, true,
     VICTIM_AND_WAITER},
    {"lease ends", v_acquire_release, p_lease_ends, d_lease_ends, false, true,
     0},
    {"break", v_break, p_held_and_waited_for, d_release, false, true,
     HOLDER_AND_WAITER},
    {"ask", v_ask, p_held_and_waited_for, d_release, false, true,
     HOLDER_AND_WAITER},
    {"close while held", v_close_held, p_nothing, d_wait_for_victim, false,
     true, VICTIM_AND_WAITER},
};

/* Returns whether the scenario is possible with this cast. */
static bool is_playable(const struct scenario *sc)
{
    if ((sc->excluded & VICTIM_AND_WAITER) && stage_is_shared(VICTIM, WAITER))
        return false;
    if ((sc->excluded & HOLDER_AND_WAITER) && stage_is_shared(HOLDER, WAITER))
        return false;
    if ((sc->excluded & HOLDER_AND_DEAD) && stage_is_shared(HOLDER, DEAD))
        return false;
    return !(sc->excluded & VICTIM_WRITES) ||
           (stage_cast->kind == HF_RWLOCK &&
            stage_permits(VICTIM) == stage_cast->size);
}

/* Checks the waiter, then the prober and then the file. */
static void aftermath(const struct scenario *sc)
{
    /* If a client is killed while it breaks a lock, other clients may not be
     * notified of the change. They then notice it at their next poll. */
    int limit = sc->victim == v_break ? 2500 : STAGE_LIMIT_MS;
    struct moment since = moment_now();

    if (sc->waiter_waits) {
        check_gets_it(&waiter, &since, limit, "waiter");
        actor_ask(&waiter, 'r', 0, 0);
    }
    since = moment_now();
    actor_tell(&prober, 'a', 10000, 0);
    check_gets_it(&prober, &since, STAGE_LIMIT_MS, "prober");
    actor_ask(&prober, 'r', 0, 0);
    actor_ask(&prober, 'o', 0, 0); /* opening cleans up after dead clients */
    check_leaks(3);
}

/* Runs the scenario; returns false if the victim survived. */
static bool run(const void *scenario, int n)
{
    const struct scenario *sc = scenario;
    bool was_killed;
    pid_t pid;

    sc->prepare();
    pid = victim_begin(sc->victim, !sc->early, n);
    sc->drive(pid);
    was_killed = victim_was_killed(pid);
    aftermath(sc);
    if (atomic_load(&stage->overlaps) && sc->victim != v_break &&
        sc->prepare != p_lease_ends)
        stage_blame("two held it at once");
    return was_killed;
}

static void run_all(const struct stage_cast *cast, const char *only, int n,
                    int *kills)
{
    stage_cast = cast;
    actors_begin();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if ((!only || !strcmp(only, scenarios[i].name)) &&
            is_playable(&scenarios[i]))
            *kills +=
                stage_kill_at_each(scenarios[i].name, n, run, &scenarios[i]);
    actors_end();
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "mutex";
    const char *only = argc > 2 ? argv[2] : NULL;
    const struct stage_cast *cast = NULL;
    int n = argc > 3 ? atoi(argv[3]) : 0, kills = 0;

    stage_build("shm_points");
    while ((cast = stage_next_cast(kind, cast)))
        run_all(cast, only, n, &kills);
    return stage_end(kills, "kills");
}
