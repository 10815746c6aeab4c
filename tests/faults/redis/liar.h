/* A fake server that greets as Redis does and then answers as the case
 * wants. */
#ifndef REDIS_LIAR_H
#define REDIS_LIAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct liar {
    pthread_t thread;
    int listener, port;
    const char *hello; /* the greeting, or NULL for the greeting of Redis */
    const char *lie;
    size_t lie_len;
    int repeat;            /* how often `lie` is sent per request */
    bool hangs_up;         /* close the connection instead of answering */
    uint32_t stop, closed; /* atomic; `closed` counts the connections that have
                              ended */
};

void liar_start(struct liar *, char url[64]);
void liar_end(struct liar *);

#endif
