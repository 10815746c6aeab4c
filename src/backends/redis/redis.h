/*
 * State of a Redis client: one server, up to three pipes (pipe.h).
 *
 *   cmd      all requests, in order of submission; replies arrive in that order
 *   sub      messages only. Opened when a lock first has to wait, or when the
 *            program listens and holds a lock
 *   changes  keyspace notifications, while the program watches names
 *
 * All functions are called with the client's mutex held, except open(), which
 * runs on the helper thread before any other thread can use the client.
 *
 * redis.c fills and frees the struct. README.md lists the units; the header of
 * each says who calls it.
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

/* A result of a query's reply handler, in addition to the values of enum
 * hf__outcome. The handler has changed fields of the query, and the caller must
 * encode the query again and send it. */
#define RD_AGAIN 100

/* How many wishes are kept at most. A wish for a hold comes from another
 * client; it is kept if the grant of the hold has not been read yet. */
#define RD_WISHES 16

struct redis {
    const struct hf__core *core;
    hf_client *client;
    bool string_dialect;
    bool keep_tokens;
    bool opened;  /* cmd was up at least once */
    bool listens; /* the program has an event handler */
    uint32_t op_timeout_ms;
    struct rd_login login;
    struct net_endpoint peer;
    char about[128]; /* "<length of the prefix>[k] <pid>\n<host>\n" */
    size_t about_len;
    char uuid[HF__UUID_LEN + 1];
    char wake[HF_NAME_MAX + 64]; /* the client's own channel */
    size_t wake_len;
    uint64_t chance;          /* state of hf__chance() */
    bool by_text[RD_SCRIPTS]; /* the server may lack the script: send EVAL */
    struct rd_pipe cmd, sub, changes;
    uint32_t tags; /* the tag that a descriptor was given last */
    bool put_off;  /* the core keeps new requests until core->go_on() */
    struct rd_late *late;
    struct rd_doubts doubts;
    unsigned renewing;       /* number of batches of renewals under way */
    uint32_t renew_lease_ms; /* the shortest TTL in the batches under way and in
                                the parked one */
    hf__time renew_until; /* when the batch that the core has parked expires, or
                             0 if no batch is parked */
    int64_t server_us;    /* the server's clock at server_at, or 0 if unknown */
    hf__time server_at;
    hf__time server_ahead; /* by how much the estimated clock may be ahead */
    struct rd_chans chans;
    struct rd_held *held;       /* the holds, if the program listens */
    uint64_t wished[RD_WISHES]; /* hold ids that other clients wanted before
                                   their grant was read; 0 in a free slot */
    unsigned wished_at;         /* the next slot of `wished` */
    uint64_t broken_id, broken_token; /* the latest broken hold, or 0 */
    struct rd_watchers watchers;
};

extern const struct hf__backend hf__rd_backend;

#endif
