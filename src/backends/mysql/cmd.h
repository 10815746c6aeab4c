/*
 * Requests of every kind in flight on the command connection, cmd. They are
 * sent and answered in the order of submission. A request that cannot be sent
 * now goes back to the core (HF__LATER, core->unsent), which keeps it.
 *
 * The slots (lock.c, renew.c, query.c) submit. A table of struct my_op, which
 * mysql.c fills, says which function writes a request and which one reads its
 * answer. The core owns a request; the connection owns a flight, from
 * hf__my_sent() to its answer or the end of the connection. The client's mutex
 * is held.
 */
#ifndef HF_MYSQL_CMD_H
#define HF_MYSQL_CMD_H

#include "mysql.h"

#define MY_TRIES 10 /* how often a request is sent if others are in its way */

/* A packet in flight on cmd. */
struct my_flight {
    struct my_sent sent;
    struct hf__req *req; /* NULL: the answer is no longer wanted */
    uint64_t hold_id;
    uint64_t late_us;    /* void from then on, by the server's clock */
    uint32_t first, len; /* of a RENEW: which items of the batch it has */
    uint8_t op;          /* enum hf__op */
    uint8_t tries;
    bool fresh;     /* the first packet with this hold_id */
    bool refused;   /* nothing was done for it; another server may do it */
    bool exclusive; /* a transaction: nothing may be sent behind it before its
                   answer, because an error would leave it open */
};

/* How requests are done: attempts, releases and abandons; renewals; others. */
enum { MY_VERB, MY_RENEW, MY_QUERY };
struct my_op {
    /* Writes the packets: hf__my_start(), hf__my_sql(), hf__my_sent(). Returns
     * 0 or a code. */
    int (*encode)(struct mysql *, struct hf__req *);
    /* Reads the answer; only that of DIAGNOSE may end with an error. Returns 0
     * or HF_EPROTO. */
    int (*answer)(struct mysql *, const struct my_flight *,
                  const struct my_answer *);
    /* Ends a request that has failed with this code. NULL: hf__my_finish()
     * does. */
    void (*failed)(struct mysql *, const struct my_flight *, int code);
};

extern const struct my_owner hf__my_cmd;

/* Returns HF__PENDING (it is in flight), HF__LATER or a code. Reports nothing
 * to the core. */
int hf__my_submit(struct mysql *, struct hf__req *);
/* Flushes. If there is room then, lets the core submit the requests that it
 * keeps. */
void hf__my_pump(struct mysql *);
/* The request will never be mentioned again. */
void hf__my_forget(struct mysql *, const struct hf__req *);
void hf__my_finish(struct mysql *, struct hf__req *, int result);
/* Begin and end a packet on cmd. NULL: out of memory. The letters of name.h are
 * bound in it, and:
 *
 *   %H  the hold id, %L the lease in us, %M the number of permits
 *   %E  the server's time from which on the request is void */
void hf__my_start(struct mysql *, const struct hf__req *);
struct my_flight *hf__my_sent(struct mysql *, struct hf__req *);
/* Sends the same request again, from its answer or later: HF__PENDING or a
 * code. */
int hf__my_resend(struct mysql *, struct hf__req *);
/* Sends a ping when one is due: the server closes idle connections. */
void hf__my_ping(struct mysql *, hf__time now);
hf__time hf__my_ping_at(const struct mysql *);

#endif
