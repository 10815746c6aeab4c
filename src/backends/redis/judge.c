/* What INFO says of a server, judged line by line: of one server, and of each
 * that Redlock has. */
#include "redis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What a server may say is any number: this one can be multiplied. */
long long hf__rd_number(const char *info, const char *key)
{
    long long n = strtoll(hf__rd_value(info, key).text, NULL, 10);
    const long long most = 1LL << 53;

    return n > most ? most : n < -most ? -most : n;
}

__attribute__((format(printf, 2, 3))) static struct rd_verdict
verdict(enum hf_level level, const char *fmt, ...)
{
    struct rd_verdict v = {.level = level};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(v.text, sizeof(v.text), fmt, ap);
    va_end(ap);
    return v;
}

int hf__rd_refuse_old(struct rd_pipe *p, const char *info, int oldest,
                      hf__time now)
{
    struct rd_value v = hf__rd_value(info, "redis_version");
    long major = strtol(v.text, NULL, 10);

    if (major <= 0 || major >= oldest)
        return 0;
    p->link.lasts = true;
    p->link.refused_at = now;
    return hf__link_why(&p->link, HF_EBACKEND,
                        "Redis %.20s is too old: use Redis %d.0 or later",
                        v.text, oldest);
}

struct rd_verdict hf__rd_judge_version(const char *info)
{
    struct rd_value v = hf__rd_value(info, "redis_version");
    struct rd_value valkey = hf__rd_value(info, "valkey_version");
    char *minor;
    long major = strtol(v.text, &minor, 10);

    if (hf__rd_says(info, "cluster_enabled", "1"))
        return verdict(HF_LEVEL_ERROR,
                       "the server is part of a Redis Cluster, which refuses "
                       "the names of other nodes: use a server without "
                       "cluster-enabled");
    if (valkey.text[0])
        return verdict(HF_LEVEL_OK, "Valkey %s", valkey.text);
    if (major < 6 || (major == 6 && *minor && strtol(minor + 1, NULL, 10) < 2))
        return verdict(HF_LEVEL_WARNING,
                       "Redis %s: holdfast is tested with 6.2 and later",
                       v.text);
    return verdict(HF_LEVEL_OK, "Redis %s", v.text);
}

struct rd_verdict hf__rd_judge_memory(const char *info)
{
    struct rd_value policy = hf__rd_value(info, "maxmemory_policy");
    long long most = hf__rd_number(info, "maxmemory");
    long long used = hf__rd_number(info, "used_memory");

    if (!most)
        return verdict(HF_LEVEL_OK, "nothing is evicted: maxmemory is not set");
    if (strcmp(policy.text, "noeviction") != 0)
        return verdict(HF_LEVEL_ERROR,
                       "maxmemory-policy is %s: when the memory is full, the "
                       "server deletes locks that are held. Set "
                       "maxmemory-policy noeviction",
                       policy.text);
    if (used > most - most / 10)
        return verdict(HF_LEVEL_WARNING,
                       "%lld of maxmemory %lld bytes are used; when it is "
                       "full, locks cannot be acquired: raise maxmemory",
                       used, most);
    return verdict(HF_LEVEL_OK,
                   "nothing is evicted: maxmemory-policy is noeviction");
}

struct rd_verdict hf__rd_judge_clients(const char *info)
{
    long long most = hf__rd_number(info, "maxclients");
    long long used = hf__rd_number(info, "connected_clients");

    if (most && used * 5 > most * 4)
        return verdict(HF_LEVEL_WARNING,
                       "%lld of maxclients %lld are connected: a client of "
                       "holdfast uses up to 3 connections. Raise maxclients",
                       used, most);
    return verdict(HF_LEVEL_OK, "%lld of maxclients %lld are connected", used,
                   most);
}
