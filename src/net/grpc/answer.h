/*
 * What the server says about a call: headers, messages, the end of its stream.
 * grpc.c calls these functions while nghttp2 reads. When the answer is complete
 * or makes no sense, they end the call by hf__grpc_end() (call.h).
 */
#ifndef HF_NET_GRPC_ANSWER_H
#define HF_NET_GRPC_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grpc_call;

void hf__grpc_header(struct grpc_call *, const char *name, size_t name_len,
                     const char *value, size_t len);
/* Handles bytes of messages. Returns 0, or an error code that ends the
 * connection. */
int hf__grpc_data(struct grpc_call *, const uint8_t *, size_t);
/* Ends the call, because the server has closed its half of the stream or has
 * sent data that is not gRPC's. */
void hf__grpc_finished(struct grpc_call *);
/* Handles a reset of the stream, by the server or by nghttp2. */
void hf__grpc_was_reset(struct grpc_call *, uint32_t error);
/* Copies a string from the server and cuts it to size. Characters that cannot
 * be printed become '?'. */
void hf__grpc_text(char *to, size_t size, const char *from, size_t len,
                   bool is_encoded);

#endif
