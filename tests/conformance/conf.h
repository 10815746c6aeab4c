/*
 * The conformance suite: what every backend must do, checked against a URL.
 *
 * Each file covers one subject. A case opens what it needs. After the case the
 * frame (conf.c and main.c) frees the handles and closes the clients that
 * conf_lock*() and conf_open*() created, in reverse order. It asserts that each
 * of these calls succeeds, and that no descriptor and no thread is left. Cases
 * with CONF_EACH run once per fairness that the backend declares. Only the main
 * thread asserts; other threads store their results.
 */
#ifndef CONF_H
#define CONF_H

/* Callbacks and fakes do not use all of their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <holdfast.h>
#include <pthread.h>
#include <stdbool.h>

#include "../lib/proc.h"
#include "../lib/proxy.h"
#include "../lib/record.h"
#include "../lib/wait.h"
#include "../unit/options.h"

struct conf {
    const char *url;
    const char *secret;          /* password in the URL, or NULL */
    const char *dir;             /* directory for the tests' files */
    const char *const *reserved; /* names that the backend reserves, or NULL */
    long (*left)(void);          /* number of entries at the server; or NULL */
    void (*print_left)(void);    /* prints those entries; set if left is */
    long failed_left;            /* number of entries that failed cases left */
    void (*unput)(const char *); /* deletes a key of hf_lock_put(); or NULL */
    const char *(*url_at)(int);  /* URL of the server at a TCP port; or NULL */
    int port;                    /* the server's port */
    bool fresh;                  /* no other client has ever used the server */
    /* Set before the start: the server keeps its data across a restart, if
     * it can. */
    bool keeps;
    bool local; /* shared memory: a death is noticed at once */
    /* Holds have no leases of their own at the server: each lasts as long as
     * its client's session. */
    bool session;
    bool looks; /* waiters are not notified, they poll */
    /* A client changes a latch only after the reply to its previous
     * change. */
    bool in_turn;
    bool hears_late; /* a holder learns of hf_ask() at its next renewal */
    bool watches, watches_prefixes; /* the backend has hf_watch_new() */
    int64_t tick_ms;                /* how late the server may notice a death */
    int caps;                       /* capabilities for a mutex */
    int kind_caps[HF_LATCH + 1];    /* by kind; 0 if not supported */
    enum hf_fairness fairness;      /* the fairness in this run of the case */
};

extern struct conf conf;

enum conf_flag {
    CONF_EACH = 1 << 0,    /* run once per declared fairness */
    CONF_INSPECT = 1 << 1, /* run if inspection is declared */
    CONF_FAIR = 1 << 2,    /* run once, with a fair lock, if declared */
    CONF_LEASE = 1 << 3,   /* run if a fixed lease is declared */
    CONF_FRESH = 1 << 4,   /* run if conf.fresh is set */
    CONF_SECRET = 1 << 5,  /* run if there is a password */
    CONF_FAR = 1 << 6,     /* run if a proxy can be used */
    /* Each of these three: run only if the kind that it names is declared. The
     * other flags are then about that kind instead of the mutex. */
    CONF_RWLOCK = 1 << 7,
    CONF_SEMAPHORE = 1 << 8,
    CONF_LATCH = 1 << 9,
    CONF_WANTED = 1 << 10, /* run if hf_ask() is declared */
    CONF_PUT = 1 << 11,    /* run if guarded writes are declared */
    CONF_WATCH = 1 << 12,  /* run if watches are declared */
    CONF_PREFIX = 1 << 13, /* run if watches of a prefix are declared */
};

struct conf_case {
    const char *name;
    void (*run)(void);
    unsigned flags;
    const char *file; /* file that defines the case */
    int line;
};

/* Adds a case before main(). */
void conf_add_case(const struct conf_case *);

