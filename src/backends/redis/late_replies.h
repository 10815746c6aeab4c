/*
 * Attempts whose reply was lost, and which the server may still execute. If the
 * hold id is released or abandoned while the server may still execute the
 * attempt, the client sends a further abandon after that time. cmd.c adds the
 * attempts of a broken connection; each file that gives up a hold id calls
 * hf__rd_late_over().
 */
#ifndef HF_REDIS_LATE_REPLIES_H
#define HF_REDIS_LATE_REPLIES_H

#include "flights.h"

struct rd_late;
/* Adds an attempt whose reply was lost. */
void hf__rd_late_add(struct redis *, const struct rd_flight *, hf__time now);
/* Reports that the hold id was released or abandoned, or that its attempt was
 * refused. */
void hf__rd_late_over(struct redis *, uint64_t hold_id);
void hf__rd_late_move(struct redis *, hf__time now);
hf__time hf__rd_late_timeout(const struct redis *);
void hf__rd_late_fini(struct redis *);

#endif
