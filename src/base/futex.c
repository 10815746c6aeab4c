#include "base/futex.h"

#include "base/time.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void hf__futex_wait(uint32_t *word, uint32_t expect, hf__time until)
{
    struct timespec ts, *timeout = NULL;

    if (until != HF__NEVER) {
        hf__time left = until - hf__now();

        if (left <= 0)
            return;
        if (left > HF__NAP)
            left = HF__NAP;
        ts.tv_sec = left / 1000000000;
        ts.tv_nsec = left % 1000000000;
        timeout = &ts;
    }
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expect, timeout, NULL, 0);
}

void hf__futex_wake(uint32_t *word, int how_many)
{
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, how_many, NULL, NULL, 0);
    errno = saved;
}

static void futex_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The largest number of pause instructions between two reads of the word. Their
 * number doubles after each read, because a read takes the word's cache line
 * from the thread that holds the mutex, which slows that thread down. */
enum { PAUSES_MAX = 64 };

void hf__mutex_lock_slow(struct hf__mutex *m)
{
    for (int pauses = 1; pauses <= PAUSES_MAX; pauses *= 2) {
        uint32_t free_word = 0;

        if (__atomic_load_n(&m->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&m->word, &free_word, 1, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        for (int i = 0; i < pauses; i++)
            futex_relax();
    }
    while (__atomic_exchange_n(&m->word, 2, __ATOMIC_ACQUIRE) != 0)
        hf__futex_wait(&m->word, 2, HF__NEVER);
}
