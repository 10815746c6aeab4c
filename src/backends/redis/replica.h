/*
 * replicas=n: a grant or a renewal counts only if n replicas have it. Until the
 * answer to a WAIT it is in doubt, and is kept here; then `decided` is called
 * for each, in the order of their answers. Without replicas= every call is for
 * nothing and cheap.
 */
#ifndef HF_REDIS_REPLICA_H
#define HF_REDIS_REPLICA_H

#include "flights.h"

/* What the server has granted or renewed, and enough replicas have to have. */
struct rd_doubts {
    uint32_t need; /* so many of them; 0: nothing is in doubt */
    uint32_t ms;   /* replica_timeout */
    bool waiting;  /* WAIT is under way */
    bool wanted;   /* another one is to be sent */
    size_t len, cap;
    struct rd_flight *all;
    /* The answer to WAIT has decided it: 0, or a code. */
    void (*decided)(struct redis *, const struct rd_flight *, int code,
                    hf__time now);
};

int hf__rd_doubt_parse(struct redis *, const struct hf__config *);
/* Room for what is about to be sent, if replicas= is set; now: WAIT goes
 * with it. 0, HF_ENOMEM. */
int hf__rd_doubt_room(struct redis *, bool now);

/* It was answered, and is not to be reported before replicas have it. False:
 * there is no replicas=. */
bool hf__rd_doubt(struct redis *, const struct rd_flight *);
void hf__rd_doubt_forget(struct redis *, const struct hf__req *);
/* The connection is lost. */
void hf__rd_doubt_lost(struct redis *, hf__time now);
/* Puts WAIT behind what was sent, if one is wanted and none is under way. */
void hf__rd_doubt_send(struct redis *);
void hf__rd_doubt_fini(struct redis *);

#endif
