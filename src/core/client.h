/*
 * A client: what hf_open() returns, a connection to one backend with its lines,
 * timers, requests and callbacks. Who may touch what:
 *
 *   line->mu     its queues, its remotes' requests, its waiters
 *   client->mu   the backend (a networked one), the driver's role, the table of
 *                names, references, timers, news, callbacks
 *
 * Order: line->mu before client->mu. The backend reports under client->mu and
 * only leaves a mark (news); whoever drives then takes it to the name, with
 * both in the right order.
 */
#ifndef HF_CLIENT_H
#define HF_CLIENT_H

#include "base/futex.h"
#include "base/timer.h"
#include "core/events.h"
#include "core/loss_reason.h"

#include <pthread.h>

/* The longest lease or timeout: they travel as 32 bits, with room to add. */
#define HF__MS_MAX ((int64_t)HF_LEASE_MAX_MS)
struct hf__request;
struct hf__sleeper;

struct hf_client {
    /* constant after open */
    const struct hf__backend *be;
    hf_hooks hooks;
    void (*on_event)(void *, const hf_event *);
    void *event_arg;
    char *prefix, *label;
    char *place; /* the URL without user, password and options */
    uint32_t ttl_ms, op_timeout_ms;
    int fairness; /* of the URL; 0: the backend's */
    bool direct, endless, session;
    int caps[HF_LATCH + 1];
    int epfd;               /* the backend's descriptors, and wake_fd */
    int wake_fd;            /* ends the driver's sleep */
    int ready_fd;           /* callbacks or events wait for dispatch */
    const uint32_t *parent; /* 1; 0 in a child after fork */

    /* The backend's state. Written with mu, on opening and on closing, while no
     * verb uses the backend: verbs on a direct one read it without mu. NULL: it
     * is not open, or not any more. */
    void *self;
    uint32_t closed; /* atomic: 1 from the beginning of hf_close */

    struct hf__mutex mu;
    /* all below: mu */
    int outer_fd; /* epfd and ready_fd, made by hf_client_fd(); or -1 */
    uint32_t least_ttl_ms; /* of the client and of its handles so far */
    bool driven;           /* somebody has the driver's role: */
    pthread_t driver;
    uint32_t rounds;      /* of driving, so far */
    uint32_t under_way;   /* requests that the backend has not reported */
    uint32_t async_waits; /* acquires that no thread waits for */
    uint32_t handles;     /* locks and latches */
    uint32_t inside;      /* threads in a wait; hf_close waits for them */
    uint32_t firing;      /* atomic: the same for those that fire; see
                             hf_cancel_fire() */
    uint32_t serial;      /* of lines, for hold ids */
    struct hf__sleeper *followers, *followers_tail;
    struct hf__timers timers;
    struct hf__line **buckets;
    size_t buckets_len, names_len;
    struct hf__line *news, *news_tail;
    struct hf__exchange *exchanges; /* to be used again */
    struct hf__request *requests, *landed, *landed_tail;
    struct hf__req *outbox, *outbox_tail; /* see backend.h */
    bool may_go_on;                       /* the backend takes them again */
    struct hf__async *callbacks, *callbacks_tail;
    size_t callbacks_len;
    struct hf__event *events, *events_tail;
    unsigned events_len, events_allocated;
    struct hf__event overflow;        /* stands for those that were dropped */
    hf_watch *changed, *changed_tail; /* see watches.h */
    size_t changed_len;

    /* What the lines do not count (hf__tally_add), and what freed lines have
     * counted. Changed by atomic adds; see hf__counters_read_locked(). */
    hf_metrics counts;
    uint64_t longest_waits; /* grants after longer waits than any bucket's */

    struct hf__mutex why_mu;
    hf_error why;      /* the backend's last word; why_mu */
    char trouble[720]; /* why it is not connected, or ""; why_mu */
    struct hf__note notes[HF__NOTES]; /* why_mu */
    int64_t wall_offset; /* of the wall clock to ours, in ns; why_mu */

    uint32_t session_lost; /* atomic: for the helper thread to spread */
    pthread_t helper;
    hf__time helper_until;
    hf__time driver_until; /* it sleeps; 0: it looks before it does */
    uint32_t helper_word;  /* futex: it shall look again */
    bool helper_stop, helper_drives;
    uint32_t open_word; /* futex: open_result is there */
    int open_result;
    bool open_given_up;
    struct hf__config *config; /* while opening */
};

/* May the client be used? 0, EFORK in a child of the process, or ECLOSED. */
static inline int hf__client_check(const hf_client *c)
{
    if (__builtin_expect(!*(const volatile uint32_t *)c->parent, 0))
        return HF_EFORK;
    if (__builtin_expect(__atomic_load_n(&c->closed, __ATOMIC_ACQUIRE), 0))
        return HF_ECLOSED;
    return 0;
}

/* The same, with a text; EINVAL if it is NULL. */
int hf__client_usable(const hf_client *, hf_error *);
/* Around what a verb does at the backend without a wait of its own
 * (hf__lock_wait_begin): hf_close waits for it. False: too late, the client is
 * closed. */
bool hf__client_enter(hf_client *);
void hf__client_leave(hf_client *);
/* With the options' hooks; some of its descriptors may be missing. NULL: out of
 * memory. */
hf_client *hf__client_new(const hf_client_options *);
/* One handle less; frees a closed client with its last one. */
void hf__client_put(hf_client *);
/* Its backend, its config and its lines are gone. */
void hf__client_free(hf_client *);

/* Until when an answer to what is asked now is waited for. */
static inline hf__time hf__op_deadline(const hf_client *c)
{
    return hf__now() + (hf__time)c->op_timeout_ms * HF__MS;
}

#endif
