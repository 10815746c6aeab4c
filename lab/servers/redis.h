/* A plain connection to Redis, for what the documents (tutorials; see
 * lab/README.md) do without holdfast. */
#ifndef HF_LAB_REDIS_H
#define HF_LAB_REDIS_H

#include "../runner/place.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

enum { RD_WHY = 320 };

/* Connects, or dies. The caller calls redisFree(). The password is taken from
 * the password_file of the URL, else from the URL, else from
 * HOLDFAST_PASSWORD. */
redisContext *rd_open(const struct lab_place *place);
/* Does the same for callers that must not die: on failure returns NULL, and
 * sets *status to an exit status and `why' to the reason. */
redisContext *rd_connect(const struct lab_place *place, int *status,
                         char why[RD_WHY]);
/* Works like redisCommand(), but dies on an error of the connection or of
 * Redis. */
redisReply *rd_send(redisContext *redis, const char *fmt, ...);
/* Sends a command and returns the answer as a number: 1 for a status ("OK"); -1
 * for nil, which is also the answer to an EXEC that was not executed; the value
 * of a string; the length of an array. */
long long rd_number(redisContext *redis, const char *fmt, ...);

/* Sends SET key value NX PX. Returns 1 if the key was set, else 0. */
int rd_lock(redisContext *redis, const char *key, const char *value,
            int64_t ttl_ms);
/* Deletes the key if it has that value, by a script. Returns 1 if the key was
 * deleted, else 0. */
int rd_unlock(redisContext *redis, const char *key, const char *value);

#endif
