#include "base/thread_id.h"

#include <pthread.h>
#include <stdlib.h>

/* The state of the whole process, not of a client: a counter, and a key whose
 * destructor marks the record of a thread that has exited. */
static uint64_t last_number;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

enum { ALIGNMENT = 64 };

__thread struct hf__thread *hf__thread_self
    __attribute__((tls_model("initial-exec")));

uint64_t hf__owner_number(void)
{
    return __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
}

void hf__thread_ref(struct hf__thread *t)
{
    __atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
}

void hf__thread_unref(struct hf__thread *t)
{
    if (t && __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(t);
}

static void thread_exits(void *p)
{
    struct hf__thread *t = p;

    hf__thread_self = NULL;
    __atomic_store_n(&t->gone, 1, __ATOMIC_RELEASE);
    hf__thread_unref(t);
}

static void thread_make_key(void)
{
    have_key = pthread_key_create(&key, thread_exits) == 0;
}

struct hf__thread *hf__thread_make(void)
{
    struct hf__thread *t;

    pthread_once(&once, thread_make_key);
    /* Each record has its own cache line, so that a thread that changes the
     * reference count of its record does not slow down the other threads. */
    t = have_key ? aligned_alloc(ALIGNMENT, ALIGNMENT) : NULL;
    if (!t)
        return NULL;
    *t = (struct hf__thread){0};
    t->number = hf__owner_number();
    t->refs = 1;
    if (pthread_setspecific(key, t)) {
        free(t);
        return NULL;
    }
    hf__thread_self = t;
    return t;
}
