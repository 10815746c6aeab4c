/* A fake server of our own, that greets as Redis does and then answers whatever
 * the case wants. */
#ifndef REDIS_LIAR_H
#define REDIS_LIAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct liar {
    pthread_t thread;
    int listener, port;
    const char *hello; /* NULL: as Redis */
    const char *lie;
    size_t lie_len;
    int repeat;            /* the lie, this many times in one answer */
    bool hangs_up;         /* instead of an answer */
    uint32_t stop, closed; /* atomic; connections that have ended */
};

void liar_start(struct liar *, char url[64]);
void liar_end(struct liar *);

#endif
