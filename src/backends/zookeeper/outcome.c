#include "outcome.h"

#include "call.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "path.h"
#include "zookeeper.h"

#include <string.h>

static const char *outcome_wanted(const struct hf__remote *r)
{
    static const char *const kinds[] = {[HF_MUTEX] = "an unfair mutex",
                                        [HF_RWLOCK] = "a read-write lock",
                                        [HF_SEMAPHORE] = "a semaphore"};

    return r->kind == HF_MUTEX && r->fair ? "a fair mutex" : kinds[r->kind];
}

int hf__zk_used_as(struct zk *z, const char *name, size_t len,
                   const struct hf__remote *wanted, const char *child)
{
    static const char *const is[] = {
        [ZK_FORM_LOCK] = "a fair mutex",
        [ZK_FORM_READ] = "a read-write lock",
        [ZK_FORM_WRITE] = "a read-write lock",
        [ZK_FORM_LEADER] = "a LeaderLatch",
        [ZK_FORM_KAZOO_LOCK] = "a kazoo mutex or read-write lock",
        [ZK_FORM_KAZOO_READ] = "a read-write lock",
        [ZK_FORM_UNFAIR] = "an unfair mutex",
        [ZK_FORM_HOLDER] = "an unfair mutex",
        [ZK_FORM_SEMAPHORE] = "a semaphore",
        [ZK_FORM_LATCH] = "a latch",
        [ZK_FORM_SORTED] = NULL,
    };
    struct zk_entry e;

    hf__zk_entry_parse(child, &e);
    return z->core->why(
        z->client, HF_EMISMATCH,
        "\"%.*s\" is in use as %s%.120s; you asked for %s", (int)len, name,
        is[e.form] ? is[e.form] : "another kind of lock, ",
        is[e.form] ? "" : child, wanted ? outcome_wanted(wanted) : "a latch");
}

int hf__zk_denied(struct zk *z, int rc, const char *right, const char *path)
{
    int user = z->secret ? (int)strcspn(z->secret, ":") : 0;
    bool lasts = rc == ZUNIMPLEMENTED || rc == ZBADARGUMENTS;
    int code = rc == ZINVALIDACL || rc == ZAUTHFAILED ? HF_EAUTH
               : rc == ZNOCHILDRENFOREPHEMERALS       ? HF_EMISMATCH
                                                      : HF_EBACKEND;

    if (rc != ZNOAUTH)
        return (lasts ? z->core->lasts : z->core->why)(
            z->client, code, "%.100s: %s", path, zerror(rc));
    return z->core->why(z->client, HF_EAUTH,
                        "no right to %s %.80s %s%.*s (getAcl shows whose it "
                        "is): %s, or use another path",
                        right, path, user ? "as user " : "without a user",
                        user < 30 ? user : 30, user ? z->secret : "",
                        user ? "have it granted" : "name one in the URL");
}

/* If a part of the name looks like an entry, the error message names that part
 * and suggests moving it, with all parts before it, to the URL's path. Programs
 * like tooz keep their locks below such parts (/tooz/locks/NAME). */
int hf__zk_bad_name(struct zk *z, const char *what, const char *name,
                    size_t len)
{
    size_t part_len = 0, before;
    const char *part = hf__zk_path_refused(name, len, z->root, &part_len);

    if (!part)
        return z->core->why(z->client, HF_EINVAL, "the %s is too long", what);
    before = (size_t)(part - name) + part_len;
    if (part == name)
        return z->core->why(z->client, HF_EINVAL,
                            "the %s begins with \"zookeeper\", a node of the "
                            "server's own",
                            what);
    if (before == len)
        return z->core->why(z->client, HF_EINVAL,
                            "the %s has the part \"%.*s\": locks keep nodes "
                            "of that form below their own",
                            what, (int)part_len, part);
    return z->core->why(z->client, HF_EINVAL,
                        "the %s has the part \"%.*s\": locks keep nodes of "
                        "that form below their own. Put the leading parts into "
                        "the URL's path, zk://HOST%.60s/%.*s, and use the %s "
                        "\"%.*s\"",
                        what, (int)part_len, part, z->root, (int)before, name,
                        what, (int)(len - before - 1), name + before + 1);
}

int hf__zk_not_made(const struct zk_node *node)
{
    struct zk *z = node->z;
    char dir[ZK_WHOLE_MAX];
    int above = hf__zk_parents_refused(z, hf__zk_node_dir(node, dir));

    if (node->refusal == ZNONODE && above)
        return hf__zk_denied(z, above, "CREATE above", dir);
    return hf__zk_denied(z, node->refusal, "CREATE below", dir);
}

void hf__zk_finish(struct zk *z, struct hf__req *req, int result)
{
    struct zk_lock *lock = req->remote ? req->remote->impl : NULL;

    if (lock && lock->attempt == req)
        lock->attempt = NULL;
    req->result = (int16_t)result;
    z->core->done(z->client, req);
}
