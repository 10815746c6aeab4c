/*
 * Entries. A node is made for one hold id of one line and has its uuid, so that
 * it is found again whatever answer was lost. From the moment its create is
 * sent until it is known to be gone, or the session is over, it is in zk.nodes:
 * what nobody wants is deleted as soon as that can be said to the server, and
 * again after each loss of the connection.
 *
 * The uuid is of this session (zk.salt): what is found by it was created by
 * this session, and not by one of ours that has ended.
 */
#include "zookeeper.h"

#include "entry.h"
#include "path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEQUENCE_MAX 12            /* of an int32, with its sign, and the NUL */
#define PAUSE (200 * HF__MS)       /* after a step that could not be made, */
#define PAUSE_MAX (30000 * HF__MS) /* and after one that never can */

static void uuid_of(const struct zk *z, uint64_t hold_id, char out[ZK_UUID_MAX])
{
    uint8_t bytes[16];

    /* Into those bytes of which the uuid keeps every bit. */
    memcpy(bytes, z->salt, sizeof(bytes));
    for (int i = 0; i < 4; i++)
        bytes[i] ^= (uint8_t)(hold_id >> (8 * i));
    for (int i = 4; i < 8; i++)
        bytes[8 + i] ^= (uint8_t)(hold_id >> (8 * i));
    hf__zk_uuid(bytes, out);
}

void hf__zk_nowhere(struct zk *z)
{
    char uuid[ZK_UUID_MAX];

    uuid_of(z, 0, uuid);
    snprintf(z->nowhere, sizeof(z->nowhere), "/holdfast-%s", uuid);
}

static void link_in(struct zk *z, struct zk_node *node)
{
    node->prev = NULL;
    node->next = z->nodes;
    if (z->nodes)
        z->nodes->prev = node;
    z->nodes = node;
}

static void destroy(struct zk_node *node)
{
    struct zk *z = node->z;

    hf__zk_ties_forget(z, node);
    hf__zk_ear_close(node);
    if (node->prev)
        node->prev->next = node->next;
    else
        z->nodes = node->next;
    if (node->next)
        node->next->prev = node->prev;
    z->core->free(z->client, node);
}

struct zk_node *hf__zk_node_new(struct zk_line *line, const char *dir,
                                uint8_t form, uint64_t hold_id)
{
    struct zk *z = line->z;
    size_t dir_len = dir ? strlen(dir) : line->path_len;
    char uuid[ZK_UUID_MAX], stem[ZK_PREFIX_MAX];
    struct zk_node *node = z->core->alloc(
        z->client, sizeof(*node) + dir_len + 1 + ZK_PREFIX_MAX + SEQUENCE_MAX);

    if (!node)
        return NULL;
    /* The server numbers the others. A holder of an unfair mutex that is not
     * wanted any more may be about to be deleted when the same is asked for
     * again: they must not be one. */
    uuid_of(z, form == ZK_FORM_HOLDER ? ++z->holders | 1ULL << 63 : hold_id,
            uuid);
    hf__zk_entry_prefix(form, uuid, stem);
    node->z = z;
    node->line = line;
    node->hold_id = hold_id;
    node->form = form;
    node->numbered = form == ZK_FORM_HOLDER;
    node->state = ZK_NODE_GONE;
    memcpy(node->path, dir ? dir : line->path, dir_len);
    node->path[dir_len] = '/';
    strcpy(node->path + dir_len + 1, stem);
    node->dir_len = (uint16_t)dir_len;
    node->stem_len = (uint16_t)(dir_len + 1 + strlen(stem));
    link_in(z, node);
    line->node = node;
    return node;
}

void hf__zk_node_number(struct zk_node *node, uint32_t number)
{
    node->numbered = true;
    node->stem_len += (uint16_t)snprintf(node->path + node->stem_len,
                                         SEQUENCE_MAX, "%010u", number);
}

const char *hf__zk_node_name(const struct zk_node *node)
{
    return node->path + node->dir_len + 1;
}

/* False: longer than the server's sequences are. */
static bool set_name(struct zk_node *node, const char *name)
{
    size_t len = strlen(name);

    if (len >= node->stem_len - node->dir_len - 1U + SEQUENCE_MAX)
        return false;
    memcpy(node->path + node->dir_len + 1, name, len + 1);
    return true;
}

/* ---- what nobody wants --------------------------------------------------- */

static void sweep(struct zk_node *);
static void settle(struct zk_node *);

