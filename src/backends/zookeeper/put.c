/*
 * Writes a value if the hold still exists. One transaction checks the hold's
 * entry, whose name is never reused, and writes the value.
 */
#include "put.h"

#include "call.h"
#include "lock.h"
#include "node.h"
#include "path.h"
#include "query.h"
#include "zookeeper.h"

#include <string.h>

struct put {
    struct zk_query base;
    bool makes; /* the node of the key does not exist: create it */
    char entry[ZK_WHOLE_MAX];
};

static void put_commit(struct put *);

static void on_put(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct put *p = owner;
    bool exists = rc == ZNODEEXISTS;
    int code;

    if (rc == ZNONODE && reply->results[0].err == ZNONODE) {
        code = HF_ENOTOWNER;
    } else if ((rc == ZNONODE || exists) && p->makes == exists) {
        /* In the meantime the key's node was created, so a set is sent instead
         * of the create; or it was deleted, so a create is sent instead of the
         * set. */
        p->makes = !p->makes;
        if (!hf__zk_query_is_over(&p->base)) {
            put_commit(p);
            return;
        }
        code = HF_EUNKNOWN;
    } else if (rc == ZNONODE) {
        code = z->core->why(z->client, HF_EINVAL,
                            "key: the node above %.120s does not exist; create "
                            "it first",
                            p->base.path);
    } else {
        code =
            hf__zk_query_refusal(&p->base, rc, p->makes ? "CREATE" : "WRITE");
    }
    hf__zk_query_end(&p->base, code);
}

static void put_commit(struct put *p)
{
    struct hf__query *q = p->base.q;
    struct zk *z = p->base.z;
    zoo_op_t op[2];
    int rc;

    zoo_check_op_init(&op[0], p->entry, -1);
    if (p->makes)
        zoo_create_op_init(&op[1], p->base.path, q->value, (int)q->value_len,
                           z->acl, 0, NULL, 0);
    else
        zoo_set_op_init(&op[1], p->base.path, q->value, (int)q->value_len, -1,
                        NULL);
    rc = hf__zk_multi(z, 2, op, on_put, p);
    if (rc)
        hf__zk_query_end(&p->base, rc);
}

/* Returns 0, or HF_EINVAL if the key cannot be a path below the URL's path. */
static int put_check_key(struct zk *z, const struct hf__query *q)
{
    const char *key = q->name;
    size_t len = q->name_len;

    if (key[0] == '/')
        return z->core->why(z->client, HF_EINVAL,
                            "key begins with a slash; it is a path below %s, "
                            "like a/b",
                            *z->root ? z->root : "the server's root");
    for (size_t i = 0; i < len; i++)
        if (key[i] == '/' && (i + 1 == len || key[i + 1] == '/'))
            return z->core->why(z->client, HF_EINVAL,
                                "key has an empty part; it must be a path "
                                "like a/b");
    return 0;
}

int hf__zk_put_query(struct zk *z, struct hf__query *q)
{
    const struct zk_lock *lock = q->line->impl;
    const struct zk_node *node = lock->node;
    struct put *p;
    int rc;

    if (!node || node->hold_id != q->req.hold_id || node->role != ZK_ROLE_HELD)
        return HF_ENOTOWNER;
    rc = put_check_key(z, q);
    if (rc)
        return rc;
    if (!z->up || hf__zk_node_is_lowered(node))
        return z->core->why(z->client, HF_EBACKEND, "%s; nothing was written",
                            z->up ? "the downgrade is not answered yet"
                                  : "not connected");
    p = hf__zk_query_new(z, q, sizeof(*p), &rc);
    if (!p)
        return rc;
    strcpy(p->entry, node->path);
    put_commit(p);
    return HF__PENDING;
}
