/*
 * Reads what the server answers to the requests of entry_request.h, and passes
 * it on: to lock.h (the next step of an attempt or a release) or to batch.h. It
 * decides what an answer says about the entry, not what is done next.
 */
#ifndef HF_ETCD_ANSWER_H
#define HF_ETCD_ANSWER_H

#include "net/grpc/grpc.h"

/* etcd.answered. A request may be sent for the same lock from inside. */
int hf__et_answered(struct grpc_call *, hf__time now);

#endif
