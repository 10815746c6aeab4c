/*
 * The scripts that run at the server. lua/assemble.py makes scripts.c from the
 * files of lua/ and the numbers defined here; lua/README.md describes both. A
 * script is called by its digest (EVALSHA), or sent as text (EVAL) if the
 * server does not know it. Older clients run the same scripts on the same keys,
 * so a script and these numbers must not change by accident: unit-redis-reply
 * has the digests.
 */
#ifndef HF_REDIS_SCRIPTS_H
#define HF_REDIS_SCRIPTS_H

#include "keys.h"

/*
 * Safety polls, in case a message was lost. The first waiters in the queue and
 * the last ones poll after RD_POLL_MS, minus a random part, so a free lock is
 * taken within 2 s. Why the last ones: several hand-overs in a row may remove
 * the first waiters before the next ones learn that they are first. The last
 * waiters are reached last, and have known since they came that they must poll.
 * The waiters between poll at random times, the less often the more there are,
 * up to RD_POLL_MAX_MS. All poll when the holder's lease ends (lock.c).
 */
#define RD_POLL_FIRST 4
#define RD_POLL_LAST 4
#define RD_POLL_MS 1900
#define RD_POLL_JITTER 6 /* a sixth */
#define RD_POLL_EACH_MS 300
#define RD_POLL_MAX_MS 50000
/* A waiter whose poll is overdue by this much is dead or stopped. Only the
 * first waiters are checked for that; others are checked when they are rung. */
#define RD_LATE_MS 1100
#define RD_ALIVE_MS 3000 /* RD_POLL_MS + RD_LATE_MS */
/* The queues are kept at the server for this time after the last poll. */
#define RD_KEEP_MS 60000

enum rd_script {
    RD_TAKE,
    RD_DROP,
    RD_LEAVE,
    RD_TAKE_FAIR,
    RD_DROP_FAIR,
    RD_LEAVE_FAIR,
    RD_RENEW,
    RD_INSPECT,
    RD_LIST,
    RD_BREAK,
    RD_TAKE_RW,
    RD_DROP_RW,
    RD_LEAVE_RW,
    RD_RENEW_RW,
    RD_DOWNGRADE,
    RD_INSPECT_RW,
    RD_BREAK_RW,
    RD_TAKE_SEM,
    RD_DROP_SEM,
    RD_LEAVE_SEM,
    RD_RENEW_SEM,
    RD_INSPECT_STRING, /* a semaphore or a latch */
    RD_BREAK_STRING,
    RD_WAIT_LATCH,
    RD_LATCH,
    RD_ASK,
    RD_PROVE,
    RD_TAKE_S, /* the string dialect */
    RD_DROP_S,
    RD_LEAVE_S,
    RD_RENEW_S,
    RD_INSPECT_S,
    RD_LIST_S,
    RD_BREAK_S,
    RD_VOTE, /* Redlock */
    RD_RIGHTS,
    RD_SCRIPTS,
};

/* First number in the reply of a TAKE. */
enum rd_take {
    RD_GRANTED = 2, /* now, token */
    RD_QUEUED = 3,  /* now, ms until a poll is useful or -1, foreign, number of
                       waiters, place in the queue */
    RD_BUSY = 4,    /* now */
    RD_STALE = 5,   /* now: the attempt was no longer valid */
    RD_MISMATCH = 6,
};

/* Reply of INSPECT and BREAK if the name is another kind: RD_OTHER plus its
 * hf_kind, or RD_OTHER. */
#define RD_OTHER 10

/* Made by lua/assemble.py. */
struct rd_text {
    char digest[41]; /* SHA-1, the name for EVALSHA */
    uint8_t keys_len;
    uint8_t keys[8]; /* enum rd_key, from the script's head */
    size_t len;
    const char *text;
};

extern const struct rd_text hf__rd_script[RD_SCRIPTS];

#endif