/* A step was refused, or there was no memory for it: once more, soon. (While
 * it is down: when it is up again.) */
static void sweep_later(struct zk_node *node)
{
    struct zk *z = node->z;

    if (!z->up)
        return;
    node->again_at = z->core->now() + (node->pause ? node->pause : PAUSE);
    if (z->sweep_at && z->sweep_at <= node->again_at)
        return;
    z->sweep_at = node->again_at;
    if (!z->moving)
        z->core->due(z->client, z->sweep_at);
}

static const char *dir_of(const struct zk_node *node, char out[ZK_WHOLE_MAX])
{
    memcpy(out, node->path, node->dir_len);
    out[node->dir_len] = '\0';
    return out;
}

int hf__zk_node_denied(const struct zk_node *node)
{
    char dir[ZK_WHOLE_MAX];

    return hf__zk_denied(node->z, node->denied, "DELETE below",
                         dir_of(node, dir));
}

/* And it may be so for good: somebody has changed the ACL. */
static void refused(struct zk_node *node, int rc)
{
    struct zk *z = node->z;

    if (!node->pause)
        z->core->log(z->client,
                     "zookeeper: %.200s cannot be deleted: %s; trying again, "
                     "less and less often, until the session ends",
                     node->path, zerror(rc));
    node->denied = rc;
    node->pause = node->pause ? node->pause * 2 : PAUSE;
    if (node->pause > PAUSE_MAX)
        node->pause = PAUSE_MAX;
}

static void on_delete(struct zk *z, void *owner, int rc,
                      const struct zk_reply *reply)
{
    struct zk_node *node = owner;
    struct hf__req *let_go = node->let_go;

    (void)reply;
    node->calls--;
    node->state = rc == ZOK || rc == ZNONODE ? ZK_NODE_GONE : ZK_NODE_THERE;
    node->taken = rc == ZNONODE && !node->unsure;
    node->unsure = node->unsure || hf__zk_lost(rc);
    if (node->state == ZK_NODE_GONE) {
        settle(node);
        return;
    }
    if (!hf__zk_lost(rc))
        refused(node, rc);
    if (!hf__zk_lost(rc) && let_go) {
        node->let_go = NULL; /* it will be asked for again */
        hf__zk_finish(z, let_go, hf__zk_node_denied(node));
    }
    sweep_later(node);
}

static bool same_stem(const struct zk_node *node, const char *name)
{
    size_t len = node->stem_len - node->dir_len - 1U;

    return strncmp(name, hf__zk_node_name(node), len) == 0;
}

static void look_among(struct zk_node *node,
                       const struct String_vector *children)
{
    for (int32_t i = 0; i < children->count; i++)
        if (same_stem(node, children->data[i]) &&
            set_name(node, children->data[i])) {
            node->state = ZK_NODE_THERE;
            return;
        }
    node->state = ZK_NODE_GONE;
}

static void on_look(struct zk *z, void *owner, int rc,
                    const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    node->calls--;
    if (rc == ZNONODE)
        node->state = ZK_NODE_GONE;
    else if (rc == ZOK && reply->children)
        look_among(node, reply->children);
    else if (rc == ZOK)
        node->state = reply->stat->ephemeralOwner == z->session_id
                          ? ZK_NODE_THERE
                          : ZK_NODE_GONE;
    else if (!hf__zk_lost(rc))
        refused(node, rc);
    if (node->state != ZK_NODE_UNSURE)
        sweep(node);
    else
        sweep_later(node);
}

static int look_for(struct zk_node *node)
{
    char dir[ZK_WHOLE_MAX];

    if (node->numbered)
        return hf__zk_exists(node->z, node->path, on_look, node);
    return hf__zk_list(node->z, dir_of(node, dir), on_look, node);
}

static void on_unlowered_deleted(struct zk *z, void *owner, int rc,
                                 const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    if (rc != ZOK && rc != ZNONODE) {
        on_delete(z, owner, rc, reply);
        return;
    }
    node->calls--;
    node->state = ZK_NODE_THERE;
    node->lowered = false;
    node->unsure = true; /* it was under one of the two names */
    sweep(node);
}

/* The node that all who want an unfair mutex try to create. */
static const char *lock_of(const struct zk_node *node, char out[ZK_WHOLE_MAX])
{
    dir_of(node, out);
    strcpy(out + node->dir_len, "/" ZK_UNFAIR);
    return out;
}

static void on_lock_deleted(struct zk *z, void *owner, int rc,
                            const struct zk_reply *reply)
{
    on_delete(z, owner, rc == ZOK ? ZNONODE : rc, reply);
}

