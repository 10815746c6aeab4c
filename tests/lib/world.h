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

/* An acquire on a thread of its own, that then keeps the lock. */
struct taker {
    pthread_t thread;
    hf_lock *lock;
    int64_t wait_ms, lease_ms; /* lease 0: renewed */
    enum hf_mode mode;
    uint32_t permits;
    bool as_all; /* by hf_lock_acquire_all() */
    int rc;
    uint64_t token;
    int64_t returned; /* atomic; wait_now(), 0: not yet */
    hf_error err;
    uint32_t done; /* atomic: it may release and end */
    int release_rc;
    bool started;
};

struct world;

/* A kind of server, as the cases of a program meet it. All functions that
 * return an int return 0, or -1. */
struct world_server {
    const char *scheme;
    /* Before the first case of a group and after the last; or NULL. */
    int (*start)(void);
    void (*stop)(void);
    /* Before each case: sets port and near_url. */
    int (*begin)(struct world *);
    /* After each case, without any client: what a failed case has left behind
     * must not fail the next one. -1: the next case cannot use the server. */
    int (*end)(struct world *);
    /* The number of locks, waiters and the like that a case must not leave. */
    long (*left)(struct world *);
    void (*print_left)(struct world *);
    /* Does one client wait for "n", and another hold it? NULL: not known. */
    bool (*is_waited_for)(struct world *);
};

/* Groups of one name, from several files, are one. */
struct world_group {
    const char *name;
    const struct world_server *server; /* NULL: the program's */
    /* Instead of the server's own. */
    int (*start)(void);
    void (*stop)(void);
    /* Around each case, inside what the server does. */
    int (*begin)(struct world *);
    int (*end)(struct world *);
    const bool *unless; /* NULL, or the group has no cases where it is true */
};

struct world_case {
    const char *name;
    void (*run)(struct world *);
    const struct world_group *group;
    int order;       /* in its file */
    const void *row; /* of a table, for cases that share a function */
    struct world_case *next;
};

/* The group of the file's cases; further fields of struct world_group. */
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
/* A case that is this one call. */
#define CASE_IS(name, call)                                                    \
    CASE(name)                                                                 \
    {                                                                          \
        call;                                                                  \
    }

/* Before main(); the case must live as long as the program. */
void world_add(struct world_case *);

struct world {
    const struct world_case *at;
    const struct world_server *server;
    struct server_process *process; /* of the server, if there is only one */
    struct redis_server *redis;     /* one of these three */
    struct zk_server *zk;           /* the only one, or the first */
    struct example_server *example;
    int port; /* what the proxy is before */
    /* Of a URL: "user:password@" and "/path"; set by begin, or NULL. */
    const char *user, *path;
    char near_url[128];
    struct proxy *proxy;
    char far_url[64]; /* through it */
    hf_client *clients[WORLD_CLIENTS];
    hf_lock *locks[WORLD_CLIENTS];
    struct world_ear {
        uint32_t lost;       /* atomic: events of that client */
        uint32_t wanted;     /* atomic: the same */
        uint32_t lines;      /* atomic: of its log */
        char reason[576];    /* of the last such event */
        char lost_line[800]; /* of the log, the last that tells of a loss */
    } ears[WORLD_CLIENTS];
    size_t len;
    bool is_quiet;  /* the next clients hear no events */
    bool may_leave; /* something may stay at the server */
    struct taker taker;
    struct world_thing {
        void *it;
        int (*end)(void *);
    } things[WORLD_THINGS]; /* what the case has opened besides, in order */
    size_t things_len;
    size_t entries; /* descriptors and threads before */
    hf_error err;
};

/* A URL of the server at that host, as the world's own are. */
void world_url(const struct world *, const char *host, char *url, size_t size);

/* A client and its lock "n"; ttl and op_timeout in ms. The i-th of the case. */
hf_lock *world_lock(struct world *, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness);
/* Through the proxy. */
hf_lock *world_far(struct world *, int64_t ttl_ms, int64_t op_timeout_ms);
/* Directly, with times that never matter. */
hf_lock *world_near(struct world *);
/* Further clients, locks and latches. They are freed at the end of the case,
 * the last one first, which fails if one of them cannot be. Options may be
 * NULL. */
hf_client *world_open(struct world *, const char *url,
                      const hf_client_options *);
hf_lock *world_handle(struct world *, hf_client *, const char *name,
                      const hf_lock_options *);
hf_latch *world_latch(struct world *, hf_client *, const char *name);
/* What hf_inspect() says of "n". It lives as long as the case. */
hf_info *world_inspect(struct world *, hf_client *);
/* Frees that one now; fails the case unless it succeeds. */
void world_ends(struct world *, void *it);
/* Anything else that `end` frees at the end of the case; 0: it is well. */
void *world_own(struct world *, void *it, int (*end)(void *));
/* Frees all of those now. */
void world_end_things(struct world *);
/* In the place of the i-th client's lock "n", one of another kind. */
hf_lock *world_change(struct world *, size_t i, enum hf_kind, uint32_t size);
/* How much the i-th client has logged. */
uint32_t world_lines(const struct world *, size_t i);
/* Has the i-th client said HF_EVENT_LOST? Dispatches. */
bool world_heard_loss(struct world *, size_t i);
/* The same of HF_EVENT_WANTED. */
bool world_heard_wish(struct world *, size_t i);
/* The i-th client's hold of its lock is lost, or soon will be, and whatever
 * says so gives one and the same reason, in which there is that word; releases
 * it. The reason lives as long as the world. */
const char *world_loses(struct world *, size_t i, const char *word);
/* Closes the clients of the case now. */
void world_close(struct world *);
/* From now on everything passes again, over new connections. */
void world_heal(struct world *);
/* Takes it, in that time. */
void world_takes(struct world *, hf_lock *, int64_t within_ms);
/* Acquires and releases it, soon: it is free. */
void world_free_for_all(struct world *, hf_lock *);
/* Nothing is left at the server, or soon will be. */
void world_is_clean(struct world *);

uint64_t token_of(hf_lock *);
int64_t deadline_of(hf_lock *);
/* It is renewed once more, while it is held. */
void world_renews(hf_lock *);

/* It ends with the case at the latest. */
struct taker *taker_start(struct world *, hf_lock *, int64_t wait_ms);
struct taker *taker_start_lease(struct world *, hf_lock *, int64_t wait_ms,
                                int64_t lease_ms);
struct taker *taker_start_as(struct world *, hf_lock *, enum hf_mode,
                             uint32_t permits, int64_t wait_ms);
/* By hf_lock_acquire_all() of this one. */
struct taker *taker_start_all(struct world *, hf_lock *, int64_t wait_ms);
/* The one acquires; the other waits behind it, at the server. */
struct taker *taker_behind(struct world *, hf_lock *holder, hf_lock *waiter,
                           int64_t wait_ms);
bool taker_back(struct taker *);
void taker_end(struct taker *); /* releases if held, joins */
/* It is back in that time, and holds the lock; fails with that code, and ends.
 */
void taker_has_it(struct taker *, int64_t within_ms);
void taker_fails(struct taker *, int code, int64_t within_ms);
/* It releases the lock, which succeeds, and ends. */
void taker_gives(struct taker *);
/* It has the lock in that time, and releases it. */
void taker_gets_it(struct taker *, int64_t within_ms);

/* main() of PROGRAM [GROUP [PATTERN]]: runs the groups, or is a puppet. */
int world_main(int argc, char **argv, const struct world_server *);

#endif
