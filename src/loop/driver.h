/*
 * The driver's role. One thread at a time sleeps on the client's descriptors
 * and lets the backend do its work on behalf of all; the other threads sleep
 * until they are woken. The driver passes the role on when it leaves. If only
 * one thread calls, it drives, so no work is handed from thread to thread. If
 * many threads call, one system call serves all of them.
 */
#ifndef HF_DRIVER_H
#define HF_DRIVER_H

#include "core/client.h"
#include "core/wakeup.h"

typedef bool hf__ready_fn(void *arg, hf__time now, hf__time *until);
/* Drives, or follows the driver, until ready() returns true. ready() is called
 * on this thread without mutexes, and sets *until to the latest time to call it
 * again. */
void hf__driver_wait(hf_client *, struct hf__sleeper *, hf__ready_fn *,
                     void *arg);
/* Takes the role, for the helper thread and dispatch. Returns false if the role
 * is taken already. */
bool hf__driver_take(hf_client *);
/* Takes the role, which must be free. client->mu is held. */
void hf__driver_lead_locked(hf_client *);
/* Gives up the role, and passes it to the first follower, if there is one. */
void hf__driver_give(hf_client *);
/* Does one round of driving: sleeps until that time at the latest, lets the
 * backend do what is due, and delivers. */
void hf__driver_round(hf_client *, struct hf__sleeper *, hf__time until);
/* Tells the backend which descriptors are ready, and then lets it do what is
 * due. Does not sleep. */
void hf__driver_move_locked(hf_client *, hf__time now);
/* Implements hf__core.watch. */
int hf__driver_watch(hf_client *, int fd, uint32_t events, uint32_t tag);
/* Returns when the next timer or action of the backend is due, or HF__NEVER if
 * there is none. */
hf__time hf__driver_next_locked(hf_client *);
/* Makes sure that the driver or the helper thread is awake at that time. */
void hf__driver_due_locked(hf_client *, hf__time at);

/* Returns how late a driver may be before another thread acts in its place. A
 * driver is a thread of the program, so a signal handler or a low priority may
 * delay it. A renewal is due after a third of the TTL, and at most a sixth of
 * any TTL is added here, so half of it is left. No verb is delayed by as much
 * as a second. */
static inline hf__time hf__driver_patience(const hf_client *c)
{
    uint32_t ms = c->least_ttl_ms / 6;

    return (ms < 800 ? ms : 800) * HF__MS;
}

/* Returns hf__driver_patience(), but at least HF__PATIENCE; for use while
 * requests are under way. */
static inline hf__time hf__follower_patience(const hf_client *c)
{
    hf__time at_least = HF__PATIENCE, time = hf__driver_patience(c);

    return time < at_least ? at_least : time;
}

/* A follower that waits for a bell has no request under way. At this interval
 * the helper thread reads what the driver may have left unread, in case a bell
 * is among it. */
#define HF__BELL_PATIENCE (2000 * HF__MS)

/* Returns whether there are asynchronous waits that the program does not drive,
 * because it has not called hf_client_fd(). client->mu is held. */
static inline bool hf__unattended_locked(const hf_client *c)
{
    return c->async_waits && c->outer_fd < 0 && !c->direct;
}

#endif
