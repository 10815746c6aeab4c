/*
 * Converts the name of a lock to the path of its node, and back. Pure.
 *
 * A slash separates levels: the name a/b is the node a/b below the root of the
 * client, which is "" or "/x/y". Characters that ZooKeeper accepts are
 * unchanged. The following become %XX (upper case), byte by byte: control
 * characters, invalid UTF-8, characters that the server refuses, "." and "..",
 * and a percent sign that would read as an escape. An empty component becomes
 * "%00". Therefore two names never have the same path.
 */
#ifndef HF_ZK_PATH_H
#define HF_ZK_PATH_H

#include <holdfast.h>
#include <stddef.h>

/* Room for the longest path of a name below the root, with the NUL. The name
 * with the longest path consists only of slashes. */
#define ZK_PATH_MAX (4 * (HF_NAME_MAX + 1) + 1)

/* The longest path of the root. */
#define ZK_ROOT_MAX 512
/* The longest path of an entry: the root, a name, a child. */
#define ZK_WHOLE_MAX (ZK_ROOT_MAX + 4 * HF_NAME_MAX + 128)

#define ZK_LOCKS "locks"   /* child of a name's node: turns of a semaphore */
#define ZK_LEASES "leases" /* likewise: leases of a semaphore */
#define ZK_UNFAIR "lock"   /* likewise: an unfair mutex is held */
#define ZK_LATCH "latch"   /* likewise: the count of a latch */

/* Writes the path and returns its length. Returns EINVAL if the path is too
 * long, if it is the server's own /zookeeper, or if a component looks like an
 * entry that a lock keeps below its node. (The first component may look like an
 * entry, because the root is no lock.) */
int hf__zk_path(const char *name, size_t len, const char *root, char *out,
                size_t cap);

/* Returns the part of a refused name that is not allowed, and stores its length
 * in *part_len. Returns NULL if the name has no such part; then it is too
 * long. */
const char *hf__zk_path_refused(const char *name, size_t len, const char *root,
                                size_t *part_len);

/* Writes the name and returns its length, or EINVAL if no name has that
 * path. */
int hf__zk_name(const char *path, const char *root, char *out, size_t cap);

/* Writes "<path>/<child>" to `out` and returns `out`. A path that is too long
 * is cut, but no path of ours is too long. */
const char *hf__zk_join(char out[ZK_WHOLE_MAX], const char *path,
                        const char *child);

#endif
