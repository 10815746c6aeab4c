/*
 * Entries: how one is made, named and found again. A node is made for one hold
 * id of one line and has its uuid, so that it is found whatever answer was
 * lost. The uuid is of this session (zk.salt): what is found by it was created
 * by this session, and not by one of ours that has ended.
 *
 * From the moment its create is sent until it is known to be gone, or the
 * session is over, it is in zk.nodes. How it ends is cleanup.c's: an answer
 * that comes when nobody wants the node any more is for settle() there.
 */
#include "query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEQUENCE_MAX 12 /* of an int32, with its sign, and the NUL */

static void uuid_of(const struct zk *z, uint64_t hold_id, char out[ZK_UUID_MAX])
{
    uint8_t bytes[16];

    /* Into those bytes of which the uuid keeps every bit. */
    memcpy(bytes, z->salt, sizeof(bytes));
    for (int i = 0; i < 4; i++)
        bytes[i] ^= (uint8_t)(hold_id >> (8 * i));
    for (int i = 4; i < 8; i++)
        bytes[8 + i] ^= (uint8_t)(hold_id >> (8 * i));
    hf__uuid(bytes, out);
}

void hf__zk_nowhere(struct zk *z)
{
    char uuid[ZK_UUID_MAX];

    uuid_of(z, 0, uuid);
    snprintf(z->nowhere, sizeof(z->nowhere), "/holdfast-%s", uuid);
}

void hf__zk_node_free(struct zk_node *node)
{
    struct zk *z = node->z;

    hf__zk_ties_forget(node);
    hf__zk_ear_close(node);
    hf__list_remove(z->nodes, node);
    z->core->free(z->client, node);
}

/* With room for a number of ours, and for a sequence or more that the server
 * may say it has, or for another letter (rwlock.c). */
static struct zk_node *node_alloc(struct zk *z, const char *path, uint8_t form)
{
    size_t len = strlen(path);
    struct zk_node *node =
        z->core->alloc(z->client, sizeof(*node) + len + 2 * SEQUENCE_MAX);

    if (!node)
        return NULL;
    memcpy(node->path, path, len + 1);
    node->z = z;
    node->form = form;
    node->dir_len = (uint16_t)(strrchr(path, '/') - path);
    node->stem_len = (uint16_t)len;
    hf__list_add(z->nodes, node);
    return node;
}

struct zk_node *hf__zk_node_new(struct zk_line *line, const char *dir,
                                uint8_t form, uint64_t hold_id)
{
    struct zk *z = line->z;
    char uuid[ZK_UUID_MAX], stem[ZK_PREFIX_MAX], path[ZK_WHOLE_MAX];
    struct zk_node *node;

    /* The server numbers the others. A holder of an unfair mutex that is not
     * wanted any more may be about to be deleted when the same is asked for
     * again: they must not be one. */
    uuid_of(z, form == ZK_FORM_HOLDER ? ++z->holders | 1ULL << 63 : hold_id,
            uuid);
    hf__zk_entry_prefix(form, uuid, stem);
    node = node_alloc(z, hf__zk_join(path, dir ? dir : line->path, stem), form);
    if (!node)
        return NULL;
    node->line = line;
    node->hold_id = hold_id;
    node->numbered = form == ZK_FORM_HOLDER;
    node->state = ZK_NODE_GONE;
    return node;
}

