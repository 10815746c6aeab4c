/*
 * The words that the locks of these tests protect, in a file that every process
 * maps; Region.java, redispy.py, region.go and region.js have the same layout.
 * The words show, independently of the libraries, whether two processes were
 * inside at once. A process that enters must find no owner, and must find
 * itself as owner when it leaves. The count of entries is read, kept for a
 * while and written back, so that an overlap loses an entry.
 */
#ifndef INTEROP_REGION_H
#define INTEROP_REGION_H

#include <stdbool.h>
#include <stdint.h>

struct region_words {
    int64_t owner;   /* the exclusive owner, or 0 if there is none */
    int64_t entries; /* exclusive entries; only the owner writes this */
    int64_t token;   /* the last token; only the owner writes this */
    int64_t inside;  /* the number of those who share the region now; atomic */
    int64_t shared;  /* shared entries, or count-downs of a latch; atomic */
    int64_t spare[3];
};

struct region {
    volatile struct region_words *words;
    int64_t me;
    int64_t total;   /* entries of all processes together */
    int64_t stay_us; /* the time inside */
    int64_t limit;   /* how many processes may share the region, or 0 for any
                        number */
    uint64_t entered, overlaps, stale;
};

bool region_open(struct region *, const char *file);
void region_close(struct region *);
/* Each of these functions enters the region once and returns true, or returns
 * false without entering if there have been enough entries. A token of 0 means
 * that there is none; `stale` counts tokens that do not exceed the one
 * before. */
bool region_exclusive(struct region *, uint64_t token);
bool region_shared(struct region *);

/* These are for a latch that `limit` processes count down and wait for, round
 * by round. A process calls region_down() before it counts down, and
 * region_pass() after its wait. region_pass() counts an overlap unless all
 * processes have counted down in this round, and not all have done so in the
 * next round. */
void region_down(struct region *);
void region_pass(struct region *, int64_t round);

int64_t region_now_us(void);

#endif
