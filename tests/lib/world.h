/*
 * The harness of the fault tests. Each case has its own world: a server, a
 * proxy in front of the server, and clients, which the case uses through the
 * public API. A case must leave nothing at the server, and no descriptor and no
 * thread in this process.
 *
 *     GROUP("net", .begin = slow_down);
 *
 *     CASE(test_answer_is_late)
 *     {
 *         OK(hf_lock_try(world_far(w, 30000, 1000), &w->err));
 *     }
 *
 * A case registers itself. The cases of a group run in the order of the file.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <holdfast.h>
#include <pthread.h>

#include "expect.h"
#include "options.h"
#include "proxy.h"
#include "server_process.h"
#include "wait.h"

#define WORLD_CLIENTS 4
#define WORLD_THINGS 512

/* A thread that acquires a lock and then keeps it. */
struct taker {
    pthread_t thread;
    hf_lock *lock;
    int64_t wait_ms, lease_ms; /* lease_ms 0: the lock is renewed */
    enum hf_mode mode;
    uint32_t permits;
    bool as_all; /* use hf_lock_acquire_all() */
    int rc;
    uint64_t token;
    int64_t returned; /* atomic: when the acquire returned, or 0 */
    hf_error err;
    uint32_t done; /* atomic: tells the thread to release and end */
    int release_rc;
    bool started;
};

struct world;

/* A kind of server, as the cases of a program use it. All functions that return
 * int return 0, or -1 on failure. */
struct world_server {
    const char *scheme;
    /* start() runs before the first case of a group, stop() after the last.
     * Both may be NULL. */
    int (*start)(void);
    void (*stop)(void);
    /* Runs before each case; sets port and near_url. */
    int (*begin)(struct world *);
    /* Runs after each case, when all clients are closed: removes what a failed
     * case has left, so that the next case does not fail because of it. Returns
     * -1 if the next case cannot use the server. */
    int (*end)(struct world *);
    /* Returns the number of locks, waiters and similar entries that a case must
     * not leave. */
    long (*left)(struct world *);
    void (*print_left)(struct world *);
    /* Returns whether a client waits for "n" while another holds it. NULL if
     * the server cannot report this. */
    bool (*is_waited_for)(struct world *);
};

/* Groups of the same name, in several files, are one group. */
struct world_group {
    const char *name;
    const struct world_server *server; /* NULL selects the program's */
    /* Used instead of the server's start() and stop(). */
    int (*start)(void);
    void (*stop)(void);
    /* Run around each case, after the server's begin() and before its end(). */
    int (*begin)(struct world *);
    int (*end)(struct world *);
    const bool *unless; /* skips the group if true; may be NULL */
};

struct world_case {
    const char *name;
    void (*run)(struct world *);
    const struct world_group *group;
    int order;       /* position of the case in its file */
    const void *row; /* row of a table, for cases that share a function */
    struct world_case *next;
};

/* The group of the file's cases: its name, then further fields of struct
 * world_group. */
#define GROUP(...) static const struct world_group group = {.name = __VA_ARGS__}
/* Defines a case; its body follows. In the body, `w` is the world. */
#define CASE(name) CASE_OF(group, name)
#define CASE_OF(group, name)                                                   \
    static void name(struct world *w);                                         \
    __attribute__((constructor)) static void name##_registers(void)            \
    {                                                                          \
        static struct world_case c = {#name,       name, &(group),             \
                                      __COUNTER__, NULL, NULL};                \
                                                                               \
        world_add(&c);                                                         \
    }                                                                          \
    static void name(__attribute__((unused)) struct world *w)
/* Defines a case whose body is this one call. */
#define CASE_IS(name, call)                                                    \
    CASE(name)                                                                 \
    {                                                                          \
        call;                                                                  \
    }

/* Adds a case before main(); the case must live as long as the program. */
void world_add(struct world_case *);

struct world {
    const struct world_case *at;
    const struct world_server *server;
    struct server_process *process; /* of the only or first server; or NULL */
    struct redis_server *redis;     /* at most one of the three is set */
    struct zk_server *zk;           /* the single server, or the first */
    struct example_server *example;
    int port; /* port that the proxy connects to */
    /* Parts of the URL, "user:password@" and "/path"; set by begin, or NULL. */
    const char *user, *path;
    char near_url[128];
    struct proxy *proxy;
    char far_url[64]; /* through the proxy */
    hf_client *clients[WORLD_CLIENTS];
    hf_lock *locks[WORLD_CLIENTS];
    struct world_ear {
        uint32_t lost;       /* atomic: number of HF_EVENT_LOST */
        uint32_t wanted;     /* atomic: number of HF_EVENT_WANTED */
        uint32_t lines;      /* atomic: number of log lines */
        char reason[576];    /* reason of the last loss */
        char lost_line[800]; /* last log line about a loss */
    } ears[WORLD_CLIENTS];
    size_t len;
    bool is_quiet;  /* clients opened next get no event callback */
    bool may_leave; /* the case may leave entries at the server */
    struct taker taker;
    struct world_thing {
        void *it;
        int (*end)(void *);
    } things[WORLD_THINGS]; /* what else the case has opened, in order */
    size_t things_len;
    size_t entries; /* descriptors and threads before the case */
    hf_error err;
};

