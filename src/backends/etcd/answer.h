/*
 * Reads the server's answers to the requests of entry_request.h. This unit
 * finds out what an answer says about the entry; lock.h (attempts, releases)
 * and batch.h (renewals) decide what is done next.
 */
#ifndef HF_ETCD_ANSWER_H
#define HF_ETCD_ANSWER_H

#include "net/grpc/grpc.h"

/* Handles the end of a request; etcd.answered points to this function. May send
 * another request for the same lock before it returns. */
int hf__et_answered(struct grpc_call *, hf__time now);

#endif
