#include "redis.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"
#include "address.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_S 5
#define ANSWER_S 20

static bool redis_refused(const char *text)
{
    return !strncmp(text, "NOAUTH", 6) || !strncmp(text, "NOPERM", 6) ||
           !strncmp(text, "WRONGPASS", 9) || strstr(text, "AUTH");
}

/* Sends one command. Returns 0, or an exit status with the reason in `why'. */
static int redis_query_once(redisContext *redis, char why[RD_WHY], int argc,
                            const char **argv)
{
    redisReply *reply = redisCommandArgv(redis, argc, argv, NULL);
    int status = 0;

    if (!reply) {
        snprintf(why, RD_WHY, "Redis does not answer: %s", redis->errstr);
        return CLI_UNAVAILABLE;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        status = redis_refused(reply->str) ? CLI_NOPERM : CLI_UNAVAILABLE;
        snprintf(why, RD_WHY, "Redis refused %s: %s", argv[0], reply->str);
    }
    freeReplyObject(reply);
    return status;
}

/* Finds the password where the library does: in the password file, else in the
 * URL, else in the environment. Returns false if the file cannot be read. */
static bool redis_find_password(const struct lab_address *to, char *out,
                                size_t size, char why[RD_WHY])
{
    const char *env = getenv("HOLDFAST_PASSWORD");
    char path[sizeof(to->options)];
    FILE *f = NULL;

    snprintf(out, size, "%s", *to->password || !env ? to->password : env);
    if (!lab_address_option(to, "password_file", path, sizeof(path)))
        return true;
    f = fopen(path, "re");
    if (!f || !fgets(out, (int)size, f)) {
        snprintf(why, RD_WHY, "password_file cannot be read: %s",
                 strerror(errno));
        if (f)
            fclose(f);
        return false;
    }
    out[strcspn(out, "\r\n")] = '\0';
    fclose(f);
    return true;
}

static int redis_introduce(redisContext *redis, const struct lab_address *to,
                           char why[RD_WHY])
{
    char password[1024], db[16] = "";
    const char *auth[] = {"AUTH", to->user, password};
    const char *plain[] = {"AUTH", password};
    const char *select[] = {"SELECT", db};
    const char *ping[] = {"PING"};
    int status = 0;

    if (!redis_find_password(to, password, sizeof(password), why))
        return CLI_NOPERM;
    if (!lab_address_option(to, "db", db, sizeof(db)) && *to->path != '/')
        snprintf(db, sizeof(db), "%.15s", to->path);
    if (*to->user)
        status = redis_query_once(redis, why, 3, auth);
    else if (*password)
        status = redis_query_once(redis, why, 2, plain);
    if (!status && *db)
        status = redis_query_once(redis, why, 2, select);
    explicit_bzero(password, sizeof(password));
    return status ? status : redis_query_once(redis, why, 1, ping);
}

static redisContext *redis_reach(const struct lab_address *to, char why[RD_WHY])
{
    struct timeval patience = {.tv_sec = CONNECT_S};
    const char *host = *to->host ? to->host : "127.0.0.1";
    int port = to->port ? to->port : 6379;
    bool local = !strcmp(to->scheme, "redis+unix");
    redisContext *redis = local
                              ? redisConnectUnixWithTimeout(to->path, patience)
                              : redisConnectWithTimeout(host, port, patience);

    if (redis && !redis->err &&
        redisSetTimeout(redis, (struct timeval){.tv_sec = ANSWER_S}) ==
            REDIS_OK)
        return redis;
    if (local)
        snprintf(why, RD_WHY, "cannot connect to the socket %s: %s", to->path,
                 redis ? redis->errstr : "out of memory");
    else
        snprintf(why, RD_WHY, "cannot connect to %s port %d: %s", host, port,
                 redis ? redis->errstr : "out of memory");
    if (redis)
        redisFree(redis);
    return NULL;
}

redisContext *rd_connect(const struct lab_place *place, int *status,
                         char why[RD_WHY])
{
    struct lab_address to;
    const char *wrong = lab_address_parse(place->url, &to);
    redisContext *redis = NULL;

    if (!wrong && strcmp(to.scheme, "redis") != 0 &&
        strcmp(to.scheme, "redis+unix") != 0)
        wrong = "the lab's own connections have no TLS: give a redis:// or "
                "redis+unix:// URL";
    *status = wrong ? CLI_USAGE : CLI_UNAVAILABLE;
    if (wrong)
        snprintf(why, RD_WHY, "%s", wrong);
    else
        redis = redis_reach(&to, why);
    if (redis && (*status = redis_introduce(redis, &to, why))) {
        redisFree(redis);
        redis = NULL;
    }
    explicit_bzero(&to, sizeof(to));
    return redis;
}

redisContext *rd_open(const struct lab_place *place)
{
    char why[RD_WHY];
    int status;
    redisContext *redis = rd_connect(place, &status, why);

    if (!redis)
        lab_die(status, "%s: %s", place->name, why);
    return redis;
}

static redisReply *redis_vask(redisContext *redis, const char *fmt, va_list ap)
{
    int word = (int)strcspn(fmt, " ");
    redisReply *reply = redisvCommand(redis, fmt, ap);

    if (!reply)
        lab_die(CLI_UNAVAILABLE, "Redis does not answer %.*s: %s", word, fmt,
                redis->errstr);
    else if (reply->type == REDIS_REPLY_ERROR)
        lab_die(redis_refused(reply->str) ? CLI_NOPERM : CLI_FAILED,
                "Redis refused %.*s: %s", word, fmt, reply->str);
    return reply;
}

redisReply *rd_send(redisContext *redis, const char *fmt, ...)
{
    redisReply *reply;
    va_list ap;

    va_start(ap, fmt);
    reply = redis_vask(redis, fmt, ap);
    va_end(ap);
    return reply;
}

static long long redis_number_of(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        return reply->integer;
    case REDIS_REPLY_STRING:
        return strtoll(reply->str, NULL, 10);
    case REDIS_REPLY_ARRAY:
        return (long long)reply->elements;
    case REDIS_REPLY_NIL:
        return -1;
    default:
        return 1;
    }
}

long long rd_number(redisContext *redis, const char *fmt, ...)
{
    redisReply *reply;
    long long number;
    va_list ap;

    va_start(ap, fmt);
    reply = redis_vask(redis, fmt, ap);
    va_end(ap);
    number = redis_number_of(reply);
    freeReplyObject(reply);
    return number;
}

int rd_lock(redisContext *redis, const char *key, const char *value,
            int64_t ttl_ms)
{
    return rd_number(redis, "SET %s %s NX PX %lld", key, value,
                     (long long)ttl_ms) == 1;
}

int rd_unlock(redisContext *redis, const char *key, const char *value)
{
    static const char script[] =
        "if redis.call('get', KEYS[1]) == ARGV[1] then "
        "return redis.call('del', KEYS[1]) else return 0 end";

    return rd_number(redis, "EVAL %s 1 %s %s", script, key, value) == 1;
}
