/* Faults of five Redis servers and of the network to them. A group shares its
 * servers: each case finds them running and empty. */
#ifndef REDLOCK_FAULTS_H
#define REDLOCK_FAULTS_H

#include "../../lib/proc.h"
#include "../../lib/redlock_servers.h"
#include "../../lib/world.h"

#define SERVERS REDLOCK_SERVERS
#define SERVER(i) (&five.server[i])
#define do_at(i, ...) redis_server_do(SERVER(i), __VA_ARGS__)

extern struct redlock_servers five;
extern struct proxy *way[SERVERS]; /* to each of them */

/* So that a busy server does not look like a silent one. */
#define PATIENT "server_timeout=2s"
/* An op_timeout that holds even then, but ends soon. */
#define OP_MS 1500

/* A URL or lock through the proxies; options as for redlock_servers_url(). */
const char *far_url(const char *options);
hf_lock *far(struct world *, int64_t ttl_ms, int64_t op_ms,
             const char *options);
/* A direct lock, with long timeouts. */
hf_lock *near(struct world *);

/* Resets the connections to that server and refuses new ones; undoes that. */
void cut(int i);
void heal(int i);
void heal_all(void);
/* Kills that server and starts it again, empty. */
void restart(int i);
/* Does server i have the lock's key? Deletes it there. */
bool has(int i);
void delete_key(int i);
/* How many servers have the key. All must answer. */
int keys(void);
/* How many have the same key as server i. */
int keys_as(int i);

void pass(int64_t ms);
/* Acquires the lock, soon, with a key at each server. */
void takes(struct world *, hf_lock *);
void gives(struct world *, hf_lock *);  /* releases it successfully */
void renews(struct world *, hf_lock *); /* likewise */
void says(const char *text, const char *words);
/* Asserts that another client holds it. */
void is_busy(struct world *, hf_lock *);

#endif
