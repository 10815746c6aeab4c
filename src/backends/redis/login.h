/*
 * What a client's URL says about user, password, database and TLS, for all
 * connections of the client. Its owner (redis.c, redlock.c) keeps one struct
 * rd_login as long as the pipes, which point into it.
 */
#ifndef HF_REDIS_LOGIN_H
#define HF_REDIS_LOGIN_H

#include "pipe.h"

/* The same for all connections of a client. */
struct rd_login {
    char *user, *password; /* "" if none */
    uint32_t db;
    struct net_tls *tls; /* NULL: plain */
    const char *doubt;   /* plain: "; is it Redis? ...", for error texts */
};

/* Reads the URL. no_tls: how a URL says TLS, for the error text; NULL if this
 * one does. 0, or a code with its text set. hf__rd_login_fini() frees it in
 * either case. */
int hf__rd_login(const struct hf__core *, hf_client *,
                 const struct hf__config *, const char *no_tls,
                 struct rd_login *);
void hf__rd_login_fini(const struct hf__core *, hf_client *, struct rd_login *);
/* Sets the address and the timeouts of a pipe. The caller sets link.lost. */
void hf__rd_login_aim(struct rd_pipe *, struct net_endpoint *,
                      const struct rd_login *, uint32_t *tags,
                      uint32_t connect_ms, uint32_t op_ms);

#endif
