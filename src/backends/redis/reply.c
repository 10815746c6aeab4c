/*
 * Converts the bytes of a reply to nodes. hiredis' reader does the parsing; its
 * callbacks create our own nodes, in an arena that is emptied after each reply.
 *
 * A usual reply then needs no allocation, and the announced length of an array
 * does not cause one: a node is created only when its bytes arrive. (hiredis
 * 0.14.1's own objects allocate for that length, and multiply it unchecked:
 * CVE-2021-32765.) The memory of a reply is therefore bounded by the bytes
 * received, and RD_REPLY_MAX bounds these bytes. hiredis bounds the nesting.
 */
#include "reply.h"

#include "backends/common/arena.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rd_node *reply_new_node(const redisReadTask *task, size_t extra)
{
    struct rd_node *node =
        hf__arena_take(task->privdata, sizeof(*node) + extra);
    struct rd_node *parent = task->parent ? task->parent->obj : NULL;

    if (!node)
        return NULL;
    *node = (struct rd_node){.type = task->type};
    if (!parent)
        return node;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    return node;
}

static void *reply_new_string(const redisReadTask *task, char *text, size_t len)
{
    struct rd_node *node = reply_new_node(task, len + 1);
    char *copy;

    if (!node)
        return NULL;
    copy = (char *)(node + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    node->text = copy;
    node->len = len;
    return node;
}

static void *reply_new_integer(const redisReadTask *task, long long number)
{
    struct rd_node *node = reply_new_node(task, 0);

    if (node)
        node->number = number;
    return node;
}

static void *reply_new_array(const redisReadTask *task, int elements)
{
    return reply_new_integer(task, elements);
}

static void *reply_new_nil(const redisReadTask *task)
{
    struct rd_node *node = reply_new_node(task, 0);

    if (node)
        node->type = REDIS_REPLY_NIL; /* hiredis passes the type of a string */
    return node;
}

static void reply_free_nothing(void *node)
{
    (void)node; /* the arena frees it */
}

redisReader *hf__rd_reader_new(struct hf__arena *arena)
{
    static redisReplyObjectFunctions objects = {
        reply_new_string, reply_new_array, reply_new_integer, reply_new_nil,
        reply_free_nothing};
    redisReader *reader = redisReaderCreateWithFunctions(&objects);

    if (!reader)
        return NULL;
    reader->privdata = arena;
    /* Keep the buffer, however large: freeing a large one makes hiredis 0.14.1
     * allocate, and assert that the allocation succeeds. RD_REPLY_MAX bounds
     * the buffer. */
    reader->maxbuf = 0;
    return reader;
}

int hf__rd_reader_next(redisReader *reader, struct hf__arena *arena,
                       struct rd_node **node)
{
    void *reply = NULL;

    if (redisReaderGetReply(reader, &reply) != REDIS_OK)
        return reader->err == REDIS_ERR_OOM && !hf__arena_is_full(arena)
                   ? HF_ENOMEM
                   : HF_EPROTO;
    if (reply) {
        *node = reply;
        return 1;
    }
    return reader->len - reader->pos > RD_REPLY_MAX ? HF_EPROTO : 0;
}

const struct rd_node *hf__rd_at(const struct rd_node *node, size_t i)
{
    if (!node || node->type != REDIS_REPLY_ARRAY)
        return NULL;
    for (node = node->first; node && i; i--)
        node = node->next;
    return node;
}

bool hf__rd_int(const struct rd_node *node, int64_t *number)
{
    char *end;
    long long n;

    if (!node)
        return false;
    if (node->type == REDIS_REPLY_INTEGER) {
        *number = node->number;
        return true;
    }
    if (node->type != REDIS_REPLY_STRING || !node->len || node->len > 20)
        return false;
    n = strtoll(node->text, &end, 10);
    *number = n;
    return *end == '\0' && n != LLONG_MAX && n != LLONG_MIN;
}

bool hf__rd_is(const struct rd_node *node, const char *text)
{
    return node && node->text && node->len == strlen(text) &&
           memcmp(node->text, text, node->len) == 0;
}

/* ---- errors: the first word is the type of the error ------------------- */

static bool reply_begins(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 &&
           (text[len] == ' ' || text[len] == '\0');
}

/* Redis 6 puts words before an error inside a script: "ERR Error running script
 * (call to f_...): @user_script:3: @user_script: 3: -READONLY ...". Redis 7
 * puts "script: ..., on @user_script:3." after the error, and "ERR" before an
 * error about rights. */
const char *hf__rd_error_text(const char *text)
{
    static const char place[] = "@user_script:";
    const char *at = reply_begins(text, "ERR Error running script")
                         ? strstr(text, place)
                         : NULL;

    if (!at)
        return reply_begins(text, "ERR The user executing the script can't") ||
                       reply_begins(text, "ERR ACL failure in script:")
                   ? text + 4
                   : text;
    while (strncmp(at, place, sizeof(place) - 1) == 0) {
        at += sizeof(place) - 1;
        at += strspn(at, " 0123456789:");
    }
    return at + (*at == '-');
}

/* An error of Redis 7 ends with the digest of the script: "READONLY You can't
 * write... script: 9f2c..., on @user_script:3.". */
int hf__rd_error_len(const char *text)
{
    static const char script[] = " script: ";
    const char *at = strstr(text, script);

    if (at && strspn(at + strlen(script), "0123456789abcdef") == 40)
        return (int)(at - text);
    return (int)strlen(text);
}

int hf__rd_error_code(const char *text)
{
    static const char *const auth[] = {"NOAUTH", "WRONGPASS", "NOPERM",
                                       "The user executing the script can't",
                                       "ACL failure in script:"};

    text = hf__rd_error_text(text);
    for (size_t i = 0; i < sizeof(auth) / sizeof(*auth); i++)
        if (reply_begins(text, auth[i]))
            return HF_EAUTH;
    if (reply_begins(text, "WRONGTYPE"))
        return HF_EMISMATCH;
    return HF_EBACKEND; /* LOADING READONLY OOM BUSY MISCONF MOVED ERR ... */
}

bool hf__rd_is_replica(const char *text)
{
    text = hf__rd_error_text(text);
    return reply_begins(text, "READONLY") || reply_begins(text, "MASTERDOWN") ||
           reply_begins(text, "NOREPLICAS");
}

/* Returns whether the server refuses temporarily, because it is loading, busy,
 * out of memory or disk space, or changing its role. */
static bool reply_refuses_for_now(const char *text)
{
    static const char *const words[] = {
        "LOADING", "BUSY",        "READONLY",   "MASTERDOWN", "OOM",
        "MISCONF", "CLUSTERDOWN", "NOREPLICAS", "TRYAGAIN"};

    text = hf__rd_error_text(text);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (reply_begins(text, words[i]))
            return true;
    return false;
}

bool hf__rd_may_pass(const char *text)
{
    return reply_refuses_for_now(text) ||
           strstr(text, "max number of clients") != NULL;
}

bool hf__rd_is_forbidden(const char *text)
{
    return hf__rd_error_code(text) == HF_EAUTH ||
           reply_begins(text, "ERR unknown command");
}

/*
 * Returns true even for a script whose write was refused temporarily. A server
 * that refuses writes for such a reason refuses already the first write of a
 * script, so the script has not written anything. Returns false for a script
 * that lacks a right: rights are checked for each command, so the script may
 * have done a part of its work.
 */
bool hf__rd_did_nothing(const char *text)
{
    if (reply_begins(text, "NOPERM"))
        return !strstr(text, "script");
    return reply_refuses_for_now(text) || reply_begins(text, "NOAUTH") ||
           reply_begins(text, "MOVED");
}

/* ---- INFO ---------------------------------------------------------------- */

struct rd_value hf__rd_value(const char *info, const char *key)
{
    size_t len = strlen(key), n;
    struct rd_value v = {""};

    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0 || line[len] != ':')
            continue;
        line += len + 1;
        n = strcspn(line, "\r\n");
        n = n < sizeof(v.text) ? n : sizeof(v.text) - 1;
        memcpy(v.text, line, n);
        break;
    }
    return v;
}

