/* Faults of one Redis server and of the network to it. Each case has its own
 * server; token counters may stay there. */
#ifndef REDIS_FAULTS_H
#define REDIS_FAULTS_H

#include "../../lib/redis_server.h"
#include "../../lib/world.h"

/* A server whose URL for TLS is redis->tls_url. */
extern const struct world_server redis_with_tls;
/* A server whose password is secret-of-default. */
extern const struct world_server redis_with_password;

/* The keys of lock "n":
 *   WAITERS    the waiters for an unfair mutex
 *   LINE       the waiters for a read-write lock or semaphore, in order
 *   PARTY      data about each waiter in LINE
 *   QUEUE      the waiters for a fair mutex, in Redisson's format
 *   DEADLINES  their deadlines, in Redisson's format
 *   SEEN       data about each of our waiters in QUEUE */
#define WAITERS "holdfast:waiters:{n}"
#define LINE "holdfast:line:{n}"
#define PARTY "holdfast:party:{n}"
#define QUEUE "redisson_lock_queue:{n}"
#define DEADLINES "redisson_lock_timeout:{n}"
#define SEEN "holdfast:seen:{n}"
/* The counter from which the tokens of "n" are taken. */
#define TOKEN "redisson_lock_token:{n}"
/* The id of a client, ours or Redisson's, that does not exist, and an owner of
 * that client. */
#define GHOST "11111111-2222-3333-4444-555555555555"
#define STRANGER GHOST ":7"

/* Executes a command at the world's server. */
#define redis_do(w, ...) redis_server_do((w)->redis, __VA_ARGS__)
#define redis_ask(w, ...) redis_server_ask((w)->redis, __VA_ARGS__)

/* Starts a replica of the world's server. The replica ends with the case. */
struct redis_server *redis_replica(struct world *);
/* Subscribes the administrator to that channel until the case ends. */
redisContext *redis_listens(struct world *, const char *channel);
/* redis_next() returns the next message; redis_hears() asserts that this is the
 * next message. */
const char *redis_next(redisContext *);
void redis_hears(redisContext *, const char *text);

int take_lease(hf_lock *, int64_t wait_ms, int64_t lease_ms, hf_error *);
bool redis_has(struct redis_server *, const char *key);
/* Waits until this key, which lists the waiters, exists. */
void world_has_waiter(struct world *, const char *key);

/* Sends a message that makes our waiter at that place of the list poll.
 * `letter` is the first letter of the message (lua/README.md). */
void redis_tell(struct world *, const char *list, int place, char letter);
/* Returns when the only waiter polled last, by the server's clock, or -1 unless
 * there is exactly one waiter. */
long long redis_looked_at(struct world *, const char *parties);
/* Returns how often the server has executed that command. */
long long redis_calls_of(struct redis_server *, const char *command);
long long redis_calls(struct world *, const char *command);
/* Returns the time of the server's clock. */
long long redis_now_ms(struct world *);
/* Dispatches the first client, which must be a holder with an event callback;
 * returns whether exactly two clients have subscribed. */
bool redis_two_listen(struct world *);
/* Returns the number of connections to the server, including the
 * administrator's. */
long long redis_connections(struct world *);

/* Restarts the server with much data and with settings that slow down
 * loading. */
void loading_prepare(struct world *);
/* From now on the server loads slowly. It keeps its data. */
void loading_slow(struct world *);
/* Waits until the server has loaded everything. */
void loading_end(struct world *);
/* Removes the data that made loading slow. */
void loading_tidy(struct world *);

#endif
