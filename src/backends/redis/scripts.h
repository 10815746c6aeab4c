/*
 * The scripts that run at the server. scripts.c is made by lua/assemble.py from
 * the files of lua/ and the numbers that are defined here; lua/README.md
 * describes both. A text is named by its digest (EVALSHA), and sent whole
 * (EVAL) where the server does not know it. Older clients run the same texts on
 * the same keys, so a text, and with it these numbers, does not change by
 * chance: unit-redis-reply knows the digests.
 */
#ifndef HF_REDIS_SCRIPTS_H
#define HF_REDIS_SCRIPTS_H

#include "keys.h"

/*
 * Safety polls, in case an event was lost. The first in the queue and the last
 * poll after this, and sooner by up to the jitter: so a lock that is free while
 * they wait is taken within 2 s. A run of hand-overs takes away the first
 * before those behind know that they are; it does not come to the last, who
 * know it since they came. Those between poll at random times, the more of them
 * the less often each, up to the bound. All poll when the lease of the holder
 * ends (lock.c).
 */
#define RD_POLL_FIRST 4
#define RD_POLL_LAST 4
#define RD_POLL_MS 1900
#define RD_POLL_JITTER 6 /* a sixth */
#define RD_POLL_EACH_MS 300
#define RD_POLL_MAX_MS 50000
/* Who has not polled although he should have, and so long ago, is dead or
 * stopped. Of those behind nobody knows it until they are rung. */
#define RD_LATE_MS 1100
#define RD_ALIVE_MS 3000 /* RD_POLL_MS + RD_LATE_MS */
/* The queues outlive the last poll by this. */
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
    RD_INSPECT_STRING, /* a semaphore, or a latch */
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

/* First number of the answer of a TAKE. */
enum rd_take {
    RD_GRANTED = 2, /* now, token */
    RD_QUEUED = 3,  /* now, ms until a poll is worth it or -1, foreign, how
                       many wait, whether we are among the first */
    RD_BUSY = 4,    /* now */
    RD_STALE = 5,   /* now: the attempt came too late to be meant */
    RD_MISMATCH = 6,
};

/* INSPECT, BREAK: the name is of another kind: this and its hf_kind, or this
 * alone. */
#define RD_OTHER 10

/* Made by lua/assemble.py. */
struct rd_text {
    char digest[41]; /* SHA-1, by which EVALSHA names a script */
    uint8_t keys_len;
    uint8_t keys[8]; /* enum rd_key: what its head says */
    size_t len;
    const char *text;
};

extern const struct rd_text hf__rd_script[RD_SCRIPTS];

#endif
