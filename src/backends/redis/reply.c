/*
 * Answers, from bytes to nodes. hiredis' reader does the grammar; the objects
 * are ours, in an arena that is emptied after each answer:
 * - in the usual case no allocation at all;
 * - an array announces a length but allocates nothing for it (0.14.1's own
 *   objects multiply it unchecked: CVE-2021-32765), so that the memory an
 *   answer takes is bounded by the bytes that really came, and those by
 *   RD_REPLY_MAX. hiredis bounds the nesting.
 */
#include "pipe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct rd_node *new_node(const redisReadTask *task, size_t extra)
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

static void *new_string(const redisReadTask *task, char *text, size_t len)
{
    struct rd_node *node = new_node(task, len + 1);
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

static void *new_integer(const redisReadTask *task, long long number)
{
    struct rd_node *node = new_node(task, 0);

    if (node)
        node->number = number;
    return node;
}

static void *new_array(const redisReadTask *task, int elements)
{
    return new_integer(task, elements);
}

static void *new_nil(const redisReadTask *task)
{
    struct rd_node *node = new_node(task, 0);

    if (node)
        node->type = REDIS_REPLY_NIL; /* the task is still that of a string */
    return node;
}

static void free_nothing(void *node)
{
    (void)node; /* the arena's */
}

redisReader *hf__rd_reader_new(struct hf__arena *arena)
{
    static redisReplyObjectFunctions objects = {
        new_string, new_array, new_integer, new_nil, free_nothing};
    redisReader *reader = redisReaderCreateWithFunctions(&objects);

    if (!reader)
        return NULL;
    reader->privdata = arena;
    /* Keep the buffer: 0.14.1 gives a large one back by way of an assert that
     * there is memory. RD_REPLY_MAX bounds it. */
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
