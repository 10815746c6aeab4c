/*
 * What the core asks of a line. How that is put into entries is its kind's
 * (queue.c, semaphore.c ...); here is what they share: who is asking, what is
 * let go.
 */
#include "query.h"

#include <string.h>

#define PARENTS_MAX 100 /* who sweeps faster than that is no sweeper */

static zk_ask_fn *const asks[] = {[HF_MUTEX] = hf__zk_queue,
                                  [HF_RWLOCK] = hf__zk_queue,
                                  [HF_SEMAPHORE] = hf__zk_permits,
                                  [HF_LATCH] = hf__zk_count};

int hf__zk_attach(void *self, struct hf__remote *remote)
{
    struct zk *z = self;
    char path[ZK_WHOLE_MAX];
    int len = hf__zk_path(remote->name, remote->name_len, z->root, path,
                          sizeof(path));
    struct zk_line *line;

    if (len < 0)
        return hf__zk_bad_name(z, "name", remote->name, remote->name_len);
    line = z->core->alloc(z->client, sizeof(*line) + (size_t)len + 1);
    if (!line)
        return HF_ENOMEM;
    line->remote = remote;
    line->z = z;
    line->path_len = (size_t)len;
    memcpy(line->path, path, (size_t)len + 1);
    remote->impl = line;
    return 0;
}

/* Nothing is granted at the end of a latch: nothing has to be proved for it. */
static unsigned *count_of(const struct zk_line *line)
{
    struct zk *z = line->z;

    return line->remote->kind == HF_LATCH ? &z->waiting_latch : &z->waiting;
}

void hf__zk_stop_waiting(struct zk_line *line)
{
    hf__zk_unwatch(line);
    line->passing = false;
    line->pass_until = 0;
    if (line->queued)
        --*count_of(line);
    line->queued = false;
}

/* ---- refusals ------------------------------------------------------------ */

int hf__zk_used_as(struct zk *z, const char *child)
{
    static const char *const is[] = {
        [ZK_FORM_LOCK] = "a fair mutex",
        [ZK_FORM_READ] = "a read-write lock",
        [ZK_FORM_WRITE] = "a read-write lock",
        [ZK_FORM_LEADER] = "a LeaderLatch",
        [ZK_FORM_KAZOO_LOCK] = "a mutex or a read-write lock of kazoo's",
        [ZK_FORM_KAZOO_READ] = "a read-write lock",
        [ZK_FORM_UNFAIR] = "an unfair mutex",
        [ZK_FORM_SEMAPHORE] = "a semaphore",
        [ZK_FORM_LATCH] = "a latch",
        [ZK_FORM_SORTED] = NULL,
    };
    struct zk_entry e;

    hf__zk_entry_parse(child, &e);
    if (is[e.form])
        return z->core->why(z->client, HF_EMISMATCH, "the name is in use as %s",
                            is[e.form]);
    return z->core->why(z->client, HF_EMISMATCH,
                        "the name is in use as another kind of lock: %.120s",
                        child);
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
    if (!user)
        return z->core->why(z->client, HF_EAUTH,
                            "no right to %s %.80s without a user (getAcl shows "
                            "whose it is): name one in the URL, or use another "
                            "path",
                            right, path);
    return z->core->why(z->client, HF_EAUTH,
                        "no right to %s %.80s as user %.*s (getAcl shows whose "
                        "it is): have it granted, or use another path",
                        right, path, user < 30 ? user : 30, z->secret);
}

static bool is_plain(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] <= ' ' || s[i] > '~')
            return false;
    return true;
}

/* Where another program has its locks below such a node (tooz: at
 * /tooz/locks/NAME), the path of the URL can lead there. */
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
    if (before == len || !is_plain(name, len))
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

/* ---- questions and answers ---------------------------------------------- */

void hf__zk_finish(struct zk *z, struct hf__req *req, int result)
{
    struct zk_line *line = req->remote ? req->remote->impl : NULL;

    if (line && line->ask == req)
        line->ask = NULL;
    req->result = (int16_t)result;
    z->core->done(z->client, req);
}

