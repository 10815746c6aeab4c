/*
 * What the locks protect in these tests: words in a file that all processes
 * map, whatever they are written in (redisson/Region.java and redispy.py have
 * the same). It tells whether two were inside at once without asking either
 * library: who enters finds no owner, who leaves finds himself; and the count
 * of entries is read, kept for a while, and written back, so that every
 * overlap loses one.
 */
#ifndef INTEROP_REGION_H
#define INTEROP_REGION_H

#include <stdbool.h>
#include <stdint.h>

struct region_words {
    int64_t owner;   /* who is alone inside; 0: nobody */
    int64_t entries; /* of those who were alone; written by them only */
    int64_t token;   /* the highest so far; the same */
    int64_t inside;  /* how many are inside together; atomic */
    int64_t shared;  /* entries of those, or times a latch was counted down;
                        atomic */
    int64_t spare[3];
};

struct region {
    volatile struct region_words *words;
    int64_t me;
    int64_t total;   /* entries, of all processes together */
    int64_t stay_us; /* how long one is inside */
    int64_t limit;   /* how many may be inside together; 0: any number */
    uint64_t entered, overlaps, stale;
};

bool region_open(struct region *, const char *file);
void region_close(struct region *);
/* Both: false, and nothing done, when there were enough. A token of 0 is
 * none; stale counts those that are not above the one before. */
bool region_exclusive(struct region *, uint64_t token);
bool region_shared(struct region *);

/* A latch, round by round, that limit processes count down and wait for: who
 * counts says so before, and who goes on must find that all had, and nobody
 * in the next round but one. */
void region_down(struct region *);
void region_pass(struct region *, int64_t round);

int64_t region_now_us(void);

#endif
