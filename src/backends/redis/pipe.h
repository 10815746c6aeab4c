/*
 * A pipe to one Redis server: a connection, RESP in both directions, the hello,
 * and commands whose answers come in the order of sending. It knows nothing of
 * locks: whoever has several servers has several pipes.
 *
 * Everything runs with the client's mutex held. The owner is called from
 * hf__link_ready(), hf__link_advance() and hf__link_fail() on p->link, never
 * from a function that sends. The link is the pipe's: the owner reads state,
 * text and where, sets what is marked as the owner's in link.h (but for talk,
 * owner and understood), and starts, drives and fails it.
 */
#ifndef HF_REDIS_PIPE_H
#define HF_REDIS_PIPE_H

#include "backends/common/arena.h"
#include "net/in_flight.h"
#include "net/link.h"
#include "reply.h"

/* With so much to write it is sent nothing more for now. */
#define RD_OUT_HIGH (64u << 10)

struct rd_pipe;
struct rd_sent;

/* An answer to this command: 0, or a code that ends the connection, as that of
 * data() (link.h); the command
 * counts as unanswered then. The command must not be read once another
 * was sent. */
typedef int rd_reply_fn(struct rd_pipe *, struct rd_sent *,
                        const struct rd_node *, hf__time now);

/* A command that is under way. The owner's struct of it begins with this. */
struct rd_sent {
    struct net_sent net;
    rd_reply_fn *fn;
    uint32_t replies; /* that are still to come */
};

struct rd_owner {
    /* Connected, AUTH and SELECT are sent: whatever else must be answered
     * before it is up. An error that answers it ends the connection. 0,
     * HF_ENOMEM. NULL: nothing else. */
    int (*hello)(struct rd_pipe *, hf__time now);
    /* The user may not do what the hello needs: which rights are missing, for
     * the end of the text. NULL: nothing is said. */
    void (*advise)(const struct rd_pipe *, char *to, size_t size);
    /* It may be used. */
    void (*up)(struct rd_pipe *, hf__time now);
    /* An answer for which no command waits; as rd_reply_fn. NULL: there is no
     * such. */
    int (*push)(struct rd_pipe *, const struct rd_node *, hf__time now);
    /* The answer to a command that was sent without a function. */
    rd_reply_fn *answer;
    /* As that of a link; was_up: what is under way can be taken out
     * (hf__sent_lost(), hf__sent_unsent()), and is forgotten then. */
    void (*down)(struct rd_pipe *, int code, bool was_up, hf__time now);
};

struct rd_pipe {
    struct net_link link;
    const struct rd_owner *type;
    void *owner;
    const char *user, *password; /* the owner's; "" if none */
    uint32_t db;                 /* 0: none is selected */
    bool auth;                   /* the next answer is that of AUTH */
    redisReader *reader;
    struct hf__arena arena;
    struct net_sents sents;
};

/* size: of the owner's struct rd_sent. */
void hf__rd_pipe_init(struct rd_pipe *, const struct hf__core *, hf_client *,
                      const struct rd_owner *, void *owner, size_t size);
void hf__rd_pipe_fini(struct rd_pipe *);
/* It is not wanted any more; down() is not called. */
void hf__rd_pipe_stop(struct rd_pipe *);

/* Room for a command of so many bytes, whose answers nobody waits for, or come
 * to push(); NULL: out of memory. The command is written by hf__rd_put...(),
 * and goes out with the next hf__net_flush(). */
struct net_out *hf__rd_pipe_room(struct rd_pipe *, size_t bytes);

/* The same of one that has so many answers, for fn, or, if that is NULL, for
 * the owner's answer(). Returns the owner's struct, to be filled in; but for
 * its rd_sent it is zero. */
void *hf__rd_pipe_send(struct rd_pipe *p, rd_reply_fn *fn, uint32_t replies,
                       size_t bytes);

/* What is done with a whole answer: 0, or a code. */
int hf__rd_pipe_reply(struct rd_pipe *, const struct rd_node *, hf__time now);

/* 0, or HF_EBACKEND if the server is older than this: the hello of the pipe has
 * failed. The scripts call TIME before they write, which Redis refuses before
 * 5.0; those of RD_TAKE and so on use SET with KEEPTTL, which is of 6.0. */
#define RD_OLDEST 6
#define RD_OLDEST_VOTE 5 /* of vote.lua */
int hf__rd_refuse_old(struct rd_pipe *, const char *info, int oldest,
                      hf__time now);

/* ---- commands: these need room reserved before -------------------------- */

void hf__rd_put_count(struct net_out *, char type, size_t n);
void hf__rd_put(struct net_out *, const void *, size_t);
void hf__rd_put_two(struct net_out *, const void *, size_t, const void *,
                    size_t);
void hf__rd_put_text(struct net_out *, const char *);
void hf__rd_put_num(struct net_out *, int64_t);

/* Writes the number without a terminator; returns its length. */
size_t hf__rd_decimal(char to[21], uint64_t);

#endif