/* Made by one transaction, the two have one czxid. */
static void on_lock(struct zk *z, void *owner, int rc,
                    const struct zk_reply *reply)
{
    struct zk_node *node = owner;
    bool ours = rc == ZOK && reply->stat->czxid == node->czxid;
    char lock[ZK_WHOLE_MAX];

    if (ours &&
        hf__zk_delete(z, lock_of(node, lock), on_lock_deleted, node) == 0)
        return;
    on_delete(z, owner,
              ours        ? ZCONNECTIONLOSS
              : rc == ZOK ? ZNONODE
                          : rc,
              reply);
}

/* Its lock goes with it. If that is not there, it goes alone. If it is not
 * there itself, somebody has deleted it, and its lock may be there: of our
 * session, which would keep it. (If it were another's by the time it is
 * deleted, that one is still known by its own.) */
static void on_pair_deleted(struct zk *z, void *owner, int rc,
                            const struct zk_reply *reply)
{
    struct zk_node *node = owner;
    bool alone = rc == ZNONODE && reply->results[0].err == ZOK;
    char lock[ZK_WHOLE_MAX];
    int sent;

    if (rc != ZNONODE || (!alone && !node->czxid)) {
        on_delete(z, owner, rc, reply);
        return;
    }
    sent = alone ? hf__zk_delete(z, node->path, on_delete, node)
                 : hf__zk_exists(z, lock_of(node, lock), on_lock, node);
    if (sent != 0)
        on_delete(z, owner, ZCONNECTIONLOSS, reply);
}

static int delete_it(struct zk_node *node)
{
    char lock[ZK_WHOLE_MAX], unlowered[ZK_WHOLE_MAX];
    zoo_op_t op[2];

    if (node->lowered) {
        hf__zk_unlowered(node, unlowered);
        return hf__zk_delete(node->z, unlowered, on_unlowered_deleted, node);
    }
    if (node->form != ZK_FORM_HOLDER)
        return hf__zk_delete(node->z, node->path, on_delete, node);
    zoo_delete_op_init(&op[0], node->path, -1);
    zoo_delete_op_init(&op[1], lock_of(node, lock), -1);
    return hf__zk_multi(node->z, 2, op, on_pair_deleted, node);
}

/* The next step towards its end, if one can be made now. */
static void sweep(struct zk_node *node)
{
    node->again_at = 0;
    if (node->state == ZK_NODE_GONE) {
        settle(node);
    } else if (node->state == ZK_NODE_UNSURE && !node->calls) {
        if (look_for(node) == 0)
            node->calls++;
        else
            sweep_later(node);
    } else if (node->state == ZK_NODE_THERE) {
        if (delete_it(node) == 0) {
            node->calls++;
            node->state = ZK_NODE_DELETING;
        } else {
            sweep_later(node);
        }
    }
}

static void settle(struct zk_node *node)
{
    struct hf__req *let_go = node->let_go;

    if (node->line) /* the line knows, or will be told */
        return;
    if (node->state != ZK_NODE_GONE) {
        sweep(node);
        return;
    }
    node->let_go = NULL;
    if (let_go)
        hf__zk_finish(node->z, let_go,
                      node->taken && let_go->op == HF__RELEASE ? HF_ENOTOWNER
                                                               : HF__DONE);
    if (!node->calls)
        destroy(node);
}

void hf__zk_node_drop(struct zk_node *node, struct hf__req *let_go)
{
    hf__zk_ear_close(node);
    if (node->line && node->line->node == node)
        node->line->node = NULL;
    node->line = NULL;
    node->let_go = let_go;
    sweep(node);
}

/* Its line's kind knows it, too. */
static void tell_kind(struct zk_node *node)
{
    struct zk_line *line = node->line;

    if (line && line->kind && line->kind->gone)
        line->kind->gone(line, node);
}

void hf__zk_node_vanished(struct zk_node *node)
{
    tell_kind(node);
    node->state = ZK_NODE_GONE;
    hf__zk_node_drop(node, NULL);
}

struct zk_node *hf__zk_node_of(struct zk *z, uint64_t hold_id)
{
    struct zk_node *node = z->nodes;

    while (node && node->hold_id != hold_id)
        node = node->next;
    return node;
}

void hf__zk_nodes_up(struct zk *z)
{
    struct zk_node *next;

    for (struct zk_node *node = z->nodes; node; node = next) {
        next = node->next;
        if (!node->line)
            sweep(node);
        else if (node->held)
            hf__zk_listen(node); /* it may have been lost */
    }
}

