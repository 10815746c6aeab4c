/*
 * The conformance suite: what every backend must do, checked against a URL.
 *
 * A file is a subject. A case opens what it needs. After the case the frame
 * frees the handles and closes the clients that conf_lock*() and conf_open*()
 * made, last made first, asserts that each call succeeds, and checks that no
 * descriptor and no thread was left. Cases with CONF_EACH run once per fairness
 * that the backend declares. Only the main thread asserts; others report.
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
    const char *secret;          /* the password in it, NULL if none */
    const char *dir;             /* for files of the tests */
    const char *const *reserved; /* names that are the backend's own */
    long (*left)(void);          /* how many things the server has; NULL */
    void (*print_left)(void);    /* says which; where there is the former */
    long failed_left;            /* of those, by cases that have failed */
    void (*unput)(const char *); /* removes what hf_lock_put wrote; NULL */
    const char *(*url_at)(int);  /* the same server behind a TCP port; NULL */
    int port;                    /* its own */
    bool fresh;                  /* nobody else uses it, or did */
    bool keeps;                  /* set before it is started: it keeps its data
                                    over a restart, if it can */
    bool local;                  /* shared memory: deaths show at once */
    bool session;                /* holds last as long as their client's session
                                    does at the server, which knows no leases */
    bool looks;                  /* nobody tells waiters: they look */
    bool in_turn;                /* what changes a latch is sent when the one
                                    before it was answered */
    bool hears_late;             /* a holder hears of hf_ask when it renews */
    bool watches, watches_prefixes; /* it tells of changes: hf_watch_new */
    int64_t tick_ms;             /* the server's: so late may it see a death */
    int caps;                    /* of the mutex */
    int kind_caps[HF_LATCH + 1]; /* of each kind; 0: there is none */
    enum hf_fairness fairness;   /* that this run of the case is about */
};

extern struct conf conf;

enum conf_flag {
    CONF_EACH = 1 << 0,    /* once per declared fairness */
    CONF_INSPECT = 1 << 1, /* only where inspection is declared */
    CONF_FAIR = 1 << 2,    /* only where a fair mutex is declared; it is set */
    CONF_LEASE = 1 << 3,   /* only where a fixed lease is declared */
    CONF_FRESH = 1 << 4,   /* only where nobody else uses the server */
    CONF_SECRET = 1 << 5,  /* only where there is a password */
    CONF_FAR = 1 << 6,     /* only where a proxy can stand in between */
    /* Of that kind, where there is one: the others ask for its bits. */
    CONF_RWLOCK = 1 << 7,
    CONF_SEMAPHORE = 1 << 8,
    CONF_LATCH = 1 << 9,
    CONF_WANTED = 1 << 10, /* only where holders can be asked */
    CONF_PUT = 1 << 11,    /* only where there are guarded writes */
    CONF_WATCH = 1 << 12,  /* only where changes are told; */
    CONF_PREFIX = 1 << 13, /* and those of all names with a prefix */
};

struct conf_case {
    const char *name;
    void (*run)(void);
    unsigned flags;
    const char *file; /* where it is */
    int line;
};

/* Before main(). */
void conf_add_case(const struct conf_case *);

/* Begins the definition of a case, which it adds to the suite. */
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

/* A case that is one call of a function which serves several cases. */
#define CONF_ROW(fn, flags, call)                                              \
    CONF_CASE(fn, flags)                                                       \
    {                                                                          \
        call;                                                                  \
    }                                                                          \
    struct conf_case

/* ---- asserting --------------------------------------------------------- */

/* For the error argument of a call inside EXPECT: cleared, then checked. */
#define E (conf_error())
hf_error *conf_error(void);

