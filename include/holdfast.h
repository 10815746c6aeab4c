/*
 * holdfast: distributed locks over Redis (one server, or several by Redlock),
 * ZooKeeper, etcd, MySQL or MariaDB, and shared memory, with a fencing token on
 * every grant and a deadline that can be trusted.
 *
 * Read this before the functions:
 * - A lock over a network is a lease, which ends unless it is renewed in time.
 *   The holder may be stopped or cut off for longer than the lease lasts, and
 *   then another client gets the lock. Two things protect you: the deadline
 *   (hf_lock_deadline: stop working before it) and the token (hf_lock_token:
 *   let the resource refuse a token that is lower than one that it has seen;
 *   docs/fencing.md shows how).
 * - Every function that can fail returns 0 or a negative HF_E... code. An
 *   hf_error argument may be NULL. Otherwise it points to memory of the caller,
 *   which receives the code and a text for people if the call fails, and is not
 *   changed if the call succeeds.
 * - A request has not two outcomes but three: success, failure and unknown.
 *   HF_EUNKNOWN says that a request was sent and no answer came. An acquire
 *   that returns HF_EUNKNOWN gives you no hold; a release that returns
 *   HF_EUNKNOWN has ended your hold. In both cases the server may still have
 *   the hold, and holdfast ends it there in the background.
 * - Handles are thread-safe. A lock is owned by the *thread* that acquired it
 *   (reentrant and counted) or, with HF_OWNER_HANDLE, by the handle.
 * - After fork(), calls on the parent's handles return HF_EFORK in the child
 *   and have no effect: open a new client in the child. The parent keeps its
 *   holds. The child has copies of the parent's descriptors until it calls
 *   exec() or exits, and cannot close them. Until then a server might not
 *   notice that the parent has ended its connection.
 * - pthread_cancel() of a thread that is in a call takes effect after the call
 *   has returned; in a callback, after hf_client_dispatch() or hf_close() has
 *   returned. A thread that is cancelled while it holds a lock leaves its hold
 *   behind (HF_EVENT_ORPHANED), so release the lock in a handler of
 *   pthread_cleanup_push(). Not supported: calls on a thread with
 *   PTHREAD_CANCEL_ASYNCHRONOUS; longjmp() or pthread_exit() out of a callback,
 *   of a hook, or of a signal handler that has interrupted a call.
 * - exit() may be called even while other threads are in calls. It releases
 *   nothing: holds that were not released end by themselves, as after a kill.
 * - Times are milliseconds unless the name says otherwise; deadlines are
 *   nanoseconds of CLOCK_BOOTTIME.
 * - Names are bytes: 1 to HF_NAME_MAX of them, without NUL.
 * - A client has one helper thread, named "hf-helper", which renews leases. It
 *   never runs code of yours, except the hooks (hf_hooks). hf_close() joins it.
 *   (A second thread, "hf-lookup", exists while the name of a server that
 *   cannot be reached is looked up again.)
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HF_BUILDING)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0

/* Returns the version of the loaded library, such as "0.1.0"; never NULL. */
HF_API const char *hf_version(void);

/* ---- errors ----------------------------------------------------------- */

/* The errors: name, number, message. The numbers never change. */
#define HF_ERRORS(X)                                                           \
    X(EBUSY, -1, "another owner holds it")                                     \
    X(ETIMEDOUT, -2, "the time limit was reached")                             \
    X(ECANCELED, -3, "the wait was cancelled")                                 \
    X(ELOST, -4, "the hold was lost")                                          \
    X(ENOTOWNER, -5, "the caller does not hold it")                            \
    X(EUNKNOWN, -6, "sent, but not answered")                                  \
    X(EBACKEND, -7, "the server cannot be used")                               \
    X(EAUTH, -8, "authentication or authorization failed")                     \
    X(EINVAL, -9, "invalid argument")                                          \
    X(ENOTSUP, -10, "not supported by this backend")                           \
    X(EMISMATCH, -11, "the name is in use as another kind of lock")            \
    X(EDEADLK, -12, "the caller holds it already")                             \
    X(ENOMEM, -13, "out of memory")                                            \
    X(EFORK, -14, "the handle belongs to the parent process")                  \
    X(ECLOSED, -15, "the client is closed")                                    \
    X(EPROTO, -16, "the server sent an answer that is not understood")

enum hf_code {
    HF_OK = 0,
#define HF_X(name, number, text) HF_##name = (number),
    HF_ERRORS(HF_X)
#undef HF_X
};

typedef struct hf_error {
    int code;
    char text[751]; /* always terminated; cut if too long */
    /* 1 if the cause of an EBACKEND may pass by itself, so that the same call
     * may succeed later: connection refused or lost, no answer, a server that
     * is starting or overloaded, or that refuses writes for now (out of memory
     * or disk, a replica); 0 if a retry will fail until something is changed
     * (unknown host, missing module, shared memory that cannot be used). With
     * other codes it is always 0 and has no meaning. */
    unsigned char may_pass;
} hf_error;

/* clang-format off */
#define HF_ERROR_INIT {0, {0}, 0}
/* clang-format on */

/* Returns the name of a code, such as "HF_EBUSY", or "HF_E?" if there is no
 * such code; never NULL. */
HF_API const char *hf_error_name(int code);
/* Returns the general message of a code; never NULL. */
HF_API const char *hf_error_text(int code);

/* ---- client ----------------------------------------------------------- */

typedef struct hf_client hf_client;
typedef struct hf_lock hf_lock;
typedef struct hf_latch hf_latch;