void hf__zk_nodes_sweep(struct zk *z, hf__time now)
{
    struct zk_node *next;

    if (!z->sweep_at || now < z->sweep_at)
        return;
    z->sweep_at = 0;
    for (struct zk_node *node = z->nodes; node; node = next) {
        next = node->next;
        if (!node->again_at)
            continue;
        if (node->again_at <= now)
            sweep(node);
        else if (!z->sweep_at || node->again_at < z->sweep_at)
            z->sweep_at = node->again_at;
    }
}

void hf__zk_nodes_lost(struct zk *z)
{
    z->sweep_at = 0;
    while (z->nodes) {
        struct zk_node *node = z->nodes;
        struct zk_line *line = node->line;

        if (line && line->node == node)
            line->node = NULL;
        tell_kind(node);
        if (line && node->held)
            z->core->lost(z->client, line->remote, node->hold_id);
        if (node->let_go)
            hf__zk_finish(z, node->let_go, HF__DONE);
        destroy(node);
    }
}

void hf__zk_nodes_fini(struct zk *z)
{
    while (z->nodes)
        destroy(z->nodes);
}

/* ---- making one ---------------------------------------------------------- */

static void on_create(struct zk *z, void *owner, int rc,
                      const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)z;
    node->calls--;
    node->state = rc == ZOK         ? ZK_NODE_THERE
                  : hf__zk_lost(rc) ? ZK_NODE_UNSURE
                                    : ZK_NODE_GONE;
    node->refusal = rc;
    if (rc == ZOK) {
        node->czxid = reply->stat->czxid;
        if (!reply->text ||
            strncmp(reply->text, node->path, node->stem_len) != 0 ||
            !set_name(node, reply->text + node->dir_len + 1))
            node->state = ZK_NODE_UNSURE;
    }
    if (node->state != ZK_NODE_UNSURE)
        settle(node);
    else if (!node->line)
        sweep_later(node);
}

/* What is left of its fixed lease; 0: it has none. */
static uint32_t left_of(const struct zk_node *node)
{
    int64_t left = node->lease_ms;

    if (node->restated)
        left -= hf__zk_wall_ms() - node->leased_ms;
    return !node->lease_ms || left > node->lease_ms ? node->lease_ms
           : left < 1                               ? 1
                                                    : (uint32_t)left;
}

/* "<pid>\n<host>\n<label>"; a fixed lease, in ms, stands behind the pid. Where
 * the entry does not show it there are more: the lease or 0, the token, and
 * since when. */
int hf__zk_node_describe(const struct zk_node *node, char data[ZK_ABOUT_MAX])
{
    const char *about = node->z->about, *label = node->line->remote->label;
    int pid = (int)strcspn(about, "\n"), room = ZK_ABOUT_MAX - 160;
    char more[64] = "";

    if (node->restated)
        snprintf(more, sizeof(more), " %u %" PRId64 " %" PRId64, left_of(node),
                 node->czxid, node->granted_ms);
    else if (node->lease_ms)
        snprintf(more, sizeof(more), " %u", node->lease_ms);
    return snprintf(data, ZK_ABOUT_MAX, "%.*s%s%s%.*s", pid, about, more,
                    about + pid, room, label);
}

static void on_said(struct zk *z, void *owner, int rc,
                    const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)z;
    if (rc == ZOK && !node->lowered) /* that was the entry before */
        node->version = reply->stat->version;
    hf__zk_node_called(node);
}

/* If somebody has asked for it meanwhile, that word stays. */
void hf__zk_node_date(struct zk_node *node)
{
    char data[ZK_ABOUT_MAX];
    int len = hf__zk_node_describe(node, data);

    if (hf__zk_set(node->z, node->path, data, len, node->version, on_said,
                   node) == 0)
        node->calls++;
}

void hf__zk_node_lease(struct zk_node *node, uint32_t lease_ms)
{
    int64_t now = hf__zk_wall_ms(), granted_ms = node->granted_ms;

    for (; node; node = node->sibling) {
        node->lease_ms = lease_ms;
        node->leased_ms = now;
        node->granted_ms = granted_ms;
        node->restated = true;
        hf__zk_node_date(node);
    }
}

