#include "core/wakeup.h"

#include "base/futex.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/client.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

void hf__sleeper_init(struct hf__sleeper *s, hf_cancel *cancel)
{
    *s = (struct hf__sleeper){.posture = HF__AWAKE};
    s->word = cancel ? &cancel->word : &s->own_word;
}

void hf__fd_post(int fd)
{
    uint64_t one = 1;

    /* write(2) is not used, because it is a cancellation point even in a signal
     * handler. If the counter is full, the descriptor is readable anyway. */
    (void)!syscall(SYS_write, fd, &one, sizeof(one));
}

void hf__fd_drain(int fd)
{
    uint64_t many;

    (void)!read(fd, &many, sizeof(many));
}

uint32_t *hf__sleeper_notify(hf_client *c, struct hf__sleeper *s)
{
    uint32_t *word = s->word;

    __atomic_add_fetch(word, HF__NEWS, __ATOMIC_SEQ_CST);
    switch (__atomic_load_n(&s->posture, __ATOMIC_SEQ_CST)) {
    case HF__PARKED:
        return word;
    case HF__DRIVING:
        hf__fd_post(c->wake_fd);
        return NULL;
    default:
        return NULL; /* the sleeper looks at its word before it sleeps */
    }
}

void hf__sleeper_wake(hf_client *c, struct hf__sleeper *s)
{
    uint32_t *word = hf__sleeper_notify(c, s);

    if (word)
        hf__futex_wake(word, 1);
}

static void wakeup_wake_locked(hf_client *c, hf__time at)
{
    c->helper_until = at;
    __atomic_add_fetch(&c->helper_word, 1, __ATOMIC_RELEASE);
    hf__futex_wake(&c->helper_word, 1);
    if (c->helper_drives)
        hf__fd_post(c->wake_fd);
}

void hf__helper_due_locked(hf_client *c, hf__time at)
{
    if (at >= c->helper_until)
        return;
    if (c->driven && !c->helper_drives &&
        pthread_equal(c->driver, pthread_self()))
        return; /* this thread drives: it looks for due work before it sleeps,
                   and when it leaves the role */
    wakeup_wake_locked(c, at);
}

void hf__helper_timer(hf_client *c, struct hf__timer *timer, hf__time at)
{
    HF__HOLDING(&c->mu);

    hf__timers_set(&c->timers, timer, at);
    hf__helper_due_locked(c, at);
}

void hf__helper_check_later(hf_client *c)
{
    if (c->direct)
        return;
    HF__HOLDING(&c->mu);
    if (c->under_way || c->landed)
        hf__helper_due_locked(c, hf__now() + HF__PATIENCE);
}
