/*
 * One server of several: its hello, whether it can be relied on, commands to it
 * and their answers, and what it is still owed. It decides nothing about locks:
 * what comes is reported by struct rl_calls, to vote.c and diagnose.c.
 */
#ifndef HF_RL_SERVER_H
#define HF_RL_SERVER_H

#include "hold.h"

#define RL_BASE_MAX (INT64_C(1) << 52) /* exact in Lua, as are its sums */

/* What a server answers, beside RD_GRANTED, RD_BUSY and RD_STALE: it has done
 * the thing, or (keep) had no key and has set it. */
enum { RL_DID = 1, RL_SET_AGAIN = 3 };

struct rl_checkup;

struct rl_server {
    struct redlock *rl;
    struct net_endpoint peer;
    struct rd_pipe pipe;
    char run_id[48];    /* of the process that answered last; "": none has */
    char said[48];      /* by the one that is being greeted */
    int64_t uptime_s;   /* of it */
    hf__time out_until; /* it may lack what it had: nothing is sent */
    int64_t clock_us;   /* its clock at clock_at, or a little later */
    hf__time clock_at;
    const struct rl_server *twin; /* the same, at another address */
    bool by_text;                 /* it does not know the script */
    int error_code;               /* of the last error that it answered, */
    char error[80];               /* and its text */
    hf__time pay_at; /* what it is owed is tried again, if it is connected */
};

/* A command that is under way. */
struct rl_flight {
    struct rd_sent sent;
    struct rl_hold *hold;
    struct rl_poll *poll;       /* of the hold */
    struct rl_checkup *checkup; /* it is INFO, and of no hold; else NULL */
    uint32_t round;
    enum rl_op op;
};

/* What a server reports. */
struct rl_calls {
    /* Its answer has come: its first number, and the last. */
    void (*voted)(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
    /* An error, or no answer will come; lost: the server may have done it. */
    void (*failed)(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);
    /* No answer to INFO will come. */
    void (*unchecked)(struct redlock *, struct rl_checkup *);
};

void hf__rl_server_init(struct rl_server *, struct redlock *);
void hf__rl_server_fini(struct rl_server *);

/* Waits until the server has read what was sent, and has closed: a connection
 * that is closed with answers unread is reset, and Redis forgets what it has
 * not read by then. */
void hf__rl_leave(struct rl_server *, hf__time until);

size_t hf__rl_index(const struct rl_server *);
/* It may be used: it is connected, not out, and answers. */
bool hf__rl_is_usable(const struct rl_server *, hf__time now);

/* Why it may not: for people, without its address. */
void hf__rl_trouble(const struct rl_server *, hf__time now, char *buf,
                    size_t size);

/* false: it is not connected or out, or there is no memory. */
bool hf__rl_send(struct rl_server *, struct rl_poll *, enum rl_op);
/* The key of the hold goes there: now, or as soon as the server hears us. */
void hf__rl_end_at(struct rl_server *, struct rl_hold *);

/* What it has refused is sent again, when it is time. */
void hf__rl_pay_again(struct rl_server *, hf__time now);
hf__time hf__rl_pay_timeout(const struct rl_server *, hf__time now);

/* The poll still waits for this server's answer to it. */
bool hf__rl_counts(const struct rl_server *, const struct rl_flight *);

#endif
