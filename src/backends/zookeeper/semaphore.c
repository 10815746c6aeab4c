/*
 * The semaphore, as Curator's SemaphoreV2: who has the first place in
 * <path>/locks, and nobody else, may make leases below <path>/leases, one for
 * each permit, if there are not too many then. So it is fair: one that wants
 * many keeps its place in front until there are enough.
 *
 * A look lists all there is in one go (a *visit*); the entry in locks (the
 * *turn*) is created with the first, the leases with the last. They have the
 * uuid of the hold id and a number of ours, so that they are found again
 * whatever answer was lost. The turn goes with the grant.
 *
 * The size is kept in the data of leases, by the first who finds none, or
 * another and nobody who has a permit.
 */
#include "query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A try that finds somebody passing through looks again, so often. */
#define LOOKS_MAX 50

struct visit {
    struct zk_query base;
    struct zk_line *line; /* NULL: nobody wants to know */
    bool here;            /* our turn is in its list */
    bool no_leases;       /* there is no such node */
    bool unnumbered;      /* it has no size yet */
    bool again;           /* strangers were asked about: look again */
    uint32_t ahead;       /* before our turn */
    uint32_t others;      /* leases that are not ours, */
    uint32_t ours;        /* and those that are */
    uint32_t size;        /* as it is kept there; 0: it is not */
    char before[ZK_CHILD_MAX], other[ZK_CHILD_MAX];
};

/* line->extra: the present question or hold. */
struct permits {
    struct visit *visit; /* under way */
    uint64_t hold_id;
    struct zk_node *turn;
    struct zk_node *leases; /* by sibling; the first is line->node if held */
    uint32_t len;           /* of them */
    uint32_t made;          /* so far: no name is used again */
    unsigned looks;
    bool first; /* our turn was the first: leases are what we wait for */
};

uint32_t hf__zk_permits_parse(const char *data, int len)
{
    size_t skip = strlen(ZK_PERMITS);
    char text[11] = "";

    if (len <= (int)skip || len - (int)skip >= (int)sizeof(text) ||
        memcmp(data, ZK_PERMITS, skip) != 0)
        return 0;
    memcpy(text, data + skip, (size_t)len - skip);
    return (uint32_t)strtoul(text, NULL, 10);
}

void hf__zk_sweep(struct zk *z, const char *path)
{
    char dir[ZK_WHOLE_MAX];

    hf__zk_delete(z, hf__zk_join(dir, path, ZK_LEASES), NULL, NULL);
    hf__zk_delete(z, hf__zk_join(dir, path, ZK_LOCKS), NULL, NULL);
}

bool hf__zk_node_sweep(struct zk_node *node, const char *child,
                       zk_done_fn *listed)
{
    char dir[ZK_WHOLE_MAX];
    struct zk_entry e;

    hf__zk_entry_parse(child, &e);
    if (e.form != ZK_FORM_SEMAPHORE || node->swept)
        return false;
    node->swept = true;
    snprintf(dir, sizeof(dir), "%.*s", (int)node->dir_len, node->path);
    hf__zk_sweep(node->z, dir);
    return hf__zk_node_list(node, listed) == 0;
}

/* ---- what is let go ----------------------------------------------------- */

static void drop_turn(struct permits *p)
{
    if (p->turn)
        hf__zk_node_drop(p->turn, NULL);
    p->turn = NULL;
    p->first = false;
}

/* The answer to the last one is waited for. */
static bool drop_leases(struct permits *p, struct hf__req *let_go)
{
    struct zk_node *next;
    bool any = p->leases;

    for (struct zk_node *node = p->leases; node; node = next) {
        next = node->sibling;
        node->sibling = NULL;
        hf__zk_node_drop(node, next ? NULL : let_go);
    }
    p->leases = NULL;
    p->len = 0;
    return any;
}

static void forget_visit(struct permits *p)
{
    if (p->visit)
        p->visit->line = NULL;
    p->visit = NULL;
}

static void forget(struct permits *p)
{
    forget_visit(p);
    drop_turn(p);
    drop_leases(p, NULL);
    p->looks = 0;
}

