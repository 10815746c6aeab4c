/*
 * From a name to the path of its node, and back. Pure.
 *
 * A slash is hierarchy: the name a/b is the node a/b below the root of the
 * client, which is "" or "/x/y". What ZooKeeper can carry stays as it is.
 * All else becomes %XX (upper case), byte by byte: control characters, what
 * is not UTF-8, characters that the server refuses, "." and "..", a percent
 * sign that would read as one of these; an empty component is "%00". So the
 * way back is unique, and two names never meet.
 */
#ifndef HF_ZK_PATH_H
#define HF_ZK_PATH_H

#include <holdfast.h>
#include <stddef.h>

/* A name's path below its root, at most (that of slashes only), with the NUL.
 */
#define ZK_PATH_MAX (4 * (HF_NAME_MAX + 1) + 1)

/* A path of ours: the root, a name, an entry. */
#define ZK_ROOT_MAX 512
#define ZK_WHOLE_MAX (ZK_ROOT_MAX + 4 * HF_NAME_MAX + 128)

/* What stands below the node of a semaphore, an unfair mutex, a latch. */
#define ZK_LOCKS "locks"
#define ZK_LEASES "leases"
#define ZK_UNFAIR "lock"
#define ZK_LATCH "latch"

/* The length; EINVAL: a component would be one of the entries that a lock
 * keeps below its node (but for the first: the root is no lock), or the
 * server's own /zookeeper, or there is no room. Terminated. */
int hf__zk_path(const char *name, size_t len, const char *root, char *out,
                size_t cap);

/* Of a name that is refused: the part that cannot be, and its length; NULL: it
 * is too long. */
const char *hf__zk_path_refused(const char *name, size_t len, const char *root,
                                size_t *part_len);

/* The length; EINVAL: it is the path of no name. Terminated. */
int hf__zk_name(const char *path, const char *root, char *out, size_t cap);

/* "<path>/<child>", cut if it is too long, which no path of ours is. */
const char *hf__zk_join(char out[ZK_WHOLE_MAX], const char *path,
                        const char *child);

#endif