#define HF_FOREVER (-1)          /* a wait_ms without limit */
#define HF_NO_DEADLINE INT64_MAX /* the deadline of a hold that has none */
#define HF_NAME_MAX 512          /* bytes in a name */
/* Limits of times; a time beyond them is EINVAL. */
#define HF_TIME_MAX_MS 3155760000000LL /* the longest time: a hundred years */
#define HF_LEASE_MIN_MS 10             /* the shortest TTL or lease */
#define HF_LEASE_MAX_MS 2147483647     /* the longest TTL or lease */
#define HF_CSTRING ((size_t)-1) /* a name_len: the name ends at its NUL */

enum hf_event_type {
    HF_EVENT_LOST = 1, /* a hold of this client ended without a release */
    HF_EVENT_ORPHANED, /* a thread exited while holding; its hold is no longer
                          renewed */
    HF_EVENT_DOWN,     /* the connection is lost; holds last until their
                          deadlines */
    HF_EVENT_UP,       /* the connection is back */
    HF_EVENT_WANTED,   /* a client asks (hf_ask) for a lock that this client
                          holds */
    HF_EVENT_OVERFLOW, /* events were dropped: see on_event */
};

typedef struct hf_event {
    int type;
    const char *name; /* the lock's name, or ""; valid during the call */
    size_t name_len;
    uint64_t token;     /* token of the hold that the event is about, or 0 */
    const char *reason; /* LOST: why the hold was lost, for people; else "".
                           Valid during the call */
} hf_event;

/*
 * Memory and log functions of the program. Any of them may be NULL; alloc and
 * free are used only if both are given. holdfast calls the hooks on any thread,
 * several at a time, and with its internal mutexes held: a hook must not call
 * holdfast, nor wait for a thread that may be in a call of holdfast. On shm, a
 * hook must not use a robust pthread mutex either: the client's helper thread
 * has a robust list of its own, so the kernel would not mark the mutex when
 * that thread ends.
 */
typedef struct hf_hooks {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);   /* the memory need not be
                                                 zeroed */
    void (*free)(void *ctx, void *p);         /* p is never NULL */
    void (*log)(void *ctx, const char *text); /* text never contains a secret */
} hf_hooks;

enum hf_open_flag {
    /* Do not create the shared memory if it does not exist, or if no process
     * has used it since the machine was started: hf_open() then returns
     * ENOTOWNER, because no lock in it is held. If the parent of its directory
     * is missing, hf_open() returns EBACKEND. For programs that only inspect.
     * No effect on servers. */
    HF_OPEN_EXISTING = 1 << 0,
};

typedef struct hf_client_options {
    size_t size; /* set by HF_CLIENT_OPTIONS_INIT */
    /* Each of these times overrides the URL's option of that name, unless the
     * time is 0. */
    int64_t ttl_ms;             /* the length of a lease, which is renewed after
                                   a third of that length; default 30 000, at
                                   least HF_LEASE_MIN_MS. On ZooKeeper the
                                   session's timeout, on etcd the TTL of the
                                   client's lease, within the server's limits */
    int64_t connect_timeout_ms; /* limit for hf_open() and for each attempt to
                                   reconnect; default 5 000 */
    int64_t op_timeout_ms;      /* limit for each answer of the server; default
                                   5 000 */
    const char *password;       /* overrides the URL's password; the library
                                   wipes its copy after use */
    const char *label;          /* shown to others by hf_inspect; copied */
    /* Copied. What ctx points to must outlive the client. It must also outlive
     * an hf_open() that failed because a name lookup took too long: the lookup
     * continues, and then frees memory by these hooks. */
    const hf_hooks *hooks;
    /* Called only by hf_client_dispatch(), and by several threads at a time if
     * several threads dispatch. Until the program dispatches, events are
     * queued: one loss of each lock on which the client has a handle, and 1024
     * other events. Further events are dropped, and one HF_EVENT_OVERFLOW
     * represents them: check the locks yourself (hf_lock_check). */
    void (*on_event)(void *arg, const hf_event *event);
    void *event_arg;
    int64_t open_timeout_ms; /* a limit for hf_open() only, which has no effect
                                if it is 0 or longer than connect_timeout */
    unsigned flags;          /* hf_open_flag */
} hf_client_options;

/* clang-format off */
#define HF_CLIENT_OPTIONS_INIT                                                 \
    {sizeof(hf_client_options), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0}
/* clang-format on */

/*
 * Opens a client and connects it. Blocks for at most connect_timeout, or
 * open_timeout_ms if that is shorter. On failure *out is NULL and the text says
 * what is wrong and how to correct it: EINVAL (URL, options), EBACKEND
 * (unreachable; module missing; hf_error.may_pass tells whether a retry may
 * succeed), EAUTH, EPROTO (the peer is not a server of this kind), ENOMEM,
 * ENOTOWNER (HF_OPEN_EXISTING). opt may be NULL. The caller closes the client
 * with hf_close().
 */
HF_API int hf_open(const char *url, const hf_client_options *opt,
                   hf_client **out, hf_error *err);

/*
 * Closes a client. Ends all waits with ECLOSED and releases all holds; waits,
 * without limit, for callbacks that run on other threads; joins the helper
 * thread; drops events that are still queued; calls the callbacks of pending
 * verbs. It waits for the answers to releases for at most op_timeout, or less
 * than a second if all these holds have ended at the server by themselves, as
 * after a loss. Afterwards the client must not be used. Handles of its locks
 * stay valid until they are freed; calls on them return ECLOSED. hf_close(NULL)
 * returns 0. EUNKNOWN: a release was not answered, or was refused (not in
 * shared memory, where holds end with the client). EFORK, ECLOSED, EBUSY
 * (called by a callback of this client): nothing was done.
 */
HF_API int hf_close(hf_client *client);

