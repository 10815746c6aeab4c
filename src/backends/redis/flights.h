/*
 * Commands on the command connection: in the out buffer, on the wire, or at the
 * server, in order. The encoders (kinds.c, latch.c, renew.c, query.c,
 * diagnose.c, rights.c) begin a command here and append its words; the answer
 * goes to cmd.c. A request, or a remote, that ends before its answer comes has
 * to be forgotten here: an answer that nobody wants is dropped.
 */
#ifndef HF_REDIS_FLIGHTS_H
#define HF_REDIS_FLIGHTS_H

#include "backends/common/about.h"
#include "pipe.h"
#include "scripts.h"

struct redis;

#define RD_OWNER_MAX (HF__UUID_LEN + 1 + 20 + 1)

/* A command that is under way. */
struct rd_flight {
    struct rd_sent sent;
    struct hf__req *req; /* NULL: nobody wants the answer any more */
    const struct hf__remote *remote; /* ATTEMPT; NULL: it is detached */
    uint64_t hold_id;                /* a proof: its number */
    hf__time ahead;                  /* server_ahead when it was sent */
    uint32_t first, len;             /* RENEW: which items */
    uint8_t op;                      /* 0: a proof */
    uint8_t script;
    bool by_text; /* EVAL, not EVALSHA */
};

/* That of the command that was begun last. */
struct rd_flight *hf__rd_newest(const struct redis *);

/* Never mention this request again. */
void hf__rd_forget(struct redis *, struct hf__req *);
/* Nor this remote, whatever of it is under way. */
void hf__rd_forget_remote(struct redis *, const struct hf__remote *);

/* Begins the command of a script; room for it and `more` is reserved. NULL:
 * out of memory. keys and args follow by hf__rd_put...(). */
struct net_out *hf__rd_call(struct redis *, struct hf__req *, enum rd_script,
                            size_t keys, size_t args, size_t more);

/* The same of a command that is no script, with so many words. If it is
 * refused, that is given to the query as its reply. */
struct net_out *hf__rd_command(struct redis *, struct hf__req *, size_t words,
                               size_t more);

/* hf__rd_call(), and the keys that the script has of a name follow: all but
 * RD_KEY_DID. `more` is for the rest. */
struct net_out *hf__rd_begin(struct redis *, struct hf__req *, enum rd_script,
                             const char *name, size_t len, size_t args,
                             size_t more);

/*
 * The server's clock, as its answers say (redis.server_us). A request says
 * until when, by that clock, it is meant, and a server that gets it later
 * refuses it: so an old copy of a request does no harm.
 */

/* Remembers what an answer says about the server's clock. */
bool hf__rd_clock(struct redis *, const struct rd_node *, hf__time sent_at);

/* The server's clock until which a question that is sent now is meant: rather
 * too late than too early, so that no question that is meant is refused. 0: the
 * clock is not known. */
int64_t hf__rd_valid_until(const struct redis *, hf__time now);

/* The same for a query or a renewal, rather too early than too late: one that
 * is refused is asked again by the clock that the refusal tells, if it is meant
 * still. 0: it is always meant. */
int64_t hf__rd_meant_until(const struct redis *, const struct hf__req *);

/* "<uuid>:<hold id>"; returns the length. */
size_t hf__rd_owner(const struct redis *, uint64_t hold_id,
                    char to[RD_OWNER_MAX]);

/* The same as a word of the command. */
void hf__rd_put_owner(const struct redis *, struct net_out *, uint64_t hold_id);

#endif
