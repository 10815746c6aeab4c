/*
 * Sends requests through the ZooKeeper library and handles their completions.
 * The library promises one completion for each request that it accepts: an
 * answer, a lost connection, or the end of the handle. Therefore the memory of
 * a call must last from sending to completion; after that it goes to a list of
 * spare calls.
 */
#include "call.h"

#include "base/hash.h"
#include "base/list.h"
#include "path.h"
#include "session_proof.h"
#include "socket.h"
#include "words.h"
#include "zookeeper.h"

#include <string.h>

struct zk_call {
    struct zk_call *next, *prev;
    struct zk *z;
    zk_done_fn *done; /* NULL if the answer is ignored */
    void *owner;
    zoo_op_result_t *results; /* the results of a multi; NULL for other calls */
    hf__time sent_at;
    bool is_write;
};

bool hf__zk_lost(int rc)
{
    if (rc == ZUNIMPLEMENTED || rc == ZBADARGUMENTS)
        return false;
    return (rc < 0 && rc > ZAPIERROR) || rc == ZSESSIONEXPIRED ||
           rc == ZCLOSING || rc == ZSESSIONMOVED || rc == ZTHROTTLEDOP;
}

/* Returns true if this code, as the answer to a write, proves that the leader
 * has answered after a quorum agreed. (A denial may come from a follower.) */
static bool call_proves(int rc)
{
    return rc == ZOK || rc == ZNONODE || rc == ZNODEEXISTS || rc == ZNOTEMPTY ||
           rc == ZBADVERSION;
}

static int call_begin(struct zk *z, zk_done_fn *done, void *owner,
                      bool is_write, struct zk_call **out)
{
    struct zk_call *call = z->spare;

    if (!z->zh || zoo_state(z->zh) != ZOO_CONNECTED_STATE)
        return HF_EUNKNOWN;
    if (call)
        z->spare = call->next;
    else
        call = z->core->alloc(z->client, sizeof(*call));
    if (!call)
        return HF_ENOMEM;
    *call = (struct zk_call){.z = z,
                             .done = done,
                             .owner = owner,
                             .is_write = is_write,
                             .sent_at = z->core->now()};
    hf__list_add(z->calls, call);
    z->sent = call->sent_at;
    z->calls_len++;
    hf__zk_speak_for(z);
    *out = call;
    return 0;
}

static void call_put_back(struct zk *z, struct zk_call *call)
{
    hf__list_remove(z->calls, call);
    z->calls_len--;
    z->core->free(z->client, call->results);
    call->next = z->spare;
    z->spare = call;
}

/* Handles the result of the library function that sent the call: returns 0 if
 * the library accepted the request; otherwise HF_ENOMEM, HF_EINVAL or
 * HF_EUNKNOWN. */
static int call_begun(struct zk *z, struct zk_call *call, int rc)
{
    if (rc == ZOK) {
        hf__zk_socket_sent(z);
        return 0;
    }
    /* The library ran out of memory. It may still call the completion, which is
     * why the call is kept. */
    if (rc == ZMARSHALLINGERROR) {
        call->done = NULL;
        return HF_ENOMEM;
    }
    call_put_back(z, call);
    return rc == ZBADARGUMENTS ? HF_EINVAL : HF_EUNKNOWN;
}

static void call_complete(const void *data, int rc, struct zk_reply reply)
{
    struct zk_call *call = (struct zk_call *)data;
    struct zk *z = call->z;

    if (!hf__zk_lost(rc))
        hf__zk_proof_heard(z, call->sent_at, call->is_write && call_proves(rc));
    reply.z = z;
    reply.results = call->results;
    if (call->done && !z->closing)
        call->done(call->owner, rc, &reply);
    call_put_back(z, call);
}

static void call_on_void(int rc, const void *data)
{
    call_complete(data, rc, (struct zk_reply){0});
}

static void call_on_string(int rc, const char *text, const void *data)
{
    call_complete(data, rc, (struct zk_reply){.text = text});
}

static void call_on_string_stat(int rc, const char *text,
                                const struct Stat *stat, const void *data)
{
    call_complete(data, rc, (struct zk_reply){.text = text, .stat = stat});
}

static void call_on_stat(int rc, const struct Stat *stat, const void *data)
{
    call_complete(data, rc, (struct zk_reply){.stat = stat});
}

static void call_on_data(int rc, const char *text, int len,
                         const struct Stat *stat, const void *data)
{
    call_complete(data, rc,
                  (struct zk_reply){.text = text, .len = len, .stat = stat});
}

static void call_on_strings(int rc, const struct String_vector *children,
                            const void *data)
{
    call_complete(data, rc, (struct zk_reply){.children = children});
}

