/*
 * Takes the reason why there is no connection from what the library logs, for
 * error messages. The holdfast log reports a lost and a new connection, but not
 * each attempt in between. The library has one log function for all clients of
 * a process, so hf__zk_speak_for() must be called before each call of the
 * library, on the same thread.
 */
#ifndef HF_ZK_WORDS_H
#define HF_ZK_WORDS_H

#include "zookeeper.h"

/* Sets the client that the library's next messages on this thread are about, or
 * NULL if they are about no client. */
void hf__zk_speak_for(struct zk *);
/* The library's log function: remembers the last error for
 * hf__zk_why_down(). */
void hf__zk_on_log(const char *line);
/* Writes to `out` the server to which the client is not connected, and the
 * reason. Returns `out`. */
const char *hf__zk_why_down(struct zk *, char *out, size_t size);

#endif
