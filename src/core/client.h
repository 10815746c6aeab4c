/*
 * A client: what hf_open() returns. It has a connection to one backend, and its
 * own lines, timers, requests and callbacks. Which mutex guards what:
 *
 *   line->mu     the queues, requests and waiters of all lines of one name
 *   client->mu   the backend (a networked one), the driver's role, the table of
 *                names, references, timers, news, callbacks
 *
 * Order: line->mu before client->mu. A backend reports while client->mu is
 * held, so line->mu must not be locked then, and the report is only noted
 * (news, see report.h). Later a thread, usually the driver, delivers the report
 * to the line, with the mutexes in the right order.
 */
#ifndef HF_CLIENT_H
#define HF_CLIENT_H

#include "base/futex.h"
#include "base/timer.h"
#include "core/events.h"
#include "core/loss_reason.h"

#include <pthread.h>

/* The longest TTL, lease or timeout. It fits into the 32-bit number that
 * backends send, and the sum of two of these times fits into an unsigned 32-bit
 * number. */
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
    int fairness; /* the fairness in the URL, or 0 for the backend's default */
    bool direct, endless, session;
    int caps[HF_LATCH + 1];
    int epfd;     /* epoll of the backend's descriptors and wake_fd */
    int wake_fd;  /* ends the driver's sleep */
    int ready_fd; /* readable while callbacks or events wait for dispatch */
    const uint32_t *parent; /* points to 1, or to 0 in a child after fork */

    /* The backend's state, or NULL while the backend is not open. Written with
     * mu held when the client is opened and closed. No verb uses the backend at
     * those times, so verbs on a direct backend read it without mu. */
    void *self;
    uint32_t closed; /* atomic: 1 once hf_close has begun */

    struct hf__mutex mu;
    /* mu guards all members below, unless noted otherwise */
    int outer_fd; /* epoll of epfd and ready_fd, created by hf_client_fd(); or
                     -1 */
    uint32_t least_ttl_ms; /* the smallest TTL of the client and its handles so
                              far */
    bool driven;           /* whether the thread `driver` has the driver's role
                              (loop/driver.h) */
    pthread_t driver;
    uint32_t rounds;      /* rounds of driving so far */
    uint32_t under_way;   /* requests that the backend has not reported as
                             done */
    uint32_t async_waits; /* asynchronous acquires that wait */
    uint32_t handles;     /* locks, latches and watches */
    uint32_t inside;      /* threads inside a verb; hf_close waits for them */
    uint32_t firing; /* atomic: threads in hf_cancel_fire(), for which hf_close
                        also waits */
    uint32_t serial; /* number of lines created so far, for hold ids */
    struct hf__sleeper *followers, *followers_tail;
    struct hf__timers timers;
    struct hf__line **buckets;
    size_t buckets_len, names_len;
    struct hf__line *news, *news_tail;
    struct hf__exchange *exchanges; /* unused exchanges, kept for reuse */
    struct hf__request *requests, *landed, *landed_tail;
    struct hf__req *outbox, *outbox_tail; /* see backend.h */
    bool may_go_on;                       /* the backend can send again */
    struct hf__async *callbacks, *callbacks_tail;
    size_t callbacks_len;
    struct hf__event *events, *events_tail;
    unsigned events_len, events_allocated;
    struct hf__event overflow;        /* reports that events were dropped */
    hf_watch *changed, *changed_tail; /* see watches.h */
    size_t changed_len;

    /* The counts that the lines do not keep (hf__tally_add), and those that
     * were moved here from the lines (hf__tally_carry). Changed by atomic
     * additions. The result of hf__counters_read_locked() also includes the
     * counts that the lines still keep. */
    hf_metrics counts;
    uint64_t longest_waits; /* grants after waits that are longer than the limit
                               of the last bucket */

    struct hf__mutex why_mu;
    hf_error why;      /* the backend's last failure; why_mu */
    char trouble[720]; /* why the client is not connected, or ""; why_mu */
    struct hf__note notes[HF__NOTES]; /* why_mu */
    int64_t wall_offset; /* the wall clock minus hf__now(), in ns; why_mu */

    uint32_t session_lost; /* atomic: the session has ended, and the helper
                              thread will mark every line
                              (hf__report_session_locked) */
    pthread_t helper;
    hf__time helper_until;
    hf__time driver_until; /* when the driver's sleep ends, or 0 while the
                              driver is awake and will look for work before it
                              sleeps */
    uint32_t helper_word; /* futex: changes when the helper thread must look for
                             work again */
    bool helper_stop, helper_drives;
    uint32_t open_word; /* futex: 1 once open_result is set */
    int open_result;
    bool open_given_up;
    struct hf__config *config; /* only while the client is being opened */
};

/* Returns 0 if the client can be used, EFORK in a child process, or ECLOSED. */
static inline int hf__client_check(const hf_client *c)
{
    if (__builtin_expect(!*(const volatile uint32_t *)c->parent, 0))
        return HF_EFORK;
    if (__builtin_expect(__atomic_load_n(&c->closed, __ATOMIC_ACQUIRE), 0))
        return HF_ECLOSED;
    return 0;
}

/* Does what hf__client_check() does, and sets an error message. Returns EINVAL
 * if the client is NULL. */
int hf__client_usable(const hf_client *, hf_error *);
/* Must be called before a verb uses the backend, unless hf__lock_wait_begin()
 * was called. Makes hf_close() wait for hf__client_leave(). Returns false if
 * the client was closed. */
bool hf__client_enter(hf_client *);
/* Ends what hf__client_enter() has begun. */
void hf__client_leave(hf_client *);
/* Creates a client with the options' hooks; returns NULL if out of memory.
 * Descriptors that could not be created are -1. */
hf_client *hf__client_new(const hf_client_options *);
/* Must be called after a handle was freed. Frees the client if it was closed
 * and this was its last handle. */
void hf__client_put(hf_client *);
/* Frees the memory and the descriptors. The backend, the config and all lines
 * must have been freed before. */
void hf__client_free(hf_client *);

/* Returns the time limit for the answer to a request that is sent now. */
static inline hf__time hf__op_deadline(const hf_client *c)
{
    return hf__now() + (hf__time)c->op_timeout_ms * HF__MS;
}

#endif
