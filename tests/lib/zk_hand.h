/*
 * A session through libzookeeper_st, without holdfast: each call waits for its
 * reply in the calling thread. For tests that look at the server and interfere
 * with it, and for benchmarks that repeat the library's requests without it.
 *
 * All functions that return int return 0 or a code of libzookeeper (ZNONODE,
 * ...), or ZOPERATIONTIMEOUT if there is no reply in 20 s.
 */
#ifndef TESTS_ZK_HAND_H
#define TESTS_ZK_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <zookeeper/zookeeper.h>

struct zk_hand;

/* Opens a session; returns when it is connected, or NULL on failure. */
struct zk_hand *zk_hand_open(const char *hosts, int session_ms);
/* Takes over the session of that id, which any client may have opened; this
 * works because the server derives the password of a session from its id.
 * Closing the result ends the session. */
struct zk_hand *zk_hand_steal(const char *hosts, int64_t session_id);
void zk_hand_close(struct zk_hand *);
zhandle_t *zk_hand_handle(struct zk_hand *);

/* Creates a node. mode: ZOO_EPHEMERAL_SEQUENTIAL, ...; out (for the path) and
 * stat may be NULL. */
int zk_hand_create(struct zk_hand *, const char *path, const char *data,
                   int mode, char *out, size_t size, struct Stat *);
int zk_hand_delete(struct zk_hand *, const char *path);
int zk_hand_set(struct zk_hand *, const char *path, const char *data);
/* Stores the data of the node as a string. */
int zk_hand_get(struct zk_hand *, const char *path, char *data, size_t size);
int zk_hand_stat(struct zk_hand *, const char *path, struct Stat *);
/* Makes later reads see at least what the leader knew at this time. */
int zk_hand_sync(struct zk_hand *);
/* Stores the names of the children; the caller deallocates the vector. */
int zk_hand_children(struct zk_hand *, const char *path,
                     struct String_vector *);

/* Begin a request each, so that several are pending at once. zk_hand_await()
 * waits for all of them and returns the code of the first that failed. */
int zk_hand_begin_create(struct zk_hand *, const char *path, const char *data,
                         int mode, char *out, size_t size);
int zk_hand_begin_children(struct zk_hand *, const char *path,
                           struct String_vector *);
int zk_hand_begin_delete(struct zk_hand *, const char *path);
int zk_hand_await(struct zk_hand *);

#endif
