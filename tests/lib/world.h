/*
 * The harness of the fault tests. A case has a world of its own: a server, a
 * proxy in front of it, and clients, which it uses through the public API.
 * After the case nothing may be left at the server, and no descriptor and no
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

/* An acquire on a new thread, which then keeps the lock. */
struct taker {
    pthread_t thread;
    hf_lock *lock;
    int64_t wait_ms, lease_ms; /* 0: the lock is renewed */
    enum hf_mode mode;
    uint32_t permits;
    bool as_all; /* use hf_lock_acquire_all() */
    int rc;
    uint64_t token;
    int64_t returned; /* atomic: when the acquire returned, 0: not yet */
    hf_error err;
    uint32_t done; /* atomic: the thread should release and end */
    int release_rc;
    bool started;
};

struct world;

/* A kind of server, as the cases of a program use it. All functions that return
 * an int return 0, or -1. */
struct world_server {
    const char *scheme;
    /* start() runs before the first case of a group, stop() after the last; or
     * NULL. */
    int (*start)(void);
    void (*stop)(void);
    /* Runs before each case: sets port and near_url. */
    int (*begin)(struct world *);
    /* Runs after each case, with all clients closed: removes what a failed case
     * has left, so that it does not fail the next one. -1: the next case cannot
     * use the server. */
    int (*end)(struct world *);
    /* The number of locks, waiters and the like that a case must not leave. */
    long (*left)(struct world *);
    void (*print_left)(struct world *);
    /* True if one client waits for "n" while another holds it. NULL: the server
     * cannot tell. */
    bool (*is_waited_for)(struct world *);
};

/* Groups of the same name, from several files, are one group. */
struct world_group {
    const char *name;
    const struct world_server *server; /* NULL: the program's */
    /* Used instead of the server's start() and stop(). */
    int (*start)(void);
    void (*stop)(void);
    /* Run around each case, after the server's begin() and before its end(). */
    int (*begin)(struct world *);
    int (*end)(struct world *);
    const bool *unless; /* skip the group if this is true; or NULL */
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
/* Defines a case; its body follows, and has the world in `w`. */
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

/* Called before main(); the case must live as long as the program. */
void world_add(struct world_case *);

struct world {
    const struct world_case *at;
    const struct world_server *server;
    struct server_process *process; /* of the server, if there is only one */
    struct redis_server *redis;     /* one of these pointers is set */
    struct zk_server *zk;           /* the only or the first server */
    struct example_server *example;
    int port; /* port that the proxy connects to */
    /* For a URL: "user:password@" and "/path"; set by begin, or NULL. */
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
        char lost_line[800]; /* the last line of the log about a loss */
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
    size_t entries; /* number of descriptors and threads before the case */
    hf_error err;
};

/* A URL of the server at that host, otherwise like the world's own. */
void world_url(const struct world *, const char *host, char *url, size_t size);

/* Opens a client with its lock "n"; ttl and op_timeout in ms. The clients of a
 * case are numbered from 0 in order of these calls. */
hf_lock *world_lock(struct world *, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness);
/* A client that connects through the proxy. */
hf_lock *world_far(struct world *, int64_t ttl_ms, int64_t op_timeout_ms);
/* A client that connects directly, with times so long that they never
 * matter. */
hf_lock *world_near(struct world *);
/* Further clients, locks and latches. The end of the case frees them in reverse
 * order, and fails if one of them cannot be freed. Options may be NULL. */
hf_client *world_open(struct world *, const char *url,
                      const hf_client_options *);
hf_lock *world_handle(struct world *, hf_client *, const char *name,
                      const hf_lock_options *);
hf_latch *world_latch(struct world *, hf_client *, const char *name);
/* The result of hf_inspect() for "n", valid until the end of the case. */
hf_info *world_inspect(struct world *, hf_client *);
/* Frees `it` now; fails the case unless that succeeds. */
void world_ends(struct world *, void *it);
/* Has the end of the case call end(it), which returns 0 on success. */
void *world_own(struct world *, void *it, int (*end)(void *));
/* Frees now what the functions above would free at the end of the case. */
void world_end_things(struct world *);
/* Replaces the i-th client's lock "n" with one of another kind. */
hf_lock *world_change(struct world *, size_t i, enum hf_kind, uint32_t size);
/* The number of lines that the i-th client has logged. */
uint32_t world_lines(const struct world *, size_t i);
/* Calls hf_client_dispatch(); returns whether the i-th client has reported
 * HF_EVENT_LOST. */
bool world_heard_loss(struct world *, size_t i);
/* As world_heard_loss(), for HF_EVENT_WANTED. */
bool world_heard_wish(struct world *, size_t i);
/* Asserts that the i-th client's hold of its lock is lost, at once or soon, and
 * that all reports give the same reason, which contains that word; releases it.
 * The reason is valid as long as the world. */
const char *world_loses(struct world *, size_t i, const char *word);
/* Closes the clients of the case now. */
void world_close(struct world *);
/* The proxy drops its connections and passes everything on new ones. */
void world_heal(struct world *);
/* Asserts that the lock can be acquired in that time. */
void world_takes(struct world *, hf_lock *, int64_t within_ms);
/* Acquires and releases the lock soon, which shows that it is free. */
void world_free_for_all(struct world *, hf_lock *);
/* Asserts that nothing is left at the server, now or soon. */
void world_is_clean(struct world *);

uint64_t token_of(hf_lock *);
int64_t deadline_of(hf_lock *);
/* Waits until the lock is renewed once more, while it is held. */
void world_renews(hf_lock *);

/* The taker ends with the case at the latest. */
struct taker *taker_start(struct world *, hf_lock *, int64_t wait_ms);
struct taker *taker_start_lease(struct world *, hf_lock *, int64_t wait_ms,
                                int64_t lease_ms);
struct taker *taker_start_as(struct world *, hf_lock *, enum hf_mode,
                             uint32_t permits, int64_t wait_ms);
/* Acquires only this lock, with hf_lock_acquire_all(). */
struct taker *taker_start_all(struct world *, hf_lock *, int64_t wait_ms);
/* The holder acquires; then a taker waits at the server for the same lock. */
struct taker *taker_behind(struct world *, hf_lock *holder, hf_lock *waiter,
                           int64_t wait_ms);
bool taker_back(struct taker *);
void taker_end(struct taker *); /* releases if held; joins the thread */
/* taker_has_it() asserts that the acquire returns in that time with the lock;
 * taker_fails(), with that code, and ends the taker. */
void taker_has_it(struct taker *, int64_t within_ms);
void taker_fails(struct taker *, int code, int64_t within_ms);
/* Has the taker release, asserts success, and ends the taker. */
void taker_gives(struct taker *);
/* Asserts that the taker gets the lock in that time; has it release, and ends
 * it. */
void taker_gets_it(struct taker *, int64_t within_ms);

/* main() of PROGRAM [GROUP [PATTERN]]: runs the groups, or is a puppet. */
int world_main(int argc, char **argv, const struct world_server *);

#endif
