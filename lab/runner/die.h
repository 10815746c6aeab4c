/*
 * The one way out. Nothing in the lab has to clean up (cleanup.h): whatever
 * fails calls lab_die(), in the runner, and in actors and workers, which leave
 * their last words in memory that they share with the runner.
 */
#ifndef HF_LAB_DIE_H
#define HF_LAB_DIE_H

#include <stdatomic.h>
#include <sys/types.h>

struct lab;

/* In the runner: says the text, ends with that exit status (enum cli_exit). In
 * an actor or worker: the runner does. */
void lab_die(int status, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

enum { DIE_TEXT_MAX = 1024 };

/* Where an actor or worker leaves its last words, in shared memory. */
struct die_words {
    _Atomic int status; /* 0: it lives */
    char text[DIE_TEXT_MAX];
};

/* In a new actor or worker, whose parent is the runner: it dies with that, and
 * lab_die() leaves its text there. */
void die_in_child(struct die_words *words, pid_t parent);
/* In the runner: dies as the child said, or as its wait status says. */
_Noreturn void die_of_child(const struct die_words *words, const char *who,
                            int wait_status);
/* In the runner: ends it, with what there is so far; the supervisor says that
 * it was interrupted. */
_Noreturn void die_by_signal(int number);

enum { DIE_NAME_MAX = 64 };

/* In the runner, once: before it dies, finish() prints what there is and writes
 * into name what runs, such as "lab crash". number: of the signal that ends it,
 * or 0. */
void die_set_finish(void (*finish)(struct lab *lab, int number,
                                   char name[DIE_NAME_MAX]),
                    struct lab *lab);

#endif
