/*
 * Faults of ZooKeeper servers and of the way to them, through the public API.
 * Each case has a server (or an ensemble of three) that the cases of its group
 * share, a proxy before it, and clients; when it is over no node may be left
 * at the server, and in this process no descriptor and no thread.
 */
#ifndef ZK_FAULTS_H
#define ZK_FAULTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <holdfast.h>
#include <pthread.h>

#include "../lib/proxy.h"
#include "../lib/wait.h"
#include "../lib/zk_hand.h"
#include "../lib/zk_server.h"

#define CLIENTS 4
#define MS 1000000LL
#define NODE "/n" /* of the lock of all cases */

/* An acquire on a thread of its own, that then keeps the lock. */
struct taker {
    pthread_t thread;
    hf_lock *lock;
    int64_t wait_ms;
    int rc;
    uint64_t token;
    int64_t returned; /* atomic; wait_now(), 0: not yet */
    hf_error err;
    uint32_t done; /* atomic: it may let go and end */
    int release_rc;
    bool started;
};

struct world {
    struct zk_server *server; /* the only one, or the first */
    struct proxy *proxy;      /* before it */
    char far_url[64];
    hf_client *clients[CLIENTS];
    hf_lock *locks[CLIENTS];
    uint32_t lost[CLIENTS]; /* atomic: events of that client */
    size_t len;
    struct taker taker;
    size_t entries; /* descriptors and threads before */
    hf_error err;
};

extern struct zk_ensemble zk_three;

/* Groups: of one server, and of zk_three. */
int group_one(void **state);
int group_one_end(void **state);
int group_three(void **state);
int group_three_end(void **state);
int world_setup(void **state);
int world_teardown(void **state);

/* A client and its lock "n"; ttl and op_timeout in ms. The i-th of the case. */
hf_lock *world_lock(struct world *, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness);
/* Through the proxy. */
hf_lock *world_far(struct world *, int64_t ttl_ms, int64_t op_timeout_ms);
/* Directly (to all of the ensemble), with times that never matter. */
hf_lock *world_near(struct world *);
/* Has the i-th client said HF_EVENT_LOST? Dispatches. */
bool world_heard_loss(struct world *, size_t i);
/* From now on everything passes again, over new connections. */
void world_heal(struct world *);
/* Takes it and lets go, soon: nobody else has it. */
void world_free_for_all(struct world *, hf_lock *);
/* Nothing is left at the server, or soon will be. */
void world_is_clean(struct world *);
/* So many entries are below the lock's node: holders and waiters. */
void world_has_entries(struct world *, long n);
/* The first of them, by its name; its path. */
void world_first_entry(struct world *, char *path, size_t size);
uint64_t token_of(hf_lock *);
int64_t deadline_of(hf_lock *);

/* It ends with the case at the latest. */
struct taker *taker_start(struct world *, hf_lock *, int64_t wait_ms);
bool taker_back(struct taker *);
void taker_end(struct taker *); /* releases if held, joins */
/* Back in that time and granted; let go of again. */
void taker_gets_it(struct taker *, int64_t within_ms);

int run_server_faults(void);
int run_net_faults(void);
int run_wait_faults(void);
int run_kinds_faults(void);
int run_ensemble_faults(void);

#endif
