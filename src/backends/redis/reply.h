/*
 * Replies of a Redis server, as the users of a pipe read them. This unit has
 * three parts, none of which needs a connection or a lock:
 *
 * - the reader, which creates nodes from bytes (pipe.c feeds it). A node is
 *   valid until the pipe reads its next reply, so a handler must copy what it
 *   needs later;
 * - errors: what the message of an error reply means;
 * - INFO: reading its lines, and judging them for a diagnosis. The backends
 *   redis and redlock share this part.
 *
 * A server may send anything. Functions that look into a node therefore accept
 * NULL and wrong types, and report that the value is missing.
 */
#ifndef HF_REDIS_REPLY_H
#define HF_REDIS_REPLY_H

#include "backends/backend.h"
#include "backends/common/arena.h"

#include <hiredis/read.h>

/* Maximum size of a reply; no command of this module has a longer one. */
#define RD_REPLY_MAX (8u << 20)
/* Maximum size of the nodes of a reply. It is larger than RD_REPLY_MAX, because
 * an element of only 4 bytes becomes a whole struct rd_node. */
#define RD_ARENA_MAX (4u * RD_REPLY_MAX)

/* One element of a reply, in the arena of the pipe. */
struct rd_node {
    struct rd_node *next;         /* the next element of the same array */
    struct rd_node *first, *last; /* the elements of an ARRAY */
    int type;                     /* REDIS_REPLY_... */
    int64_t number;   /* value of an INTEGER; announced length of an ARRAY */
    const char *text; /* of a STRING, STATUS or ERROR; terminated */
    size_t len;
};

/* Returns a reader that puts its replies into the arena, or NULL if there is no
 * memory. redisReaderFree() frees the reader. */
redisReader *hf__rd_reader_new(struct hf__arena *);
/* Returns 1 and sets *node if a whole reply was read, 0 if the reply is
 * incomplete, or HF_EPROTO or HF_ENOMEM. */
int hf__rd_reader_next(redisReader *, struct hf__arena *,
                       struct rd_node **node);
/* Returns the i-th element, or NULL if there is none or the node is not an
 * array. */
const struct rd_node *hf__rd_at(const struct rd_node *, size_t i);
bool hf__rd_int(const struct rd_node *,
                int64_t *); /* INTEGER or decimal text */
bool hf__rd_is(const struct rd_node *,
               const char *text); /* STRING, STATUS or ERROR */

/* ---- errors ------------------------------------------------------------- */

/* Returns the part of an error message that says what went wrong. In errors
 * from a script, other words surround that part. */
const char *hf__rd_error_text(const char *text);
/* Returns how many bytes of the error message to show: those before the digest
 * of the script. */
int hf__rd_error_len(const char *text);
/* Returns the HF_E... code for an error reply. */
int hf__rd_error_code(const char *text);
/* Returns whether the server refuses because it is not a master, or because it
 * may no longer be one (its replicas have disconnected). */
bool hf__rd_is_replica(const char *text);
bool hf__rd_may_pass(const char *text); /* whether the refusal is temporary */
/* Returns whether the user is not allowed to run the command, or the server
 * does not know the command. */
bool hf__rd_is_forbidden(const char *text);
/* Returns whether the request was refused before it changed anything. */
bool hf__rd_did_nothing(const char *text);

/* ---- INFO --------------------------------------------------------------- */

/* The value of a line "key:value" of INFO, or "" if there is no such line. */
struct rd_value {
    char text[64];
};

/* Returns the value, truncated to fit. */
struct rd_value hf__rd_value(const char *info, const char *key);

/* Returns whether INFO contains the line "key:value". */
bool hf__rd_says(const char *info, const char *key, const char *value);

/* Returns the value as a number, or 0 if it is not a number. */
long long hf__rd_number(const char *info, const char *key);

struct rd_verdict {
    enum hf_level level;
    char text[256];
};

/* Each of these judges one aspect of the server by its INFO, for a finding. */
struct rd_verdict hf__rd_judge_version(const char *info);
struct rd_verdict hf__rd_judge_memory(const char *info);
struct rd_verdict hf__rd_judge_clients(const char *info);

#endif
