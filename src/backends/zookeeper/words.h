/*
 * Takes the reason why there is no connection from what the library logs, for
 * the texts of errors. The holdfast log reports a lost and a new connection,
 * but not each attempt in between. The library has one log function for all
 * clients of a process, so hf__zk_speak_for() must be called before each call
 * of the library, on the same thread.
 */
#ifndef HF_ZK_WORDS_H
#define HF_ZK_WORDS_H

#include "zookeeper.h"

/* Sets the client to which the library's next messages on this thread belong;
 * NULL: none. */
void hf__zk_speak_for(struct zk *);
/* Is the log function of the library. */
void hf__zk_on_log(const char *line);
/* Writes which server the client is not connected to, and why; returns out. */
const char *hf__zk_why_down(struct zk *, char *out, size_t size);

#endif
