/*
 * Requests to the server. Each of the first functions sends one and returns 0,
 * or a code: then nothing was sent, and `done` is not called. The answers come
 * in the order of sending, from inside the library's functions, with the
 * client's mutex held. `owner` is the caller's and has to live until `done` was
 * called, or close(). A request may be sent only while zk.up; paths are whole
 * ones. Called by every file that talks to the server.
 */
#ifndef HF_ZK_CALL_H
#define HF_ZK_CALL_H

#include "zookeeper.h"

/* What came with a ZOK (z with any code); of the library, gone when the
 * completion returns. */
struct zk_reply {
    struct zk *z;
    const char *text;                     /* create: the path; get: the data */
    int len;                              /* get; -1: no data */
    const struct Stat *stat;              /* create, get, exists, set */
    const struct String_vector *children; /* list */
    const zoo_op_result_t *results;       /* multi, and if it was refused too:
                                             .err of each */
};

/* Called once for a call that was sent, with the library's code; never in
 * close(). Whatever was not answered has a code for which hf__zk_lost() is
 * true. It may send further calls. */
typedef void zk_done_fn(void *owner, int rc, const struct zk_reply *);

int hf__zk_create(struct zk *z, const char *path, const char *data, int len,
                  int mode, zk_done_fn *done, void *owner);
int hf__zk_delete(struct zk *z, const char *path, zk_done_fn *done,
                  void *owner);
int hf__zk_set(struct zk *z, const char *path, const char *data, int len,
               int version, zk_done_fn *done, void *owner);
/* watcher, if not NULL, is called with the owner when the watch fires. */
int hf__zk_list(struct zk *z, const char *path, watcher_fn watcher,
                zk_done_fn *done, void *owner);
int hf__zk_get(struct zk *z, const char *path, watcher_fn watcher,
               zk_done_fn *done, void *owner);
int hf__zk_exists(struct zk *z, const char *path, watcher_fn watcher,
                  zk_done_fn *done, void *owner);
int hf__zk_sync(struct zk *z, zk_done_fn *done, void *owner);
/* All or none. (What the operations themselves point to for their results has
 * to live as long as the owner.) */
int hf__zk_multi(struct zk *z, size_t len, const zoo_op_t *op, zk_done_fn *done,
                 void *owner);

/* Every missing node of the path, as containers; those of the root stay, and in
 * kazoo's dialect all of them. Sent before what follows. If one is refused,
 * what follows will say NONODE. */
int hf__zk_make_parents(struct zk *z, const char *path);
/* Why one of them was refused, the last time; ZOK: none was. */
int hf__zk_parents_refused(const struct zk *z, const char *path);

/* Not answered: it may have been done, or not. */
bool hf__zk_lost(int rc);
/* Since when an answer has not come; HF__NEVER: nothing was sent. */
hf__time hf__zk_calls_since(const struct zk *);
void hf__zk_calls_fini(struct zk *);

#endif