/* The call returns this code; with E also a text that says what was wrong. */
#define EXPECT(code, call)                                                     \
    (conf_no_error(), conf_expect((code), (call), #call, __FILE__, __LINE__))
#define OK(call) EXPECT(0, call)
void conf_no_error(void);
void conf_expect(int code, int rc, const char *call, const char *file,
                 int line);

/* The text of the failure also names this. */
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

/* A hold that was asked for at that time, for so many ms, is there; or is over,
 * because the machine stood for as long. */
#define HELD(since, ms, call)                                                  \
    (conf_no_error(),                                                          \
     conf_held((since), (ms), (call), #call, __FILE__, __LINE__))
void conf_held(int64_t since, int64_t ms, int rc, const char *call,
               const char *file, int line);
bool conf_may_be_over(int64_t since, int64_t ms);

/* The condition comes true, in time. */
#define COMES(cond) conf_comes(WAIT_FOR(cond), #cond, __FILE__, __LINE__)
#define COMES_MS(cond, ms)                                                     \
    conf_comes(WAIT_FOR_MS(cond, ms), #cond, __FILE__, __LINE__)
void conf_comes(bool met, const char *cond, const char *file, int line);

/* ---- clients and locks ------------------------------------------------- */

/* op_timeout of the clients below, unless they have another. Servers with
 * sessions and databases may take longer than the default on a busy machine; by
 * that of Redis keys live on. */
int64_t conf_op_ms(void);

/* A name that no other case uses; valid until the end of the case. */
const char *conf_name(void);

/* The frame closes these clients after the case. */
hf_client *conf_open(void);
hf_client *conf_open_ttl(int64_t ttl_ms);
/* Its session, where there is one, is longer than any lease of a test; its
 * TTL, 0 where the usual one will do. */
hf_client *conf_open_long(void);
int64_t conf_long_ms(void);
hf_client *conf_open_with(const hf_client_options *);
/* The URL with one more option: valid until the next call. */
const char *conf_url_with(const char *option);

/* With the case's fairness; the frame frees these locks after the case. */
hf_lock *conf_lock(hf_client *, const char *name);
hf_lock *conf_lock_flags(hf_client *, const char *name, unsigned flags);
hf_lock *conf_lock_with(hf_client *, const char *name, hf_lock_options *);
hf_lock *conf_lock_of(hf_client *, const char *name, enum hf_kind,
                      uint32_t size, unsigned flags);
/* Another client's lock of the same name. The other lock is the last one made.
 */
hf_lock *conf_rival(hf_lock *other, unsigned flags);
hf_latch *conf_latch(hf_client *, const char *name);

/* For a case that frees or closes earlier: the frame does not do it again. */
void conf_free(hf_lock *);
void conf_free_latch(hf_latch *);
void conf_close(hf_client *);

/* The frame calls end(what) after the case, and before what was deferred
 * earlier; unless conf_forget(what) came first. */
void conf_defer(void (*end)(void *what), void *what);
void conf_forget(const void *what);
/* The frame closes this client and frees this lock too. */
hf_client *conf_keep(hf_client *);
hf_lock *conf_keep_lock(hf_lock *);

/* A proxy before the server, which the frame ends, and a client through it. */
struct proxy *conf_proxy(void);
hf_client *conf_open_through(struct proxy *, const hf_client_options *);

/* For main.c: forgets what a case that failed has left; does what the case has
 * deferred. */
void conf_begin(void);
void conf_end(void);

uint64_t conf_token(hf_lock *);
int64_t conf_deadline(hf_lock *);
int conf_take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms);
/* Takes it for so long, and renews it for a minute before that is over; the
 * deadline that it had first. */
int64_t conf_take_and_extend(hf_lock *, int64_t lease_ms);
/* A fixed lease ends so much later, which may be before this is back. */
void conf_shorten(hf_lock *, int64_t lease_ms);
/* Of a client with a short op_timeout: the answer may be too late for it. */
void conf_release_impatiently(hf_lock *);
/* A TTL that a hold outlives by its renewals on a machine that stands still for
 * three seconds, where there are any; and for how long cases look. */
#define CONF_KEPT_TTL_MS (conf.local ? 900 : 4500)
#define CONF_KEPT_MS (CONF_KEPT_TTL_MS + 500)
/* An op_timeout that a test can wait for, and that a server which answers on a
 * busy machine keeps. */
#define CONF_SHORT_OP_MS (conf.session || SANITIZED ? 1000 : 400)

/* A mode of a read-write lock, or so many permits of a semaphore. */
int conf_take(hf_lock *, enum hf_mode, uint32_t permits, int64_t wait_ms);

/* The same, granted within so many ms of the fair clock. */
int conf_take_within(hf_lock *, enum hf_mode, uint32_t permits, int64_t ms);

/* The lock can be taken in time; it is released again. */
void conf_comes_free(hf_lock *);

/* How long a dead holder with that TTL may keep others out, in ms. */
int64_t conf_death_ms(int64_t ttl_ms);

/* Clients with a lock each, all of one name. */
struct conf_group {
    const char *name;
    hf_client *c[3];
    hf_lock *l[3];
};

struct conf_group conf_group(enum hf_kind, uint32_t size, unsigned flags);

/* ---- threads ----------------------------------------------------------- */

struct conf_thread {
    pthread_t thread;
    pid_t tid;      /* atomic; set before body runs */
    uint32_t ended; /* atomic */
    void (*body)(void *);
    void *arg;
};

void conf_thread_start(struct conf_thread *, void (*body)(void *), void *arg);
void conf_thread_join(struct conf_thread *);
/* Until the thread sleeps in whatever it waits for. */
void conf_thread_asleep(struct conf_thread *);
/* The same, or until it has ended: false then. */
bool conf_thread_sleeps(struct conf_thread *);
bool conf_thread_ended(struct conf_thread *);
/* It does not run, wherever it is, until it goes on; one at a time. */
void conf_thread_stand(struct conf_thread *);
void conf_thread_go_on(void);

/* A thread that takes a lock, and lets go when it is told. */
struct conf_taker {
    struct conf_thread t;
    hf_lock *lock;
    hf_acquire_options opt;
    int rc, release_rc; /* after join */
    uint64_t token;
    uint32_t granted; /* atomic */
    uint32_t let_go;  /* atomic: set by the main thread */
    bool keep;        /* exit without release */
};

void conf_taker_start(struct conf_taker *, hf_lock *);
/* For that mode or so many permits; comes back when it waits. */
void conf_taker_wait(struct conf_taker *, hf_lock *, enum hf_mode,
                     uint32_t permits);
bool conf_taker_has(struct conf_taker *);
/* Tells it to let go, and joins it. */
void conf_taker_end(struct conf_taker *);
/* The same, asserting what the acquire returned; and if that is 0, that the
 * release succeeded. */
void conf_taker_ends(struct conf_taker *, int rc);

/* ---- processes --------------------------------------------------------- */

/* A puppet with a client, and a lock of that name in slot 0. */
struct proc conf_puppet(const char *name, int64_t ttl_ms);
struct proc conf_puppet_of(const char *name, int64_t ttl_ms, enum hf_kind,
                           uint32_t size);
int conf_puppet_take_as(struct proc *, enum hf_mode, uint32_t permits,
                        int64_t wait_ms);
int conf_puppet_take(struct proc *, int64_t wait_ms, int64_t lease_ms,
                     struct proc_reply *);
int conf_puppet_do(struct proc *, enum proc_op, struct proc_reply *);
/* Begins to take, and comes back when it waits. */
void conf_puppet_wait(struct proc *);
void conf_puppet_wait_as(struct proc *, enum hf_mode, uint32_t permits);
/* The same, or when it has it: false then. */
bool conf_puppet_waits(struct proc *, enum hf_mode, uint32_t permits);
/* Its answer to that; fails if there is none in time. */
void conf_puppet_answer(struct proc *, struct proc_reply *);

/* So many wait for it, as the server sees it: whoever comes now comes after
 * them. Where nobody can tell, those who sleep are there. */
void conf_await_queue(hf_client *, const char *name, size_t len);

/* What hf_inspect() finds; the frame frees it. */
hf_info *conf_inspect(hf_client *, const char *name);

/* How many things the server has when it should have none: what goes by itself
 * is waited for, what does not is printed. 0 where nobody can tell. */
long conf_left(void);
/* Gathers what was recorded, adds what is left at the server, and fails unless
 * all of it may have happened; ttl_ms: of those who died or were stopped. */
void conf_check_record(struct record *, struct history *, int64_t ttl_ms);

/* ---- what a process has ------------------------------------------------ */

size_t conf_count_entries(const char *dir);

/* What an asynchronous verb came to. */
struct conf_call {
    int called, result;
};

void conf_note(void *call, hf_lock *, int result); /* as its callback */
/* Dispatches; has the callback been called? */
bool conf_called(hf_client *, const struct conf_call *);
/* Until it has been called; asserts its result. */
void conf_calls_back(hf_client *, const struct conf_call *, int result);

#endif
