/*
 * Writes a protobuf message into the buffer of a gRPC call, to be started
 * afterwards. Every file that sends something uses it.
 */
#ifndef HF_ETCD_MESSAGE_H
#define HF_ETCD_MESSAGE_H

#include "net/grpc/grpc.h"

#include "etcd.pb-c.h"

/* 0, HF_ENOMEM. */
int hf__et_pack(struct grpc_call *, const void *message);

#endif
