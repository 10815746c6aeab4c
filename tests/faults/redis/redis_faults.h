/* Faults of one Redis server and of the way to it. Each case has a server of
 * its own; tokens may stay there. */
#ifndef REDIS_FAULTS_H
#define REDIS_FAULTS_H

#include "../../lib/redis_server.h"
#include "../../lib/world.h"

/* Its URL is redis->tls_url. */
extern const struct world_server redis_with_tls;
/* The password is secret-of-default. */
extern const struct world_server redis_with_password;

/* A command to the world's server. */
#define redis_do(w, ...) redis_server_do((w)->redis, __VA_ARGS__)
#define redis_ask(w, ...) redis_server_ask((w)->redis, __VA_ARGS__)

/* Another server, a replica of the world's. It ends with the case. */
struct redis_server *redis_replica(struct world *);
/* A subscription of the administrator to that channel, until the case ends. */
redisContext *redis_listens(struct world *, const char *channel);
/* The text of its next message; that is the text. */
const char *redis_next(redisContext *);
void redis_hears(redisContext *, const char *text);

int take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms, hf_error *);
/* It is in the queue at the server. */
void world_has_waiter(struct world *, const char *key);

/* Makes our waiter at that place of the list look. letter: lua/README.md. */
void redis_tell(struct world *, const char *list, int place, char letter);
/* When the only waiter looked last; -1: it has not come. */
long long redis_looked_at(struct world *, const char *parties);
/* How often a server has done that command. */
long long redis_calls_of(struct redis_server *, const char *command);
long long redis_calls(struct world *, const char *command);
/* By the server's clock. */
long long redis_now_ms(struct world *);
/* Do two clients listen, of which the first is a holder that hears of events?
 */
bool redis_two_listen(struct world *);
/* How many it has, with the one by which we ask. */
long long redis_connections(struct world *);

/* ---- a server that loads its data, for as long as a test wants ---- */

/* Restarts the server with data and with what slows loading down. */
void loading_prepare(struct world *);
/* From here on the server loads slowly; what it has is saved. */
void loading_slow(struct world *);
/* Waits until it has loaded all. */
void loading_end(struct world *);
/* Removes the data. */
void loading_tidy(struct world *);

#endif
