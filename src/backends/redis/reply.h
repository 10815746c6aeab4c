/*
 * What a Redis server answers, as the callers of a pipe read it. Three things,
 * none of which needs a connection or a lock:
 *
 * - the reader, which makes nodes of bytes (pipe.c feeds it). A node lives in
 *   the pipe's arena until the next answer is read: a handler copies what it
 *   keeps;
 * - errors: what the text of an error answer means;
 * - INFO: what its text says, and how that is judged in a diagnosis. Both redis
 *   and redlock use it.
 *
 * A server may answer anything. So the functions that look into a node take
 * NULL and wrong types, and say that there is nothing.
 */
#ifndef HF_REDIS_REPLY_H
#define HF_REDIS_REPLY_H

#include "backends/backend.h"
#include "backends/common/arena.h"

#include <hiredis/read.h>

/* Nothing we send has a longer answer. */
#define RD_REPLY_MAX (8u << 20)
/* Small elements weigh more here than on the wire: 4 bytes become a node. */
#define RD_ARENA_MAX (4u * RD_REPLY_MAX)

/* One element of an answer. Memory of the arena, gone with the next one. */
struct rd_node {
    struct rd_node *next;         /* of the same array */
    struct rd_node *first, *last; /* ARRAY */
    int type;                     /* REDIS_REPLY_... */
    int64_t number;               /* INTEGER; ARRAY: how many there shall be */
    const char *text;             /* STRING, STATUS, ERROR; terminated */
    size_t len;
};

redisReader *hf__rd_reader_new(struct hf__arena *);
/* 1 and *node: a whole answer; 0: not yet; HF_EPROTO, HF_ENOMEM. */
int hf__rd_reader_next(redisReader *, struct hf__arena *,
                       struct rd_node **node);
/* The i-th element, NULL if there is none or it is no array. */
const struct rd_node *hf__rd_at(const struct rd_node *, size_t i);
bool hf__rd_int(const struct rd_node *, int64_t *); /* INTEGER or decimal */
bool hf__rd_is(const struct rd_node *, const char *text); /* any text */

/* ---- errors ------------------------------------------------------------- */

/* The words that say what went wrong: those of a script are inside others. */
const char *hf__rd_error_text(const char *text);
/* How much of it is worth showing: without the digest of the script. */
int hf__rd_error_len(const char *text);
/* What an error answer means. */
int hf__rd_error_code(const char *text);
/* It refuses because it is not the master; or it may be one no more: its
 * replicas have left it. */
bool hf__rd_is_replica(const char *text);
bool hf__rd_may_pass(const char *text); /* may it say otherwise later? */
/* It refuses the command to this user, or has no such command. */
bool hf__rd_is_forbidden(const char *text);
/* It has refused the request before it did anything for it. */
bool hf__rd_did_nothing(const char *text);

/* ---- INFO --------------------------------------------------------------- */

/* The value of a text line "key:value" of INFO; "" if there is none. */
struct rd_value {
    char text[64];
};

struct rd_value hf__rd_value(const char *info, const char *key);
bool hf__rd_says(const char *info, const char *key, const char *value);
long long hf__rd_number(const char *info, const char *key);

struct rd_verdict {
    enum hf_level level;
    char text[256];
};

struct rd_verdict hf__rd_judge_version(const char *info);
struct rd_verdict hf__rd_judge_memory(const char *info);
struct rd_verdict hf__rd_judge_clients(const char *info);

#endif