/* Expands to the body of a function that sends one call. `function` is the
 * library's function, which gets the call as its last argument. */
#define SEND(is_write, function, ...)                                          \
    struct zk_call *call;                                                      \
    int rc = call_begin(z, done, owner, is_write, &call);                      \
    return rc ? rc : call_begun(z, call, function(z->zh, __VA_ARGS__, call))

int hf__zk_create(struct zk *z, const char *path, const char *data, int len,
                  int mode, zk_done_fn *done, void *owner)
{
    SEND(true, zoo_acreate2, path, data, len, z->acl, mode,
         call_on_string_stat);
}

int hf__zk_delete(struct zk *z, const char *path, zk_done_fn *done, void *owner)
{
    SEND(true, zoo_adelete, path, -1, call_on_void);
}

int hf__zk_set(struct zk *z, const char *path, const char *data, int len,
               int version, zk_done_fn *done, void *owner)
{
    SEND(true, zoo_aset, path, data, len, version, call_on_stat);
}

int hf__zk_list(struct zk *z, const char *path, watcher_fn watcher,
                zk_done_fn *done, void *owner)
{
    SEND(false, zoo_awget_children, path, watcher, owner, call_on_strings);
}

int hf__zk_get(struct zk *z, const char *path, watcher_fn watcher,
               zk_done_fn *done, void *owner)
{
    SEND(false, zoo_awget, path, watcher, owner, call_on_data);
}

int hf__zk_exists(struct zk *z, const char *path, watcher_fn watcher,
                  zk_done_fn *done, void *owner)
{
    SEND(false, zoo_awexists, path, watcher, owner, call_on_stat);
}

int hf__zk_sync(struct zk *z, zk_done_fn *done, void *owner)
{
    SEND(false, zoo_async, "/", call_on_string);
}

int hf__zk_multi(struct zk *z, size_t len, const zoo_op_t *op, zk_done_fn *done,
                 void *owner)
{
    struct zk_call *call;
    int rc = call_begin(z, done, owner, true, &call);

    if (rc)
        return rc;
    call->results = z->core->alloc(z->client, len * sizeof(*call->results));
    if (!call->results) {
        call_put_back(z, call);
        return HF_ENOMEM;
    }
    return call_begun(
        z, call,
        zoo_amulti(z->zh, (int)len, op, call->results, call_on_void, call));
}

static uintptr_t call_hash_of(const char *path, const char *end)
{
    return (uintptr_t)hf__hash64(HF__HASH64, path, (size_t)(end - path));
}

static const char *call_next_slash(const char *slash)
{
    return slash + 1 + strcspn(slash + 1, "/");
}

/* Notes whether the server refused to create a parent. `owner` is a hash of the
 * parent's path, not a pointer. */
static void call_on_parent(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;

    if ((rc == ZOK || rc == ZNODEEXISTS) &&
        z->refused_parent == (uintptr_t)owner)
        z->parent_refusal = 0;
    if (rc == ZOK || rc == ZNODEEXISTS || rc == ZNONODE || hf__zk_lost(rc))
        return;
    z->refused_parent = (uintptr_t)owner;
    z->parent_refusal = rc;
}

int hf__zk_parents_refused(const struct zk *z, const char *path)
{
    const char *slash = path;

    while (z->parent_refusal && *slash) {
        slash = call_next_slash(slash);
        if (call_hash_of(path, slash) == z->refused_parent)
            return z->parent_refusal;
    }
    return ZOK;
}

int hf__zk_make_parents(struct zk *z, const char *path)
{
    char part[ZK_WHOLE_MAX];
    const char *slash = path, *below = path + strlen(z->root);
    int rc = 0;

    if (hf__zk_parents_refused(z, path))
        z->parent_refusal = ZOK;
    while (!rc && *slash) {
        slash = call_next_slash(slash);
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        /* The server deletes a container some time after the container's last
         * child has been deleted. With dialect=kazoo all nodes are persistent
         * instead, because kazoo's Lock object creates its path once, and fails
         * if the path was deleted between two acquires. */
        rc = hf__zk_create(z, part, "", 0,
                           slash > below && !z->kazoo ? ZOO_CONTAINER : 0,
                           call_on_parent, (void *)call_hash_of(path, slash));
    }
    return rc;
}

hf__time hf__zk_calls_since(const struct zk *z)
{
    const struct zk_call *oldest = z->calls;

    while (oldest && oldest->next)
        oldest = oldest->next;
    return oldest ? oldest->sent_at : HF__NEVER;
}

void hf__zk_calls_fini(struct zk *z)
{
    struct zk_call *call;

    while ((call = z->calls))
        call_put_back(z, call);
    while ((call = z->spare)) {
        z->spare = call->next;
        z->core->free(z->client, call);
    }
}
