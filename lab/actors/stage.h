/*
 * Actors: processes that a scenario leads from step to step, so that the
 * intended failure happens in every run. An actor pauses at each step that it
 * names until the scenario lets it continue. It may be killed or stopped at a
 * step.
 *
 * The scenario calls the functions up to stage_rest(). They die if an actor
 * fails, or ends when it should not. The actor itself calls the other
 * functions.
 *
 *     static void holder(void *arg)      // in a process of its own
 *     {
 *         ... acquire ...
 *         actor_holds("");
 *         actor_step("compared");        // pauses here
 *         actor_lets_go();
 *         ... delete ...
 *     }
 *
 *     struct stage *stage = stage_new(lab);
 *     struct actor *a = stage_enter(stage, "A", holder, &plan);
 *     actor_until(a, "compared");
 *     actor_go(a);
 *     actor_end(a);
 *     stage_close(stage, row);           // the timeline goes to the row
 */
#ifndef HF_LAB_STAGE_H
#define HF_LAB_STAGE_H

#include "../runner/report.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

struct stage;
struct actor;

enum { STAGE_ACTORS = 16, ACTOR_VALUES = 8 };

/* Creates a stage, which stage_close() frees. */
struct stage *stage_new(struct lab *lab);
/* Forks an actor, which calls play() with its own copy of arg. */
struct actor *stage_enter(struct stage *stage, const char *name,
                          void (*play)(void *arg), void *arg);
/* Waits until the actor pauses at that step. Dies if the actor pauses at
 * another step, or does not reach the step within two minutes, which means a
 * defect. */
void actor_until(struct actor *actor, const char *step);
/* Returns whether the actor reaches the step within ms milliseconds. Unlike
 * actor_until(), does not die if the time has passed. */
bool actor_comes(struct actor *actor, const char *step, int64_t ms);
/* Lets the actor continue from the step at which it pauses. */
void actor_go(struct actor *actor);
/* Lets the actor continue to its end. The actor must not pause again. */
void actor_end(struct actor *actor);
void actor_kill(struct actor *actor); /* SIGKILL; it is dead on return */
void actor_stop(struct actor *actor); /* SIGSTOP; it is stopped on return */
/* SIGCONT, after actor_stop(). */
void actor_continue(struct actor *actor);
/* Returns the value that the actor reported, or 0. */
int64_t actor_value(const struct actor *actor, unsigned i);
/* Returns the longest time in ms for which the machine or the runner stalled
 * while the scenario waited for an actor. After a long stall, a row that
 * measures a time, or needs a renewal to be on time, proves nothing. */
int64_t stage_stood_ms(const struct stage *stage);
/* Kills the remaining actors, and frees the stage. Copies the spans and marks
 * of all actors to the row, unless row is NULL. */
void stage_close(struct stage *stage, struct lab_row *row);

/* Mark in the timeline of the row what happens to a server, now or at the time
 * `at'. */
void stage_mark(struct lab_row *row, const char *server, const char *label);
void stage_mark_at(struct lab_row *row, const char *server, const char *label,
                   int64_t at); /* a time of lab_now() */
/* Waits for a moment, so that spans become visible in the timeline. */
void stage_rest(struct lab *lab, int64_t ms);

void actor_step(const char *step); /* reports the step, and pauses */
/* Begin a span: from now on the actor believes that it holds the lock by itself
 * (actor_holds) or together with others (actor_shares), or it waits
 * (actor_waits). The span lasts until actor_lets_go() or the actor's end. */
void actor_holds(const char *label);
void actor_shares(const char *label);
void actor_waits(const char *label);
/* Ends the latest span that still lasts. Call it before the release, because
 * another actor may have the lock before the release returns. */
void actor_lets_go(void);
void actor_let_go_at(int64_t at); /* ends the latest span at an earlier time */
/* Marks this moment in the timeline; `bad' if something goes wrong. */
void actor_mark(bool bad, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets the value that the scenario reads by actor_value(). */
void actor_report(unsigned i, int64_t value);

#endif