/* What a backend can do, per kind of lock; see docs/guarantees/common.md. */
enum hf_cap {
    HF_CAP_FAIR = 1 << 0,
    HF_CAP_UNFAIR = 1 << 1,
    HF_CAP_LEASE = 1 << 2,   /* lease_ms: a hold that ends at a fixed time */
    HF_CAP_EVENTS = 1 << 3,  /* waiters are notified; no client polls */
    HF_CAP_DURABLE = 1 << 4, /* holds survive a restart of the server */
    HF_CAP_INSPECT = 1 << 5, /* inspect, list, break */
    HF_CAP_WANTED = 1 << 6,  /* hf_ask: holders get HF_EVENT_WANTED */
    HF_CAP_PUT = 1 << 7,     /* hf_lock_put: the server writes for holders */
};

/*
 * A name is used as one kind at a time. To use it as another kind, or as a
 * semaphore of another size, fails with EMISMATCH. In shared memory and on
 * ZooKeeper this also applies to a fair and an unfair mutex; on the other
 * backends a fair and an unfair mutex of one name exclude each other.
 * - HF_MUTEX: one holder.
 * - HF_RWLOCK: one writer, or any number of readers. A read within the caller's
 *   own read or write is granted at once, and so is a write within the caller's
 *   own write. A write within a read fails with ENOTSUP: two callers that try
 *   would wait for each other for ever. Readers of one client that wait at the
 *   same time, or that arrive within 20 ms after the grant, usually share one
 *   hold at the server, if they have neither a fixed lease nor max_hold_ms. A
 *   waiting writer of the client ends this sharing.
 * - HF_SEMAPHORE: n permits. Each acquire takes all the permits that it asks
 *   for, or none. The permits belong to the handle, and any thread may release
 *   them. A release gives back the permits of the acquire that was granted
 *   last. If a process dies, its permits are given back.
 */
enum hf_kind {
    HF_MUTEX = 1,
    HF_RWLOCK = 2,
    HF_SEMAPHORE = 3,
    HF_LATCH = 4, /* only for hf_client_caps; hf_latch_new creates a latch */
};

/* Returns the capability bits of a kind; 0 if the backend does not have the
 * kind; HF_EINVAL if client is NULL or there is no such kind. Does not
 * block. */
HF_API int hf_client_caps(const hf_client *client, enum hf_kind kind);

/*
 * Returns a descriptor for programs with an event loop: it is readable when
 * hf_client_dispatch() has something to do. It belongs to the library and is
 * close-on-exec; do not close it. On failure the result is a negative code.
 */
HF_API int hf_client_fd(hf_client *client);

/*
 * Does what can be done without blocking: sends requests and receives answers,
 * then calls the callbacks of finished asynchronous verbs, on_event, and the
 * callbacks of watches. The callbacks run on this thread, while it holds no
 * mutex of the library; they may call holdfast, but not hf_close() of this
 * client. Returns how many callbacks were called, or a code. EFORK: a callback
 * has forked, and this is the child.
 */
HF_API int hf_client_dispatch(hf_client *client);

/* ---- locks ------------------------------------------------------------ */

enum hf_fairness {
    HF_FAIR_DEFAULT = 0, /* the URL's fair= option, else the backend's */
    HF_FAIR = 1,
    HF_UNFAIR = 2,
};

enum hf_lock_flag {
    /* The handle, not the thread, owns the lock: any thread may release it. The
     * handle can acquire only once: an acquire while it holds the lock, or
     * while another thread's acquire through it waits, fails with EDEADLK. */
    HF_OWNER_HANDLE = 1 << 0,
    /* A second acquire by the same owner fails with EDEADLK. No effect on a
     * semaphore. */
    HF_NOT_REENTRANT = 1 << 1,
};

typedef struct hf_lock_options {
    size_t size; /* set by HF_LOCK_OPTIONS_INIT */
    enum hf_kind kind;
    enum hf_fairness fairness;
    unsigned flags;   /* hf_lock_flag */
    uint32_t permits; /* size of a semaphore; 0 for other kinds */
    uint32_t handoff; /* how many owners of this client may use one grant, one
                         after another; they share its token; at most
                         67 108 863 */
    int64_t ttl_ms;   /* 0: the client's ttl_ms; otherwise HF_LEASE_MIN_MS or
                         more. No effect on ZooKeeper and etcd: see
                         hf_client_options.ttl_ms */
    int64_t max_hold_ms; /* the hold ends after this time, even if it is
                            renewed; 0: no limit */
    const char *label;   /* shown to others by hf_inspect; copied. The label of
                            the first handle on a name counts; those of further
                            handles have no effect */
} hf_lock_options;

/* clang-format off */
#define HF_LOCK_OPTIONS_INIT                                                   \
    {sizeof(hf_lock_options), HF_MUTEX, HF_FAIR_DEFAULT, 0, 0, 0, 0, 0, NULL}
/* clang-format on */

/*
 * Creates a handle on the lock of that name. Makes no network request and uses
 * about 500 bytes. If opt is NULL, the lock is a mutex. EINVAL (name, options),
 * ENOTSUP (kind or fairness), EMISMATCH (this client, or in shared memory any
 * process, uses the name as another kind, with another fairness or number of
 * permits), ENOMEM, EBACKEND (a limit of the backend is reached), ECLOSED,
 * EFORK. Returns at once, except in shared memory: there the call for the first
 * handle on a name waits while another process changes the file's tables; after
 * op_timeout it fails with EBACKEND. The caller frees the handle with
 * hf_lock_free().
 */
HF_API int hf_lock_new(hf_client *client, const void *name, size_t name_len,
                       const hf_lock_options *opt, hf_lock **out,
                       hf_error *err);

