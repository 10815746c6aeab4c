#include "node.h"

#include "base/list.h"
#include "entry.h"
#include "lock.h"
#include "path.h"
#include "zookeeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_MAX 12 /* characters of an int32 with a sign, and the NUL */

static void node_uuid_of(const struct zk *z, uint64_t hold_id,
                         char out[ZK_UUID_MAX])
{
    uint8_t bytes[16];

    /* hf__uuid() overwrites some bits of bytes 6 and 8, so the hold id is put
     * into other bytes. */
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

    node_uuid_of(z, 0, uuid);
    snprintf(z->nowhere, sizeof(z->nowhere), "/holdfast-%s", uuid);
}

void hf__zk_node_free(struct zk_node *node)
{
    struct zk *z = node->z;

    hf__zk_node_forget_child_stats(node);
    hf__zk_node_stop_notify(node);
    hf__list_remove(z->nodes, node);
    z->core->free(z->client, node);
}

/* Leaves room in `path` for a number that the client chooses, for a longer
 * sequence from the server, and for the longer name of a lowered entry
 * (renew.c). */
struct zk_node *hf__zk_node_alloc(struct zk *z, const char *path, uint8_t form)
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

struct zk_node *hf__zk_node_new(struct zk_lock *lock, const char *dir,
                                uint8_t form, uint64_t hold_id)
{
    struct zk *z = lock->z;
    char uuid[ZK_UUID_MAX], stem[ZK_PREFIX_MAX], path[ZK_WHOLE_MAX];
    struct zk_node *node;

    /* The entry of an unfair mutex gets no sequence from the server. When an
     * attempt with the same hold id is repeated, its old entry may still exist,
     * so each entry gets a new name. */
    node_uuid_of(
        z, form == ZK_FORM_HOLDER ? ++z->holders | 1ULL << 63 : hold_id, uuid);
    hf__zk_entry_prefix(form, uuid, stem);
    node = hf__zk_node_alloc(z, hf__zk_join(path, dir ? dir : lock->path, stem),
                             form);
    if (!node)
        return NULL;
    node->lock = lock;
    node->hold_id = hold_id;
    node->state = ZK_NODE_GONE;
    return node;
}

void hf__zk_node_number(struct zk_node *node, uint32_t number)
{
    node->stem_len += (uint16_t)snprintf(node->path + node->stem_len,
                                         SEQUENCE_MAX, "%010u", number);
}

const char *hf__zk_node_name(const struct zk_node *node)
{
    return node->path + node->dir_len + 1;
}

bool hf__zk_node_set_name(struct zk_node *node, const char *name)
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

const char *hf__zk_node_unfair(const struct zk_node *node,
                               char out[ZK_WHOLE_MAX])
{
    hf__zk_node_dir(node, out);
    strcpy(out + node->dir_len, "/" ZK_UNFAIR);
    return out;
}

static bool node_is_below(const struct zk_node *node,
                          const struct zk_lock *lock)
{
    return strncmp(node->path, lock->path, lock->path_len) == 0 &&
           node->path[lock->path_len] == '/';
}

struct zk_node *hf__zk_node_of(const struct zk *z, const struct zk_lock *lock,
                               uint64_t hold_id)
{
    struct zk_node *node = z->nodes;

    while (node &&
           (node->hold_id != hold_id || (lock && !node_is_below(node, lock))))
        node = node->next;
    return node;
}

static bool node_same_stem(const struct zk_node *node, const char *name)
{
    size_t len = node->stem_len - node->dir_len - 1U;

    return strncmp(name, hf__zk_node_name(node), len) == 0;
}

void hf__zk_node_match(struct zk_node *node,
                       const struct String_vector *children)
{
    for (int32_t i = 0; i < children->count; i++)
        if (node_same_stem(node, children->data[i]) &&
            hf__zk_node_set_name(node, children->data[i])) {
            node->state = ZK_NODE_THERE;
            return;
        }
    node->state = ZK_NODE_GONE;
}

void hf__zk_node_forget_child_stats(struct zk_node *node)
{
    struct zk_child_stat **at = &node->child_stats, *child;

    while ((child = *at)) {
        if (child->requested && !node->z->closing) {
            child->name[0] = '\0';
            at = &child->next;
            continue;
        }
        *at = child->next;
        node->z->core->free(node->z->client, child);
    }
}

