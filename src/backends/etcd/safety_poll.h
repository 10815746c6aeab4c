/*
 * Checks once in a while what is waited for, because a watch may fail without a
 * word. session.c drives it; it rings locks that find something changed.
 */
#ifndef HF_ETCD_SAFETY_POLL_H
#define HF_ETCD_SAFETY_POLL_H

#include "net/grpc/grpc.h"

struct etcd;

#define ET_POLLED 32 /* locks that are checked in a transaction */

/* Locks that wait are checked once in a while. */
struct et_poll {
    struct grpc_call call;
    hf__time at; /* the next one; HF__NEVER: nobody waits */
    uint32_t no;
    bool any;         /* somebody waits */
    bool has_checked; /* the server, in this poll */
    size_t len;
    struct et_polled {
        uint64_t hold_id;
        int64_t rev, before; /* as those of its lock */
        bool has_mark;
    } lock[ET_POLLED]; /* under way */
};

void hf__et_poll_init(struct etcd *);
void hf__et_poll(struct etcd *, hf__time now);
hf__time hf__et_poll_timeout(const struct etcd *);
/* A lock waits. */
void hf__et_poll_wanted(struct etcd *);

#endif
