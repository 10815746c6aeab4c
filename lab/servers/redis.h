/* A plain connection to Redis, for what the documents do by hand. */
#ifndef HF_LAB_REDIS_H
#define HF_LAB_REDIS_H

#include "../runner/place.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

enum { RD_WHY = 320 };

/* Dies if it cannot connect. The caller calls redisFree(). The password is the
 * one of the URL, else HOLDFAST_PASSWORD. */
redisContext *rd_open(const struct lab_place *place);
/* The same for callers that must not die: returns NULL, an exit status, and the
 * reason. */
redisContext *rd_connect(const struct lab_place *place, int *status,
                         char why[RD_WHY]);
/* Like redisCommand(); dies on an error of the connection or of Redis. */
redisReply *rd_send(redisContext *redis, const char *fmt, ...);
/* The answer as a number: 1 for a status ("OK"), -1 for nil (also of an EXEC
 * that was not executed), the value of a string, the length of an array. */
long long rd_number(redisContext *redis, const char *fmt, ...);

/* SET key value NX PX: returns 1 or 0. */
int rd_lock(redisContext *redis, const char *key, const char *value,
            int64_t ttl_ms);
/* Compares and deletes by a script: returns 1 or 0. */
int rd_unlock(redisContext *redis, const char *key, const char *value);

#endif