static int permits_let_go(struct zk_line *line, struct hf__req *req)
{
    struct permits *p = line->extra;

    if (!p || p->hold_id != req->hold_id)
        return hf__zk_let_go(line, req);
    forget_visit(p);
    if (p->leases) {
        drop_turn(p);
        drop_leases(p, req);
        return HF__PENDING;
    }
    if (p->turn) {
        struct zk_node *turn = p->turn;

        p->turn = NULL;
        hf__zk_node_drop(turn, req);
        return HF__PENDING;
    }
    return hf__zk_let_go(line, req);
}

static void permits_detach(struct zk_line *line)
{
    if (line->extra)
        forget(line->extra);
    line->z->core->free(line->z->client, line->extra);
    line->extra = NULL;
}

/* Which one it was does not matter: all are deleted. */
static void permits_taken_away(struct zk_line *line)
{
    drop_leases(line->extra, NULL);
}

/* It was taken away, or its session is over: so is the rest. */
static void permits_gone(struct zk_line *line, struct zk_node *node)
{
    struct permits *p = line->extra;
    struct zk_node **at;

    if (!p)
        return;
    if (p->turn == node) {
        p->turn = NULL;
        return;
    }
    for (at = &p->leases; *at && *at != node; at = &(*at)->sibling)
        ;
    if (!*at)
        return;
    *at = node->sibling;
    node->sibling = NULL;
    p->len--;
}

/* ---- a look ------------------------------------------------------------- */

static void keep(char to[ZK_CHILD_MAX], const char *name)
{
    snprintf(to, ZK_CHILD_MAX, "%s", name);
}

static const struct permits *of(const struct visit *v)
{
    return v->line ? v->line->extra : NULL;
}

/* No other kind has its entries here: of the strangers those matter that are
 * entries wherever they are (stranger.c). */
#define RULE ZK_RULE_UNFAIR

static int see_to_strangers(struct visit *v,
                            const struct String_vector *children)
{
    struct zk_node *turn = of(v) ? of(v)->turn : NULL;
    struct zk *z = v->base.z;
    int64_t *czxid = NULL;
    int rc = 0;

    if (!turn)
        return 0;
    hf__zk_ignore(v->line, children, RULE, ZK_SEQ_LAST);
    if (turn->asked)
        rc = hf__zk_ties_known(turn, children, &czxid);
    for (int32_t i = 0; czxid && i < children->count; i++)
        if (czxid[i] > 0)
            keep(v->other, children->data[i]);
    z->core->free(z->client, czxid);
    if (!rc)
        rc = hf__zk_strangers_ask(turn, children, RULE, ZK_SEQ_LAST);
    v->again = rc == HF__PENDING;
    return v->again ? 0 : rc;
}

static void on_siblings(void *owner, int rc, const struct zk_reply *reply)
{
    struct visit *v = owner;
    int code = rc == ZOK ? see_to_strangers(v, reply->children)
                         : hf__zk_query_code(&v->base, rc, ZNONODE);

    for (int32_t i = 0; rc == ZOK && i < reply->children->count; i++) {
        struct zk_entry e;

        hf__zk_entry_parse(reply->children->data[i], &e);
        if (e.form != ZK_FORM_NONE && e.form != ZK_FORM_SEMAPHORE &&
            e.form != ZK_FORM_MARK)
            keep(v->other, e.name);
    }
    hf__zk_query_back(&v->base, code);
}

static void on_locks(void *owner, int rc, const struct zk_reply *reply)
{
    struct visit *v = owner;
    const struct permits *p = of(v);
    const struct String_vector *children = reply->children;
    struct zk_entry mine;
    struct zk_place place;

    if (rc == ZNONODE && p && p->turn && p->turn->state == ZK_NODE_UNSURE) {
        p->turn->state = ZK_NODE_GONE; /* it was never made */
        p->turn->refusal = ZNONODE;
    }
    if (rc == ZOK && p && p->turn) {
        if (p->turn->state == ZK_NODE_UNSURE)
            hf__zk_node_find(p->turn, children);
        hf__zk_entry_parse(hf__zk_node_name(p->turn), &mine);
        hf__zk_place(children->data, NULL, (size_t)children->count, &mine,
                     ZK_RULE_MUTEX, &place);
        v->here = place.here;
        v->ahead = (uint32_t)place.ahead;
        if (place.watch != ZK_NOBODY)
            keep(v->before, children->data[place.watch]);
    }
    hf__zk_query_back(&v->base, hf__zk_query_code(&v->base, rc, ZNONODE));
}

