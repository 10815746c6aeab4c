/*
 * The world of a case of faults, through the public API: a server, a proxy
 * before it, and clients. When the case is over nothing may be left at the
 * server, and in this process no descriptor and no thread.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <holdfast.h>
#include <pthread.h>

#include "proxy.h"
#include "wait.h"

#define WORLD_CLIENTS 4

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
    uint32_t done; /* atomic: it may let go and end */
    int release_rc;
    bool started;
};

struct world;

/* What a backend adds. */
struct world_server {
    const char *scheme;
    /* Starts or finds it: sets port and near_url. 0, or -1. */
    int (*begin)(struct world *);
    /* When all clients are gone. 0, or -1: the next case cannot have it. */
    int (*end)(struct world *);
    /* How much of ours it has that must not stay. */
    long (*left)(struct world *);
    void (*print_left)(struct world *);
};

struct world {
    const struct world_server *server;
    struct redis_server *redis; /* one of these three */
    struct zk_server *zk;       /* the only one, or the first */
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
    bool is_quiet; /* the next clients hear no events */
    struct taker taker;
    size_t entries; /* descriptors and threads before */
    hf_error err;
};

/* A URL of the server at that host, as the world's own are. */
void world_url(const struct world *, const char *host, char *url, size_t size);

/* Setup and teardown of a case. */
int world_begin(void **state, const struct world_server *);
int world_end(void **state);

/* A client and its lock "n"; ttl and op_timeout in ms. The i-th of the case. */
hf_lock *world_lock(struct world *, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness);
/* Through the proxy. */
hf_lock *world_far(struct world *, int64_t ttl_ms, int64_t op_timeout_ms);
/* Directly, with times that never matter. */
hf_lock *world_near(struct world *);
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
/* From now on everything passes again, over new connections. */
void world_heal(struct world *);
/* Takes it, in that time. */
void world_takes(struct world *, hf_lock *, int64_t within_ms);
/* Takes it and lets go, soon: nobody else has it. */
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
bool taker_back(struct taker *);
void taker_end(struct taker *); /* releases if held, joins */
/* Back in that time and granted; let go of again. */
void taker_gets_it(struct taker *, int64_t within_ms);

struct world_group {
    const char *name;
    int (*run)(void);
};

/* PROGRAM [GROUP [PATTERN]], or a puppet. */
int world_main(int argc, char **argv, const struct world_group *, size_t len);

#endif
