/*
 * What the library says, for the texts of errors. It logs by one function for
 * all clients of a process: so hf__zk_speak_for() is called before each of its
 * functions, on the same thread.
 */
#ifndef HF_ZK_WORDS_H
#define HF_ZK_WORDS_H

#include "zookeeper.h"

/* Before each call of the library on this thread, so that its words reach the
 * right client; NULL: nobody's. */
void hf__zk_speak_for(struct zk *);
/* For the library. */
void hf__zk_on_log(const char *line);
/* Whereto and why there is no connection. */
const char *hf__zk_why_down(struct zk *, char *out, size_t size);

#endif
