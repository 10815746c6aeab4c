/*
 * Requests to the server. Each of the first functions sends one request and
 * returns 0, or returns a code: then nothing was sent and `done` is not called.
 * Answers arrive in the order of sending, inside the library's functions, with
 * the client's mutex held. `owner` is passed to `done` and must stay valid
 * until then or until close(). Requests may be sent only while zk.up. Paths are
 * absolute.
 */
#ifndef HF_ZK_CALL_H
#define HF_ZK_CALL_H

#include "zookeeper.h"

/* What came with a ZOK (z is set with any code). It belongs to the library and
 * is gone when the completion returns. */
struct zk_reply {
    struct zk *z;
    const char *text;                     /* create: the path; get: the data */
    int len;                              /* of get; -1: no data */
    const struct Stat *stat;              /* create, get, exists, set */
    const struct String_vector *children; /* list */
    const zoo_op_result_t *results; /* of multi, also after a refusal: the .err
                                       of each operation */
};

/* Called once for each call that was sent, with the library's code, but not
 * during close(). If no answer came, hf__zk_lost() is true for the code. It may
 * send further calls. */
typedef void zk_done_fn(void *owner, int rc, const struct zk_reply *);

int hf__zk_create(struct zk *z, const char *path, const char *data, int len,
                  int mode, zk_done_fn *done, void *owner);
int hf__zk_delete(struct zk *z, const char *path, zk_done_fn *done,
                  void *owner);
int hf__zk_set(struct zk *z, const char *path, const char *data, int len,
               int version, zk_done_fn *done, void *owner);
/* A watcher that is not NULL is called with the owner when the watch fires. */
int hf__zk_list(struct zk *z, const char *path, watcher_fn watcher,
                zk_done_fn *done, void *owner);
int hf__zk_get(struct zk *z, const char *path, watcher_fn watcher,
               zk_done_fn *done, void *owner);
int hf__zk_exists(struct zk *z, const char *path, watcher_fn watcher,
                  zk_done_fn *done, void *owner);
int hf__zk_sync(struct zk *z, zk_done_fn *done, void *owner);
/* One transaction. Whatever the operations point to for their results must live
 * as long as the owner. */
int hf__zk_multi(struct zk *z, size_t len, const zoo_op_t *op, zk_done_fn *done,
                 void *owner);

/* Creates every missing node of the path as a container. The nodes of the URL's
 * own path are persistent, and in kazoo's dialect all are. The creates are sent
 * before any later request. If one is refused, later requests get ZNONODE. */
int hf__zk_make_parents(struct zk *z, const char *path);
/* The reason why a node of the path could not be created the last time; ZOK:
 * none was refused. */
int hf__zk_parents_refused(const struct zk *z, const char *path);

/* True: no answer came, so the request may or may not have been done. */
bool hf__zk_lost(int rc);
/* When the oldest unanswered call was sent; HF__NEVER: there is none. */
hf__time hf__zk_calls_since(const struct zk *);
void hf__zk_calls_fini(struct zk *);

#endif
