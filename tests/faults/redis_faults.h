/*
 * Faults of one Redis server and of the way to it, through the public API.
 * Each case has a server, a proxy before it, and clients; when it is over
 * nothing may be left at the server but tokens, and in this process no
 * descriptor and no thread.
 */
#ifndef REDIS_FAULTS_H
#define REDIS_FAULTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <holdfast.h>
#include <pthread.h>

#include "../lib/proxy.h"
#include "../lib/redis_server.h"
#include "../lib/wait.h"

#define CLIENTS 4

/* An acquire on a thread of its own, that then keeps the lock. */
struct taker {
    pthread_t thread;
    hf_lock *lock;
    int64_t wait_ms, lease_ms;
    enum hf_mode mode;
    uint32_t permits;
    int rc;
    int64_t returned; /* atomic; wait_now(), 0: not yet */
    hf_error err;
    uint32_t done; /* atomic: it may let go and end */
    int release_rc;
    bool started;
};

struct world {
    struct redis_server server;
    struct proxy *proxy;
    hf_client *clients[CLIENTS];
    hf_lock *locks[CLIENTS];
    size_t len;
    struct taker taker;
    size_t entries; /* descriptors and threads before */
    hf_error err;
};

int world_setup(void **state);
int world_setup_auth(void **state); /* the server wants a password: secret */
int world_teardown(void **state);

/* A client and its lock "n"; ttl and op_timeout in ms. The i-th of the case. */
hf_lock *world_lock(struct world *, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness);
/* Through the proxy. */
hf_lock *world_far(struct world *, int64_t ttl_ms, int64_t op_timeout_ms);
/* Directly, with times that never matter. */
hf_lock *world_near(struct world *);
/* Takes it and lets go, soon: nobody else has it. */
void world_free_for_all(struct world *, hf_lock *);
int take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms, hf_error *);
uint64_t token_of(hf_lock *);
/* Nothing but tokens is left at the server, or soon will be. */
void world_is_clean(struct world *);

/* It ends with the case at the latest. lease_ms 0: renewed. */
struct taker *taker_start(struct world *, hf_lock *, int64_t wait_ms,
                          int64_t lease_ms);
struct taker *taker_start_as(struct world *, hf_lock *, enum hf_mode,
                             uint32_t permits, int64_t wait_ms);
bool taker_back(struct taker *);
void taker_end(struct taker *); /* releases if held, joins */
/* It is in the queue at the server. */
void world_has_waiter(struct world *, const char *key);

int run_server_faults(void);
int run_net_faults(void);
int run_hostile_faults(void);
int run_auth_faults(void);
int run_wait_faults(void);
int run_kinds_faults(void);
int run_hand_faults(void);

#endif
