#include "tidy.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/cleanup.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "redis.h"
#include "sql.h"

#include <mysqld_error.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PLACES = 16, STATEMENT = 512, PAUSE_MS = 20, PAUSES = 500 };

/* A place that was given by a URL. `prefix' is in the names of all keys or
 * tables of this run; it ends with a separator. */
struct tidy {
    struct lab_place place;
    char prefix[96];
    char names[96]; /* the prefix in the names of this run's locks in MariaDB */
};

static int tidy_say(const struct tidy *tidy, const char *why)
{
    fprintf(stderr,
            "holdfast lab: %s: keys or tables whose names contain \"%s\" could "
            "not be removed: %s\n",
            tidy->place.name, tidy->prefix, why);
    return -1;
}

static redisReply *tidy_scan(redisContext *redis, const char *cursor,
                             const char *prefix)
{
    redisReply *reply =
        redisCommand(redis, "SCAN %s MATCH *%s* COUNT 1000", cursor, prefix);

    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        return reply;
    if (!reply || reply->type != REDIS_REPLY_ERROR)
        snprintf(redis->errstr, sizeof(redis->errstr), "no answer to SCAN");
    else
        snprintf(redis->errstr, sizeof(redis->errstr), "%s", reply->str);
    freeReplyObject(reply);
    return NULL;
}

/* Scans once for the keys of the run, and removes them. Returns how many there
 * were, or -1 with the reason in redis->errstr. */
static long tidy_sweep(redisContext *redis, const char *prefix)
{
    char cursor[32] = "0";
    long n = 0;

    do {
        redisReply *reply = tidy_scan(redis, cursor, prefix);
        const redisReply *keys;

        if (!reply)
            return -1;
        keys = reply->element[1];
        for (size_t i = 0; i < keys->elements; i++, n++)
            freeReplyObject(redisCommand(redis, "UNLINK %b",
                                         keys->element[i]->str,
                                         (size_t)keys->element[i]->len));
        snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
    return n;
}

/* Removes the keys of the run. Repeats that until there are none, ten times at
 * most, because a command of a process that was killed may still arrive. */
static int tidy_clean_redis(void *arg)
{
    const struct tidy *tidy = arg;
    char why[RD_WHY];
    int status, passes = 10;
    redisContext *redis = rd_connect(&tidy->place, &status, why);
    long n = 1;

    if (!redis)
        return tidy_say(tidy, why);
    while (n > 0 && passes--)
        n = tidy_sweep(redis, tidy->prefix);
    if (n)
        tidy_say(tidy, n > 0 ? "UNLINK does not remove them" : redis->errstr);
    redisFree(redis);
    return n ? -1 : 0;
}

static void tidy_check_redis(const struct tidy *tidy)
{
    redisContext *redis = rd_open(&tidy->place);

    /* These commands fail unless the user has the rights that the lab needs to
     * remove what it creates. They change nothing. */
    freeReplyObject(rd_send(redis, "SCAN 0 MATCH *%s* COUNT 1", tidy->prefix));
    rd_number(redis, "UNLINK %s", tidy->prefix);
    redisFree(redis);
}

/* Waits until no other connection executes a statement about this run, for
 * about ten seconds at most. The server may still execute a statement of a
 * process that was killed. That statement could recreate a table, or the row of
 * a lock, after its removal. Statements about locks contain the name in
 * hexadecimal. */
static void tidy_await_others(struct sql *sql, const struct tidy *tidy)
{
    char statement[STATEMENT];
    int64_t others = 1;

    snprintf(statement, sizeof(statement),
             "SELECT COUNT(*) FROM information_schema.processlist "
             "WHERE id <> CONNECTION_ID() AND (LOCATE('%s', info) OR "
             "LOCATE(LOWER(HEX('%s')), LOWER(info)))",
             tidy->prefix, tidy->names);
    for (int i = 0; others && i < PAUSES; i++) {
        if (i)
            lab_sleep_ms(PAUSE_MS);
        if (sql_send(sql, statement, &others))
            return;
    }
}

/* Drops the tables of the run. Returns 0 or the error number. Foreign keys are
 * not checked, because a table may refer to another table that is dropped
 * before it. */
static unsigned tidy_drop_tables(struct sql *sql, const char *prefix)
{
    char find[STATEMENT];
    const char *const statements[] = {
        "SET SESSION lock_wait_timeout = 20, foreign_key_checks = 0",
        find,
        "PREPARE tidy FROM @tidy",
        "EXECUTE tidy",
        NULL,
    };

    snprintf(find, sizeof(find),
             "SET @tidy = COALESCE((SELECT CONCAT('DROP TABLE IF EXISTS ', "
             "GROUP_CONCAT('`', table_name, '`')) "
             "FROM information_schema.tables WHERE table_schema = DATABASE() "
             "AND LEFT(table_name, %zu) = '%s'), 'DO 0')",
             strlen(prefix), prefix);
    for (const char *const *at = statements; *at; at++) {
        unsigned error = sql_send(sql, *at, NULL);

        if (error)
            return error;
    }
    return 0;
}

/* Deletes the rows of the run's locks. Returns 0 or the error number. The
 * tables belong to the library, so they are not dropped. A table that does not
 * exist is no error. */
static unsigned tidy_delete_locks(struct sql *sql, const char *names)
{
    static const char *const tables[] = {"locks", "holds", "requests",
                                         "values"};
    char statement[STATEMENT];
    unsigned error = 0;

    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !error; i++) {
        snprintf(statement, sizeof(statement),
                 "DELETE FROM holdfast_%s WHERE name LIKE '%s%%'", tables[i],
                 names);
        error = sql_send(sql, statement, NULL);
        if (error == ER_NO_SUCH_TABLE)
            error = 0;
    }
    return error;
}

