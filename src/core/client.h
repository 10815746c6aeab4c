/*
 * The core's own types. Who may touch what:
 *
 *   name->mu     its queues, its remotes' requests, its waiters
 *   client->mu   the backend (a networked one), the driver's role, the table of
 *                names, references, timers, news, callbacks
 *
 * Order: name->mu before client->mu. The backend reports under client->mu and
 * only leaves a mark (news); whoever drives then takes it to the name, with
 * both in the right order.
 */
#ifndef HF_CORE_H
#define HF_CORE_H

#include "base/futex.h"
#include "base/list.h"
#include "base/text.h"
#include "base/thread_id.h"
#include "base/timer.h"
#include "base/uncancelled.h"
#include "policy/line_set.h"

#include <pthread.h>

/* The longest lease or timeout: they travel as 32 bits, with room to add. */
#define HF__MS_MAX ((int64_t)HF_LEASE_MAX_MS)

/* In hf_cancel.word, as in the word of any sleeper; the rest of it counts. */
#define HF__CANCELLED 1u
#define HF__ATTACHED                                                           \
    2u /* who fires has to wake the driver of its client, too */
#define HF__NEWS 4u

/* Somebody who wants to hear that a hold has been let go: a thread or an
 * asynchronous verb. On name->releasers, under name->mu. */
struct hf__releaser {
    struct hf__releaser *next;
    uint64_t hold_id;
    struct hf__sleeper *sleeper; /* or NULL: */
    struct hf__async *async;
    hf_error *word; /* or NULL: where the server's words about it go */
    int result;
    bool finished;
};

struct hf__request;
struct hf__verb_call;

/* An event for the program, which waits for dispatch. A loss has its place in
 * front of the line that lost (hf__line_lost): it needs no memory, and however
 * many there are, none is dropped. client->mu. */
struct hf__event {
    struct hf__event *next, *prev; /* client->events */
    uint64_t token;
    struct hf__loss loss; /* LOST: why */
    int type;             /* 0: it does not wait */
    uint16_t name_len;
    enum { HF__IN_LINE, HF__IN_CLIENT, HF__ALLOCATED } place : 8;
};

/* What a name needs while it talks to a networked backend, or holds what is
 * there; idle names have none. (A direct one answers at once: its requests live
 * on the stack.) */
struct hf__exchange {
    struct hf__req attempt; /* must be first: remote.ask is cast back to it */
    struct hf__req let_go;
    uint64_t lost_id;          /* a hold that is gone; 0: none. client->mu */
    hf_error *why[2];          /* the last failure of each, in words; or NULL.
                                  client->mu */
    bool session_over;         /* with its session */
    struct hf__exchange *next; /* in client->exchanges */
};

/* A name of which there may be several lines. The first is the one that
 * handles and the table of names know; its mutex guards all. */
struct hf__kin {
    struct hf__line_entry line;
    struct hf__line *first;
    struct hf__line_set lines; /* of the first */
    struct hf__reader *spare;  /* of the first: entries to be used again */
    uint32_t permits;          /* of the present or last hold */
};

/* One per client and name, shared by the handles on it; or a further line. In
 * front of it stands a struct hf__event, if the client hears of events. */
struct hf__line {
    struct hf__mutex mu; /* use hf__line_lock() unless it is a handle's */
    uint32_t refs;       /* handles, and requests under way; client->mu */
    struct hf__queue queue;
    uint64_t tally; /* see hf__tally_add() */
    struct hf__remote remote;
    struct hf__timer timer; /* client->mu; with the number of handles */
    struct hf__thread *owner_thread; /* the last owner, NULL: a handle */
    struct hf__releaser *releasers;
    struct hf__line *next_in_bucket, *next_news;
    hf_client *client;
    struct hf__kin *kin; /* NULL: a mutex, which has one line */
    hf_lock *watchers;   /* handles with a descriptor that tells of loss */
    uint32_t *to_wake;   /* a futex to wake after mu is free; or NULL */
    struct {
        bool parker : 1;   /* direct: a thread sleeps in park for this name */
        bool orphaned : 1; /* its owner has exited; reported */
        bool rings : 1;    /* direct: it was asked for those who never park */
        bool owes : 1;     /* a let_go that was refused is sent again later: one
                              of refs */
    };
    struct { /* client->mu */
        bool in_news : 1, attempt_ready : 1, let_go_ready : 1, rang : 1;
        bool session_lost : 1;
    };
    char text[]; /* the name, terminated, with the client's prefix */
};

/* The place of a loss, if the client hears of events. */
static inline struct hf__event *hf__line_lost(struct hf__line *n)
{
    return (struct hf__event *)n - 1;
}