/* Stores the URL of the world's server, with that host ("HOST:PORT") in place
 * of the server's own. */
void world_url(const struct world *, const char *host, char *url, size_t size);

/* Opens a client with a lock "n"; ttl and op_timeout are in ms. The clients of
 * a case are numbered from 0, in the order in which they are opened. */
hf_lock *world_lock(struct world *, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness);
/* As world_lock(), for a client that connects through the proxy. */
hf_lock *world_far(struct world *, int64_t ttl_ms, int64_t op_timeout_ms);
/* As world_lock(), for a client that connects directly, with a ttl and an
 * op_timeout so long that they never matter. */
hf_lock *world_near(struct world *);
/* Open further clients, locks and latches. At its end the case frees them in
 * reverse order, and fails if one cannot be freed. Options may be NULL. */
hf_client *world_open(struct world *, const char *url,
                      const hf_client_options *);
hf_lock *world_handle(struct world *, hf_client *, const char *name,
                      const hf_lock_options *);
hf_latch *world_latch(struct world *, hf_client *, const char *name);
/* Returns the result of hf_inspect() for "n", valid until the end of the
 * case. */
hf_info *world_inspect(struct world *, hf_client *);
/* Frees `it` now instead of at the end of the case; fails the case if that
 * fails. */
void world_ends(struct world *, void *it);
/* Makes the end of the case call end(it), which must return 0. */
void *world_own(struct world *, void *it, int (*end)(void *));
/* Frees now everything that would be freed at the end of the case. */
void world_end_things(struct world *);
/* Replaces the i-th client's lock "n" with one of another kind. */
hf_lock *world_change(struct world *, size_t i, enum hf_kind, uint32_t size);
/* Returns the number of lines that the i-th client has logged. */
uint32_t world_lines(const struct world *, size_t i);
/* Calls hf_client_dispatch(); returns whether the i-th client has reported
 * HF_EVENT_LOST. */
bool world_heard_loss(struct world *, size_t i);
/* As world_heard_loss(), for HF_EVENT_WANTED. */
bool world_heard_wish(struct world *, size_t i);
/* Asserts that the i-th client's hold of its lock is lost, now or soon, and
 * that all reports give the same reason, which contains that word; then
 * releases the lock. Returns the reason, which is valid as long as the
 * world. */
const char *world_loses(struct world *, size_t i, const char *word);
/* Closes the clients of the case. */
void world_close(struct world *);
/* Makes the proxy drop its connections and pass everything on new ones. */
void world_heal(struct world *);
/* Asserts that the lock can be acquired within that time; keeps it. */
void world_takes(struct world *, hf_lock *, int64_t within_ms);
/* Asserts that the lock is free: acquires it within a few seconds and releases
 * it. */
void world_free_for_all(struct world *, hf_lock *);
/* Waits until nothing is left at the server, and fails if that takes too
 * long. */
void world_is_clean(struct world *);

uint64_t token_of(hf_lock *);
int64_t deadline_of(hf_lock *);
/* Waits until the lock, which the caller holds, is renewed once more. */
void world_renews(hf_lock *);

/* Start a taker, which ends with the case at the latest. */
struct taker *taker_start(struct world *, hf_lock *, int64_t wait_ms);
struct taker *taker_start_lease(struct world *, hf_lock *, int64_t wait_ms,
                                int64_t lease_ms);
struct taker *taker_start_as(struct world *, hf_lock *, enum hf_mode,
                             uint32_t permits, int64_t wait_ms);
/* As taker_start(), with hf_lock_acquire_all() of this one lock. */
struct taker *taker_start_all(struct world *, hf_lock *, int64_t wait_ms);
/* Acquires `holder`; then starts a taker that waits at the server for the same
 * lock, through `waiter`. */
struct taker *taker_behind(struct world *, hf_lock *holder, hf_lock *waiter,
                           int64_t wait_ms);
bool taker_back(struct taker *);
void taker_end(struct taker *); /* releases if held; joins */
/* taker_has_it() asserts that the acquire succeeds within that time.
 * taker_fails() asserts that the acquire returns that code within that time,
 * and ends the taker. */
void taker_has_it(struct taker *, int64_t within_ms);
void taker_fails(struct taker *, int code, int64_t within_ms);
/* Makes the taker release the lock, asserts success, and ends the taker. */
void taker_gives(struct taker *);
/* As taker_has_it(), then taker_gives(). */
void taker_gets_it(struct taker *, int64_t within_ms);

/* The main() of PROGRAM [GROUP [PATTERN]]: runs the groups, or becomes a
 * puppet. */
int world_main(int argc, char **argv, const struct world_server *);

#endif
