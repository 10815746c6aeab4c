/* What the two processes of shm_flips share: the worker, which flips bits and
 * uses the file, and the process that watches the worker. */
#ifndef SHM_FLIPS_H
#define SHM_FLIPS_H

#include "../../lib/canary.h"
#include "../../lib/options.h"
#include "../../lib/wait.h"
#include "backends/shm/layout.h"

#include <holdfast.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The worker's progress, which the other process watches. */
struct flips_note {
    _Atomic uint64_t calls; /* number of calls that have returned */
    _Atomic uint32_t next;  /* number of the trial */
    _Atomic uint64_t offset;
    _Atomic int bit;
    char fault[200]; /* why the worker has ended itself */
};

extern struct canary flips_canary;
extern struct flips_note *flips_note;
extern struct shm_file *flips_file;
extern char flips_url[120];

/* Limits of calls, in ms; each call may take a second longer. */
enum { OPEN_MS = 100, WAIT_MS = 20, TABLES_MS = 500, CALL_MS = 0 };
enum { FLIPS = 100 };

enum { FLIPS_LATE = 3 }; /* a worker's exit status: a call took too long */

/* Evaluates the call. If it took too long, this process exits. */
#define WITHIN(ms, call)                                                       \
    ({                                                                         \
        int64_t within_then = wait_now();                                      \
        int within_rc = (call);                                                \
                                                                               \
        flips_call_ended(within_then, ms, #call);                              \
        within_rc;                                                             \
    })
void flips_call_ended(int64_t then, int limit_ms, const char *call);
void flips_begin(void); /* begins a trial on this thread; other threads call
                           flips_thread_begins() */
void flips_thread_begins(void);
void flips_bit(size_t offset, int bit);

enum { FAIR, UNFAIR, RWLOCK, SEMAPHORE, LOCKS };

/* A client and its handles; what could not be created is NULL. */
struct party {
    hf_client *client;
    hf_lock *lock[LOCKS];
    hf_latch *latch;
};

void party_come(struct party *);
void party_try(struct party *, int64_t wait_ms, int64_t lease_ms);
void party_look(struct party *);
void party_go(struct party *);

/* The targets of single flips: the regions of the file that a trial uses. */
unsigned scene_regions(void);
const char *scene_region_name(unsigned region);
size_t scene_region_len(unsigned region);
void scene_play(unsigned region, size_t bit);

/* Flips FLIPS random bits while several threads use the file. */
void storm_play(uint64_t seed);

#endif
