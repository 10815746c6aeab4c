/* Faults of one Redis server and of the network to it. Each case has its own
 * server; token counters may stay there. */
#ifndef REDIS_FAULTS_H
#define REDIS_FAULTS_H

#include "../../lib/redis_server.h"
#include "../../lib/world.h"

/* Its URL is redis->tls_url. */
extern const struct world_server redis_with_tls;
/* The password is secret-of-default. */
extern const struct world_server redis_with_password;

/* The keys of "n": who waits for an unfair mutex; for a read-write lock or a
 * semaphore, in order, and about each; for a fair mutex, as Redisson has it,
 * and about each of ours. */
#define WAITERS "holdfast:waiters:{n}"
#define LINE "holdfast:line:{n}"
#define PARTY "holdfast:party:{n}"
#define QUEUE "redisson_lock_queue:{n}"
#define DEADLINES "redisson_lock_timeout:{n}"
#define SEEN "holdfast:seen:{n}"
/* The counter of its tokens. */
#define TOKEN "redisson_lock_token:{n}"
/* A client of ours or of Redisson's that does not exist, and an owner there. */
#define GHOST "11111111-2222-3333-4444-555555555555"
#define STRANGER GHOST ":7"

/* Runs a command at the world's server. */
#define redis_do(w, ...) redis_server_do((w)->redis, __VA_ARGS__)
#define redis_ask(w, ...) redis_server_ask((w)->redis, __VA_ARGS__)

/* Another server, which replicates the world's. It ends with the case. */
struct redis_server *redis_replica(struct world *);
/* Subscribes the administrator to that channel until the case ends. */
redisContext *redis_listens(struct world *, const char *channel);
/* redis_next() returns the text of the next message; redis_hears() asserts what
 * it is. */
const char *redis_next(redisContext *);
void redis_hears(redisContext *, const char *text);

int take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms, hf_error *);
bool redis_has(struct redis_server *, const char *key);
/* Waits until the key of the waiters exists. */
void world_has_waiter(struct world *, const char *key);

/* Makes our waiter at that place of the list poll. letter: see
 * lua/README.md. */
void redis_tell(struct world *, const char *list, int place, char letter);
/* When the only waiter polled last, by the server's clock; -1 if there is no
 * waiter. */
long long redis_looked_at(struct world *, const char *parties);
/* How often the server has executed that command. */
long long redis_calls_of(struct redis_server *, const char *command);
long long redis_calls(struct world *, const char *command);
/* The time by the server's clock. */
long long redis_now_ms(struct world *);
/* True if two clients listen. The first one must be a holder with an event
 * callback. */
bool redis_two_listen(struct world *);
/* The number of connections to the server, including the administrator's. */
long long redis_connections(struct world *);

/* Restarts the server with much data and with settings that let it load
 * slowly. */
void loading_prepare(struct world *);
/* From here on the server loads slowly. It keeps its data. */
void loading_slow(struct world *);
/* Waits until the server has loaded everything. */
void loading_end(struct world *);
/* Removes the data that made loading slow. */
void loading_tidy(struct world *);

#endif