static int tidy_clean_mariadb(void *arg)
{
    const struct tidy *tidy = arg;
    char why[SQL_WHY];
    int status;
    struct sql *sql = sql_connect(&tidy->place, &status, why);
    unsigned error;

    if (!sql)
        return tidy_say(tidy, why);
    tidy_await_others(sql, tidy);
    error = tidy_drop_tables(sql, tidy->prefix);
    if (!error)
        error = tidy_delete_locks(sql, tidy->names);
    if (error)
        tidy_say(tidy, sql_error(sql));
    sql_close(sql);
    return error ? -1 : 0;
}

/* Dies if the user lacks the right to drop tables. The table does not exist,
 * but the server checks the right first: ER_BAD_TABLE_ERROR means that the user
 * has it. */
static void tidy_check_mariadb(const struct tidy *tidy)
{
    struct sql *sql = sql_open(&tidy->place);

    if (sql_try(sql, "DROP TABLE %srights", tidy->prefix) != ER_BAD_TABLE_ERROR)
        sql_fail(sql, "DROP TABLE");
    sql_close(sql);
}

static bool tidy_is_known(const struct lab_place *place)
{
    static char known[PLACES][sizeof(place->url)];
    static size_t len;

    for (size_t i = 0; i < len; i++)
        if (!strcmp(known[i], place->url))
            return true;
    if (len == PLACES)
        lab_die(CLI_USAGE, "more than %d places", PLACES);
    memcpy(known[len++], place->url, sizeof(place->url));
    return false;
}

static void tidy_redis(struct lab *lab, struct tidy *tidy)
{
    lab_name(lab, "", tidy->prefix);
    tidy_check_redis(tidy);
    cleanup_start(tidy_clean_redis, tidy);
}

/* Cleans up each server of Redlock, with a URL for that server. */
static void tidy_redlock(struct lab *lab, const struct lab_place *place)
{
    struct tidy tidy = {.place = *place};
    const char *host = strstr(place->url, "://"), *end, *user;
    /* If the URL wants TLS, tidy_redis() gets a URL with the scheme rediss and
     * dies, because the lab's own connections have no TLS. */
    const char *scheme = strstr(place->url, "tls=yes") ? "rediss" : "redis";

    if (!host)
        return; /* places_check() reports the bad URL */
    user = host += 3;
    end = host + strcspn(host, "/?");
    for (const char *at = host; at < end; at++)
        if (*at == '@')
            host = at + 1;
    for (const char *at = host; at < end; at += strcspn(at, ",/?") + 1) {
        snprintf(tidy.place.url, sizeof(tidy.place.url), "%s://%.*s%.*s%s",
                 scheme, (int)(host - user), user, (int)strcspn(at, ",/?"), at,
                 end);
        tidy_redis(lab, &tidy);
    }
    explicit_bzero(&tidy, sizeof(tidy));
}

void lab_place_tidy(struct lab *lab, const struct lab_place *place)
{
    struct tidy tidy = {.place = *place};

    if (!place->given || tidy_is_known(place))
        return;
    if (place->engine == LAB_REDIS) {
        tidy_redis(lab, &tidy);
    } else if (place->engine == LAB_REDLOCK) {
        tidy_redlock(lab, place);
    } else if (place->engine == LAB_MARIADB) {
        lab_table(lab, "", tidy.prefix);
        lab_name(lab, "", tidy.names);
        tidy_check_mariadb(&tidy);
        cleanup_start(tidy_clean_mariadb, &tidy);
    }
}
