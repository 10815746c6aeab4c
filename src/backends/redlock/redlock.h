/*
 * Redlock: a lock on the majority of several independent Redis servers, each of
 * which has the same string as with dialect=string. Only the unfair mutex.
 *
 * An attempt (struct rl_hold) has a value that was never used before, and is
 * sent to all servers at once. The commands to a server, by letter
 * (lua/vote.lua):
 *
 *   g  grant   sets the key if it does not exist, and returns a number, `base`,
 *              that is not below any token to which this server has agreed
 *   r  raise   a second ballot: announces that this token will be used
 *   k  keep    a renewal
 *   d  drop    a release
 *   u  undo    the grant failed
 *
 *                 yes of a majority with close numbers
 *        GRANT -----------------------------------------------> HELD --+ k
 *          |  \                                                ^  | ^--+
 *          |   +--> RAISE (numbers are not close): majority ---+  |
 *          | no majority  | no majority                           | d
 *          v              v                                       v
 *        UNDONE <---------+                                    DROPPED
 *
 * The token is the highest base of the majority M plus one. A server that
 * returned b gives no other attempt a base below b + rl_hold.ahead_us. If the
 * token is not above that limit at any server of M, it is used at once: every
 * later holder shares a server with M and gets a higher token. Otherwise the
 * token is written to a majority first. tests/sim has a model of this
 * (redlock-model).
 *
 * A deadline counts from the first byte of the attempt or the renewal. A server
 * that may have lost its memory (because it was started less than max_lease
 * ago, or another process answers at its address) is out: nothing is sent to it
 * until all holds that it may have lost have expired.
 *
 * All functions are called with the client's mutex held, except open().
 *
 * redlock.c fills and frees struct redlock. README.md lists the units; each has
 * a header of the same name.
 */
#ifndef HF_REDLOCK_H
#define HF_REDLOCK_H

#include "backends/redis/login.h"
#include "server.h"

struct redlock {
    const struct hf__core *core;
    hf_client *client;
    const struct rl_calls *calls;
    struct rd_login login;
    uint32_t op_timeout_ms, server_timeout_ms;
    uint32_t max_lease_ms; /* 0 if servers keep their keys through a restart */
    char uuid[HF__UUID_LEN + 1];
    uint64_t values;       /* how many values of attempts were generated */
    uint64_t chance;       /* state of hf__chance() */
    struct rl_poll *polls; /* undecided ballots */
    struct rl_hold *debtors;
    struct rl_checkup *checkups; /* diagnoses under way */
    uint32_t tags;
    bool put_off;         /* the core keeps new requests until core->go_on() */
    bool is_down;         /* no majority can vote, and the core was notified */
    bool is_unheard;      /* the latest attempt got no majority of votes */
    bool is_open;         /* hf_open() has returned the client */
    bool is_up;           /* a majority is connected */
    hf__time opens_until; /* until when hf_open() waits for missing servers */
    size_t majority, len;
    struct rl_server server[HF__HOSTS];
};

extern const struct hf__backend hf__rl_backend;

#endif