/* Who is told: by the kind of the handle. */
union hf__done {
    hf_done_fn lock;
    hf_latch_done_fn latch;
};

/* A verb that asks the server something and is over with the answer, beside
 * acquire and release: renew, put, downgrade, those of a latch. */
struct hf__verb {
    const char *what; /* "the renewal": for people, if it is not answered */
    /* Sends the question (hf__verb_send), or says why not; name->mu is held. */
    int (*begin)(hf_lock *, struct hf__verb_call *, hf_error *);
    /* What the answer means; PENDING: it asks once more, name->mu is held. */
    int (*answered)(hf_lock *, struct hf__verb_call *,
                    const struct hf__request *, hf_error *);
};

/* What hf_lock_put() is to write. */
struct hf__put {
    const void *key;
    size_t key_len;
    const void *value;
    size_t value_len;
};

/* One such verb, under way: on the stack of the thread that waits, or in the
 * handle. Its steps are taken by that thread, or by whoever dispatches. */
struct hf__verb_call {
    const struct hf__verb *verb;
    struct hf__request *flight;  /* the question; client->mu. NULL: given up */
    struct hf__sleeper *sleeper; /* the thread's, or NULL: */
    struct hf__async *async;
    hf__time until;        /* all questions together */
    struct hf__line *line; /* with the hold that it is about */
    uint64_t hold_id;
    int64_t lease_ms;          /* renew: what the caller wants */
    const struct hf__put *put; /* put: the caller's, until begin() is over */
    /* of a latch: */
    uint64_t count, request;
    uint64_t *left; /* the caller's, or NULL */
    uint8_t op;
};

/* An asynchronous verb; made at the handle's first. */
struct hf__async {
    struct hf__waiter waiter;
    struct hf__timer timer; /* when the wait is over */
    hf__time grace;         /* but the first answer is waited for until here */
    hf__time since;         /* when the acquire was called */
    struct hf__releaser releaser;
    struct hf__verb_call call;
    struct hf__async *next; /* in client->callbacks */
    hf_lock *lock;
    struct hf__line *line; /* where it waits */
    union hf__done done;
    void *arg;
    int result;    /* not written after the callback has been queued: the thread
                      that dispatches reads it without a mutex */
    bool busy;     /* from the call until its callback; name->mu */
    bool acquires; /* it waits in a queue: one of client->async_waits. Written
                      with name->mu and client->mu */
    bool firing;   /* its timer is being seen to; client->mu */
};

struct hf_lock {
    struct hf__line *name;
    struct hf__async *async;
    hf_lock *next_watcher; /* name->mu */
    int64_t max_hold_ms;
    uint64_t owner; /* 0: the thread */
    uint32_t ttl_ms;
    uint32_t flags : 2; /* hf_lock_flag */
    uint32_t handoff : 30;
    int loss_fd; /* -1: nobody asked; name->mu. Stands here so that bits that
                    are written are not beside bits that are only read. */
    /* name->mu: */
    uint32_t waits : 30;         /* through this handle, under way */
    uint32_t acquiring : 1;      /* one of them waits in the queue; if it has an
                                    owner */
    uint32_t loss_signalled : 1; /* loss_fd tells of a loss */
};

/* What the server, or the way to it, was like for a while: so that a loss can
 * be explained as long as its owner has not released it. */
struct hf__note {
    hf__time since, until; /* since is 0: unused; until is NEVER: to this day */
    hf__time from;         /* the text is of this time: there may be another
                              note, with an earlier text */
    enum hf__loss_why why; /* SILENT: not connected; SESSION, REFUSED */
    bool explained;        /* it has explained a loss: its text stays */
    char text[384];        /* with a statement that helps, of MySQL */
};
#define HF__NOTES 8 /* the last ones */

/* A batch or a query under way. Freed by whoever is last: the waiting thread,
 * or delivery if no thread waits (any more). client->mu. */
struct hf__request {
    struct hf__request *next, *prev; /* client->flights */
    struct hf__request *next_landed;
    struct hf__sleeper *sleeper; /* a thread waits; or NULL: */
    struct hf__async *async;     /* an asynchronous verb; or NULL: nobody */
    bool delivered;
    hf_error why;       /* what the backend said of its failure */
    size_t names_bytes; /* LIST: what the names take, about */
    union {
        struct hf__req req;
        struct hf__batch batch;
        struct hf__query query;
    };
};

/* What the lines do not count (see hf__tally_add()), and what lines have
 * counted that are gone. Changed by atomic adds: after a wait, or when an
 * acquire was not granted. */