/* What was not granted for good keeps nothing. */
static int settled(struct zk_line *line, int rc)
{
    if (rc == HF__BUSY || (rc < 0 && rc != HF_EUNKNOWN)) {
        hf__zk_stop_waiting(line);
        if (line->node)
            hf__zk_node_drop(line->node, NULL);
    }
    return rc;
}

int hf__zk_attempt(void *self, struct hf__req *req)
{
    const struct zk *z = self;
    struct zk_line *line = req->remote->impl;
    int rc;

    if (!z->up)
        return HF__LATER;
    line->ask = req;
    rc = settled(line, asks[req->remote->kind](line, req));
    if (rc != HF__PENDING)
        line->ask = NULL;
    return rc == HF_EUNKNOWN ? HF__LATER : rc;
}

void hf__zk_answer(struct zk_line *line, int rc)
{
    if (rc != HF__PENDING)
        hf__zk_finish(line->z, line->ask, settled(line, rc));
}

/* A parent without children may be swept between its creation and the next. */
bool hf__zk_parents_again(struct zk_node *node)
{
    if (node->parents == PARENTS_MAX ||
        (node->parents && hf__zk_parents_refused(node->z, node->path)))
        return false;
    node->parents++;
    return true;
}

struct zk_node *hf__zk_node_asked(struct zk_line *line,
                                  const struct hf__req *req)
{
    if (line->node && line->node->hold_id != req->hold_id)
        hf__zk_node_drop(line->node, NULL); /* and it is not the line's */
    return line->node;
}

int hf__zk_granted(struct zk_line *line, struct hf__req *req)
{
    struct zk *z = line->z;
    struct zk_node *node = line->node;
    hf__time at = hf__zk_session_doubt(z);

    if (at && req->may_queue) {
        node->second = false;
        hf__zk_queued(line, req);
        req->look_at = at;
        return HF__QUEUED;
    }
    if (line->queued && req->fixed)
        hf__zk_node_date(node);
    hf__zk_stop_waiting(line);
    node->held = true;
    node->granted_ms = node->leased_ms = hf__zk_wall_ms();
    hf__zk_listen(node);
    req->token = (uint64_t)node->czxid;
    req->sent_at = z->proved;
    req->session_ms = hf__zk_session_ms(z, z->proved);
    return HF__GRANTED;
}

int hf__zk_queued(struct zk_line *line, struct hf__req *req)
{
    if (!line->queued) {
        hf__zk_watches_begin(line->z);
        ++*count_of(line);
    }
    line->queued = true;
    req->look_at = HF__NEVER;
    return HF__QUEUED;
}

/* ---- letting go --------------------------------------------------------- */

static int let_go(struct zk_line *line, struct hf__req *req)
{
    struct zk_node *node = line->node;

    if (!node || node->hold_id != req->hold_id)
        node = hf__zk_node_below(line, req->hold_id);
    if (!node)
        return req->op == HF__ABANDON ? HF__DONE : HF_ENOTOWNER;
    hf__zk_node_drop(node, req);
    return HF__PENDING;
}

void hf__zk_taken_away(struct zk_line *line)
{
    struct zk *z = line->z;

    /* Before anybody else can have it, if that is ours to say. */
    z->core->lost(z->client, line->remote, line->node->hold_id, NULL);
    hf__zk_node_drop(line->node, NULL);
}

int hf__zk_release(void *self, struct hf__req *req)
{
    (void)self;
    return let_go(req->remote->impl, req);
}

int hf__zk_abandon(void *self, struct hf__req *req)
{
    struct zk_line *line = req->remote->impl;

    (void)self;
    /* Sent again, it may be about an earlier hold id than what is asked for or
     * waited for now. */
    if (req->remote->ask->hold_id == req->hold_id) {
        line->ask = NULL;
        hf__zk_stop_waiting(line);
    }
    return let_go(line, req);
}

void hf__zk_detach(void *self, struct hf__remote *remote)
{
    struct zk *z = self;
    struct zk_line *line = remote->impl;

    if (!line)
        return;
    hf__zk_stop_waiting(line);
    for (struct zk_query *base = z->queries; base; base = base->next)
        if (base->line == line)
            base->line = NULL;
    if (line->node)
        hf__zk_node_drop(line->node, NULL);
    remote->impl = NULL;
    z->core->free(z->client, line->round);
    z->core->free(z->client, line);
}
