/*
 * Redlock: a lock on the majority of several independent Redis servers, each of
 * which has the string of the `string` dialect. The mutex alone, unfair.
 *
 * An attempt (struct rl_hold) is known by a value that nobody had before, and
 * is sent to all servers at once. What is sent to a server, by letter
 * (lua/vote.lua):
 *
 *   g  grant   sets the key unless it is there, and answers a number, `base`,
 *              that is above every token that anybody may have got there
 *   r  raise   a second round: this token is going to be used
 *   k  keep    a renewal
 *   d  drop    a release
 *   u  undo    the grant comes to nothing
 *
 *                 yes of a majority, whose numbers are close
 *        GRANT -----------------------------------------------> HELD --+ k
 *          |  \                                                ^  | ^--+
 *          |   +--> RAISE (numbers are not close): majority ---+  |
 *          | no majority  | no majority                           | d
 *          v              v                                       v
 *        UNDONE <---------+                                    DROPPED
 *
 * The token is the highest base of the majority M and one more. A server that
 * answers b gives nobody else a base below b + `ahead`; so if the token is not
 * above that at any server of M, it is used at once: every later holder shares
 * a server with M, and gets a higher one. Otherwise the token is written to a
 * majority first. A model of it is in tests/sim (redlock-model).
 *
 * A lease counts from the first byte of the attempt, or of the renewal. A
 * server that may have lost its memory (it was started less than max_lease ago,
 * or another one answers at its address) is out: nothing is sent to it until
 * all leases of that time are over.
 *
 * Everything runs with the client's mutex held, but for open().
 *
 * redlock.c fills and frees struct redlock. Each unit has a header of its name;
 * README.md has the list.
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
    uint32_t
        max_lease_ms; /* 0: servers keep what they have through a restart */
    char uuid[HF__UUID_LEN + 1];
    uint64_t values;       /* how many there were */
    uint64_t chance;       /* state of the jitter */
    struct rl_poll *polls; /* those that are not decided */
    struct rl_hold *debtors;
    struct rl_checkup *checkups; /* that are not over */
    uint32_t tags;
    bool put_off;         /* the core keeps requests that are not sent yet */
    bool is_down;         /* and the core knows */
    bool is_unheard;      /* no majority has voted since one did not */
    bool is_open;         /* hf_open has its client */
    bool is_up;           /* a majority is connected */
    hf__time opens_until; /* so long hf_open waits for the others, too */
    size_t majority, len;
    struct rl_server server[HF__HOSTS];
};

extern const struct hf__backend hf__rl_backend;

#endif