struct hf__counts {
    uint64_t granted; /* without a wait */
    uint64_t busy, timed_out, cancelled, failed, released;
    uint64_t lost, renewed, renewals_failed, disconnects, reconnects;
    uint64_t waiting;
    uint64_t wait_sum_ns, wait[HF_WAIT_BUCKETS + 1];
};

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
    uint32_t closed; /* atomic: 1 from the begin of hf_close */

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
    uint32_t serial;      /* of names, for hold ids */
    struct hf__sleeper *followers, *followers_tail;
    struct hf__timers timers;
    struct hf__line **buckets;
    size_t buckets_len, names_len;
    struct hf__line *news, *news_tail;
    struct hf__exchange *exchanges; /* to be used again */
    struct hf__request *flights, *landed, *landed_tail;
    struct hf__req *outbox, *outbox_tail; /* see backend.h */
    bool may_go_on;                       /* the backend takes them again */
    struct hf__async *callbacks, *callbacks_tail;
    size_t callbacks_len;
    struct hf__event *events, *events_tail;
    unsigned events_len, events_allocated;
    struct hf__event overflow;        /* stands for those that were dropped */
    hf_watch *changed, *changed_tail; /* see watch.c */
    size_t changed_len;

    struct hf__counts counts;

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

#define hf__container(ptr, type, member)                                       \
    ((type *)((char *)(ptr)-offsetof(type, member)))

