#include "fence.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../servers/redis.h"
#include "../servers/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct fence {
    int fd; /* a file with the token and the number */
    redisContext *redis;
    char bar[96], key[96]; /* keys in Redis */
    struct sql *sql;
    char table[96];
};

static struct fence *fence_reach(struct lab *lab, const struct lab_place *store,
                                 int flags)
{
    struct fence *fence = lab_alloc(sizeof *fence);
    enum lab_engine engine = store ? store->engine : LAB_FILE;
    char path[128];

    lab_name(lab, "fence-bar", fence->bar);
    lab_name(lab, "fence", fence->key);
    lab_table(lab, "fence", fence->table);
    if (engine == LAB_REDIS) {
        fence->redis = rd_open(store);
    } else if (engine == LAB_MARIADB) {
        fence->sql = sql_open(store);
    } else {
        snprintf(path, sizeof path, "%s/fence", lab_directory(lab));
        fence->fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
        if (fence->fd < 0)
            lab_die(CLI_OSERR, "cannot open %s: %s", path, strerror(errno));
    }
    return fence;
}

struct fence *fence_open(struct lab *lab, const struct lab_place *store)
{
    return fence_reach(lab, store, 0);
}

static void fence_leave(struct fence *fence)
{
    if (fence->redis)
        redisFree(fence->redis);
    else if (fence->sql)
        sql_close(fence->sql);
    else
        close(fence->fd);
    free(fence);
}

static void fence_put(int fd, uint64_t token, int64_t value)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%020" PRIu64 " %020" PRId64 "\n",
                       token, value);

    if (pwrite(fd, text, (size_t)len, 0) != len)
        lab_die(CLI_OSERR, "cannot write the fenced file: %s", strerror(errno));
}

static void fence_get(int fd, uint64_t *token, int64_t *value)
{
    char text[64] = "", *end;

    if (pread(fd, text, sizeof text - 1, 0) < 0)
        lab_die(CLI_OSERR, "cannot read the fenced file: %s", strerror(errno));
    *token = strtoull(text, &end, 10);
    *value = strtoll(end, NULL, 10);
}

/* Checks the token and accesses the number, in one step under flock(2): writes
 * *write, or only reads the number if `write' is NULL. Returns false if the
 * token is too low; nothing is written then. */
static bool fence_contact_file(struct fence *fence, uint64_t token,
                               const int64_t *write, int64_t *read)
{
    uint64_t seen;
    int64_t value;
    bool fresh;

    while (flock(fence->fd, LOCK_EX))
        if (errno != EINTR)
            lab_die(CLI_OSERR, "flock: %s", strerror(errno));
    fence_get(fence->fd, &seen, &value);
    fresh = token == 0 || token >= seen;
    if (fresh)
        fence_put(fence->fd, token > seen ? token : seen,
                  write ? *write : value);
    flock(fence->fd, LOCK_UN);
    if (read)
        *read = value;
    return fresh;
}

static const char script[] =
    "local token, seen = ARGV[1], redis.call('GET', KEYS[1]) or '0' "
    "if #token < #seen or (#token == #seen and token < seen) then "
    "return {} end "
    "redis.call('SET', KEYS[1], token) "
    "if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[2]) end "
    "return {redis.call('GET', KEYS[2])}";

static bool fence_contact_redis(struct fence *fence, uint64_t token,
                                const int64_t *write, int64_t *read)
{
    redisReply *reply;
    char text[24] = "";
    bool fresh;

    if (write)
        snprintf(text, sizeof text, "%" PRId64, *write);
    if (token == 0) {
        if (write)
            rd_number(fence->redis, "SET %s %s", fence->key, text);
        else
            *read = rd_number(fence->redis, "GET %s", fence->key);
        return true;
    }
    reply = rd_send(fence->redis, "EVAL %s 2 %s %s %llu %s", script, fence->bar,
                    fence->key, (unsigned long long)token, text);
    fresh = reply->elements == 1;
    if (fresh && read)
        *read = strtoll(reply->element[0]->str, NULL, 10);
    freeReplyObject(reply);
    return fresh;
}

static bool fence_contact_sql(struct fence *fence, uint64_t token,
                              const int64_t *write, int64_t *read)
{
    unsigned long long bar = token;
    bool fresh = true;

    if (token == 0 && write) {
        sql_do(fence->sql, "UPDATE %s SET amount = %" PRId64, fence->table,
               *write);
    } else if (token == 0) {
        *read = sql_number(fence->sql, "SELECT amount FROM %s", fence->table);
    } else if (write) {
        sql_do(fence->sql,
               "UPDATE %s SET token = %llu, contacts = contacts + 1, "
               "amount = %" PRId64 " WHERE token <= %llu",
               fence->table, bar, *write, bar);
        fresh = sql_changed(fence->sql) == 1;
    } else {
        sql_do(fence->sql, "BEGIN");
        sql_do(fence->sql,
               "UPDATE %s SET token = %llu, contacts = contacts + 1 "
               "WHERE token <= %llu",
               fence->table, bar, bar);
        fresh = sql_changed(fence->sql) == 1;
        *read = sql_number(fence->sql, "SELECT amount FROM %s", fence->table);
        sql_do(fence->sql, "COMMIT");
    }
    return fresh;
}

static bool fence_contact(struct fence *fence, uint64_t token,
                          const int64_t *write, int64_t *read)
{
    if (fence->redis)
        return fence_contact_redis(fence, token, write, read);
    if (fence->sql)
        return fence_contact_sql(fence, token, write, read);
    return fence_contact_file(fence, token, write, read);
}

bool fence_read(struct fence *fence, uint64_t token, int64_t *value)
{
    return fence_contact(fence, token, NULL, value);
}

bool fence_write(struct fence *fence, uint64_t token, int64_t value)
{
    return fence_contact(fence, token, &value, NULL);
}

void fence_make(struct lab *lab, const struct lab_place *store, int64_t value)
{
    struct fence *fence = fence_reach(lab, store, O_CREAT);

    if (fence->redis) {
        rd_number(fence->redis, "DEL %s", fence->bar);
        rd_number(fence->redis, "SET %s %lld", fence->key, (long long)value);
    } else if (fence->sql) {
        sql_do(fence->sql,
               "CREATE OR REPLACE TABLE %s (token BIGINT NOT NULL, "
               "contacts BIGINT NOT NULL, amount BIGINT NOT NULL) "
               "ENGINE = InnoDB",
               fence->table);
        sql_do(fence->sql, "INSERT INTO %s VALUES (0, 0, %" PRId64 ")",
               fence->table, value);
    } else {
        fence_put(fence->fd, 0, value);
    }
    fence_leave(fence);
}

int64_t fence_value(struct lab *lab, const struct lab_place *store)
{
    struct fence *fence = fence_reach(lab, store, 0);
    int64_t value = 0;

    fence_read(fence, 0, &value);
    fence_leave(fence);
    return value;
}
