/*
 * Attempts that were sent and lost, and may still be carried out. What was let
 * go meanwhile is let go once more when that can happen no more. cmd.c adds
 * what a broken connection leaves; whoever lets go of a hold id reports it
 * here.
 */
#ifndef HF_REDIS_LATE_REPLIES_H
#define HF_REDIS_LATE_REPLIES_H

#include "flights.h"

struct rd_late;
/* This attempt was sent and is lost. */
void hf__rd_late_add(struct redis *, const struct rd_flight *, hf__time now);
/* The hold id is let go, or was refused. */
void hf__rd_late_over(struct redis *, uint64_t hold_id);
void hf__rd_late_move(struct redis *, hf__time now);
hf__time hf__rd_late_timeout(const struct redis *);
void hf__rd_late_fini(struct redis *);

#endif