/*
 * Frees the handle. EBUSY, and nothing is freed: a verb through the handle is
 * under way; this handle holds the lock (HF_OWNER_HANDLE, a semaphore); or a
 * thread holds the lock and this is the client's last handle on its name,
 * whatever its flags. (A thread may release through any handle without
 * HF_OWNER_HANDLE, including a new one.) A hold that was lost does not count.
 * EFORK in a child. hf_lock_free(NULL) returns 0.
 */
HF_API int hf_lock_free(hf_lock *lock);

enum hf_mode {
    HF_WRITE = 0, /* exclusive; the only mode of a mutex */
    HF_READ = 1,
};

/*
 * Cancels a wait from another thread or from a signal handler. Use it for one
 * wait at a time. The struct must exist until the call that waits has returned,
 * and until all calls of hf_cancel_fire() have returned. An exception is the
 * call of hf_cancel_fire() that ends the wait: that call does not use the
 * struct after it has ended the wait, and hf_close() waits until it has
 * returned. In a child after fork(), hf_cancel_fire() does not affect the
 * parent's wait. A struct that was fired stays fired: initialise it before it
 * is used again.
 */
typedef struct hf_cancel {
    uint32_t word;     /* private to the library */
    hf_client *client; /* private to the library */
} hf_cancel;

/* clang-format off */
#define HF_CANCEL_INIT {0, NULL}
/* clang-format on */

HF_API void hf_cancel_init(hf_cancel *cancel);
/* Async-signal-safe. The wait ends soon, with its grant or with ECANCELED. */
HF_API void hf_cancel_fire(hf_cancel *cancel);

typedef struct hf_acquire_options {
    size_t size; /* set by HF_ACQUIRE_OPTIONS_INIT */
    enum hf_mode mode;
    uint32_t permits;  /* how many to take of a semaphore; 0 means 1 */
    int64_t wait_ms;   /* HF_FOREVER, 0 (try), or the time limit */
    int64_t lease_ms;  /* 0: renewed automatically; otherwise a fixed lease,
                          which is not renewed, HF_LEASE_MIN_MS or more */
    hf_cancel *cancel; /* may be NULL */
} hf_acquire_options;

/* clang-format off */
#define HF_ACQUIRE_OPTIONS_INIT                                                \
    {sizeof(hf_acquire_options), HF_WRITE, 0, HF_FOREVER, 0, NULL}
/* clang-format on */

/*
 * Acquires the lock. If opt is NULL, the lock is acquired for writing, without
 * a time limit, and renewed. Returns at most a second after the time limit. A
 * try (wait_ms 0) does not wait for another holder, but it waits for the
 * server's answer, at most op_timeout. 0: the lock is held. EBUSY (try only),
 * ETIMEDOUT, ECANCELED, EDEADLK, ELOST (this owner has not released a lost hold
 * yet; not on a semaphore), EMISMATCH, EBACKEND (no answer within op_timeout),
 * EUNKNOWN, EAUTH, EPROTO, EINVAL, ENOTSUP, ENOMEM, ECLOSED, EFORK: the lock is
 * not held, and nothing is left behind. If the server refuses the request
 * (permissions, memory, a read-only replica), each call returns the refusal at
 * once, as EAUTH or EBACKEND with the server's own text.
 */
HF_API int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *opt,
                           hf_error *err);
/* Calls hf_lock_acquire() with wait_ms 0. */
HF_API int hf_lock_try(hf_lock *lock, hf_error *err);
/* Calls hf_lock_acquire() with that wait_ms. */
HF_API int hf_lock_timed(hf_lock *lock, int64_t wait_ms, hf_error *err);

/*
 * Releases one acquire. The release of the last acquire ends the hold at once,
 * and then waits for the server's answer; even if an error is returned, the
 * hold has ended. Returns 0; ENOTOWNER: the caller does not hold the lock, and
 * nothing was done; ELOST: the hold had been lost before; EUNKNOWN: the server
 * did not answer within op_timeout; EAUTH, EBACKEND, EPROTO: the server refused
 * the release, and may keep others out as long as it refuses. After EUNKNOWN,
 * EAUTH, EBACKEND and EPROTO holdfast repeats the release in the background
 * until the server no longer has the hold. EINVAL, ECLOSED, EFORK.
 */
HF_API int hf_lock_release(hf_lock *lock, hf_error *err);
/* Releases without waiting for the answer; never blocks. If the answer is lost,
 * the release is repeated in the background. */
HF_API int hf_lock_release_nowait(hf_lock *lock, hf_error *err);

/*
 * Extends the hold now, and waits for the answer. A fixed lease then ends
 * lease_ms from now (HF_LEASE_MIN_MS or more; 0: the original length of the
 * lease). A hold without a fixed lease then ends a whole TTL from now, and
 * lease_ms must be 0. If several renewals are under way at a time, the earliest
 * of their ends counts. ELOST: the hold is gone. EUNKNOWN, EBACKEND, EAUTH,
 * EPROTO: the hold lasts until its deadline, which may be earlier now.
 * ENOTOWNER, EINVAL, ENOMEM, ECLOSED, EFORK.
 */
HF_API int hf_lock_renew(hf_lock *lock, int64_t lease_ms, hf_error *err);

/*
 * Turns the caller's write hold into a read hold; the number of acquires to be
 * released stays the same. No other writer gets the lock in between, and
 * waiting readers are let in. Waits for the answer. Returns 0; ENOTOWNER: the
 * caller does not hold the lock for writing; ENOTSUP: it holds a lock other
 * than a read-write lock; ELOST; EUNKNOWN: no answer within op_timeout, or the
 * server refused: the caller has a read hold now, but other readers may be kept
 * out until the next renewal (with a fixed lease, and in shared memory, until
 * the hold ends). ENOMEM, ECLOSED, EFORK: nothing has changed.
 */
