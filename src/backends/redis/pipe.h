/*
 * A pipe to one Redis server: a connection, RESP in both directions, the hello,
 * and commands whose answers come in the order of sending. It knows nothing of
 * locks: whoever has several servers has several pipes.
 *
 * Files: pipe.c; login.c the URL's part; wire.c commands; reply.c answers;
 * error.c what the server's errors mean. They need src/net and hiredis' reader,
 * and nothing else of this folder.
 *
 * Everything runs with the client's mutex held. Its owner is called from
 * hf__link_ready(), hf__link_advance() and hf__link_fail() on p->link, never
 * from a function that sends. The link is the pipe's: its owner reads state,
 * text and where, sets what is marked as the owner's in link.h (but for talk,
 * owner and understood), and starts, drives and fails it.
 */
#ifndef HF_REDIS_PIPE_H
#define HF_REDIS_PIPE_H

#include "backends/common/arena.h"
#include "backends/common/chance.h"
#include "net/in_flight.h"
#include "net/link.h"

#include <hiredis/read.h>

/* Nothing we ask has a longer answer. */
#define RD_REPLY_MAX (8u << 20)
/* Small elements weigh more here than on the wire: 4 bytes become a node. */
#define RD_ARENA_MAX (4u * RD_REPLY_MAX)

/* ---- reply.c ---------------------------------------------------------- */

/* One element of an answer. Memory of the arena, gone with the next one. */
struct rd_node {
    struct rd_node *next;         /* of the same array */
    struct rd_node *first, *last; /* ARRAY */
    int type;                     /* REDIS_REPLY_... */
    int64_t number;               /* INTEGER; ARRAY: how many there shall be */
    const char *text;             /* STRING, STATUS, ERROR; terminated */
    size_t len;
};

redisReader *hf__rd_reader_new(struct hf__arena *);
/* 1 and *node: a whole answer; 0: not yet; HF_EPROTO, HF_ENOMEM. */
int hf__rd_reader_next(redisReader *, struct hf__arena *,
                       struct rd_node **node);
/* The i-th element, NULL if there is none or it is no array. */
const struct rd_node *hf__rd_at(const struct rd_node *, size_t i);
bool hf__rd_int(const struct rd_node *, int64_t *); /* INTEGER or decimal */
bool hf__rd_is(const struct rd_node *, const char *text); /* any text */

/* ---- judge.c ----------------------------------------------------------- */

/* The value of a line "key:value" of INFO; "" if there is none. */
struct rd_value {
    char text[64];
};
struct rd_value hf__rd_value(const char *info, const char *key);
bool hf__rd_says(const char *info, const char *key, const char *value);
long long hf__rd_number(const char *info, const char *key);

struct rd_verdict {
    enum hf_level level;
    char text[256];
};
struct rd_verdict hf__rd_judge_version(const char *info);
struct rd_verdict hf__rd_judge_memory(const char *info);
struct rd_verdict hf__rd_judge_clients(const char *info);

/* ---- wire.c ----------------------------------------------------------- */

/* These need room reserved before. */
void hf__rd_put_count(struct net_out *, char type, size_t n);
void hf__rd_put(struct net_out *, const void *, size_t);
void hf__rd_put_two(struct net_out *, const void *, size_t, const void *,
                    size_t);
void hf__rd_put_text(struct net_out *, const char *);
void hf__rd_put_num(struct net_out *, int64_t);
size_t hf__rd_decimal(char to[21], uint64_t);

/* ---- error.c ---------------------------------------------------------- */

/* The words that tell what went wrong: those of a script are inside others. */
const char *hf__rd_error_text(const char *text);
/* How much of it is worth showing: without the digest of the script. */
int hf__rd_error_len(const char *text);
/* What an error answer means. */
int hf__rd_error_code(const char *text);
/* It refuses because it is not the master; or it may be one no more: its
 * replicas have left it. */
bool hf__rd_is_replica(const char *text);
bool hf__rd_may_pass(const char *text); /* may it say otherwise later? */
/* It refuses the command to this user, or has no such command. */
bool hf__rd_is_forbidden(const char *text);
/* It has refused the request before it did anything for it. */
bool hf__rd_did_nothing(const char *text);

/* ---- pipe.c ----------------------------------------------------------- */

/* With so much to write it is sent nothing more for now. */
#define RD_OUT_HIGH (64u << 10)

struct rd_pipe;
struct rd_sent;

/* An answer to this command: 0, or a code that ends the connection. EPROTO has
 * its text from the pipe, of others hf__link_why() was called; the command
 * counts as unanswered then. The command is not to be looked at once another
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
/* The same of one that has so many answers. Returns the owner's struct, to be
 * filled in; but for its rd_sent it is zero. */
void *hf__rd_pipe_send(struct rd_pipe *p, rd_reply_fn *fn, uint32_t replies,
                       size_t bytes);
/* 0, or HF_EBACKEND if the server is older than this: the hello of the pipe has
 * failed. The scripts call TIME before they write, which Redis refuses before
 * 5.0; those of RD_TAKE and so on use SET with KEEPTTL, which is of 6.0. */
#define RD_OLDEST 6
#define RD_OLDEST_VOTE 5 /* of vote.lua */
int hf__rd_refuse_old(struct rd_pipe *, const char *info, int oldest,
                      hf__time now);
/* What is done with a whole answer: 0, or a code. */
int hf__rd_pipe_reply(struct rd_pipe *, const struct rd_node *, hf__time now);

/* ---- login.c ---------------------------------------------------------- */

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
void hf__rd_pipe_aim(struct rd_pipe *, struct net_endpoint *,
                     const struct rd_login *, uint32_t *tags,
                     uint32_t connect_ms, uint32_t op_ms);

#endif
