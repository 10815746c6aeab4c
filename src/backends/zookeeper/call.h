/*
 * Requests to the server. Each function from hf__zk_create() to hf__zk_multi()
 * sends one request and returns 0. If it returns an error code, nothing was
 * sent and `done` is not called. Answers arrive in the order of sending, inside
 * the library's functions, with the client's mutex held. `owner` is passed to
 * `done` and must stay valid until `done` or close() is called. Requests may be
 * sent only while zk.up is true. Paths are absolute.
 */
#ifndef HF_ZK_CALL_H
#define HF_ZK_CALL_H

#include "zookeeper.h"

/* The contents of an answer with ZOK (`z` is set with any code). They belong to
 * the library and are freed when `done` returns. */
struct zk_reply {
    struct zk *z;
    const char *text; /* create: the path; get: the data */
    int len;          /* get: length of the data, or -1 if the node has no
                         data */
    const struct Stat *stat;              /* create, get, exists, set: the
                                             node's stat */
    const struct String_vector *children; /* list: the children */
    /* One result for each operation of a multi, set even if the server refused
     * the multi; `err` is the operation's code. */
    const zoo_op_result_t *results;
};

/* Called once for each call that was sent, with the library's code; not called
 * during close(). For a code that means that no answer came, hf__zk_lost()
 * returns true. The function may send further calls. */
typedef void zk_done_fn(void *owner, int rc, const struct zk_reply *);

int hf__zk_create(struct zk *z, const char *path, const char *data, int len,
                  int mode, zk_done_fn *done, void *owner);
int hf__zk_delete(struct zk *z, const char *path, zk_done_fn *done,
                  void *owner);
int hf__zk_set(struct zk *z, const char *path, const char *data, int len,
               int version, zk_done_fn *done, void *owner);
/* Lists the children of the node. If `watcher` is not NULL, also sets a watch
 * on them, and `watcher` is called with the owner when the watch fires. */
int hf__zk_list(struct zk *z, const char *path, watcher_fn watcher,
                zk_done_fn *done, void *owner);
/* Reads the data of the node; sets a watch on the node like hf__zk_list(). */
int hf__zk_get(struct zk *z, const char *path, watcher_fn watcher,
               zk_done_fn *done, void *owner);
/* Reads the stat of the node; sets a watch on the node like hf__zk_list(). */
int hf__zk_exists(struct zk *z, const char *path, watcher_fn watcher,
                  zk_done_fn *done, void *owner);
int hf__zk_sync(struct zk *z, zk_done_fn *done, void *owner);
/* Sends one transaction. The buffers to which the operations refer for their
 * results must stay valid as long as the owner. */
int hf__zk_multi(struct zk *z, size_t len, const zoo_op_t *op, zk_done_fn *done,
                 void *owner);

/* Creates every missing node of the path. The nodes of the URL's own path
 * become persistent nodes, the others become containers. (With dialect=kazoo,
 * the others become persistent nodes, too.) The creates are sent before any
 * later request. If the server refuses a create, later requests below that node
 * get ZNONODE. */
int hf__zk_make_parents(struct zk *z, const char *path);
/* Returns the code with which the server refused to create a parent, if the
 * last refused parent is part of this path; otherwise ZOK. */
int hf__zk_parents_refused(const struct zk *z, const char *path);

/* Returns true if no answer came: the server may or may not have executed the
 * request. */
bool hf__zk_lost(int rc);
/* Returns when the oldest unanswered call was sent, or HF__NEVER if every call
 * was answered. */
hf__time hf__zk_calls_since(const struct zk *);
void hf__zk_calls_fini(struct zk *);

#endif
