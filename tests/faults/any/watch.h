/* Watches during faults, for every server that reports changes. The cases
 * change the world's lock "n" through another client. */
#ifndef ANY_WATCH_H
#define ANY_WATCH_H

#include "../../lib/world.h"

struct seen {
    hf_client *client;
    hf_watch *watch;
    unsigned calls;
    char name[64]; /* the name that the last call passed */
};

/* Watches `name` (or that prefix) through the i-th client, until the case
 * ends. */
void watch(struct world *, size_t i, const char *name, unsigned flags,
           struct seen *);
/* Asserts that hf_watch_new() fails with this code, and that its error contains
 * this word. */
void watch_is_refused(struct world *, hf_client *, const char *name,
                      unsigned flags, int code, const char *word);
/* Dispatches; returns whether the watch has been called more than `before`
 * times. */
bool is_seen(const struct seen *, unsigned before);
/* Acquires and releases the lock, and waits until the watch has reported
 * both. */
void hears(struct world *, struct seen *, hf_lock *);
/* Watches "n" through the first client until the lock is taken; returns how
 * often the watch was called. */
unsigned watch_taken(struct world *, struct seen *, hf_lock *);

/* Creates and frees watches of the same name many times, every other one with
 * these flags: late events of a freed watch must not reach a later one. */
void watch_again_and_again(struct world *, unsigned other_flags);

#endif