/* backend_services.c: memory, log, chance, the table for the backends */
void *hf__alloc(hf_client *, size_t); /* zeroed */
void hf__free(hf_client *, void *);   /* NULL is fine */
void hf__free_by(const hf_hooks *, void *);
char *hf__strdup(hf_client *, const char *);
void hf__log(hf_client *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void hf__report_session_locked(hf_client *);
extern const struct hf__core hf__core;

/* error.c */
int hf__fail(hf_error *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The code, with the backend's last word as text if it spoke of that code. */
int hf__fail_why(hf_client *, hf_error *, int code);
bool hf__may_pass(const hf_client *, int code);
/* The same, with the words that were kept when that request failed: the last
 * word may be about another one by now. */
int hf__fail_word(hf_client *, const hf_error *word, hf_error *, int code);
/* Keeps the backend's last word for a request of that exchange which has come
 * to that code; client->mu is held. */
void hf__keep_word_locked(hf_client *, struct hf__exchange *, bool let_go,
                          int code);
void hf__words_free(hf_client *, struct hf__exchange *);
/* To be put behind "no answer": "; cause: ...", or "". */
struct hf__trouble {
    char text[720 + sizeof("; cause: ")];
};
struct hf__trouble hf__trouble(hf_client *);

/* loss_reason.c: why a hold was lost */
/* Notes it; if the same is noted already and not over, the newer text. */
void hf__note(hf_client *, enum hf__loss_why, const char *text);
void hf__note_over(hf_client *, enum hf__loss_why);
/* A renewal was refused, with that code, in those words. */
void hf__note_refusal(hf_client *, int code, const hf_error *word);
struct hf__reason {
    char text[576];
};
struct hf__reason hf__reason(hf_client *, struct hf__loss);
/* Why a hold that is still ours may not be renewed; "" if all is well. */
struct hf__reason hf__doubt(hf_client *, bool refused);
/* ELOST: the hold of the name was lost; why, if that owner's loss is known. */
int hf__fail_lost(struct hf__line *line, uint64_t owner, hf_error *);
int hf__fail_loss(struct hf__line *line, struct hf__loss, hf_error *);
/* The same for an acquire: the lost hold is to be released first. */
int hf__fail_unreleased(struct hf__line *line, uint64_t owner, hf_error *);
/* The same as the first, or the general text of another code. */
int hf__fail_hold(struct hf__line *line, uint64_t owner, int code, hf_error *);

/* url.c */
int hf__url_parse(hf_client *, const char *text, struct hf__url *, hf_error *);
void hf__url_free(hf_client *, struct hf__url *);
const char *hf__url_option(struct hf__url *, const char *key);

/* module.c */
int hf__backend_find(const char *scheme, const struct hf__backend **,
                     hf_error *);

/* client.c */
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
/* Around what a verb does at the backend without a wait of acquire.c: hf_close
 * waits for it. False: too late, the client is closed. */
bool hf__client_enter(hf_client *);
void hf__client_leave(hf_client *);
/* One handle less; frees a closed client with its last one. */
void hf__client_put(hf_client *);
void hf__client_free(hf_client *);
/* EINVAL with a text; *len is found if it was HF_CSTRING. */
int hf__name_valid(const void *name, size_t *len, hf_error *);

/* driver.c: the driver's role, and what it delivers */
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
int hf__driver_watch(hf_client *, int fd, uint32_t events, uint32_t tag);
/* Takes news, landed flights and due timers to where they belong. */
void hf__deliver(hf_client *, hf__time now);
/* When something is due: a timer, or something at the backend. */
hf__time hf__driver_next_locked(hf_client *);
/* Somebody is to be awake then. */
void hf__driver_due_locked(hf_client *, hf__time at);
/* Of an eventfd, which does not block. Async-signal-safe. */
void hf__fd_post(int fd);
void hf__fd_drain(int fd);
/* It is over: its callback is called. A question that has landed has its own
 * result. */
void hf__callback_queue_locked(hf_client *, struct hf__async *, int result);
struct hf__async *hf__callback_next(hf_client *);
/* By this thread, so that it is in a callback if it asks. */
bool hf__is_dispatching(const hf_client *);
/* False: its verb is not over, it has asked once more. */
bool hf__callback_run(struct hf__async *);
/* loss: of LOST. */
void hf__event_queue_locked(hf_client *, int type, struct hf__line *,
                            uint64_t token, struct hf__loss);
/* The line is about to be freed: an event that waits in it gets another place.
 */
void hf__event_detach_locked(struct hf__line *);
/* Those that wait are not delivered any more. */
void hf__event_drop_all_locked(hf_client *);
/* Leaves word for a sleeper. What is returned, if anything, is to be given to
 * hf__futex_wake(), at once or when the mutex that guards the sleeper is free
 * again. */
uint32_t *hf__sleeper_notify(hf_client *, struct hf__sleeper *);
void hf__sleeper_wake(hf_client *, struct hf__sleeper *);
/* outbox.c: requests on their way to a networked backend; client->mu */
/* Hands it over, or parks it: PENDING. Else what it came to at once. */
int hf__outbox_submit_locked(hf_client *, struct hf__req *);
/* Those that are parked, as far as the backend takes them. */
void hf__outbox_flush_locked(hf_client *);
/* If it is parked: nothing is sent for it. */
void hf__outbox_remove_locked(hf_client *, struct hf__req *);
/* The same, and it is reported: that is what it came to. */
void hf__outbox_finish_locked(hf_client *, struct hf__req *, int result);
/* Its caller leaves: nothing is sent for it from now on, unless it is always
 * meant. */
void hf__outbox_give_up_locked(hf_client *, struct hf__req *);
/* hf__core.unsent */
void hf__outbox_return(hf_client *, struct hf__req *);
/* requests.c */
/* With room behind it; NULL: out of memory, and err says so. */
struct hf__request *hf__request_new(hf_client *, enum hf__op, size_t extra,
                                    hf_error *);
/* Submits it and waits for it. False: not answered in time; the flight is not
 * the caller's any more. */
bool hf__request_run(hf_client *, struct hf__request *);
/* The two halves of it; the first may be done with a name's mutex held. */
void hf__request_submit(hf_client *, struct hf__request *);
bool hf__request_await(hf_client *, struct hf__request *, hf__time until);
void hf__request_free(hf_client *, struct hf__request *);

/* inspect.c */
/* A question about the name of a handle; NULL: out of memory, and err says so.
 */
struct hf__request *hf__query_new_of(const hf_lock *, enum hf__op, hf_error *);
void hf__query_destroy(struct hf__query *); /* client->mu is held */
/* Begins one of hf_inspect(), hf_list() ..., if the backend can do that: it
 * enters the client. NULL, and *rc: why not. */
struct hf__request *hf__query_begin(hf_client *, enum hf__op, const void *name,
                                    size_t len, int *rc, hf_error *);
/* Sends it and waits. On success hf__query_end() is the caller's to call, else
 * it has ended. given: where the answer goes, by hf__result_alloc(); NULL:
 * ENOMEM. */
int hf__query_run(hf_client *, struct hf__request *, const void *given,
                  hf_error *);
void hf__query_end(hf_client *, struct hf__request *);
/* Memory that a program is given, zeroed, or NULL. It may outlive the client,
 * so that the hooks are kept beside it. */
void *hf__result_alloc(hf_client *, size_t);
/* Frees what belongs to it; and at last it itself. */
void hf__result_free(void *given, void *part);

/* Until when an answer to what is asked now is waited for. */
static inline hf__time hf__op_deadline(const hf_client *c)
{
    return hf__now() + (hf__time)c->op_timeout_ms * HF__MS;
}

/* watch.c */
/* hf__core.changed */
void hf__watch_changed(hf_client *, struct hf__listener *, const char *name,
                       size_t len);
/* One that the program never got. */
void hf__watch_remove_locked(struct hf__listener *);
/* The callbacks of those that have changed: how many were called, or EFORK. */
int hf__watch_call_all(hf_client *);

/* helper_thread.c: the helper thread */
/* Starts it and opens the backend. *given_up: that is not over yet, and the
 * client is the thread's now. */
int hf__helper_start(hf_client *, hf__time until, hf_error *, bool *given_up);
void hf__helper_stop(hf_client *);
/* Requests under way that nobody has moved for this long are moved there. */
#define HF__PATIENCE (100 * HF__MS)
/* A driver is a thread of the program: a signal handler may keep it, or its
 * priority. So long after the time it is not waited for any more; half of any
 * TTL is left then, and no verb is a second late. */
static inline hf__time hf__driver_patience(const hf_client *c)
{
    uint32_t ms = c->least_ttl_ms / 6;

    return (ms < 800 ? ms : 800) * HF__MS;
}
/* For who follows it, and has something under way. */
static inline hf__time hf__follower_patience(const hf_client *c)
{
    hf__time at_least = HF__PATIENCE, time = hf__driver_patience(c);

    return time < at_least ? at_least : time;
}
/* Who follows it, and waits to be told, has nothing under way. What the driver
 * does not read is looked for that often. */
#define HF__BELL_PATIENCE (2000 * HF__MS)
/* Asynchronous waits of a program that does not drive? client->mu. */
static inline bool hf__unattended_locked(const hf_client *c)
{
    return c->async_waits && c->outer_fd < 0 && !c->direct;
}
/* It shall be awake by then. */
void hf__helper_due_locked(hf_client *, hf__time at);
/* The same, for that timer, which is set. */
void hf__helper_timer(hf_client *, struct hf__timer *, hf__time at);

/* resolve.c: host names to addresses, see hf__core */
struct hf__lookup *hf__lookup(const char *hosts, bool here);
bool hf__lookup_over(const struct hf__lookup *);
void hf__lookup_leave(struct hf__lookup *);

/* name_table.c: the table of them */
int hf__names_get(hf_client *, const void *name, size_t len,
                  const hf_lock_options *, struct hf__line **, hf_error *);
/* One more line to the name of this one, whose mutex is held; not in its list
 * of lines yet. */
int hf__names_add_line(struct hf__line *first, enum hf_mode, struct hf__line **,
                       hf_error *);
/* What a handle that is not counted any more referred to. */
void hf__names_put(struct hf__line *);
void hf__line_unref(struct hf__line *);
void hf__line_unref_locked(struct hf__line *);

/* line.c: a line to one */
static inline struct hf__line *hf__line_first(struct hf__line *n)
{
    return n->kin ? n->kin->first : n;
}
static inline void hf__line_lock(struct hf__line *n)
{
    hf__mutex_lock(&hf__line_first(n)->mu);
}
/* Whoever was woken under the mutex wants it next: they are told afterwards. */
static inline void hf__line_unlock_first(struct hf__line *n)
{
    uint32_t *word = n->to_wake;

    if (word)
        n->to_wake = NULL;
    hf__mutex_unlock(&n->mu);
    if (word)
        hf__futex_wake(word, 1);
}
static inline void hf__line_unlock(struct hf__line *n)
{
    hf__line_unlock_first(hf__line_first(n));
}
/* Its name, for people: without the client's prefix. */
struct hf__shown hf__line_shown(struct hf__line *);
/* What it talks to a networked backend with; or NULL. */
static inline struct hf__exchange *hf__exchange_of(const struct hf__line *n)
{
    return (struct hf__exchange *)n->remote.ask;
}
/* The same, made if it has none; NULL: out of memory. */
struct hf__exchange *hf__exchange_make(struct hf__line *);
/* Sends what the queue wants sent and sets the timer; name->mu is held. */
void hf__line_run(struct hf__line *, hf__time now);
/* Takes the backend's news to the queue. */
void hf__line_news(struct hf__line *);
/* The clock reached the name's timer. Returns the hold id that the caller has
 * to renew, or 0. If the caller does not come to it, the timer tells the next
 * thread that looks. */
uint64_t hf__line_timer(struct hf__line *, hf__time now);
/* EBACKEND, with its text: the server does not answer. */
int hf__silence(hf_client *, hf_error *);
hf__wake_fn hf__line_wake;
/* A thread that has exited releases nothing: what the last owner, or one of
 * those who read, lost is forgotten if it has. True: it was. */
bool hf__line_forget_the_gone(struct hf__line *);
/* The queue has a new owner: w. */
void hf__line_own(struct hf__line *, const struct hf__waiter *);
/* Tells those who wait for the release of that hold id, or (0) of any. */
void hf__line_finish_releases(struct hf__line *, uint64_t hold_id, int result);

/* counters.c: what the client has done */
static inline void hf__count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}
/* An acquire has failed before it came to a line. */
void hf__count_failed(const hf_lock *);
/* An acquire through that line is over without a wait; name->mu is held. */
void hf__count_at_once(struct hf__line *, int result);
/* One waits; and its wait is over, after that time. */
void hf__count_wait(hf_client *, enum hf_kind);
void hf__count_waited(hf_client *, enum hf_kind, int result, hf__time waited);
/*
 * What a line counts, in one number. From the lowest bit on: 20 bits for the
 * acquires that were granted without a wait; 20 bits for the releases; 24 bits
 * for what has to be added to the difference of the two to get the number of
 * holds now.
 *
 * Written with name->mu held, read with client->mu held: so every access is
 * atomic but for the writer's own read, and threads that use different names do
 * not write the same counters. An acquire and a release in shared memory that
 * go the short way write it once: every store delays the next locked
 * instruction.
 */
#define HF__TALLY_BITS 20
#define HF__TALLY_GRANT UINT64_C(1)
#define HF__TALLY_RELEASE (HF__TALLY_GRANT << HF__TALLY_BITS)
#define HF__TALLY_HOLD (HF__TALLY_RELEASE << HF__TALLY_BITS)
/* The client takes over what the line has counted so far; the second is for a
 * line that is about to be freed. */
void hf__tally_carry(struct hf__line *);
void hf__tally_carry_locked(struct hf__line *);
static inline uint32_t hf__tally_granted(uint64_t tally)
{
    return (uint32_t)(tally % HF__TALLY_RELEASE);
}
static inline uint32_t hf__tally_released(uint64_t tally)
{
    return (uint32_t)(tally % HF__TALLY_HOLD / HF__TALLY_RELEASE);
}
static inline uint32_t hf__tally_held(uint64_t tally)
{
    uint64_t held = tally / HF__TALLY_HOLD + hf__tally_granted(tally) -
                    hf__tally_released(tally);

    return (uint32_t)(held % (UINT64_MAX / HF__TALLY_HOLD + 1));
}
/* From here on: name->mu is held. */
/* A GRANT or a RELEASE: one hold more or less, unless hf__tally_hold() or
 * hf__tally_set() follows. */
static inline void hf__tally_add(struct hf__line *n, uint64_t what)
{
    __atomic_store_n(&n->tally, n->tally + what, __ATOMIC_RELAXED);
}
/* Neither counter overflows; to be called between any two releases. */
static inline void hf__tally_limit(struct hf__line *n)
{
    const uint64_t half = (HF__TALLY_RELEASE | HF__TALLY_HOLD) / 2;

    if (__builtin_expect((n->tally & half) != 0, 0))
        hf__tally_carry(n);
}
static inline void hf__tally_set(struct hf__line *n, uint32_t held)
{
    hf__tally_add(n,
                  (uint64_t)(held - hf__tally_held(n->tally)) * HF__TALLY_HOLD);
}
/* The queue has a holder more or less; not by a loss. */
static inline void hf__tally_hold(struct hf__line *n)
{
    hf__tally_set(n, n->queue.shared ? n->queue.count : n->queue.owner != 0);
    hf__tally_limit(n);
}
/* A release has ended with that result of the queue. */
void hf__tally_release(struct hf__line *, int result);
/* The holds of this line were lost. */
void hf__tally_lost(struct hf__line *);

/* loss_fd.c: name->mu is held */
/* Sets the descriptors that tell of loss: the hold of this line has been lost,
 * or some have another end now. */
void hf__loss_fd_arm(struct hf__line *, bool lost);
/* The same, where it can only concern some: those of one owner who came or
 * left, or those who have the hold of this line, which has another end now.
 * (There may be thousands, on as many lines.) */
void hf__loss_fd_arm_of(struct hf__line *, uint64_t owner);
void hf__loss_fd_moved(struct hf__line *);
/* Something was done through the handle: a loss that nobody has to release any
 * more is told no more. */
void hf__loss_fd_clear(hf_lock *);
static inline void hf__loss_fd_heard(hf_lock *lock)
{
    if (__builtin_expect(lock->loss_signalled, 0))
        hf__loss_fd_clear(lock);
}
/* The release may have found the loss before anybody was told of it; but the
 * descriptor, which is a timer, tells by itself. */
static inline void hf__loss_fd_released(hf_lock *lock, int result)
{
    if (__builtin_expect(lock->loss_signalled || result == HF_ELOST, 0))
        hf__loss_fd_clear(lock);
}
void hf__loss_fd_close(hf_lock *); /* it is about to be freed */

/* line_pick.c: which line a verb is about; name->mu is held */
/* The line through which w is to be acquired: that of the owner's hold, one
 * that it can share, or one that is free. */
int hf__pick_for(const hf_lock *, struct hf__waiter *, enum hf_mode,
                 hf__time now, struct hf__line **, hf_error *);
/* One through which it can be had the short way, see hf__queue_quiet(), with an
 * entry for w if it reads; or NULL. */
struct hf__line *hf__pick_quiet(struct hf__line *first, struct hf__waiter *,
                                enum hf_mode);
/* It was had: the line is in use. Or not: then the entry is taken back. */
void hf__pick_went(struct hf__line *, struct hf__waiter *, bool had);
/* The line of this owner's newest hold, lost ones last; the first one if it
 * has none. */
struct hf__line *hf__pick_held(struct hf__line *first, uint64_t owner);
/* That of the caller, if it is held now; else why not. */
int hf__pick_check(const hf_lock *, struct hf__line **, hf_error *);
/* The owner's write hold goes to a line for reading. */
int hf__pick_downgrade(struct hf__line *first, struct hf__thread *,
                       hf__time now, struct hf__line **into, hf_error *);
/* Takes back entries that are not needed any more, and the line if nobody uses
 * it any more (that of a mutex stays). hf__line_run() does it too. */
void hf__lines_rest(struct hf__line *);
/* Those that are taken, newest first. */
struct hf__line *hf__lines_newest(struct hf__line *first); /* or NULL */
struct hf__line *hf__lines_after(const struct hf__line *); /* or NULL */
/* Takes all but the first out of their list; see hf__lines_after(). */
struct hf__line *hf__lines_all_but_first(struct hf__line *first);
void hf__lines_free_entries(struct hf__line *); /* the entries it has */

/* handle.c */
const char *hf__kind_name(int kind); /* for people */
/* hf_lock_new(), of a kind up to the last. */
int hf__lock_new(hf_client *, const void *name, size_t name_len,
                 const hf_lock_options *, enum hf_kind last, hf_lock **,
                 hf_error *);

/* acquire.c: what the synchronous and the asynchronous verbs share */
/* A timed wait returns by its limit plus a second, so this is how long a
 * shorter one waits for the server's first answer. */
#define HF__GRACE_MS 800
/* Until when an acquire of this wait_ms waits for the server's first answer. A
 * try waits for no other holder, but for the answer as long as any other verb.
 */
static inline hf__time hf__answer_by(const hf_client *c, int64_t wait_ms,
                                     hf__time now)
{
    uint32_t ms = c->op_timeout_ms;

    return now + (wait_ms && ms > HF__GRACE_MS ? HF__GRACE_MS : ms) * HF__MS;
}
extern const hf_acquire_options hf__acquire_default;
int hf__lock_unusable(const hf_lock *, hf_error *);
/* EINVAL, EFORK, ECLOSED, with a text. */
static inline int hf__lock_check(const hf_lock *lock, hf_error *err)
{
    if (__builtin_expect(lock && !hf__client_check(lock->name->client), 1))
        return 0;
    return hf__lock_unusable(lock, err);
}
/* A lease or TTL: EINVAL, with a text that says what 0 would mean. */
int hf__lock_lease_valid(const char *field, int64_t ms, const char *zero,
                         hf_error *);
/* hf_lock_acquire(), but the first answer is not waited for beyond that. */
int hf__acquire_by(hf_lock *, const hf_acquire_options *, hf__time latest,
                   hf_error *);
/* hf_lock_acquire_async(), of a lock or a latch. */
int hf__acquire_async(hf_lock *, const hf_acquire_options *, union hf__done,
                      void *arg, hf_error *);
int hf__acquire_check_options(const hf_lock *, const hf_acquire_options *,
                              hf_error *);
/* Takes name->mu for a verb. ECLOSED, and not taken, if hf_close() has been
 * here: it looks at every name under its mutex after it said so. */
static inline int hf__lock_enter(const hf_lock *lock, hf_error *err)
{
    hf__mutex_lock(&lock->name->mu);
    if (__builtin_expect(
            !__atomic_load_n(&lock->name->client->closed, __ATOMIC_ACQUIRE), 1))
        return 0;
    hf__mutex_unlock(&lock->name->mu);
    return hf__lock_unusable(lock, err);
}
/* Who a call on this thread is for; 0: out of memory. *thread, unless it is
 * NULL: the same, if it is a thread. */
static inline uint64_t hf__owner_of(const hf_lock *lock,
                                    struct hf__thread **thread)
{
    struct hf__thread *me = lock->owner ? NULL : hf__thread_me();

    if (thread)
        *thread = me;
    return me ? me->number : lock->owner;
}
static inline void hf__acquire_fill(const hf_lock *lock,
                                    const hf_acquire_options *opt,
                                    struct hf__waiter *w)
{
    w->handoff = lock->handoff;
    w->max_hold_ms = lock->max_hold_ms;
    w->fixed = opt->lease_ms != 0;
    w->lease_ms = w->fixed ? (uint32_t)opt->lease_ms : lock->ttl_ms;
    w->is_try = opt->wait_ms == 0;
    w->permits = opt->permits ? opt->permits : 1;
    w->reentrant = !lock->owner && !(lock->flags & HF_NOT_REENTRANT);
    w->owner = hf__owner_of(lock, &w->thread);
    w->handle = (hf_lock *)(uintptr_t)lock;
}
/* Enters the queue, with name->mu held. GRANTED, PENDING or a code. */
int hf__acquire_enter(struct hf__line *, struct hf__waiter *, hf__time now);
/* One acquire less, with name->mu held. PENDING: the releaser, if there is one,
 * will be told. */
int hf__release_enter(struct hf__line *, uint64_t owner, struct hf__releaser *);
/* A release whose answer is waited for, in two halves. */
struct hf__releasing {
    struct hf__sleeper sleeper;
    struct hf__releaser releaser;
    hf_error word; /* code 0: nothing was said */
    hf_lock *lock;
    struct hf__line *line;
    hf__time until;
};
/* PENDING: it has been asked for, and the other half has to follow; in between
 * it stays where it is. Else all is done. */
int hf__release_begin(hf_lock *, struct hf__releasing *, hf_error *);
int hf__release_end(struct hf__releasing *, hf_error *);
/* From the one to the other, neither handle (with its name) nor client go away.
 * begin: name->mu is held, and free afterwards. */
void hf__lock_wait_begin(hf_lock *);
void hf__lock_wait_end(hf_lock *, struct hf__line *line);
/* Does not want to hear of it any more; name->mu is held. */
void hf__line_forget_releaser(struct hf__line *, struct hf__releaser *);
/* The helper thread shall look after what is under way, if nobody else does. */
void hf__helper_check_later(hf_client *);

/* async.c */
/* Is the handle fit for asynchronous verbs? */
int hf__async_check(hf_lock *, union hf__done, hf_error *);
/* Claims the handle for one; name->mu is held. */
int hf__async_begin(hf_lock *, union hf__done, void *arg, hf_error *);
void hf__async_undo(hf_lock *); /* it did not begin after all */
/* It is over: its callback is called. name->mu is held, like for the next. */
void hf__callback_queue(struct hf__async *, int result);
/* Ends the wait in the queue, which is not over. */
void hf__async_leave(struct hf__async *, int code, hf__time now);
/* Ends the wait for an answer; what was sent goes its way. */
void hf__async_give_up(struct hf__async *);

/* request_verb.c: verbs that are a question and its answer */
/* The whole verb, for the calling thread. */
int hf__verb_run(hf_lock *, const struct hf__verb_call *, hf_error *);
int hf__verb_run_async(hf_lock *, const struct hf__verb_call *, union hf__done,
                       void *arg, hf_error *);
/* Sends a question for it; name->mu is held. */
void hf__verb_send(hf_client *, struct hf__verb_call *, struct hf__request *);
/* There is time for one more, and somebody to ask. */
bool hf__verb_may_go_on(const hf_lock *, const struct hf__verb_call *);
/* The question that was under way has landed. PENDING: another one is. */
int hf__verb_answered(hf_lock *, struct hf__verb_call *, hf_error *);
/* The server does not know the hold that it is about any more, or it is lost;
 * ELOST. */
int hf__verb_lost(hf_lock *, struct hf__verb_call *, hf_error *);
/* Does the caller still have the hold t->hold_id? 0, ELOST, or ENOTOWNER if
 * another thread has released it. name->mu is held. */
int hf__verb_check(const hf_lock *, const struct hf__verb_call *);
/* What the answer rc about the hold t->hold_id means for the caller. A good
 * answer says nothing about a hold that has ended before it came: that is
 * ELOST, or ENOTOWNER if another thread has released it. name->mu is held. */
int hf__verb_judge(hf_lock *, struct hf__verb_call *,
                   const struct hf__request *, int rc, hf_error *);

/* renewals.c */
/* Asks for one renewal of the hold of t->line; no_longer: it is told for how
 * long it lasts, and shall not last longer by it. name->mu is held. */
int hf__renew_send(hf_client *, struct hf__verb_call *, uint32_t ms,
                   bool no_longer, hf_error *);
/* What it came to; name->mu is held. */
int hf__renew_answered(hf_lock *, struct hf__verb_call *,
                       const struct hf__request *, hf_error *);
/* A hold that hf__line_timer() wants renewed, with a reference to its name. */
struct hf__due {
    struct hf__line *name;
    uint64_t hold_id;
};
void hf__renewals_due(hf_client *, const struct hf__due *, size_t,
                      hf__time now);
void hf__renewals_landed(hf_client *, struct hf__request *);

#endif
