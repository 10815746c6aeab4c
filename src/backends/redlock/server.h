/*
 * One server of several: its hello, whether the server can be relied on,
 * commands to it and their replies, and the releases and undos that must still
 * be sent to it (rl_hold.owes). server.c decides nothing about locks: it
 * reports to vote.c and diagnose.c by struct rl_calls.
 */
#ifndef HF_RL_SERVER_H
#define HF_RL_SERVER_H

#include "hold.h"

/* This number and its double are exact as Lua numbers. */
#define RL_BASE_MAX (INT64_C(1) << 52)

/* First numbers of replies, in addition to RD_GRANTED, RD_BUSY and RD_STALE.
 * RL_DID says that the command was executed, RL_SET_AGAIN that a renewal found
 * the key missing, and set it again. */
enum { RL_DID = 1, RL_SET_AGAIN = 3 };

struct rl_checkup;

struct rl_server {
    struct redlock *rl;
    struct net_endpoint peer;
    struct rd_pipe pipe;
    char run_id[48];    /* of the latest process seen there, or "" */
    char said[48];      /* the run_id that the latest hello returned */
    int64_t uptime_s;   /* how long the server had run when it answered the
                           hello */
    hf__time out_until; /* nothing is sent until then: keys may be lost */
    int64_t clock_us;   /* the server read this from its clock at clock_at or
                           slightly later */
    hf__time clock_at;
    const struct rl_server *twin; /* the same server at another address */
    bool by_text;                 /* send EVAL: the script may be unknown */
    int error_code;               /* code of the server's last error reply */
    char error[80];               /* message of that reply */
    /* When to repeat the undos and releases that this server has not answered
     * yet, if the server is connected then. */
    hf__time pay_at;
};

/* A command under way. */
struct rl_flight {
    struct rd_sent sent;
    struct rl_hold *hold;
    struct rl_poll *poll;       /* one of the ballots of `hold` */
    struct rl_checkup *checkup; /* the sender of an INFO, or NULL */
    uint32_t round;
    enum rl_op op;
};

/* The callbacks of server.c. */
struct rl_calls {
    /* Handles a reply: `what` is its first number, `base` its last. */
    void (*voted)(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
    /* Handles a command that was answered with an error, or to which no reply
     * will arrive. `lost` says that the command may have been executed. */
    void (*failed)(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);
    /* Notes that no reply to an INFO will arrive. */
    void (*unchecked)(struct redlock *, struct rl_checkup *);
};

/* Initializes a zeroed struct, without connecting. */
void hf__rl_server_init(struct rl_server *, struct redlock *);

/* Drops the commands under way, without reporting them to the core. */
void hf__rl_server_fini(struct rl_server *);

/* Waits, at most until the time `until`, for the server to read everything that
 * was sent and to close the connection. Closing it with replies unread would
 * reset the connection, and Redis would drop the commands that it has not
 * read. */
void hf__rl_leave(struct rl_server *, hf__time until);

/* Returns the index of the server in the URL, from 0 on, which is also its bit
 * in a set of servers. */
size_t hf__rl_index(const struct rl_server *);
/* Returns whether the server can vote: it is connected, not out (redlock.h),
 * and not silent. */
bool hf__rl_is_usable(const struct rl_server *, hf__time now);

/* Writes why the server cannot vote, for people, without the server's
 * address. */
void hf__rl_trouble(const struct rl_server *, hf__time now, char *buf,
                    size_t size);

/* Sends a command. Returns false if nothing was sent, because the server is not
 * connected or is out, or because there is no memory. */
bool hf__rl_send(struct rl_server *, struct rl_poll *, enum rl_op);
/* Deletes the hold's key at this server, now or as soon as the server can be
 * reached. */
void hf__rl_end_at(struct rl_server *, struct rl_hold *);

/* Repeats the releases and undos that this server has not answered, if they are
 * due (pay_at). */
void hf__rl_pay_again(struct rl_server *, hf__time now);
hf__time hf__rl_pay_timeout(const struct rl_server *, hf__time now);

/* Returns whether the ballot still waits for this reply. */
bool hf__rl_counts(const struct rl_server *, const struct rl_flight *);

#endif