static bool is_ours(const struct permits *p, const char *name)
{
    for (const struct zk_node *node = p->leases; node; node = node->sibling)
        if (strcmp(hf__zk_node_name(node), name) == 0)
            return true;
    return false;
}

/* Curator counts all that is there, whatever its name. */
static void on_leases(void *owner, int rc, const struct zk_reply *reply)
{
    struct visit *v = owner;
    const struct permits *p = of(v);

    for (int32_t i = 0; rc == ZOK && p && i < reply->children->count; i++) {
        if (is_ours(p, reply->children->data[i]))
            v->ours++;
        else
            v->others++;
    }
    hf__zk_query_back(&v->base, hf__zk_query_code(&v->base, rc, ZNONODE));
}

static void on_size(void *owner, int rc, const struct zk_reply *reply)
{
    struct visit *v = owner;

    v->no_leases = rc == ZNONODE;
    if (rc == ZOK) {
        v->size = hf__zk_permits_parse(reply->text, reply->len);
        v->unnumbered = reply->len <= 0;
    }
    hf__zk_query_back(&v->base, hf__zk_query_code(&v->base, rc, ZNONODE));
}

static void judge(struct zk_query *);

/* PENDING, or why not. */
static int look(struct zk_line *line)
{
    struct permits *p = line->extra;
    struct zk *z = line->z;
    struct visit *v = hf__zk_query_of(line, sizeof(*v));
    char dir[ZK_WHOLE_MAX];
    int rc;

    if (!v)
        return HF_ENOMEM;
    forget_visit(p);
    v->line = line;
    v->base.step = judge;
    hf__zk_query_sent(&v->base, hf__zk_list(z, line->path, on_siblings, v));
    hf__zk_join(dir, line->path, ZK_LOCKS);
    hf__zk_query_sent(&v->base, hf__zk_list(z, dir, on_locks, v));
    hf__zk_join(dir, line->path, ZK_LEASES);
    hf__zk_query_sent(&v->base, hf__zk_get(z, dir, on_size, v));
    /* What happens after the list is told. */
    if (p->first && line->ask->may_queue &&
        (rc = hf__zk_watch(z, line, ZK_WATCH_CHILDREN, dir)) != 0)
        hf__zk_query_sent(&v->base, rc);
    hf__zk_query_sent(&v->base, hf__zk_list(z, dir, on_leases, v));
    if (v->base.calls) {
        p->visit = v;
        return HF__PENDING;
    }
    rc = v->base.rc;
    hf__zk_query_free(&v->base);
    return rc;
}

/* ---- entries ------------------------------------------------------------ */

static struct zk_node *add(struct zk_line *line, const char *below,
                           enum zk_form form)
{
    struct permits *p = line->extra;
    struct zk_node *held = line->node, *node;
    char dir[ZK_WHOLE_MAX];

    node = hf__zk_node_new(line, hf__zk_join(dir, line->path, below),
                           (uint8_t)form, p->hold_id);
    line->node = held; /* what it has is not what it holds, yet */
    return node;
}

static int take_turn(struct zk_line *line, bool parents)
{
    struct permits *p = line->extra;
    int rc;

    drop_leases(p, NULL); /* who is before it now may wait for them */
    if (!p->turn)
        p->turn = add(line, ZK_LOCKS, ZK_FORM_LOCK);
    if (!p->turn)
        return HF_ENOMEM;
    p->first = false;
    rc = hf__zk_node_create(p->turn, parents);
    return rc ? rc : look(line);
}

static int add_lease(struct zk_line *line)
{
    struct permits *p = line->extra;
    struct zk_node *node = add(line, ZK_LEASES, ZK_FORM_LEASE);

    if (!node)
        return HF_ENOMEM;
    hf__zk_node_number(node, p->made++);
    p->len++;
    node->sibling = p->leases;
    p->leases = node;
    return 0;
}

