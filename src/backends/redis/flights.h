/*
 * Commands on the command connection that have no reply yet, in the order of
 * sending, and the server's clock. The encoders (kinds.c, renew.c, query.c,
 * diagnose.c, rights.c) begin a command here and append its words; cmd.c gets
 * the reply. When a request ends before its reply has arrived, hf__rd_forget()
 * must be called; the reply is then ignored. When a remote is freed,
 * hf__rd_forget_remote() must be called.
 */
#ifndef HF_REDIS_FLIGHTS_H
#define HF_REDIS_FLIGHTS_H

#include "backends/common/about.h"
#include "pipe.h"
#include "scripts.h"

struct redis;

#define RD_OWNER_MAX (HF__UUID_LEN + 1 + 20 + 1)

/* A command under way. */
struct rd_flight {
    struct rd_sent sent;
    struct hf__req *req;             /* the request, or NULL if it has ended */
    const struct hf__remote *remote; /* of an ATTEMPT; NULL once the remote is
                                        detached */
    uint64_t hold_id;                /* the hold id, or the number of a proof
                                        (same_server.h) */
    hf__time ahead;      /* redis.server_ahead at the time of sending */
    uint32_t first, len; /* of a RENEW: the items of the batch */
    uint8_t op;          /* enum hf__op; 0 for a proof */
    uint8_t script;
    bool by_text; /* sent as EVAL, not EVALSHA */
};

/* Returns the most recent command. */
struct rd_flight *hf__rd_newest(const struct redis *);

/* Makes the client ignore the reply to this request, which the caller may
 * free. */
void hf__rd_forget(struct redis *, struct hf__req *);
/* Drops all references to this remote. */
void hf__rd_forget_remote(struct redis *, const struct hf__remote *);

/* Begins a script command and reserves room for it and `more` bytes. The caller
 * appends keys and arguments with hf__rd_put...(). Returns NULL if there is no
 * memory. */
struct net_out *hf__rd_call(struct redis *, struct hf__req *, enum rd_script,
                            size_t keys, size_t args, size_t more);

/* Like hf__rd_call(), for a command that is not a script. If the server refuses
 * the command, the query gets the error reply as its reply. */
struct net_out *hf__rd_command(struct redis *, struct hf__req *, size_t words,
                               size_t more);

/* Like hf__rd_call(), and appends all keys of the script for this name, except
 * RD_KEY_DID. `more` is the room for what the caller appends. */
struct net_out *hf__rd_begin(struct redis *, struct hf__req *, enum rd_script,
                             const char *name, size_t len, size_t args,
                             size_t more);

/*
 * The server's clock, estimated from its replies (redis.server_us). A request
 * carries the server time until which it is valid. The server refuses the
 * request after that time, so an old copy of it does no harm.
 */

/* Updates the estimate from the time in a reply. Returns false if the node is
 * not a time. */
bool hf__rd_clock(struct redis *, const struct rd_node *, hf__time sent_at);

/* Returns the server time until which an attempt that is sent now is valid, or
 * 0 if the clock is unknown. Once a script has replied, an inexact result is
 * too late, never too early, so that a valid attempt is never refused. Before
 * that, the result may be too early, at most by the time for which the first
 * reply was under way. */
int64_t hf__rd_valid_until(const struct redis *, hf__time now);

/* Returns the server time until which a query or a renewal is valid, or 0 if
 * there is no limit. An inexact result is too early, never too late. A refusal
 * contains the server's time: if the request is still valid by that time, it is
 * sent again. */
int64_t hf__rd_meant_until(const struct redis *, const struct hf__req *);

/* Writes "<uuid>:<hold id>", without a terminator. Returns the length. */
size_t hf__rd_owner(const struct redis *, uint64_t hold_id,
                    char to[RD_OWNER_MAX]);

/* Appends the owner as a word of the command. */
void hf__rd_put_owner(const struct redis *, struct net_out *, uint64_t hold_id);

#endif
