/*
 * The conformance suite: what every backend must do, checked against a URL.
 *
 * Each file covers one subject. A case opens what it needs. After the case the
 * frame frees the handles and closes the clients that conf_lock*() and
 * conf_open*() made, in reverse order, asserts that each call succeeds, and
 * checks that no descriptor and no thread is left. Cases with CONF_EACH run
 * once per fairness that the backend declares. Only the main thread asserts;
 * other threads store their results.
 */
#ifndef CONF_H
#define CONF_H

/* Callbacks and fakes ignore many of their parameters. */
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
    const char *secret;          /* the password in the URL, or NULL */
    const char *dir;             /* for the tests' files */
    const char *const *reserved; /* names that the backend reserves */
    long (*left)(void);          /* number of entries at the server, or NULL */
    void (*print_left)(void);    /* prints those entries; set if left is */
    long failed_left;            /* how many entries failed cases have left */
    void (*unput)(const char *); /* removes what hf_lock_put() wrote, or NULL */
    const char *(*url_at)(int);  /* the same server at a TCP port, or NULL */
    int port;                    /* the server's port */
    bool fresh;                  /* no other client uses or has used it */
    bool keeps;   /* set before the start: the server keeps its data over a
                     restart, if it can */
    bool local;   /* shared memory: a death is noticed at once */
    bool session; /* the server knows no leases: a hold lasts as long as its
                     client's session */
    bool looks;   /* waiters poll, they are not notified */
    bool in_turn; /* a client sends a change of a latch after the reply to the
                     previous one */
    bool hears_late; /* a holder hears of hf_ask() when it renews */
    bool watches, watches_prefixes; /* the backend has hf_watch_new() */
    int64_t tick_ms;                /* how late the server may notice a death */
    int caps;                       /* capabilities of the mutex */
    int kind_caps[HF_LATCH + 1];    /* capabilities by kind; 0: not supported */
    enum hf_fairness fairness; /* fairness that this run of the case uses */
};

extern struct conf conf;

enum conf_flag {
    CONF_EACH = 1 << 0,    /* run once per declared fairness */
    CONF_INSPECT = 1 << 1, /* run if inspection is declared */
    CONF_FAIR = 1 << 2,    /* run with a fair lock, if declared */
    CONF_LEASE = 1 << 3,   /* run if a fixed lease is declared */
    CONF_FRESH = 1 << 4,   /* run if no other client uses the server */
    CONF_SECRET = 1 << 5,  /* run if there is a password */
    CONF_FAR = 1 << 6,     /* run if a proxy can be used */
    /* Run if that kind is declared; the other flags then mean its capabilities,
     * not the mutex's. */
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
    const char *file; /* where the case is defined */
    int line;
};

/* Called before main(). */
void conf_add_case(const struct conf_case *);

/* Begins the definition of a case and adds it to the suite. */
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

/* Defines a case that is one call of a shared function. */
#define CONF_ROW(fn, flags, call)                                              \
    CONF_CASE(fn, flags)                                                       \
    {                                                                          \
        call;                                                                  \
    }                                                                          \
    struct conf_case

/* The error argument of a call inside EXPECT, which clears and then checks
 * it. */
#define E (conf_error())
hf_error *conf_error(void);

/* Asserts that the call returns this code; if it has E, also that the error's
 * text is not empty. */
