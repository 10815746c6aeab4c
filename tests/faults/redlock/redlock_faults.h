/* Faults of five Redis servers and of the network to them. The cases of a group
 * share the servers; each case finds them running and empty. */
#ifndef REDLOCK_FAULTS_H
#define REDLOCK_FAULTS_H

#include "../../lib/proc.h"
#include "../../lib/redlock_servers.h"
#include "../../lib/world.h"

#define SERVERS REDLOCK_SERVERS
#define SERVER(i) (&five.server[i])
#define do_at(i, ...) redis_server_do(SERVER(i), __VA_ARGS__)

extern struct redlock_servers five;
extern struct proxy *way[SERVERS]; /* one in front of each server */

/* A server_timeout that is long enough for a busy server, so that only a
 * stopped server counts as silent. */
#define PATIENT "server_timeout=2s"
/* An op_timeout that is short but suffices for busy servers, too. */
#define OP_MS 1500

/* Returns a URL, or a lock, that leads through the proxies.
 * redlock_servers_url() says what `options` may contain. */
const char *far_url(const char *options);
hf_lock *far(struct world *, int64_t ttl_ms, int64_t op_ms,
             const char *options);
/* Returns a lock that leads to the servers directly, with long timeouts. */
hf_lock *near(struct world *);

/* cut() resets the connections to that server and refuses new ones; heal()
 * undoes that. */
void cut(int i);
void heal(int i);
void heal_all(void);
/* Kills that server and restarts it without its data. */
void restart(int i);
/* has() returns whether server i has the lock's key; delete_key() deletes it
 * there. */
bool has(int i);
void delete_key(int i);
/* Returns how many servers have the key. All servers must answer. */
int keys(void);
/* Returns how many servers have the same key as server i. */
int keys_as(int i);

void pass(int64_t ms);
/* Acquires the lock, and repeats that until all servers have the key. */
void takes(struct world *, hf_lock *);
void gives(struct world *, hf_lock *);  /* releases it successfully */
void renews(struct world *, hf_lock *); /* renews it successfully */
void says(const char *text, const char *words);
/* Asserts that another client holds the lock. */
void is_busy(struct world *, hf_lock *);

#endif
