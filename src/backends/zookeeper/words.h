/*
 * What the library logs, for the texts of errors: the reason why there is no
 * connection. The holdfast log reports a lost and a new connection, but not
 * each attempt in between. The library has one log function for all clients of
 * a process, so hf__zk_speak_for() must be called before each call of the
 * library, on the same thread.
 */
#ifndef HF_ZK_WORDS_H
#define HF_ZK_WORDS_H

#include "zookeeper.h"

/* The client to which the library's next words belong; NULL: none. */
void hf__zk_speak_for(struct zk *);
/* The log function that the library calls. */
void hf__zk_on_log(const char *line);
/* Writes to which server there is no connection and why; returns out. */
const char *hf__zk_why_down(struct zk *, char *out, size_t size);

#endif
