/*
 * What the actors of several scenarios do: take a lock with holdfast, or by
 * hand on Redis. The functions hold_...() and hand_...() run in an actor. Every
 * function dies if it fails.
 */
#ifndef HF_LAB_ACTOR_LOCKS_H
#define HF_LAB_ACTOR_LOCKS_H

#include "../runner/place.h"
#include "../servers/redis.h"

#include <holdfast.h>
#include <stdbool.h>

struct lab;

/* A lease that outlasts any run, for an actor whose hold must not end by itself
 * even if the machine stands still. */
enum { ACTOR_LOCK_LONG_MS = 60000 };

/* A lock name that this run has not used yet: "...-WORD-3". */
void actor_lock_name(const struct lab *lab, const char *word, char out[96]);

struct hold {
    hf_client *client;
    hf_lock *lock;
};

struct grant {
    uint64_t token;
    int64_t deadline; /* CLOCK_BOOTTIME, ns; HF_NO_DEADLINE */
};

/* The TTL that was given to hold_open(), or what the server made of it:
 * ZooKeeper lengthens sessions that are too short for it. */
int64_t grant_ttl_ms(const struct grant *grant, int64_t ttl_ms);

/* ttl_ms 0: the default of 30 s. */
struct hold hold_open(const struct lab_place *place, const char *name,
                      int64_t ttl_ms);
/* Waits for the lock. With lease_ms 0 the hold is renewed. Draws the spans. */
struct grant hold_take(const struct hold *hold, int64_t lease_ms,
                       const char *label);
/* Takes the lock if it is free. True: it was taken. Draws the span. */
bool hold_try(const struct hold *hold);
/* Tries, and keeps nothing. True: another client has the lock. It proves that
 * an actor is kept out: one that has not tried is out as well. */
bool hold_is_busy(const struct hold *hold);
/* Returns HF_OK, HF_ELOST or HF_ENOTOWNER. Ends the span. */
int hold_release(const struct hold *hold);
/* Ends the span at the deadline (grant.deadline), as holdfast has said. */
void hold_ended(int64_t deadline);
/* Frees the lock and closes the client. */
void hold_close(struct hold *hold);

/* Repeats SET NX PX until the lock is free, as the documents do. Draws the
 * spans. */
void hand_take(redisContext *redis, const char *key, const char *who,
               int64_t ttl_ms);
/* One SET NX PX. True: it was taken. Draws the span. */
bool hand_try(redisContext *redis, const char *key, const char *who,
              int64_t ttl_ms);
/* Like hold_is_busy(). */
bool hand_is_busy(redisContext *redis, const char *key, const char *who);
/* Does the key have that value now? */
bool hand_owns(redisContext *redis, const char *key, const char *who);

/* What they compete for. */
struct contest {
    const struct lab_place *place;
    char name[96];
};

/* What they report. */
enum {
    B_IN_AT = 0, /* CLOCK_BOOTTIME, ns */
    B_KEPT,      /* the lock was not taken from it before its end */
    C_IN = 0,    /* C entered */
};

/* B waits for the lock ("in") and keeps it until its end. C tries once
 * ("tried"). arg is a struct contest. */
void hold_b(void *arg);
void hold_c(void *arg);
void hand_b(void *arg);
void hand_c(void *arg);

/* The Redis for what is done by hand. NULL: there is none, and the strategy was
 * not requested by name. */
const struct lab_place *actor_lock_redis(struct lab *lab, const char *strategy);

#endif
