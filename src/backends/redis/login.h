/*
 * The user, the password, the database and the TLS settings in a client's URL,
 * which are the same for all connections of the client. redis.c and redlock.c
 * keep one struct rd_login each; the pipes point into it, so it must outlive
 * them.
 */
#ifndef HF_REDIS_LOGIN_H
#define HF_REDIS_LOGIN_H

#include "pipe.h"

struct rd_login {
    char *user, *password; /* "" if none */
    uint32_t db;
    struct net_tls *tls; /* NULL without TLS */
    const char *doubt;   /* ends an error message; unused with TLS */
};

/* Reads the URL. no_tls is NULL if the URL requests TLS. Otherwise it is what a
 * URL must contain to request TLS, such as "tls=yes", for the error message
 * about options that need TLS. Returns 0, or an error code and sets the error
 * message. hf__rd_login_fini() must be called in either case. */
int hf__rd_login(const struct hf__core *, hf_client *,
                 const struct hf__config *, const char *no_tls,
                 struct rd_login *);
void hf__rd_login_fini(const struct hf__core *, hf_client *, struct rd_login *);
/* Sets the login, the address and the timeouts of a pipe. The caller sets
 * link.lost. */
void hf__rd_login_aim(struct rd_pipe *, struct net_endpoint *,
                      const struct rd_login *, uint32_t *tags,
                      uint32_t connect_ms, uint32_t op_ms);

#endif
