/*
 * A verb may hold a mutex, drive the client, or be about to release a hold.
 * Therefore pthread_cancel() must not end a thread in the middle of a verb, and
 * each verb switches cancellation off before it can reach a cancellation point
 * (a read, a poll, a hook of the program). A cancellation that is requested
 * during the verb takes effect after the verb has returned.
 *
 * In shared memory, the acquire of a free lock, and its release, take a short
 * way if no other thread of the process uses the lock. They reach no
 * cancellation point, and do not switch cancellation off, because each switch
 * costs an atomic instruction. If a client may have died, they call code of the
 * shm backend that can reach a cancellation point; that code switches
 * cancellation off itself.
 */
#ifndef HF_UNCANCELLED_H
#define HF_UNCANCELLED_H

#include <pthread.h>

static inline int hf__cancellation_off(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void hf__cancellation_as(const int *before)
{
    int off;

    pthread_setcancelstate(*before, &off);
}

/* Switches cancellation off until the end of the block. */
#define HF__UNCANCELLED                                                        \
    const int hf__uncancelled                                                  \
        __attribute__((cleanup(hf__cancellation_as), unused)) =                \
            hf__cancellation_off()

#endif
