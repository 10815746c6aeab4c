/*
 * Sends requests of every kind on the command connection (cmd), and keeps track
 * of those in flight. They are sent and answered in the order of submission. A
 * request that cannot be sent now goes back to the core (HF__LATER,
 * core->unsent), which keeps it.
 *
 * The slots (lock.c, renew.c, query.c) submit requests. A table of struct
 * my_op, which mysql.c fills, states which functions write a request, read its
 * answer, and handle its failure. The core owns each request. The connection
 * owns each flight (struct my_flight), from hf__my_sent() until the answer
 * arrives or the connection ends. The client's mutex is held.
 */
#ifndef HF_MYSQL_CMD_H
#define HF_MYSQL_CMD_H

#include "mysql.h"

/* How often, at most, a request is sent again after an error of the class
 * MY_AGAIN (error.h). mutex.c limits the number of its UPDATEs by it too. */
#define MY_TRIES 10

/* A packet in flight on cmd. */
struct my_flight {
    struct my_sent sent;
    struct hf__req *req; /* NULL if the answer is no longer wanted */
    uint64_t hold_id;
    uint64_t late_us;    /* when the request becomes void, by the server's
                            clock */
    uint32_t first, len; /* for RENEW, which items of the batch the packet
                            contains */
    uint8_t op;          /* enum hf__op */
    uint8_t tries;
    bool fresh;     /* true for the first packet with this hold_id */
    bool refused;   /* true if the server refused the request before doing
                       anything for it: the core may send it again */
    bool exclusive; /* true for a transaction: nothing may be sent until it is
                       answered, because an error would leave it open */
};

/* How a request is handled. MY_VERB: attempts, releases and abandons; MY_RENEW:
 * renewals; MY_QUERY: all other requests. */
enum { MY_VERB, MY_RENEW, MY_QUERY };
struct my_op {
    /* Writes the packets, with hf__my_start(), hf__my_sql() and hf__my_sent().
     * Returns 0 or a code. */
    int (*encode)(struct mysql *, struct hf__req *);
    /* Reads the answer. Is not called for an answer that ends with an error,
     * unless the request is DIAGNOSE. Returns 0 or HF_EPROTO. */
    int (*answer)(struct mysql *, const struct my_flight *,
                  const struct my_answer *);
    /* Ends a request that has failed with this code. May be NULL:
     * hf__my_finish() is called then. */
    void (*failed)(struct mysql *, const struct my_flight *, int code);
};

extern const struct my_owner hf__my_cmd;

/* Sends the request. Returns HF__PENDING if it is in flight, HF__LATER if the
 * core must keep it, or a code. Reports nothing to the core. */
int hf__my_submit(struct mysql *, struct hf__req *);
/* Sends the bytes in the output buffer of cmd. If there is room after that,
 * lets the core submit the requests that the core keeps. */
void hf__my_pump(struct mysql *);
/* Detaches the request from its flights, whose answers then no longer touch
 * it. */
void hf__my_forget(struct mysql *, const struct hf__req *);
void hf__my_finish(struct mysql *, struct hf__req *, int result);
/* hf__my_start() begins a packet on cmd, and hf__my_sent() ends it.
 * hf__my_sent() returns NULL if out of memory. The packet may contain the
 * letters of name.h and these:
 *
 *   %H  the hold id, %L the lease in us, %M the number of permits
 *   %E  the time, by the server's clock, at which the request becomes void */
void hf__my_start(struct mysql *, const struct hf__req *);
struct my_flight *hf__my_sent(struct mysql *, struct hf__req *);
/* Sends a request again, or gives it back to the core if it cannot be sent now.
 * May be called while the answer to the request is handled, or later. Returns
 * HF__PENDING or a code. */
int hf__my_resend(struct mysql *, struct hf__req *);
/* Sends a ping when one is due, because the server closes idle connections. */
void hf__my_ping(struct mysql *, hf__time now);
hf__time hf__my_ping_at(const struct mysql *);

#endif
