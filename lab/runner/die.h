/*
 * The one way out. Functions of the lab need not clean up, because cleanup.h
 * does: on a failure they call lab_die(). That ends the runner; actors and
 * workers leave their last words in memory that they share with the runner.
 */
#ifndef HF_LAB_DIE_H
#define HF_LAB_DIE_H

#include <stdatomic.h>
#include <sys/types.h>

struct lab;

/* In the runner: prints the text, and ends with that exit status (enum
 * cli_exit). In an actor or worker: makes the runner do so. */
void lab_die(int status, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

enum { DIE_TEXT_MAX = 1024 };

/* Where an actor or worker leaves its last words, in shared memory. */
struct die_words {
    _Atomic int status; /* 0 while it lives */
    char text[DIE_TEXT_MAX];
};

/* In a new actor or worker, whose parent is the runner: it dies with the
 * runner, and lab_die() leaves its text there. */
void die_in_child(struct die_words *words, pid_t parent);
/* In the runner: dies with the words of the child, or according to its wait
 * status. */
_Noreturn void die_of_child(const struct die_words *words, const char *who,
                            int wait_status);
/* In the runner: ends it with the results so far; the supervisor prints that it
 * was interrupted. */
_Noreturn void die_by_signal(int number);

enum { DIE_NAME_MAX = 64 };

/* In the runner, once. Before the runner dies, finish() prints the results so
 * far and writes into name what runs, such as "lab crash". number: the signal
 * that ends it, or 0. */
void die_set_finish(void (*finish)(struct lab *lab, int number,
                                   char name[DIE_NAME_MAX]),
                    struct lab *lab);

#endif
