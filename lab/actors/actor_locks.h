/*
 * Code that the actors of several scenarios share: they take a lock with
 * holdfast (hold_...()), or by hand on Redis (hand_...()). Except
 * actor_lock_name() and actor_lock_redis(), these functions run in an actor.
 * Every function dies if it fails.
 */
#ifndef HF_LAB_ACTOR_LOCKS_H
#define HF_LAB_ACTOR_LOCKS_H

#include "../runner/place.h"
#include "../servers/redis.h"

#include <holdfast.h>
#include <stdbool.h>

struct lab;

/* A long TTL, in ms, for an actor whose hold must not end by itself even if the
 * machine stalls. */
enum { ACTOR_LOCK_LONG_MS = 60000 };

/* Writes a lock name that this run has not used yet, such as "...-WORD-3". */
void actor_lock_name(const struct lab *lab, const char *word, char out[96]);

struct hold {
    hf_client *client;
    hf_lock *lock;
};

struct grant {
    uint64_t token;
    int64_t deadline; /* CLOCK_BOOTTIME in ns, or HF_NO_DEADLINE */
};

/* Returns the TTL in ms that was granted: ttl_ms, as given to hold_open(), or a
 * longer TTL. For example, ZooKeeper lengthens a session timeout that is below
 * its minimum. */
int64_t grant_ttl_ms(const struct grant *grant, int64_t ttl_ms);

/* Opens a client and a lock, which is not acquired yet. ttl_ms 0 means the
 * default of 30 s. */
struct hold hold_open(const struct lab_place *place, const char *name,
                      int64_t ttl_ms);
/* Waits for the lock and acquires it. With lease_ms 0 the hold is renewed. Adds
 * the spans of the wait and of the hold to the timeline. */
struct grant hold_take(const struct hold *hold, int64_t lease_ms,
                       const char *label);
/* Tries the lock. Returns whether it was acquired; if so, begins the span of
 * the hold. */
bool hold_try(const struct hold *hold);
/* Tries the lock, and releases it at once if it was free. Returns whether
 * another client has it. Only a try that fails proves that the lock keeps an
 * actor out: that an actor is not inside proves nothing, because it may merely
 * be late. */
bool hold_is_busy(const struct hold *hold);
/* Ends the span and releases the lock. Returns HF_OK, HF_ELOST or
 * HF_ENOTOWNER. */
int hold_release(const struct hold *hold);
/* Ends the span at the deadline (grant.deadline) that holdfast reported. */
void hold_ended(int64_t deadline);
/* Frees the lock and closes the client. */
void hold_close(struct hold *hold);

/* Repeats SET NX PX until the lock is free, as the documents (tutorials; see
 * lab/README.md) do. Adds the spans of the wait and of the hold to the
 * timeline. */
void hand_take(redisContext *redis, const char *key, const char *who,
               int64_t ttl_ms);
/* Sends one SET NX PX. Returns whether the lock was taken; if so, begins the
 * span of the hold. */
bool hand_try(redisContext *redis, const char *key, const char *who,
              int64_t ttl_ms);
/* Does the same as hold_is_busy(), by hand. */
bool hand_is_busy(redisContext *redis, const char *key, const char *who);
/* Returns whether the key has the value `who' now. */
bool hand_owns(redisContext *redis, const char *key, const char *who);

/* The lock that B and C compete for. */
struct contest {
    const struct lab_place *place;
    char name[96];
};

/* What B and C report. */
enum {
    B_IN_AT = 0, /* CLOCK_BOOTTIME in ns */
    B_KEPT,      /* B's release found that B still had the lock */
    C_IN = 0,    /* C entered */
};

/* What the actors B and C do; arg is a struct contest. B waits for the lock,
 * pauses at the step "in", and then releases the lock. C tries once, and pauses
 * at the step "tried". */
void hold_b(void *arg);
void hold_c(void *arg);
void hand_b(void *arg);
void hand_c(void *arg);

/* Returns the Redis on which locks are taken by hand, or NULL if there is none.
 * Dies if there is none and the strategy was requested by name. */
const struct lab_place *actor_lock_redis(struct lab *lab, const char *strategy);

#endif
