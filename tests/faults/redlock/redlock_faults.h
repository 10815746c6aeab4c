/* Faults of five Redis servers, and of the ways to them. The servers are those
 * of the group: a case finds them empty, and all of them running. */
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

/* A busy machine is no server that is silent. */
#define PATIENT "server_timeout=2s"
/* An op_timeout that is kept even then, and ends soon. */
#define OP_MS 1500

/* Through the proxies; options as those of redlock_servers_url(). */
const char *far_url(const char *options);
hf_lock *far(struct world *, int64_t ttl_ms, int64_t op_ms,
             const char *options);
/* Directly, with times that never matter. */
hf_lock *near(struct world *);

/* Connections to it are reset, and there are no new ones. */
void cut(int i);
void heal(int i);
void heal_all(void);
/* Killed and started again, empty. */
void restart(int i);
/* At server i: is the lock's key there; deletes it. */
bool has(int i);
void delete_key(int i);
/* How many servers have it. All must answer. */
int keys(void);
/* The same of the key as it is at the server i. */
int keys_as(int i);

void pass(int64_t ms);
/* Takes it, soon, with a key at each server. */
void takes(struct world *, hf_lock *);
void gives(struct world *, hf_lock *);  /* a release, which succeeds */
void renews(struct world *, hf_lock *); /* the same */
void says(const char *text, const char *words);
/* Another client has it. */
void is_busy(struct world *, hf_lock *);

#endif