void hf__zk_node_stop_notify(struct zk_node *node)
{
    if (node->notify)
        node->notify->node = NULL;
    node->notify = NULL;
}

/* ---- the two names of a downgraded entry --------------------------------- */

struct rename {
    const char *from, *to;
    uint8_t form, becomes;
};

static const struct rename renames[] = {
    {"__WRIT__", "__READ__", ZK_FORM_WRITE, ZK_FORM_READ},
    {"__lock__", "__rlock__", ZK_FORM_KAZOO_LOCK, ZK_FORM_KAZOO_READ},
};

/* Replaces `from` with `to` in the last part of the path. A uuid contains no
 * underscore, so the first match is the right one. */
static void node_rename_last(const char *path, const char *from, const char *to,
                             char out[ZK_WHOLE_MAX])
{
    const char *at = strrchr(path, '/');

    at = at ? strstr(at, from) : NULL;
    if (at)
        snprintf(out, ZK_WHOLE_MAX, "%.*s%s%s", (int)(at - path), path, to,
                 at + strlen(from));
    else
        snprintf(out, ZK_WHOLE_MAX, "%s", path);
}

void hf__zk_node_unlowered(const struct zk_node *node, char out[ZK_WHOLE_MAX])
{
    const struct rename *r = renames;

    while (r->becomes != node->form)
        r++;
    node_rename_last(node->path, r->to, r->from, out);
}

void hf__zk_node_lower(struct zk_node *node)
{
    const struct rename *r = renames;
    char path[ZK_WHOLE_MAX];

    while (r->form != node->form)
        r++;
    node_rename_last(node->path, r->from, r->to, path);
    strcpy(node->path, path);
    node->form = r->becomes;
    node->state = ZK_NODE_LOWERING;
    node->restated = true;
    node->version = 0;
}

/* ---- the data of nodes --------------------------------------------------- */

/* Returns the ms that are left of the fixed lease, or its whole length if the
 * entry was never restated, or 0 if there is no fixed lease. */
static uint32_t node_left_of(const struct zk_node *node)
{
    int64_t left = hf__left_ms(node->lease_ms, node->leased_ms, hf__wall_ms());

    return !node->restated || !node->lease_ms ? node->lease_ms
           : left < 1                         ? 1
                                              : (uint32_t)left;
}

/* Writes "<pid>\n<host>\n<label>". For a fixed lease, its length in ms follows
 * the pid. For a restated entry, three numbers follow the pid: the rest of the
 * lease (or 0), the token, and the time of the grant. */
int hf__zk_node_describe(const struct zk_node *node, char data[ZK_ABOUT_MAX])
{
    const char *about = node->z->about, *label = node->lock->remote->label;
    int pid = (int)strcspn(about, "\n"), room = ZK_ABOUT_MAX - 160;
    char more[64] = "";

    if (node->restated)
        snprintf(more, sizeof(more), " %u %" PRId64 " %" PRId64,
                 node_left_of(node), node->czxid, node->granted_ms);
    else if (node->lease_ms)
        snprintf(more, sizeof(more), " %u", node->lease_ms);
    return snprintf(data, ZK_ABOUT_MAX, "%.*s%s%s%.*s", pid, about, more,
                    about + pid, room, label);
}

bool hf__zk_is_revoke(const char *data, int len)
{
    return len >= (int)strlen(ZK_REVOKE) &&
           memcmp(data, ZK_REVOKE, strlen(ZK_REVOKE)) == 0;
}

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

bool hf__zk_count_parse(const char *data, int len, uint64_t *count,
                        char round[ZK_UUID_MAX])
{
    char text[ZK_COUNT_MAX];
    int used = 0;

    if (len <= 0 || len >= ZK_COUNT_MAX)
        return false;
    memcpy(text, data, (size_t)len);
    text[len] = '\0';
    return sscanf(text, ZK_COUNT "%" SCNu64 " %36[0-9a-f-]%n", count, round,
                  &used) == 2 &&
           used == len && strlen(round) == ZK_UUID_MAX - 1;
}
