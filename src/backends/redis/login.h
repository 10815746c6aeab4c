/*
 * How the servers of a client are entered: what its URL says of user, password,
 * database and TLS, for every connection that it makes. The owner of the client
 * (redis.c, redlock.c) keeps one struct rd_login as long as its pipes, which
 * point into it.
 */
#ifndef HF_REDIS_LOGIN_H
#define HF_REDIS_LOGIN_H

#include "pipe.h"

/* What is the same for all connections of a client. */
struct rd_login {
    char *user, *password; /* "" if none */
    uint32_t db;
    struct net_tls *tls; /* NULL: plain */
    const char *doubt;   /* of a plain one: "; is it Redis? ..." */
};

/* From the URL; no_tls: how it would say that there is TLS, NULL if it does. 0,
 * or a code whose text is set. */
int hf__rd_login(const struct hf__core *, hf_client *,
                 const struct hf__config *, const char *no_tls,
                 struct rd_login *);
void hf__rd_login_fini(const struct hf__core *, hf_client *, struct rd_login *);
/* Where a pipe leads, and how long it may take; its link lacks `lost`. */
void hf__rd_login_aim(struct rd_pipe *, struct net_endpoint *,
                      const struct rd_login *, uint32_t *tags,
                      uint32_t connect_ms, uint32_t op_ms);

#endif
