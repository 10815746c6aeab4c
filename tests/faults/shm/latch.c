/*
 * Kills a process at every step of what it does with a latch, in turn (see
 * points.c): setting, counting down, waiting, breaking, closing. Afterwards the
 * latch has either been changed or not; other clients can count it down, and
 * the waiter returns.
 */
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A limit for waiters that poll: if the client that brings the count to 0 is
 * killed before it has woken all waiters, the rest return at their next poll.
 */
enum { REPEAT_MS = 2500 };

static void v_set(struct seat *s)
{
    hf_latch_set(s->latch, 2, NULL);
}

static void v_count_down(struct seat *s)
{
    hf_latch_down(s->latch, NULL, NULL);
    hf_latch_down(s->latch, NULL, NULL);
}

static void v_wait(struct seat *s)
{
    enter(s, 10000, 0, NULL);
}

static void v_give_up(struct seat *s)
{
    enter(s, 5, 0, NULL);
}

static void v_break(struct seat *s)
{
    hf_break(s->client, "x", 1, NULL);
}

static void v_close(struct seat *s)
{
    stand_up(s);
}

static const struct scenario {
    const char *name;
    void (*victim)(struct seat *);
    int set;             /* the count that the holder sets */
    bool waits;          /* the holder counts the latch down while the victim
                            waits */
    int low, high, step; /* possible counts afterwards: low to high, by step */
    int after;           /* the count afterwards if the victim survives */
    int limit_ms;        /* limit for the waiter if the count is 0 */
} scenarios[] = {
    {"set", v_set, 0, false, 0, 2, 2, 2, STAGE_LIMIT_MS},
    {"count down", v_count_down, 2, false, 0, 2, 1, 0, REPEAT_MS},
    {"count down, not to 0", v_count_down, 3, false, 1, 3, 1, 1,
     STAGE_LIMIT_MS},
    {"wait", v_wait, 1, true, 0, 0, 1, 0, STAGE_LIMIT_MS},
    {"give up", v_give_up, 1, false, 1, 1, 1, 1, STAGE_LIMIT_MS},
    {"break", v_break, 2, false, 0, 2, 2, 0, REPEAT_MS},
    {"close", v_close, 1, false, 1, 1, 1, 1, STAGE_LIMIT_MS},
};

static int left(void)
{
    return (int)shm_left(atomic_load(&stage_file->entry[0].word));
}

/* Checks the count, counts down what is left, and expects the waiter to
 * return. */
static void aftermath(const struct scenario *sc, bool was_killed)
{
    struct moment since = moment_now();
    int limit = left() ? STAGE_LIMIT_MS : sc->limit_ms;

    if (left() < sc->low || left() > sc->high ||
        (left() - sc->low) % sc->step || (!was_killed && left() != sc->after))
        stage_blame("the count is wrong");
    while (left())
        actor_ask(&prober, 'd', 0, 0);
    if (sc->set)
        check_gets_it(&waiter, &since, limit, "waiter");
    actor_ask(&prober, 'a', 0, 0);
    actor_ask(&prober, 'o', 0, 0); /* opening cleans up after dead clients */
    check_leaks(3);
}

/* Runs the scenario; returns false if the victim survived. */
static bool run(const void *scenario, int n)
{
    const struct scenario *sc = scenario;
    bool was_killed;
    pid_t pid;

    if (sc->set) {
        actor_ask(&holder, 's', 0, sc->set);
        actor_tell(&waiter, 'a', 10000, 0);
        await_queue(1, 0);
    }
    pid = victim_begin(sc->victim, true, n);
    if (sc->waits) {
        await_queue(2, pid);
        actor_ask(&holder, 'd', 0, 0);
    }
    was_killed = victim_was_killed(pid);
    aftermath(sc, was_killed);
    return was_killed;
}

int main(void)
{
    int kills = 0;

    stage_build("shm_latch");
    stage_cast = stage_next_cast("latch", NULL);
    actors_begin();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        kills += stage_kill_at_each(scenarios[i].name, 0, run, &scenarios[i]);
    actors_end();
    return stage_end(kills, "kills");
}
