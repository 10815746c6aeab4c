/* Faults of one Redis server and of the way to it. Each case has a server of
 * its own; tokens may stay there. */
#ifndef REDIS_FAULTS_H
#define REDIS_FAULTS_H

#include "../../lib/redis_server.h"
#include "../../lib/world.h"

int world_setup(void **state);
int world_setup_tls(void **state);  /* with TLS: redis->tls_url */
int world_setup_auth(void **state); /* the server wants a password: secret */

int take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms, hf_error *);
/* It is in the queue at the server. */
void world_has_waiter(struct world *, const char *key);

/* Who of ours stands there in the list is told to look. letter:
 * lua/README.md. */
void redis_tell(struct world *, const char *list, int place, char letter);
/* When the one who waits, alone, looked last; -1: it has not come. */
long long redis_looked_at(struct world *, const char *parties);
/* How often the server has done that command. */
long long redis_calls(struct world *, const char *command);
/* How many it has, with the one by which we ask. */
long long redis_connections(struct world *);

int run_server_faults(void);
int run_net_faults(void);
int run_hostile_faults(void);
int run_auth_faults(void);
int run_wait_faults(void);
int run_kinds_faults(void);
int run_hand_faults(void);
int run_find_faults(void);
int run_keys_faults(void);
int run_ask_faults(void);
int run_break_faults(void);
int run_renew_faults(void);
int run_beside_faults(void);
int run_cost_faults(void);
int run_same_server_faults(void);
int run_failover_faults(void);
int run_replica_faults(void);
int run_inspect_faults(void);
int run_tls_faults(void);
int run_diagnose_faults(void);
int run_watch_faults(void);

/* ---- a server that loads its data, for as long as a test wants --------- */

/* Starts the server anew with data and with what slows loading down. */
void loading_prepare(struct world *);
/* From here on the server loads slowly; what it has is saved. */
void loading_slow(struct world *);
/* Waits until it has loaded all. */
void loading_end(struct world *);
/* Removes the data. */
void loading_tidy(struct world *);

#endif
