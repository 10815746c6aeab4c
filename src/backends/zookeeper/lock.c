/*
 * What the core asks of a line. How that is put into entries is its kind's
 * (queue.c, semaphore.c ...); here is what they share: who is asking, what is
 * let go.
 */
#include "query.h"

#include <string.h>

#define PARENTS_MAX 100 /* who sweeps faster than that is no sweeper */

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
    line->passed = NULL;
    line->pass_until = 0;
    if (line->queued)
        --*count_of(line);
    line->queued = false;
}

/* ---- questions and answers ---------------------------------------------- */

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

int hf__zk_attempt(const struct zk *z, struct hf__req *req, zk_ask_fn *begin)
{
    struct zk_line *line = req->remote->impl;
    int rc;

    if (!z->up)
        return HF__LATER;
    line->ask = req;
    rc = settled(line, begin(line, req));
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
    hf__zk_queries_leave(z, line);
    if (line->node)
        hf__zk_node_drop(line->node, NULL);
    remote->impl = NULL;
    z->core->free(z->client, line->round);
    z->core->free(z->client, line);
}