#define EXPECT(code, call)                                                     \
    (conf_no_error(), conf_expect((code), (call), #call, __FILE__, __LINE__))
#define OK(call) EXPECT(0, call)
void conf_no_error(void);
void conf_expect(int code, int rc, const char *call, const char *file,
                 int line);

/* Also asserts that the error text contains this word. */
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

/* Asserts that a hold requested at `since` for `ms` is still held, or that it
 * has ended because the machine stalled for as long. */
#define HELD(since, ms, call)                                                  \
    (conf_no_error(),                                                          \
     conf_held((since), (ms), (call), #call, __FILE__, __LINE__))
void conf_held(int64_t since, int64_t ms, int rc, const char *call,
               const char *file, int line);
bool conf_may_be_over(int64_t since, int64_t ms);

/* Asserts that the condition becomes true in time. */
#define COMES(cond) conf_comes(WAIT_FOR(cond), #cond, __FILE__, __LINE__)
#define COMES_MS(cond, ms)                                                     \
    conf_comes(WAIT_FOR_MS(cond, ms), #cond, __FILE__, __LINE__)
void conf_comes(bool met, const char *cond, const char *file, int line);

/* op_timeout of the clients below unless the options set one. Servers with
 * sessions and databases may exceed the default on a busy machine. Redis keeps
 * the default, because the lifetime of its keys depends on it. */
int64_t conf_op_ms(void);

/* A name that no other case uses; valid until the end of the case. */
const char *conf_name(void);

/* The frame closes these clients after the case. */
hf_client *conf_open(void);
hf_client *conf_open_ttl(int64_t ttl_ms);
/* A client whose session, if any, is longer than any lease of a test; and its
 * TTL (0: the default will do). */
hf_client *conf_open_long(void);
int64_t conf_long_ms(void);
hf_client *conf_open_with(const hf_client_options *);
/* The URL with one more option; valid until the next call. */
const char *conf_url_with(const char *option);

/* Locks with the case's fairness, which the frame frees after the case. */
hf_lock *conf_lock(hf_client *, const char *name);
hf_lock *conf_lock_flags(hf_client *, const char *name, unsigned flags);
hf_lock *conf_lock_with(hf_client *, const char *name, hf_lock_options *);
hf_lock *conf_lock_of(hf_client *, const char *name, enum hf_kind,
                      uint32_t size, unsigned flags);
/* Another client's lock of the same name. `other` must be the lock made
 * last. */
hf_lock *conf_rival(hf_lock *other, unsigned flags);
hf_latch *conf_latch(hf_client *, const char *name);

/* For a case that frees a lock or closes a client itself: the frame does not do
 * it again. */
void conf_free(hf_lock *);
void conf_free_latch(hf_latch *);
void conf_close(hf_client *);

/* The frame calls end(what) after the case, in reverse order of these calls,
 * unless conf_forget(what) was called. */
void conf_defer(void (*end)(void *what), void *what);
void conf_forget(const void *what);
/* The frame also closes this client and frees this lock. */
hf_client *conf_keep(hf_client *);
hf_lock *conf_keep_lock(hf_lock *);

/* A proxy in front of the server, which the frame ends, and a client through
 * it. */
struct proxy *conf_proxy(void);
hf_client *conf_open_through(struct proxy *, const hf_client_options *);

/* For main.c: conf_begin() forgets what a failed case has left; conf_end() runs
 * what the case has deferred. */
void conf_begin(void);
void conf_end(void);

uint64_t conf_token(hf_lock *);
int64_t conf_deadline(hf_lock *);
int conf_take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms);
/* Takes the lock with that lease and extends it by a minute before it ends.
 * Returns the first deadline. */
int64_t conf_take_and_extend(hf_lock *, int64_t lease_ms);
/* Shortens a fixed lease, which may have ended when this returns. */
void conf_shorten(hf_lock *, int64_t lease_ms);
/* For a client with a short op_timeout: tries again if the reply comes too
 * late. */
void conf_release_impatiently(hf_lock *);
/* A TTL that a renewed hold survives although the machine stalls for three
 * seconds (where holds are leases), and how long cases watch such a hold. */
#define CONF_KEPT_TTL_MS (conf.local ? 900 : 4500)
#define CONF_KEPT_MS (CONF_KEPT_TTL_MS + 500)
/* An op_timeout that a test can wait for, and that a server on a busy machine
 * still meets. */
#define CONF_SHORT_OP_MS (conf.session || SANITIZED ? 1000 : 400)

/* Acquires with that mode (read-write lock) or number of permits
 * (semaphore). */
int conf_take(hf_lock *, enum hf_mode, uint32_t permits, int64_t wait_ms);

/* As conf_take(); asserts that the lock was granted within so many ms of the
 * fair clock. */
int conf_take_within(hf_lock *, enum hf_mode, uint32_t permits, int64_t ms);

/* Asserts that the lock can be acquired in time, and releases it. */
void conf_comes_free(hf_lock *);

/* How long a dead holder with that TTL may keep other clients out, in ms. */
int64_t conf_death_ms(int64_t ttl_ms);

/* Clients with a lock each, all of one name. */
struct conf_group {
    const char *name;
    hf_client *c[3];
    hf_lock *l[3];
};

struct conf_group conf_group(enum hf_kind, uint32_t size, unsigned flags);

struct conf_thread {
    pthread_t thread;
    pid_t tid;      /* atomic; set before the thread starts */
    uint32_t ended; /* atomic */
    void (*body)(void *);
    void *arg;
};

void conf_thread_start(struct conf_thread *, void (*body)(void *), void *arg);
void conf_thread_join(struct conf_thread *);
/* Returns when the thread sleeps in whatever it waits for. */
void conf_thread_asleep(struct conf_thread *);
/* As conf_thread_asleep(); false if the thread ended instead. */
bool conf_thread_sleeps(struct conf_thread *);
bool conf_thread_ended(struct conf_thread *);
/* Stops the thread, wherever it sleeps, until conf_thread_go_on(). One
 * thread at a time. */
void conf_thread_stand(struct conf_thread *);
void conf_thread_go_on(void);

/* A thread that acquires a lock and releases it when conf_taker_end() asks for
 * it. */
struct conf_taker {
    struct conf_thread t;
    hf_lock *lock;
    hf_acquire_options opt;
    int rc, release_rc; /* valid after the join */
    uint64_t token;
    uint32_t granted; /* atomic */
    uint32_t let_go;  /* atomic; set by the main thread */
    bool keep;        /* exit without a release */
};

void conf_taker_start(struct conf_taker *, hf_lock *);
/* Starts the taker with that mode or number of permits; returns when it
 * waits. */
void conf_taker_wait(struct conf_taker *, hf_lock *, enum hf_mode,
                     uint32_t permits);
bool conf_taker_has(struct conf_taker *);
/* Has the taker release the lock, and joins it. */
void conf_taker_end(struct conf_taker *);
/* As conf_taker_end(); asserts the code of the acquire and, if that is 0, that
 * the release succeeded. */
void conf_taker_ends(struct conf_taker *, int rc);

/* A puppet with a client, and a lock of that name in slot 0. */
struct proc conf_puppet(const char *name, int64_t ttl_ms);
struct proc conf_puppet_of(const char *name, int64_t ttl_ms, enum hf_kind,
                           uint32_t size);
int conf_puppet_take_as(struct proc *, enum hf_mode, uint32_t permits,
                        int64_t wait_ms);
int conf_puppet_take(struct proc *, int64_t wait_ms, int64_t lease_ms,
                     struct proc_reply *);
int conf_puppet_do(struct proc *, enum proc_op, struct proc_reply *);
/* Begins to acquire; returns when the puppet waits. */
void conf_puppet_wait(struct proc *);
void conf_puppet_wait_as(struct proc *, enum hf_mode, uint32_t permits);
/* As conf_puppet_wait(); false if the puppet was granted the lock instead. */
bool conf_puppet_waits(struct proc *, enum hf_mode, uint32_t permits);
/* Receives the puppet's reply to that acquire; fails if there is none in
 * time. */
void conf_puppet_answer(struct proc *, struct proc_reply *);

/* Returns when the server has so many waiters, so that the next one queues
 * behind them. Where the server cannot tell, asleep counts as queued. */
void conf_await_queue(hf_client *, const char *name, size_t len);

/* The result of hf_inspect(), which the frame frees. */
hf_info *conf_inspect(hf_client *, const char *name);

/* The number of entries at the server when it should have none. Waits for those
 * that expire by themselves and prints the others. 0 where the server cannot
 * tell. */
long conf_left(void);
/* Gathers the record, adds what is left at the server, and fails unless the
 * checkers accept it. ttl_ms: of the processes that died or were stopped. */
void conf_check_record(struct record *, struct history *, int64_t ttl_ms);

size_t conf_count_entries(const char *dir);

/* The result of an asynchronous verb. */
struct conf_call {
    int called, result;
};

void conf_note(void *call, hf_lock *, int result); /* the verb's callback */
/* Dispatches, and returns whether the callback has been called. */
bool conf_called(hf_client *, const struct conf_call *);
/* Waits for the callback and asserts its result. */
void conf_calls_back(hf_client *, const struct conf_call *, int result);

#endif