static int set_size(const struct zk_line *line, const char *leases)
{
    char data[sizeof(ZK_PERMITS) + 10];
    int len =
        snprintf(data, sizeof(data), ZK_PERMITS "%u", line->remote->permits);

    return hf__zk_set(line->z, leases, data, len, -1, NULL, NULL);
}

/* The node that they are made in, with its size. Sent before them: whoever has
 * a lease knows that it was done. */
static int prepare_leases(const struct zk_line *line, const struct visit *v)
{
    char dir[ZK_WHOLE_MAX];
    int rc = 0;

    hf__zk_join(dir, line->path, ZK_LEASES);
    if (v->no_leases)
        rc = hf__zk_make_parents(line->z, dir);
    if (!rc && (v->no_leases || v->unnumbered ||
                (v->size && v->size != line->remote->permits)))
        rc = set_size(line, dir);
    return rc;
}

/* All that are not there, and may be. */
static int take_leases(struct zk_line *line, const struct visit *v,
                       uint32_t permits)
{
    struct permits *p = line->extra;
    int rc = 0;

    while (!rc && p->len < permits)
        rc = add_lease(line);
    if (!rc)
        rc = prepare_leases(line, v);
    for (struct zk_node *node = p->leases; node && !rc; node = node->sibling) {
        if (node->state == ZK_NODE_GONE && node->refusal == ZNODEEXISTS)
            rc = hf__zk_node_check(node); /* its answer was lost */
        else if (node->state == ZK_NODE_GONE)
            rc = hf__zk_node_create(node, false);
        else if (node->state == ZK_NODE_UNSURE)
            rc = hf__zk_node_check(node);
        node->parents = v->no_leases;
    }
    return rc ? rc : look(line);
}

/* ---- what a look comes to ----------------------------------------------- */

/* The line's ask is over, and it keeps nothing. */
static int refuse(struct zk_line *line, int result)
{
    hf__zk_stop_waiting(line);
    forget(line->extra);
    return result;
}

static int mismatch(struct zk_line *line, const struct visit *v)
{
    struct zk *z = line->z;
    int rc;

    if (v->other[0])
        rc = z->core->why(z->client, HF_EMISMATCH,
                          "the name is used as another kind of lock: %s",
                          v->other);
    else
        rc = z->core->why(z->client, HF_EMISMATCH,
                          "the semaphore has %u permits, not %u", v->size,
                          line->remote->permits);
    return refuse(line, rc);
}

/* There are not enough, or somebody is before us. */
static int wait_for(struct zk_line *line, const struct visit *v)
{
    struct permits *p = line->extra;
    char path[ZK_WHOLE_MAX];
    int rc;

    if (p->first) /* the leases are watched already */
        return hf__zk_queued(line, line->ask);
    if (!v->ahead) { /* but they were not when we looked */
        p->first = true;
        return look(line);
    }
    snprintf(path, sizeof(path), "%s/" ZK_LOCKS "/%s", line->path, v->before);
    rc = hf__zk_watch(line->z, line, ZK_WATCH_NODE, path);
    return rc ? rc : hf__zk_queued(line, line->ask);
}

static int grant(struct zk_line *line)
{
    struct permits *p = line->extra;
    int rc;

    line->node = p->leases;
    rc = hf__zk_granted(line, line->ask);
    if (rc == HF__GRANTED)
        drop_turn(p);
    else
        line->node = NULL; /* it is looked at once more */
    return rc;
}

static bool are_there(const struct permits *p)
{
    for (const struct zk_node *node = p->leases; node; node = node->sibling)
        if (node->state != ZK_NODE_THERE || !node->czxid)
            return false;
    return true;
}

/* Why a lease was not made, if that is for good; or 0. (What it was to be made
 * in may have been swept: then it is made first.) */
static int lease_refusal(const struct zk_line *line)
{
    const struct permits *p = line->extra;
    char dir[ZK_WHOLE_MAX];

    hf__zk_join(dir, line->path, ZK_LEASES);
    for (struct zk_node *node = p->leases; node; node = node->sibling)
        if (node->state == ZK_NODE_GONE && node->refusal != ZOK &&
            node->refusal != ZNODEEXISTS &&
            (node->refusal != ZNONODE ||
             (node->parents && hf__zk_parents_refused(line->z, dir))))
            return hf__zk_not_made(node, dir);
    return 0;
}