static void on_pair_created(struct zk *z, void *owner, int rc,
                            const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)z;
    (void)reply;
    node->calls--;
    node->state = rc == ZOK         ? ZK_NODE_THERE
                  : hf__zk_lost(rc) ? ZK_NODE_UNSURE
                                    : ZK_NODE_GONE;
    node->refusal = rc;
    if (!node->line && !node->calls)
        settle(node);
}

/* With its lock, or not at all. The answer has no czxid: that is asked for in
 * the same go, and tells as well whether it was there before. */
static int create_pair(struct zk_node *node, const char *data, int len)
{
    struct zk *z = node->z;
    char lock[ZK_WHOLE_MAX];
    zoo_op_t op[2];
    int rc;

    zoo_create_op_init(&op[0], lock_of(node, lock), data, len, z->acl,
                       ZOO_EPHEMERAL, NULL, 0);
    zoo_create_op_init(&op[1], node->path, data, len, z->acl, ZOO_EPHEMERAL,
                       NULL, 0);
    rc = hf__zk_multi(z, 2, op, on_pair_created, node);
    if (rc)
        return rc;
    node->calls++;
    hf__zk_node_check(node); /* if it is not sent, it will be asked for */
    return 0;
}

static int create_it(struct zk_node *node, const char *data, int len)
{
    int rc;

    if (node->form == ZK_FORM_HOLDER)
        return create_pair(node, data, len);
    rc =
        hf__zk_create(node->z, node->path, data, len,
                      node->numbered ? ZOO_EPHEMERAL : ZOO_EPHEMERAL_SEQUENTIAL,
                      on_create, node);
    node->calls += rc == 0;
    return rc;
}

int hf__zk_node_create(struct zk_node *node, bool parents)
{
    const struct hf__req *ask = node->line->ask;
    struct zk *z = node->z;
    char data[ZK_ABOUT_MAX], dir[ZK_WHOLE_MAX];
    int len, rc = parents ? hf__zk_make_parents(z, dir_of(node, dir)) : 0;

    node->lease_ms = ask && ask->fixed ? ask->lease_ms : 0;
    len = hf__zk_node_describe(node, data);
    node->path[node->stem_len] = '\0';
    if (!rc)
        rc = create_it(node, data, len);
    if (!rc)
        node->state = ZK_NODE_CREATING;
    return rc;
}

void hf__zk_node_called(struct zk_node *node)
{
    node->calls--;
    if (!node->line)
        settle(node);
}

/* ---- among its siblings ------------------------------------------------- */

static void on_list(struct zk *z, void *owner, int rc,
                    const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    node->calls--;
    node->lists--;
    if (!node->line)
        settle(node);
    else if (!node->lists)
        node->listed(z, node, rc, reply);
}

int hf__zk_node_list(struct zk_node *node, zk_done_fn *listed)
{
    char dir[ZK_WHOLE_MAX];
    int rc = hf__zk_list(node->z, dir_of(node, dir), on_list, node);

    if (rc)
        return rc;
    node->listed = listed;
    node->calls++;
    node->lists++;
    return 0;
}

int hf__zk_node_enter(struct zk_node *node, bool parents, zk_done_fn *listed)
{
    int rc = hf__zk_node_create(node, parents);

    if (rc) {
        hf__zk_node_drop(node, NULL);
        return rc;
    }
    /* If the connection broke in between, it is looked for. */
    rc = hf__zk_node_list(node, listed);
    if (rc && rc != HF_EUNKNOWN)
        hf__zk_node_drop(node, NULL);
    return rc ? rc : HF__PENDING;
}

static void on_stat(struct zk *z, void *owner, int rc,
                    const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    node->calls--;
    if (node->state != ZK_NODE_GONE) /* or that is why */
        node->refusal = ZOK;
    if (rc == ZOK && reply->stat->ephemeralOwner == z->session_id) {
        node->czxid = reply->stat->czxid;
        node->state = ZK_NODE_THERE;
    } else if (rc == ZOK || rc == ZNONODE) {
        node->state = ZK_NODE_GONE;
    }
    if (!node->line)
        settle(node);
}

int hf__zk_node_check(struct zk_node *node)
{
    int rc = hf__zk_exists(node->z, node->path, on_stat, node);

    if (rc)
        return rc;
    node->calls++;
    node->state = ZK_NODE_UNSURE;
    return 0;
}

bool hf__zk_node_find(struct zk_node *node,
                      const struct String_vector *children)
{
    look_among(node, children);
    node->refusal = ZOK;
    if (node->state == ZK_NODE_GONE)
        return false;
    node->state = ZK_NODE_UNSURE;
    hf__zk_node_check(node);
    return true;
}
