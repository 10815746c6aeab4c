/*
 * What the server says about a call: headers, messages, the end of its stream.
 * grpc.c calls this as nghttp2 reads; the call ends by hf__grpc_end() of call.h
 * when all was said, or when it makes no sense.
 */
#ifndef HF_NET_GRPC_ANSWER_H
#define HF_NET_GRPC_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grpc_call;

void hf__grpc_header(struct grpc_call *, const char *name, size_t name_len,
                     const char *value, size_t len);
int hf__grpc_data(struct grpc_call *, const uint8_t *, size_t);
/* The server has said all that it will. */
void hf__grpc_finished(struct grpc_call *);
/* The stream was reset, by the server or by nghttp2. */
void hf__grpc_was_reset(struct grpc_call *, uint32_t error);
/* It is reset, because the answer makes no sense: ODD. */
void hf__grpc_odd(struct grpc_call *, int status, const char *text);
/* Text of the server for people: what is not printable becomes '?'. */
void hf__grpc_text(char *to, size_t size, const char *from, size_t len,
                   bool is_encoded);

#endif