/* It is our turn. */
static int serve(struct zk_line *line, const struct visit *v)
{
    struct permits *p = line->extra;
    uint32_t size = line->remote->permits;
    uint32_t wanted = line->ask->permits ? line->ask->permits : 1;
    bool enough = v->others + wanted <= size;
    int rc = lease_refusal(line);

    if (rc)
        return refuse(line, rc);
    if (!enough) {
        drop_leases(p, NULL);
        return line->ask->may_queue ? wait_for(line, v)
                                    : refuse(line, HF__BUSY);
    }
    if (v->ours < p->len && are_there(p))
        drop_leases(p, NULL); /* somebody has taken one away: all anew */
    if (!p->leases || !are_there(p))
        return take_leases(line, v, wanted);
    return grant(line);
}

/* A try: those before us may be about to go, or may wait themselves. */
static int pass(struct zk_line *line, const struct visit *v)
{
    struct permits *p = line->extra;
    uint32_t wanted = line->ask->permits ? line->ask->permits : 1;

    if (v->others + wanted > line->remote->permits || p->looks++ > LOOKS_MAX)
        return refuse(line, HF__BUSY);
    return look(line);
}

/* The turn is not in its list: why? */
static int turn_missing(struct zk_line *line)
{
    struct permits *p = line->extra;
    int why = p->turn->refusal;
    char dir[ZK_WHOLE_MAX];

    if (p->turn->state == ZK_NODE_UNSURE)
        return look(line);
    if (p->turn->state != ZK_NODE_GONE || why == ZOK ||
        (why == ZNONODE && hf__zk_parents_again(p->turn)))
        return take_turn(line, why == ZNONODE);
    return refuse(
        line, hf__zk_not_made(p->turn, hf__zk_join(dir, line->path, ZK_LOCKS)));
}

static int decide(struct zk_line *line, const struct visit *v)
{
    struct permits *p = line->extra;

    if (v->base.rc == HF_EUNKNOWN)
        return HF_EUNKNOWN;
    if (v->base.rc)
        return refuse(line, v->base.rc);
    if (v->again)
        return look(line);
    if (!p->turn || !v->here)
        return p->turn ? turn_missing(line) : take_turn(line, false);
    if (v->other[0] ||
        (v->size && v->size != line->remote->permits && v->others))
        return mismatch(line, v);
    if (!v->ahead)
        return serve(line, v);
    return line->ask->may_queue ? wait_for(line, v) : pass(line, v);
}

/* What failed for good keeps nothing. */
static int or_nothing(struct zk_line *line, int rc)
{
    if (rc < 0 && rc != HF_EUNKNOWN)
        forget(line->extra);
    return rc;
}

static void judge(struct zk_query *base)
{
    struct visit *v = (struct visit *)base;
    struct zk_line *line = v->line;
    struct zk *z = base->z;
    int rc = HF__PENDING;

    if (line) {
        ((struct permits *)line->extra)->visit = NULL;
        rc = or_nothing(line, decide(line, v));
    }
    hf__zk_query_free(base);
    if (rc != HF__PENDING)
        hf__zk_finish(z, line->ask, rc);
}

static int permits_ask(struct zk_line *line, struct hf__req *req)
{
    struct permits *p = line->extra;

    if (!p)
        p = line->extra = line->z->core->alloc(line->z->client, sizeof(*p));
    if (!p)
        return HF_ENOMEM;
    if (p->hold_id != req->hold_id)
        forget(p);
    p->hold_id = req->hold_id;
    if (line->node && line->node->held)
        return hf__zk_granted(line, req);
    hf__zk_prove(line->z, req);
    return or_nothing(line, p->turn ? look(line) : take_turn(line, false));
}

const struct zk_kind hf__zk_permits = {.ask = permits_ask,
                                       .let_go = permits_let_go,
                                       .detach = permits_detach,
                                       .gone = permits_gone,
                                       .taken_away = permits_taken_away};