HF_API int hf_lock_downgrade(hf_lock *lock, hf_error *err);
/* Always fails: with ENOTSUP if the caller holds the lock, otherwise with the
 * code of hf_lock_check(). Two readers that upgrade would wait for each other
 * for ever. */
HF_API int hf_lock_upgrade(hf_lock *lock, hf_error *err);

/*
 * Writes a value under the hold: the server sets the value of key if, at that
 * moment, it still has the caller's hold. This is one step, so a delayed write
 * never replaces the write of a later holder. It needs no token, but the data
 * must be on the server that keeps the lock. key consists of bytes like a name
 * (the prefix= of the URL is not added); value has up to HF_PUT_MAX bytes.
 * Waits for the answer. Returns 0; ELOST: the hold is gone, and nothing was
 * written; EUNKNOWN: no answer; the value may have been written, or may still
 * be written until another client holds the lock; ENOTSUP (HF_CAP_PUT),
 * ENOTOWNER, EINVAL (no such key), EBACKEND, EAUTH, EPROTO, ENOMEM, ECLOSED,
 * EFORK.
 */
#define HF_PUT_MAX (1 << 19)
HF_API int hf_lock_put(hf_lock *lock, const void *key, size_t key_len,
                       const void *value, size_t value_len, hf_error *err);

/* Returns 0 if the caller holds the lock now; ELOST, ENOTOWNER, EINVAL,
 * ECLOSED, EFORK. The next three functions return the same codes. None of the
 * four makes a network request. For a semaphore they are about the newest
 * acquire through the handle, and count is the number of permits that the
 * handle has. */
HF_API int hf_lock_check(hf_lock *lock);
HF_API int hf_lock_token(hf_lock *lock, uint64_t *token);
HF_API int hf_lock_deadline(hf_lock *lock, int64_t *boottime_ns);
HF_API int hf_lock_count(hf_lock *lock, unsigned *count);

/*
 * Returns what hf_lock_check() returns, and says why; useful in particular
 * after hf_lock_fd() has become readable. ELOST: the text says why the hold was
 * lost. The ELOST texts of all other calls say the same, and stay the same
 * until the hold is released: the server could not be reached, since when and
 * with which error; the server refused the renewals; the hold was taken away;
 * the client's session has ended; the deadline passed while this process was
 * stopped; the fixed lease or max_hold_ms ended; the owner thread exited. 0:
 * the lock is still held; why->code is 0, and why->text is empty or says that
 * the server cannot be reached or refuses renewals. why may be NULL.
 */
HF_API int hf_lock_explain(hf_lock *lock, hf_error *why);

/*
 * Returns a descriptor that becomes readable when the hold of this handle's
 * lock is lost. The descriptor is a timer that is set to the deadline, so it
 * does not depend on any thread to run in time. It stays readable until the
 * owner has released the lost hold; if that release is through another handle,
 * it stays readable until the next acquire or release through this handle. If
 * several threads use the handle, the descriptor reports the loss of any of
 * their holds; hf_lock_check() says whether the calling thread's hold was lost.
 * The descriptor belongs to the library and is valid until hf_lock_free(). On
 * failure the result is a negative code.
 */
HF_API int hf_lock_fd(hf_lock *lock);

/* Called by hf_client_dispatch() with the verb's result. */
typedef void (*hf_done_fn)(void *arg, hf_lock *lock, int result);

/*
 * The verbs above without blocking, for handles with HF_OWNER_HANDLE. After 0,
 * done will be called exactly once; after a code, it will not be called. EBUSY:
 * a verb of this handle is under way. opt->cancel is not used; hf_lock_cancel()
 * cancels a pending acquire, whose result is then 0 or ECANCELED. The other
 * verbs cannot be taken back: a cancelled verb ends at once, with EUNKNOWN if
 * there is no answer yet, as it would after op_timeout. hf_lock_cancel() must
 * not be called by signal handlers.
 */
HF_API int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *opt,
                                 hf_done_fn done, void *arg, hf_error *err);
HF_API int hf_lock_release_async(hf_lock *lock, hf_done_fn done, void *arg,
                                 hf_error *err);
HF_API int hf_lock_renew_async(hf_lock *lock, int64_t lease_ms, hf_done_fn done,
                               void *arg, hf_error *err);
HF_API int hf_lock_downgrade_async(hf_lock *lock, hf_done_fn done, void *arg,
                                   hf_error *err);
/* key and value are copied. */
HF_API int hf_lock_put_async(hf_lock *lock, const void *key, size_t key_len,
                             const void *value, size_t value_len,
                             hf_done_fn done, void *arg, hf_error *err);
HF_API int hf_lock_cancel(hf_lock *lock);

/* One of several locks that are acquired together. */
typedef struct hf_part {
    hf_lock *lock;
    enum hf_mode mode;
    uint32_t permits; /* how many of a semaphore; 0 means 1 */
} hf_part;

/*
 * Acquires several locks, of any clients and kinds: all or none. They are
 * always acquired in the same order, whatever the order given, so two programs
 * with the same locks never wait for each other for ever. opt applies to each
 * lock, except that mode and permits are given per part, and wait_ms is for all
 * together. hf_lock_release_all() releases all, then waits for the answers, and
 * returns the first failure. A lock may be listed twice if the caller may
 * acquire it twice; a semaphore that is listed twice is EINVAL. A release gives
 * back the newest acquire through the handle of a semaphore, so threads that
 * take permits at the same time need a handle each.
 */
HF_API int hf_lock_acquire_all(const hf_part *parts, size_t n,
                               const hf_acquire_options *opt, hf_error *err);
HF_API int hf_lock_release_all(const hf_part *parts, size_t n, hf_error *err);

