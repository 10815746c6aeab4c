/*
 * One server of several: its hello, whether it can be relied on, commands to it
 * and their replies, and what it is owed. It decides nothing about locks:
 * struct rl_calls reports to vote.c and diagnose.c.
 */
#ifndef HF_RL_SERVER_H
#define HF_RL_SERVER_H

#include "hold.h"

#define RL_BASE_MAX (INT64_C(1) << 52) /* exact in Lua, and so are its sums */

/* Replies beside RD_GRANTED, RD_BUSY and RD_STALE: done; or (keep) the key was
 * gone and was set again. */
enum { RL_DID = 1, RL_SET_AGAIN = 3 };

struct rl_checkup;

struct rl_server {
    struct redlock *rl;
    struct net_endpoint peer;
    struct rd_pipe pipe;
    char run_id[48];    /* of the last process there; "": none yet */
    char said[48];      /* run_id during the hello */
    int64_t uptime_s;   /* its uptime, from the hello */
    hf__time out_until; /* it may have lost keys: nothing is sent */
    int64_t clock_us;   /* its clock at clock_at, or slightly later */
    hf__time clock_at;
    const struct rl_server *twin; /* the same server at another address */
    bool by_text;                 /* it lacks the script: send EVAL */
    int error_code;               /* of its last error reply */
    char error[80];               /* text of that error */
    /* When to repeat the undos and releases that this server has not answered
     * yet; only if it is connected. */
    hf__time pay_at;
};

/* A command under way. */
struct rl_flight {
    struct rd_sent sent;
    struct rl_hold *hold;
    struct rl_poll *poll;       /* of the hold */
    struct rl_checkup *checkup; /* of an INFO, which has no hold; else NULL */
    uint32_t round;
    enum rl_op op;
};

/* What a server reports. */
struct rl_calls {
    /* A reply: its first number, and its last. */
    void (*voted)(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
    /* An error, or no reply will come. lost: the command may have been
     * executed. */
    void (*failed)(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);
    /* No reply to INFO will come. */
    void (*unchecked)(struct redlock *, struct rl_checkup *);
};

void hf__rl_server_init(struct rl_server *, struct redlock *);
void hf__rl_server_fini(struct rl_server *);

/* Waits until the server has read what was sent and has closed the connection.
 * Closing it with unread replies would reset it, and Redis then drops what it
 * has not read. */
void hf__rl_leave(struct rl_server *, hf__time until);

size_t hf__rl_index(const struct rl_server *);
/* It may vote: it is connected, not out, and not silent. */
bool hf__rl_is_usable(const struct rl_server *, hf__time now);

/* Why it may not vote, for people; without its address. */
void hf__rl_trouble(const struct rl_server *, hf__time now, char *buf,
                    size_t size);

/* False: not connected, out, or no memory. Then nothing was sent. */
bool hf__rl_send(struct rl_server *, struct rl_poll *, enum rl_op);
/* Deletes the hold's key at this server: now, or as soon as it can be
 * reached. */
void hf__rl_end_at(struct rl_server *, struct rl_hold *);

/* Sends again what the server is owed, when that is due. */
void hf__rl_pay_again(struct rl_server *, hf__time now);
hf__time hf__rl_pay_timeout(const struct rl_server *, hf__time now);

/* True if the poll still waits for this reply. */
bool hf__rl_counts(const struct rl_server *, const struct rl_flight *);

#endif
