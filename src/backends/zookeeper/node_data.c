#include "node_data.h"

#include "entry.h"
#include "lock.h"
#include "node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rest of the fixed lease; 0: the node has none. */
static uint32_t data_left_of(const struct zk_node *node)
{
    int64_t left = hf__left_ms(node->lease_ms, node->leased_ms, hf__wall_ms());

    return !node->restated || !node->lease_ms ? node->lease_ms
           : left < 1                         ? 1
                                              : (uint32_t)left;
}

/* The format is "<pid>\n<host>\n<label>". A fixed lease adds its length in ms
 * after the pid. A restated entry adds the lease or 0, the token, and the time
 * of the grant. */
int hf__zk_node_describe(const struct zk_node *node, char data[ZK_ABOUT_MAX])
{
    const char *about = node->z->about, *label = node->lock->remote->label;
    int pid = (int)strcspn(about, "\n"), room = ZK_ABOUT_MAX - 160;
    char more[64] = "";

    if (node->restated)
        snprintf(more, sizeof(more), " %u %" PRId64 " %" PRId64,
                 data_left_of(node), node->czxid, node->granted_ms);
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