void hf__zk_node_of_nobody(struct zk *z, const char *path, uint8_t form)
{
    struct zk_node *node = node_alloc(z, path, form);

    if (!node) {
        hf__zk_delete(z, path, NULL, NULL);
        return;
    }
    node->numbered = true;
    node->state = ZK_NODE_THERE;
    hf__zk_node_drop(node, NULL);
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

const char *hf__zk_node_dir(const struct zk_node *node, char out[ZK_WHOLE_MAX])
{
    memcpy(out, node->path, node->dir_len);
    out[node->dir_len] = '\0';
    return out;
}

const char *hf__zk_node_lock(const struct zk_node *node, char out[ZK_WHOLE_MAX])
{
    hf__zk_node_dir(node, out);
    strcpy(out + node->dir_len, "/" ZK_UNFAIR);
    return out;
}

struct zk_node *hf__zk_node_of(struct zk *z, uint64_t hold_id)
{
    struct zk_node *node = z->nodes;

    while (node && node->hold_id != hold_id)
        node = node->next;
    return node;
}

struct zk_node *hf__zk_node_below(const struct zk_line *line, uint64_t hold_id)
{
    struct zk_node *node = line->z->nodes;

    while (node && (node->hold_id != hold_id ||
                    strncmp(node->path, line->path, line->path_len) != 0 ||
                    node->path[line->path_len] != '/'))
        node = node->next;
    return node;
}

/* ---- making one ---------------------------------------------------------- */

static void created(struct zk_node *node, int rc)
{
    node->calls--;
    node->state = rc == ZOK         ? ZK_NODE_THERE
                  : hf__zk_lost(rc) ? ZK_NODE_UNSURE
                                    : ZK_NODE_GONE;
    node->refusal = rc;
}

static void on_create(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    created(node, rc);
    if (rc == ZOK) {
        node->czxid = reply->stat->czxid;
        if (!reply->text ||
            strncmp(reply->text, node->path, node->stem_len) != 0 ||
            !set_name(node, reply->text + node->dir_len + 1))
            node->state = ZK_NODE_UNSURE;
    }
    if (node->state != ZK_NODE_UNSURE)
        hf__zk_node_settle(node);
    else if (!node->line)
        hf__zk_node_sweep_later(node);
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

static void on_said(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

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

static void on_pair_created(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)reply;
    created(node, rc);
    if (!node->line && !node->calls)
        hf__zk_node_settle(node);
}

/* With its lock, or not at all. The answer has no czxid: that is asked for in
 * the same go, and tells as well whether it was there before. */
static int create_pair(struct zk_node *node, const char *data, int len)
{
    struct zk *z = node->z;
    char lock[ZK_WHOLE_MAX];
    zoo_op_t op[2];
    int rc;

    zoo_create_op_init(&op[0], hf__zk_node_lock(node, lock), data, len, z->acl,
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
    int len, rc = 0;

    if (parents)
        rc = hf__zk_make_parents(z, hf__zk_node_dir(node, dir));
    node->czxid = 0; /* these were of another entry */
    node->second = node->asked = false;
    hf__zk_ties_forget(node);
    node->lease_ms = ask && ask->fixed ? ask->lease_ms : 0;
    len = hf__zk_node_describe(node, data);
    node->path[node->stem_len] = '\0';
    if (!rc)
        rc = create_it(node, data, len);
    if (!rc)
        node->state = ZK_NODE_CREATING;
    return rc;
}

/* ---- among its siblings ------------------------------------------------- */

static void on_list(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    node->calls--;
    node->lists--;
    if (!node->line)
        hf__zk_node_settle(node);
    else if (!node->lists)
        node->listed(node, rc, reply);
}

int hf__zk_node_list(struct zk_node *node, zk_done_fn *listed)
{
    char dir[ZK_WHOLE_MAX];
    int rc = hf__zk_list(node->z, hf__zk_node_dir(node, dir), on_list, node);

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

    if (!rc)
        rc = hf__zk_node_list(node, listed);
    return rc ? rc : HF__PENDING;
}

static void on_stat(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
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
    hf__zk_node_settle(node);
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

static bool same_stem(const struct zk_node *node, const char *name)
{
    size_t len = node->stem_len - node->dir_len - 1U;

    return strncmp(name, hf__zk_node_name(node), len) == 0;
}

void hf__zk_node_look_among(struct zk_node *node,
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

bool hf__zk_node_find(struct zk_node *node,
                      const struct String_vector *children)
{
    hf__zk_node_look_among(node, children);
    node->refusal = ZOK;
    if (node->state == ZK_NODE_GONE)
        return false;
    node->state = ZK_NODE_UNSURE;
    hf__zk_node_check(node);
    return true;
}
