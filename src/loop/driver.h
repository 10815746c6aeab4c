/*
 * The driver's role. One thread at a time sleeps on the client's descriptors
 * and moves the backend on, for everybody; the others sleep until they are
 * woken, and whoever leaves passes the role on. So a lone caller goes from
 * socket to socket without a hand-over, and many share one system call.
 */
#ifndef HF_DRIVER_H
#define HF_DRIVER_H

#include "core/client.h"
#include "core/wakeup.h"

typedef bool hf__ready_fn(void *arg, hf__time now, hf__time *until);
/* Drives, or follows whoever drives, until ready() says so. It is called on
 * this thread, without locks, and says when to call it again at the latest. */
void hf__driver_wait(hf_client *, struct hf__sleeper *, hf__ready_fn *,
                     void *arg);
/* For the helper thread and dispatch. False: somebody else drives. */
bool hf__driver_take(hf_client *);
void hf__driver_lead_locked(hf_client *); /* takes what is known to be free */
void hf__driver_give(hf_client *);
/* One round of the driver: sleeps until then at most, moves on, delivers. */
void hf__driver_round(hf_client *, struct hf__sleeper *, hf__time until);
/* What has come so far, to the backend, and then what is due. Does not wait. */
void hf__driver_move_locked(hf_client *, hf__time now);
/* hf__core.watch */
int hf__driver_watch(hf_client *, int fd, uint32_t events, uint32_t tag);
/* When something is due: a timer, or something at the backend. */
hf__time hf__driver_next_locked(hf_client *);
/* Somebody is to be awake then. */
void hf__driver_due_locked(hf_client *, hf__time at);

/* A driver is a thread of the program: a signal handler may keep it, or its
 * priority. So long after the time it is not waited for any more; half of any
 * TTL is left then, and no verb is a second late. */
static inline hf__time hf__driver_patience(const hf_client *c)
{
    uint32_t ms = c->least_ttl_ms / 6;

    return (ms < 800 ? ms : 800) * HF__MS;
}

/* The same for a follower that has something under way. */
static inline hf__time hf__follower_patience(const hf_client *c)
{
    hf__time at_least = HF__PATIENCE, time = hf__driver_patience(c);

    return time < at_least ? at_least : time;
}

/* A follower that waits for a bell has nothing under way. It checks this often
 * for what the driver may have left unread. */
#define HF__BELL_PATIENCE (2000 * HF__MS)

/* Asynchronous waits of a program that does not drive? client->mu. */
static inline bool hf__unattended_locked(const hf_client *c)
{
    return c->async_waits && c->outer_fd < 0 && !c->direct;
}

#endif
