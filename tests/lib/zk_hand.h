/*
 * ZooKeeper by hand: a session through libzookeeper_st on which one waits for
 * each answer, in the thread that asks. For tests that look at the server and
 * meddle, and for benchmarks that do what we do without us.
 *
 * All return 0 or the library's code (ZNONODE, ...); ZOPERATIONTIMEOUT if
 * there is no answer in 20 s.
 */
#ifndef TESTS_ZK_HAND_H
#define TESTS_ZK_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <zookeeper/zookeeper.h>

struct zk_hand;

/* Connected, or NULL. */
struct zk_hand *zk_hand_open(const char *hosts, int session_ms);
/* The session of that id, of any client: the server makes the password of a
 * session from its id. Closing it ends that session. */
struct zk_hand *zk_hand_steal(const char *hosts, int64_t session_id);
void zk_hand_close(struct zk_hand *);
zhandle_t *zk_hand_handle(struct zk_hand *);
/* Watches that have fired, but for those of the session. */
unsigned long zk_hand_events(const struct zk_hand *);

/* mode: ZOO_EPHEMERAL_SEQUENTIAL ...; out (its path) and stat may be NULL. */
int zk_hand_create(struct zk_hand *, const char *path, const char *data,
                   int mode, char *out, size_t size, struct Stat *);
int zk_hand_delete(struct zk_hand *, const char *path);
int zk_hand_set(struct zk_hand *, const char *path, const char *data);
/* Terminated; watch: counted by zk_hand_events when it changes or goes. */
int zk_hand_get(struct zk_hand *, const char *path, char *data, size_t size,
                bool watch);
int zk_hand_stat(struct zk_hand *, const char *path, struct Stat *);
/* What is read after it is what the leader knew. */
int zk_hand_sync(struct zk_hand *);
/* The caller deallocates. */
int zk_hand_children(struct zk_hand *, const char *path,
                     struct String_vector *);

/* Several at once: what is begun is counted, and waited for together. The
 * first that failed. */
int zk_hand_begin_create(struct zk_hand *, const char *path, const char *data,
                         int mode, char *out, size_t size);
int zk_hand_begin_children(struct zk_hand *, const char *path,
                           struct String_vector *);
int zk_hand_begin_delete(struct zk_hand *, const char *path);
int zk_hand_await(struct zk_hand *);
/* Until a watch has fired since; -1: not in that time. */
int zk_hand_await_event(struct zk_hand *, unsigned long since, int ms);

#endif
