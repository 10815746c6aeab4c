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

/* Sets the client to which the library's next messages on this thread belong,
 * or NULL if they belong to none. */
void hf__zk_speak_for(struct zk *);
/* The library's log function: remembers the last error for
 * hf__zk_why_down(). */
void hf__zk_on_log(const char *line);
/* Writes which server the client is not connected to, and why; returns out. */
const char *hf__zk_why_down(struct zk *, char *out, size_t size);

#endif
