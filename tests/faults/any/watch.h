/* Watches under faults: what every server that tells of changes must do. Each
 * case changes the world's lock "n", through a client of its own. */
#ifndef ANY_WATCH_H
#define ANY_WATCH_H

#include "../../lib/world.h"

struct seen {
    hf_client *client;
    hf_watch *watch;
    unsigned calls;
    char name[64]; /* of the last call */
};

/* Watches that name, or prefix, through the i-th client. The watch ends with
 * the case. */
void watch(struct world *, size_t i, const char *name, unsigned flags,
           struct seen *);
/* hf_watch_new() is refused, with that code and word. */
void watch_is_refused(struct world *, hf_client *, const char *name,
                      unsigned flags, int code, const char *word);
/* Dispatches: has it been called since then? */
bool is_seen(const struct seen *, unsigned before);
/* A change by that lock's client is heard, until nothing is under way. */
void hears(struct world *, struct seen *, hf_lock *);
/* Watches "n" through the first client until the lock is taken; how often it
 * was called. */
unsigned watch_taken(struct world *, struct seen *, hf_lock *);

/* Watches the same name again and again, every other time with these flags.
 * Late events of a freed watch reach no watch. */
void watch_again_and_again(struct world *, unsigned other_flags);

#endif