bool hf__rd_says(const char *info, const char *key, const char *value)
{
    return strcmp(hf__rd_value(info, key).text, value) == 0;
}

/* Clamps the number, because a server may send any number and callers multiply
 * it. */
long long hf__rd_number(const char *info, const char *key)
{
    long long n = strtoll(hf__rd_value(info, key).text, NULL, 10);
    const long long most = 1LL << 53;

    return n > most ? most : n < -most ? -most : n;
}

__attribute__((format(printf, 2, 3))) static struct rd_verdict
reply_verdict(enum hf_level level, const char *fmt, ...)
{
    struct rd_verdict v = {.level = level};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(v.text, sizeof(v.text), fmt, ap);
    va_end(ap);
    return v;
}

struct rd_verdict hf__rd_judge_version(const char *info)
{
    struct rd_value v = hf__rd_value(info, "redis_version");
    struct rd_value valkey = hf__rd_value(info, "valkey_version");
    char *minor;
    long major = strtol(v.text, &minor, 10);

    if (hf__rd_says(info, "cluster_enabled", "1"))
        return reply_verdict(
            HF_LEVEL_ERROR,
            "the server is part of a Redis Cluster, which refuses "
            "the names of other nodes: use a server without "
            "cluster-enabled");
    if (valkey.text[0])
        return reply_verdict(HF_LEVEL_OK, "Valkey %s", valkey.text);
    if (major < 6 || (major == 6 && *minor && strtol(minor + 1, NULL, 10) < 2))
        return reply_verdict(HF_LEVEL_WARNING,
                             "Redis %s: holdfast is tested with 6.2 and later",
                             v.text);
    return reply_verdict(HF_LEVEL_OK, "Redis %s", v.text);
}

struct rd_verdict hf__rd_judge_memory(const char *info)
{
    struct rd_value policy = hf__rd_value(info, "maxmemory_policy");
    long long most = hf__rd_number(info, "maxmemory");
    long long used = hf__rd_number(info, "used_memory");

    if (!most)
        return reply_verdict(HF_LEVEL_OK,
                             "nothing is evicted: maxmemory is not set");
    if (strcmp(policy.text, "noeviction") != 0)
        return reply_verdict(
            HF_LEVEL_ERROR,
            "maxmemory-policy is %s: when the memory is full, the "
            "server deletes locks that are held. Set "
            "maxmemory-policy noeviction",
            policy.text);
    if (used > most - most / 10)
        return reply_verdict(
            HF_LEVEL_WARNING,
            "%lld of maxmemory %lld bytes are used; when it is "
            "full, locks cannot be acquired: raise maxmemory",
            used, most);
    return reply_verdict(HF_LEVEL_OK,
                         "nothing is evicted: maxmemory-policy is noeviction");
}

struct rd_verdict hf__rd_judge_clients(const char *info)
{
    long long most = hf__rd_number(info, "maxclients");
    long long used = hf__rd_number(info, "connected_clients");

    if (most && used * 5 > most * 4)
        return reply_verdict(
            HF_LEVEL_WARNING,
            "%lld of maxclients %lld are connected: a client of "
            "holdfast uses up to 3 connections. Raise maxclients",
            used, most);
    return reply_verdict(HF_LEVEL_OK, "%lld of maxclients %lld are connected",
                         used, most);
}
