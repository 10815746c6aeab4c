/*
 * The single exit path. A function of the lab that fails calls lab_die() and
 * does not clean up, because cleanup processes do (cleanup.h). lab_die() ends
 * the runner. In an actor or worker it leaves its message in memory that is
 * shared with the runner.
 */
#ifndef HF_LAB_DIE_H
#define HF_LAB_DIE_H

#include <stdatomic.h>
#include <sys/types.h>

struct lab;

/* In the runner: prints the message, and exits with that status (enum
 * cli_exit). In an actor or worker: makes the runner do so. */
void lab_die(int status, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

enum { DIE_TEXT_MAX = 1024 };

/* Where an actor or worker leaves its last message, in shared memory. */
struct die_words {
    _Atomic int status; /* 0 until the actor or worker calls lab_die() */
    char text[DIE_TEXT_MAX];
};

/* Called in a new actor or worker, whose parent is the runner: makes it die
 * with the runner, and makes lab_die() leave its message in `words'. */
void die_in_child(struct die_words *words, pid_t parent);
/* In the runner: dies with the message of the child, or, if there is none, with
 * a message about its wait status. `who' names the child. */
_Noreturn void die_of_child(const struct die_words *words, const char *who,
                            int wait_status);
/* In the runner: prints the results so far and exits with 128 + number. The
 * supervisor prints that the run was interrupted. */
_Noreturn void die_by_signal(int number);

enum { DIE_NAME_MAX = 64 };

/* In the runner, once: sets finish(), which the runner calls before it dies.
 * finish() prints the results so far, and writes the name of what runs, such as
 * "lab crash", to `name'. Its `number' is the signal that ends the runner, or
 * 0. */
void die_set_finish(void (*finish)(struct lab *lab, int number,
                                   char name[DIE_NAME_MAX]),
                    struct lab *lab);

#endif