/* Defines a case and adds it to the suite; its body follows. */
#define CONF_CASE(fn, flags)                                                   \
    static void fn(void);                                                      \
    __attribute__((constructor)) static void add_##fn(void)                    \
    {                                                                          \
        static const struct conf_case c = {#fn, fn, flags, __FILE__,           \
                                           __LINE__};                          \
                                                                               \
        conf_add_case(&c);                                                     \
    }                                                                          \
    static void fn(void)

/* Defines a case whose body is one call. */
#define CONF_ROW(fn, flags, call)                                              \
    CONF_CASE(fn, flags)                                                       \
    {                                                                          \
        call;                                                                  \
    }                                                                          \
    struct conf_case

/* The error argument of a call inside EXPECT. EXPECT clears the error before
 * the call and checks it afterwards. */
#define E (conf_error())
hf_error *conf_error(void);

/* Asserts that the call returns this code. If the call has E and fails, also
 * asserts that the error has this code, and a message without the password. */
#define EXPECT(code, call)                                                     \
    (conf_no_error(), conf_expect((code), (call), #call, __FILE__, __LINE__))
#define OK(call) EXPECT(0, call)
void conf_no_error(void);
void conf_expect(int code, int rc, const char *call, const char *file,
                 int line);

/* As EXPECT; also asserts that the error's message contains this word. The
 * call's error argument is `err`. */
#define EXPECT_TEXT(want, word, call)                                          \
    do {                                                                       \
        hf_error text_err = HF_ERROR_INIT;                                     \
        hf_error *err = &text_err;                                             \
                                                                               \
        EXPECT(want, call);                                                    \
        assert_int_equal(text_err.code, want);                                 \
        if (!strstr(text_err.text, word)) {                                    \
            print_error("\"%s\" is not in: %s\n", word, text_err.text);        \
            fail();                                                            \
        }                                                                      \
    } while (0)

/* Asserts that a hold of `ms` requested at `since` still exists (call returns
 * 0), or that it has ended because the machine stalled for that long. */
#define HELD(since, ms, call)                                                  \
    (conf_no_error(),                                                          \
     conf_held((since), (ms), (call), #call, __FILE__, __LINE__))
void conf_held(int64_t since, int64_t ms, int rc, const char *call,
               const char *file, int line);
bool conf_may_be_over(int64_t since, int64_t ms);

/* Asserts that the condition becomes true: COMES() within WAIT_LONG_MS,
 * COMES_MS() within `ms`. */
#define COMES(cond) conf_comes(WAIT_FOR(cond), #cond, __FILE__, __LINE__)
#define COMES_MS(cond, ms)                                                     \
    conf_comes(WAIT_FOR_MS(cond, ms), #cond, __FILE__, __LINE__)
void conf_comes(bool met, const char *cond, const char *file, int line);

/* Returns the op_timeout that conf_open(), conf_open_ttl(), conf_open_long()
 * and conf_open_with() set if the caller gives none. On a busy machine, servers
 * with sessions, and database servers, may need more than the default. Redis
 * keeps the default, because the lifetime of its keys depends on it. */
int64_t conf_op_ms(void);

/* Returns a name that no other case uses, valid until the end of the case. */
const char *conf_name(void);

/* Open a client that the frame closes after the case. */
hf_client *conf_open(void);
hf_client *conf_open_ttl(int64_t ttl_ms);
/* conf_open_long() opens a client whose session, if it has one, is longer than
 * any lease of a test. conf_long_ms() returns the TTL of that client, or 0 for
 * the default. */
hf_client *conf_open_long(void);
int64_t conf_long_ms(void);
hf_client *conf_open_with(const hf_client_options *);
/* Returns the URL with one more option, valid until the next call. */
const char *conf_url_with(const char *option);

/* Create a lock with the case's fairness. The frame frees the lock after the
 * case. */
hf_lock *conf_lock(hf_client *, const char *name);
hf_lock *conf_lock_flags(hf_client *, const char *name, unsigned flags);
hf_lock *conf_lock_with(hf_client *, const char *name, hf_lock_options *);
hf_lock *conf_lock_of(hf_client *, const char *name, enum hf_kind,
                      uint32_t size, unsigned flags);
/* Creates another client's lock of the same name. `other` must be the lock that
 * was created last. */
hf_lock *conf_rival(hf_lock *other, unsigned flags);
hf_latch *conf_latch(hf_client *, const char *name);

/* Free a lock or latch, or close a client, during the case. The frame then does
 * not do so again after the case. */
void conf_free(hf_lock *);
void conf_free_latch(hf_latch *);
void conf_close(hf_client *);

/* Makes the frame call end(what) after the case, unless conf_forget(what) is
 * called. What was deferred last is ended first. */
void conf_defer(void (*end)(void *what), void *what);
void conf_forget(const void *what);
/* Make the frame close this client, or free this lock, too. */
hf_client *conf_keep(hf_client *);
hf_lock *conf_keep_lock(hf_lock *);

/* conf_proxy() starts a proxy in front of the server, and conf_open_through()
 * opens a client that connects through it. The frame ends both. */
struct proxy *conf_proxy(void);
hf_client *conf_open_through(struct proxy *, const hf_client_options *);

/* For main.c. conf_begin() forgets what a failed case has deferred;
 * conf_end() runs what the case has deferred. */
void conf_begin(void);
void conf_end(void);

uint64_t conf_token(hf_lock *);
int64_t conf_deadline(hf_lock *);
int conf_take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms);
/* Acquires the lock with that lease and renews the hold with a lease of one
 * minute; starts again if the hold ended before the renewal. Returns the
 * deadline that the hold had before the renewal. */
int64_t conf_take_and_extend(hf_lock *, int64_t lease_ms);
/* Shortens a fixed lease, which may have ended when this returns. */
void conf_shorten(hf_lock *, int64_t lease_ms);
/* Releases a lock of a client with a short op_timeout; tries again if the reply
 * arrives too late. */
void conf_release_impatiently(hf_lock *);
/* CONF_KEPT_TTL_MS is a TTL with which a renewed hold survives a machine that
 * stalls for three seconds (where holds are leases). CONF_KEPT_MS is how long
 * cases watch such a hold. */
#define CONF_KEPT_TTL_MS (conf.local ? 900 : 4500)
#define CONF_KEPT_MS (CONF_KEPT_TTL_MS + 500)
/* An op_timeout short enough for a test to wait until it ends, but long enough
 * for the replies of a server on a busy machine. */
#define CONF_SHORT_OP_MS (conf.session || SANITIZED ? 1000 : 400)

/* Acquires with that mode (read-write lock) or number of permits
 * (semaphore). */
int conf_take(hf_lock *, enum hf_mode, uint32_t permits, int64_t wait_ms);

/* As conf_take(); asserts success within `ms` milliseconds, not counting
 * stalls of the machine (wait_fair()). */
int conf_take_within(hf_lock *, enum hf_mode, uint32_t permits, int64_t ms);

/* Asserts that the lock can be acquired within WAIT_LONG_MS, and releases
 * it. */
void conf_comes_free(hf_lock *);

/* Returns for how long a dead holder with that TTL may keep other clients out,
 * in ms. */
int64_t conf_death_ms(int64_t ttl_ms);

/* Three clients, each with a lock of the same name. */
struct conf_group {
    const char *name;
    hf_client *c[3];
    hf_lock *l[3];
};

struct conf_group conf_group(enum hf_kind, uint32_t size, unsigned flags);

struct conf_thread {
    pthread_t thread;
    pid_t tid;      /* atomic; set by the thread when it starts */
    uint32_t ended; /* atomic */
    void (*body)(void *);
    void *arg;
};

void conf_thread_start(struct conf_thread *, void (*body)(void *), void *arg);
void conf_thread_join(struct conf_thread *);
/* Returns once the thread sleeps inside the call in which it waits. */
void conf_thread_asleep(struct conf_thread *);
/* As conf_thread_asleep(); returns false if the thread ended instead. */
bool conf_thread_sleeps(struct conf_thread *);
bool conf_thread_ended(struct conf_thread *);
/* Waits until the thread stays asleep, and stops it until
 * conf_thread_go_on(). Only one thread can be stopped at a time. */
void conf_thread_stand(struct conf_thread *);
void conf_thread_go_on(void);

/* A thread that acquires a lock and keeps it until conf_taker_end(). */
struct conf_taker {
    struct conf_thread t;
    hf_lock *lock;
    hf_acquire_options opt;
    int rc, release_rc; /* valid after the join */
    uint64_t token;
    uint32_t granted; /* atomic */
    uint32_t let_go;  /* atomic; set by the main thread to release */
    bool keep;        /* end the thread without a release */
};

void conf_taker_start(struct conf_taker *, hf_lock *);
/* Starts a taker with that mode or number of permits; returns when the taker
 * waits. */
void conf_taker_wait(struct conf_taker *, hf_lock *, enum hf_mode,
                     uint32_t permits);
bool conf_taker_has(struct conf_taker *);
/* Makes the taker release the lock, and joins it. */
void conf_taker_end(struct conf_taker *);
/* As conf_taker_end(); asserts that the acquire returned rc and, if that is 0,
 * that the release succeeded. */
void conf_taker_ends(struct conf_taker *, int rc);

/* Starts a puppet that has a client, and a lock of that name in slot 0. */
struct proc conf_puppet(const char *name, int64_t ttl_ms);
struct proc conf_puppet_of(const char *name, int64_t ttl_ms, enum hf_kind,
                           uint32_t size);
int conf_puppet_take_as(struct proc *, enum hf_mode, uint32_t permits,
                        int64_t wait_ms);
int conf_puppet_take(struct proc *, int64_t wait_ms, int64_t lease_ms,
                     struct proc_reply *);
int conf_puppet_do(struct proc *, enum proc_op, struct proc_reply *);
/* Makes the puppet acquire its lock; returns when the puppet waits. */
void conf_puppet_wait(struct proc *);
void conf_puppet_wait_as(struct proc *, enum hf_mode, uint32_t permits);
/* As conf_puppet_wait(); returns false if the puppet was granted the lock
 * instead. */
bool conf_puppet_waits(struct proc *, enum hf_mode, uint32_t permits);
/* Receives the puppet's reply to the command that it is executing; fails the
 * case if no reply arrives in time. */
void conf_puppet_answer(struct proc *, struct proc_reply *);

/* Returns when the server has `len` waiters, so that the next one queues after
 * them. If the backend cannot report waiters, returns at once; therefore
 * callers first wait until the waiters sleep. */
void conf_await_queue(hf_client *, const char *name, size_t len);

/* Returns the result of hf_inspect(), which the frame frees. */
hf_info *conf_inspect(hf_client *, const char *name);

/* Returns the number of entries at the server, or 0 if that is unknown. Called
 * at a time when the server should have none: waits for entries that expire by
 * themselves, and prints those that remain. */
long conf_left(void);
/* Collects the events of the record, adds the number of entries left at the
 * server, and fails the case unless the checkers accept the history. ttl_ms:
 * the TTL of the processes that died or were stopped. */
void conf_check_record(struct record *, struct history *, int64_t ttl_ms);

size_t conf_count_entries(const char *dir);

/* The result of an asynchronous verb. */
struct conf_call {
    int called, result;
};

void conf_note(void *call, hf_lock *, int result); /* callback for the verb */
/* Dispatches; returns whether the callback has been called. */
bool conf_called(hf_client *, const struct conf_call *);
/* Waits for the callback and asserts its result. */
void conf_calls_back(hf_client *, const struct conf_call *, int result);

#endif