/*
 *     HF_SYNCHRONIZED(lock) { ... }
 *
 * runs the block while holding the lock, and releases it however the block is
 * left (by return, break or goto; not by longjmp, and by pthread_cancel() or
 * pthread_exit() only if the block was compiled with -fexceptions). If the lock
 * cannot be acquired, the block is skipped. hf_synchronized_result() returns
 * the result of the last HF_SYNCHRONIZED of this thread: the code of the
 * acquire that failed, or the result of the release. `lock` must be an
 * expression without side effects.
 */
typedef struct hf_guard {
    hf_lock *lock;
    int run;
} hf_guard;

HF_API hf_guard hf_guard_enter(hf_lock *lock);
HF_API void hf_guard_leave(hf_guard *guard);
HF_API int hf_synchronized_result(void);

/* The variable's name contains the line number, so that nested blocks do not
 * shadow each other. */
#define HF_SYNCHRONIZED(lock) HF_SYNCHRONIZED_AT(lock, __LINE__)
#define HF_SYNCHRONIZED_AT(lock, line) HF_SYNCHRONIZED_BY(lock, line)
#define HF_SYNCHRONIZED_BY(lock, line)                                         \
    for (hf_guard hf_guard_##line                                              \
         __attribute__((cleanup(hf_guard_leave))) = hf_guard_enter(lock);      \
         hf_guard_##line.run; hf_guard_##line.run = 0)

/* ---- latch ------------------------------------------------------------ */

/*
 * A count that is set once and counted down; waiters pass when it is 0. It has
 * no holder: it survives the death of the client that set it, and is removed
 * when it has reached 0 (so that it may be set again). The count of a latch
 * that was never set is 0, so it blocks no waiter: set the latch before the
 * waiters can arrive (examples/rounds.c).
 *
 * hf_latch_new() creates a handle on a latch: EINVAL (name), ENOTSUP,
 * EMISMATCH, ENOMEM, EBACKEND, ECLOSED, EFORK. The caller frees it with
 * hf_latch_free(), which returns EBUSY while a verb through the handle is under
 * way.
 */
HF_API int hf_latch_new(hf_client *client, const void *name, size_t name_len,
                        hf_latch **out, hf_error *err);
HF_API int hf_latch_free(hf_latch *latch);

/*
 * These three functions wait for the server's answer, at most op_timeout. If
 * the answer is lost, they repeat the request with the same request id, so that
 * a set or a count-down counts once. EUNKNOWN: there was no answer in time.
 * hf_latch_set() sets the count; EBUSY: the latch is set already; EINVAL: count
 * is 0 or more than INT32_MAX. hf_latch_down() counts down by one, but not
 * below 0. left may be NULL.
 */
HF_API int hf_latch_set(hf_latch *latch, uint64_t count, hf_error *err);
HF_API int hf_latch_down(hf_latch *latch, uint64_t *left, hf_error *err);
HF_API int hf_latch_get(hf_latch *latch, uint64_t *left, hf_error *err);

/* Waits until the count is 0. Returns 0; EBUSY (wait_ms is 0, and the count is
 * not 0), ETIMEDOUT, ECANCELED, ECLOSED, and the codes of the backend as in
 * hf_lock_acquire(). cancel may be NULL. */
HF_API int hf_latch_wait(hf_latch *latch, int64_t wait_ms, hf_cancel *cancel,
                         hf_error *err);

typedef void (*hf_latch_done_fn)(void *arg, hf_latch *latch, int result);

/* The latch verbs without blocking, like hf_lock_acquire_async(): one verb at a
 * time per handle. *left is set before done is called, and must exist until
 * then. hf_latch_cancel() ends a wait with 0 or ECANCELED, any other verb with
 * EUNKNOWN if there is no answer yet. */
HF_API int hf_latch_set_async(hf_latch *latch, uint64_t count,
                              hf_latch_done_fn done, void *arg, hf_error *err);
HF_API int hf_latch_down_async(hf_latch *latch, uint64_t *left,
                               hf_latch_done_fn done, void *arg, hf_error *err);
HF_API int hf_latch_get_async(hf_latch *latch, uint64_t *left,
                              hf_latch_done_fn done, void *arg, hf_error *err);
HF_API int hf_latch_wait_async(hf_latch *latch, int64_t wait_ms,
                               hf_latch_done_fn done, void *arg, hf_error *err);
HF_API int hf_latch_cancel(hf_latch *latch);

/* ---- inspection ------------------------------------------------------- */

/* A holder or a waiter. Unknown strings are "", unknown numbers 0. The strings
 * are safe to show: control characters, and bytes that are not UTF-8, are
 * written as \xNN. */
typedef struct hf_party {
    char owner[64]; /* the owner's id at the backend */
    char host[64];
    char label[64];
    int64_t pid;
    int64_t since_unix_ms; /* when the hold was granted or the wait began, by
                              the server's wall clock; in shared memory by the
                              machine's wall clock, for a grant only in whole
                              seconds */
    int64_t left_ms; /* of a holder: the time until the hold ends unless it is
                        renewed. -1 for a waiter, and for a hold without a fixed
                        lease in shared memory (it lasts as long as its
                        process), on ZooKeeper and on etcd (it lasts as long as
                        its client's session or lease) */
    uint64_t token;
    enum hf_mode mode;
    uint32_t permits; /* how many of a semaphore */
} hf_party;

typedef struct hf_info {
    enum hf_kind kind; /* 0: no client uses the name */
    enum hf_fairness fairness;
    uint64_t token;   /* the highest exclusive token so far, 0 if not known */
    uint64_t count;   /* of a latch: the count that is left */
    uint32_t permits; /* size of a semaphore */
    size_t holders_len, waiters_len;
    hf_party *holders;
    hf_party *waiters;   /* in the order of their grants, if fair */
    int waiters_unknown; /* 1: the backend cannot tell who waits, so waiters is
                            empty: for an unfair mutex on ZooKeeper and etcd,
                            for a latch on all servers, for all kinds on MySQL
                            and MariaDB if they poll */
} hf_info;

/* Finds out who holds the name and who waits for it. Waits for the answer. The
 * caller frees *out with hf_info_free(), before or after the client is closed.
 * Codes of hf_inspect(), hf_list() and hf_break(): ENOTSUP (the backend cannot
 * tell), EMISMATCH (what the server has under the name is no lock that holdfast
 * knows), EUNKNOWN (no answer within op_timeout), EBACKEND, EAUTH, EPROTO,
 * EINVAL, ENOMEM, ECLOSED, EFORK. */
HF_API int hf_inspect(hf_client *client, const void *name, size_t name_len,
                      hf_info **out, hf_error *err);
HF_API void hf_info_free(hf_info *info);

typedef struct hf_names {
    size_t len;
    struct hf_name {
        size_t len;
        char *bytes; /* terminated, for convenience */
    } * names;
} hf_names;

/* Lists the names that begin with prefix (NULL: all names) and are held or
 * waited for, or are latches that are set; in the order of their bytes. On
 * Redis, MySQL and MariaDB a name that is waited for but not held is not found.
 * On Redis the server walks over all keys in small steps: op_timeout limits
 * each step, and a hundred times op_timeout limits all of them. */
HF_API int hf_list(hf_client *client, const char *prefix, hf_names **out,
                   hf_error *err);
HF_API void hf_names_free(hf_names *names);

/* Takes the lock from its holders. The holders notice the loss at their next
 * renewal at the latest; holders that listen (on_event, and a thread that
 * dispatches) notice it at once, except on MySQL and MariaDB, in shared memory
 * with a fixed lease, and on Redis while the connection for messages is down.
 * Sets the count of a latch to 0. ENOTOWNER: the lock is not held, or the latch
 * is not set. */
HF_API int hf_break(hf_client *client, const void *name, size_t name_len,
                    hf_error *err);

/*
 * Breaks one hold, as hf_inspect() has shown it: the server breaks it only if
 * it still exists at that moment. token 0: any token; owner (the text of
 * hf_party.owner) NULL: any owner. Without both, or with an owner that is ""
 * (hf_inspect() could not find out the owner): EINVAL, nothing is broken. In
 * shared memory, on Redis and on MySQL and MariaDB several readers, or several
 * holders of permits, can have the same token: a token without an owner breaks
 * all of them, and an owner selects one (in shared memory the holds of one
 * client).
 * ENOTOWNER: no hold has that token and that owner, and nothing was broken; the
 * error text states the token of the current hold. A hold of another program (a
 * Redisson lock, a plain `lock` node) may have no token by which the server can
 * tell it apart; ENOTOWNER or ENOTSUP says so. An owner of more than 63 bytes,
 * or with bytes that cannot be shown, is not found by the text that
 * hf_inspect() shows.
 */
HF_API int hf_break_hold(hf_client *client, const void *name, size_t name_len,
                         uint64_t token, const char *owner, hf_error *err);

/* Asks the holders of the lock to release it. Holders that listen get
 * HF_EVENT_WANTED, and decide for themselves; nothing else changes. 0 says that
 * they were asked, not that they have noticed; on MySQL and MariaDB they notice
 * when they renew. ENOTOWNER: the lock is not held. ENOTSUP: the backend lacks
 * HF_CAP_WANTED, or the holder is another program, which cannot be asked
 * (Redis; on etcd the result is 0). */
HF_API int hf_ask(hf_client *client, const void *name, size_t name_len,
                  hf_error *err);

/* ---- changes ----------------------------------------------------------- */

typedef struct hf_watch hf_watch;

enum hf_watch_flag {
    HF_WATCH_PREFIX = 1 << 0, /* watch all names that begin with name; "" or
                                 NULL: all names */
};

/* Called by hf_client_dispatch(): something about the name may have changed;
 * hf_inspect() shows its current state. With HF_WATCH_PREFIX, name is the name
 * that may have changed, or NULL if there are several such names, or if the
 * name is not known. name is valid during the call. */
typedef void (*hf_watch_fn)(void *arg, hf_watch *watch, const char *name,
                            size_t name_len);

/*
 * Reports changes of a name: of its holders, its waiters and the count of a
 * latch; with HF_WATCH_PREFIX, of which names are held. After hf_watch_new()
 * has returned 0, fn is called at least once after each change by any program;
 * when fn is called, hf_inspect() sees the change (except what a server does
 * not report: hf_watch_new(3)). Several changes may be one call, a call may
 * come without a change, and a call comes when a lost connection has been
 * restored. fn runs once at a time for each watch. Waits for the server's
 * answer. ENOTSUP: the backend, or the server as it is configured, does not
 * report changes (shared memory; MySQL and MariaDB; Redis without
 * notify-keyspace-events), or not for a prefix (ZooKeeper); the text says what
 * to do. EUNKNOWN (no answer within op_timeout), EBACKEND, EAUTH, EPROTO,
 * EINVAL, ENOMEM, ECLOSED, EFORK.
 */
HF_API int hf_watch_new(hf_client *client, const void *name, size_t name_len,
                        unsigned flags, hf_watch_fn fn, void *arg,
                        hf_watch **out, hf_error *err);
/* Ends a watch: fn is no longer called. May be called by fn, and after
 * hf_close(), which ends the calls of all watches but frees none. EBUSY, and
 * nothing was done: another thread is in fn. EFORK in a child.
 * hf_watch_free(NULL) returns 0. */
HF_API int hf_watch_free(hf_watch *watch);

/* ---- diagnosis --------------------------------------------------------- */

enum hf_level {
    HF_LEVEL_OK = 0,
    HF_LEVEL_WARNING = 1, /* a guarantee is weaker than it could be */
    HF_LEVEL_ERROR = 2,   /* locks do not work, or may be lost at any time */
};

typedef struct hf_finding {
    enum hf_level level;
    char subject[24]; /* such as "persistence" */
    char text[752];   /* what was found, and what to change */
} hf_finding;

typedef struct hf_diagnosis {
    enum hf_level level; /* the worst of all findings */
    size_t len;
    hf_finding *findings;
} hf_diagnosis;

/* Finds out what this server, as it is configured, guarantees. The first
 * finding ("promise") says in one sentence when a hold ends and what it
 * survives. hf_diagnose() asks the server for its settings (a setting that the
 * user is not allowed to read is a warning), and acquires and releases a mutex
 * of the name "holdfast-diagnose" (so several calls at once wait for each
 * other, and include this wait in what they measure). Waits for up to five
 * answers, and for each at most op_timeout. The caller frees *out with
 * hf_diagnosis_free(), before or after the client is closed. ENOTSUP (the
 * backend cannot tell), EUNKNOWN, EBACKEND, EAUTH, EPROTO, EINVAL, ENOMEM,
 * ECLOSED, EFORK. */
HF_API int hf_diagnose(hf_client *client, hf_diagnosis **out, hf_error *err);
HF_API void hf_diagnosis_free(hf_diagnosis *diagnosis);

/* ---- metrics ----------------------------------------------------------- */

/* A bucket of a histogram: how many acquires took at most le_us. */
typedef struct hf_bucket {
    uint64_t le_us; /* the bound in microseconds */
    uint64_t count;
} hf_bucket;

#define HF_WAIT_BUCKETS 22 /* their bounds go from 10 us to 100 s */

/*
 * What a client has done since hf_open(). Counters never decrease while the
 * client is open.
 *
 * Each call of hf_lock_acquire() or of one of its variants counts once, by its
 * result, when it ends. A reentrant acquire counts like any other, and so does
 * each of several readers that share one hold at the server.
 * hf_lock_acquire_all() counts as one acquire for each lock that it asked for:
 * what it gives back on failure counts as released, and a lock that was still
 * taken when the time for all had passed counts as busy. hf_diagnose() acquires
 * a lock, which counts. Calls with invalid arguments (EINVAL) and waits for a
 * latch do not count.
 */
typedef struct hf_metrics {
    size_t size; /* set by HF_METRICS_INIT */
    /* acquires, by result: */
    uint64_t granted;
    uint64_t busy;      /* EBUSY: a try found the lock taken */
    uint64_t timed_out; /* ETIMEDOUT */
    uint64_t cancelled; /* ECANCELED */
    uint64_t failed;    /* any other code, including an hf_lock_acquire_async()
                           that could not begin because of another verb of the
                           handle */
    /* Calls of release that ended an acquire, including those that returned
     * ELOST. granted - released is how many acquires the program still has to
     * release. */
    uint64_t released;
    /* Holds that ended without a release: reported by HF_EVENT_LOST, or by a
     * release that returned ELOST. A lock that its owner has acquired twice is
     * one hold; each reader has a hold of its own. A loss that is found only by
     * the answer to hf_lock_release_nowait() is not counted. */
    uint64_t lost;
    /* Renewals of holds, by the helper thread or by hf_lock_renew(). In shared
     * memory a renewal only checks that the hold is still there. */
    uint64_t renewed;
    uint64_t renewals_failed; /* refused, not answered, or the hold was gone */
    uint64_t disconnects;     /* HF_EVENT_DOWN: the connection was lost */
    uint64_t reconnects;      /* HF_EVENT_UP: it is back */
    /* gauges: */
    uint64_t held;    /* current holds; see `lost' for what counts as a hold */
    uint64_t waiting; /* acquires that now wait for the lock, or for the answer
                         of the server */
    /* How long granted acquires took, from the call to the grant. A blocking
     * call in shared memory that does not have to wait reads no clock, and
     * counts as 0. */
    uint64_t wait_sum_ns;
    hf_bucket wait[HF_WAIT_BUCKETS];
} hf_metrics;

/* clang-format off */
#define HF_METRICS_INIT                                                        \
    {sizeof(hf_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {{0, 0}}}
/* clang-format on */

/* Fills *out, which must have been set by HF_METRICS_INIT. Makes no network
 * request; the time it takes grows with the number of locks that the client has
 * handles on. EINVAL, ECLOSED, EFORK. */
HF_API int hf_client_metrics(hf_client *client, hf_metrics *out, hf_error *err);

typedef struct hf_label {
    const char *name;  /* letters, digits and "_" */
    const char *value; /* any text; it is escaped */
} hf_label;

/* The metrics of one client, with the labels that distinguish it. */
typedef struct hf_series {
    const hf_metrics *metrics;
    const hf_label *labels; /* NULL if there are none */
    size_t labels_len;
} hf_series;

/*
 * Writes metrics in the text format of Prometheus. All clients that a program
 * exports must be in one call, because the format requires the samples of a
 * metric to be together. In label values, control characters other than newline
 * and bytes that are not UTF-8 are written as \xNN.
 *
 * Returns the length of the whole text, like snprintf(); if that is size or
 * more, the text in buf was cut. buf is always terminated, unless size is 0.
 * EINVAL: a label name that is not valid, is reserved ("le", "result",
 * "__..."), or is given twice; two series with the same labels.
 */
HF_API int hf_metrics_text(const hf_series *series, size_t n, char *buf,
                           size_t size, hf_error *err);

#ifdef __cplusplus
}
#endif
#endif
