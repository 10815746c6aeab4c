/*
 * ZooKeeper by hand: a session through libzookeeper_st whose calls wait for
 * their reply in the calling thread. For tests that look at the server and
 * interfere with it, and for benchmarks that repeat the library's requests
 * without it.
 *
 * All functions that return an int return 0 or the library's code (ZNONODE,
 * ...), or ZOPERATIONTIMEOUT if there is no reply in 20 s.
 */
#ifndef TESTS_ZK_HAND_H
#define TESTS_ZK_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <zookeeper/zookeeper.h>

struct zk_hand;

/* Opens a session; returns when connected, NULL on failure. */
struct zk_hand *zk_hand_open(const char *hosts, int session_ms);
/* Takes over the session of that id, of any client: the server derives the
 * password of a session from its id. Closing it ends that session. */
struct zk_hand *zk_hand_steal(const char *hosts, int64_t session_id);
void zk_hand_close(struct zk_hand *);
zhandle_t *zk_hand_handle(struct zk_hand *);

/* mode: ZOO_EPHEMERAL_SEQUENTIAL, ...; out (the path) and stat may be NULL. */
int zk_hand_create(struct zk_hand *, const char *path, const char *data,
                   int mode, char *out, size_t size, struct Stat *);
int zk_hand_delete(struct zk_hand *, const char *path);
int zk_hand_set(struct zk_hand *, const char *path, const char *data);
/* Terminates data with a NUL. */
int zk_hand_get(struct zk_hand *, const char *path, char *data, size_t size);
int zk_hand_stat(struct zk_hand *, const char *path, struct Stat *);
/* Later reads see at least what the leader knew. */
int zk_hand_sync(struct zk_hand *);
/* The caller deallocates the vector. */
int zk_hand_children(struct zk_hand *, const char *path,
                     struct String_vector *);

/* For several requests at once: each is pending until zk_hand_await(), which
 * waits for all and returns the code of the first that failed. */
int zk_hand_begin_create(struct zk_hand *, const char *path, const char *data,
                         int mode, char *out, size_t size);
int zk_hand_begin_children(struct zk_hand *, const char *path,
                           struct String_vector *);
int zk_hand_begin_delete(struct zk_hand *, const char *path);
int zk_hand_await(struct zk_hand *);

#endif
