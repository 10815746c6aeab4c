/*
 * The Redis backend, inside: the state of a client. One server, up to three
 * pipes (pipe.h):
 *
 *   cmd      every request, in order of submission; answers come in that order
 *   sub      opened when somebody first has to wait, or holds something and
 *            listens; carries messages only
 *   changes  while the program watches names: their changes
 *
 * Everything here runs with the client's mutex held, except open(), which runs
 * on the helper thread before that.
 *
 * redis.c fills and frees it. Each unit has a header of its name, which says
 * who calls it; README.md has the list.
 */
#ifndef HF_REDIS_H
#define HF_REDIS_H

#include "backends/common/about.h"
#include "backends/common/chance.h"
#include "changes.h"
#include "channels.h"
#include "login.h"
#include "replica.h"
#include "scripts.h"

/* Beside enum hf__outcome, of an answer to a query: the query is sent again, as
 * it is now. It never leaves query.c. */
#define RD_AGAIN 100

/* So many wishes are kept that come before the grants of their holds. */
#define RD_WISHES 16

struct redis {
    const struct hf__core *core;
    hf_client *client;
    bool string_dialect;
    bool keep_tokens;
    bool opened;  /* has been up once */
    bool listens; /* the program hears of events */
    uint32_t op_timeout_ms;
    struct rd_login login;
    struct net_endpoint peer;
    char about[128]; /* "pid\nhost\n" */
    size_t about_len;
    char uuid[HF__UUID_LEN + 1];
    char wake[HF_NAME_MAX + 64]; /* our own channel */
    size_t wake_len;
    uint64_t chance;          /* state of the jitter */
    bool by_text[RD_SCRIPTS]; /* the server has forgotten it: send the text */
    struct rd_pipe cmd, sub, changes;
    uint32_t tags; /* of their descriptors */
    bool put_off;  /* the core keeps requests that are not sent yet */
    struct rd_late *late;
    struct rd_doubts doubts;
    unsigned renewing;       /* batches that are not reported yet */
    uint32_t renew_lease_ms; /* the shortest lease of them, and of one that
                                waits */
    hf__time renew_until;    /* the core keeps that one until we are connected;
                                it is meant until then. 0: it keeps none */
    int64_t server_us;       /* the server's clock at server_at; 0: not known */
    hf__time server_at;
    hf__time server_ahead; /* by how much that is ahead of it, at most */
    struct rd_chans chans;
    struct rd_held *held;       /* if the program listens */
    uint64_t wished[RD_WISHES]; /* holds that were asked for and whose grants
                                   are still to be read; 0: none */
    unsigned wished_at;         /* the next place */
    uint64_t broken_id, broken_token; /* the last that was broken, as `sub` has
                                         said; 0: none */
    struct rd_watchers watchers;
};

extern const struct hf__backend hf__rd_backend;

#endif
