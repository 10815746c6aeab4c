/*
 * Requests under way on the command connection, cmd, of every kind. They go out
 * in the order of submission, and are answered in that order. What cannot be
 * sent now goes back to the core (HF__LATER, core->unsent), which keeps it.
 *
 * The slots (lock.c, renew.c, query.c) submit; a table of struct my_op, which
 * mysql.c fills, says who writes a request and who reads its answer. A request
 * stays the core's; a flight is the connection's, from hf__my_sent() to its
 * answer or the end of the connection. The client's mutex is held.
 */
#ifndef HF_MYSQL_CMD_H
#define HF_MYSQL_CMD_H

#include "mysql.h"

#define MY_TRIES 10 /* of a request that the server gave up for another one */

/* A packet that is under way on cmd. */
struct my_flight {
    struct my_sent sent;
    struct hf__req *req; /* NULL: nobody wants the answer any more */
    uint64_t hold_id;
    uint64_t late_us;    /* the server's clock from which it is not meant */
    uint32_t first, len; /* RENEW: which items */
    uint8_t op;          /* 0: nobody waits for it */
    uint8_t tries;
    bool fresh;   /* the server has heard nothing of hold_id before */
    bool refused; /* nothing was done for it, and another server may */
    bool alone;   /* a transaction: nothing is sent behind it before its answer,
                     because an error would leave it open */
};

/* What is done for an operation (enum hf__op). */
struct my_op {
    /* Writes its packets: hf__my_start(), hf__my_sql(), hf__my_sent(). 0, or a
     * code. */
    int (*encode)(struct mysql *, struct hf__req *);
    /* Reads the answer, which ends with no error, but for DIAGNOSE. 0, or
     * HF_EPROTO. */
    int (*answer)(struct mysql *, const struct my_flight *,
                  const struct my_answer *);
    /* It came to that code. NULL: hf__my_finish(). */
    void (*failed)(struct mysql *, const struct my_flight *, int code);
};

extern const struct my_owner hf__my_cmd;

/* The request is under way (HF__PENDING), or HF__LATER, or a code. Reports
 * nothing. */
int hf__my_submit(struct mysql *, struct hf__req *);
/* Writes; and if there is room then, what the core keeps can come. */
void hf__my_pump(struct mysql *);
/* Never mention this request again. */
void hf__my_forget(struct mysql *, const struct hf__req *);
void hf__my_finish(struct mysql *, struct hf__req *, int result);
/* Begins a packet on cmd, and ends it. NULL: out of memory. Bound in it: what
 * name.h says, and %H the hold id, %L the lease in us, %M how many permits, %E
 * from when on the request is not meant any more, by the server's clock. */
void hf__my_start(struct mysql *, const struct hf__req *);
struct my_flight *hf__my_sent(struct mysql *, struct hf__req *);
/* The same request once more, out of its answer, or later: PENDING, or a code.
 */
int hf__my_resend(struct mysql *, struct hf__req *);
/* The server ends a connection that says nothing for long. */
void hf__my_ping(struct mysql *, hf__time now);
hf__time hf__my_ping_at(const struct mysql *);

#endif
