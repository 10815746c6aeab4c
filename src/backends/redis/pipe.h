/*
 * A pipe to one Redis server: a connection, RESP in both directions, the hello,
 * and commands, which are answered in the order of sending. It does not depend
 * on locks. A client of several servers has several pipes.
 *
 * The client's mutex is held in all functions. The owner of a pipe is the file
 * that uses it. The owner's callbacks (struct rd_owner) are called from
 * hf__link_ready(), hf__link_advance() and hf__link_fail() on p->link, never
 * from a function that sends. The owner starts, drives and fails the link. It
 * reads the link's state, text and where, and sets the fields that link.h marks
 * as the owner's, except talk, owner and understood.
 */
#ifndef HF_REDIS_PIPE_H
#define HF_REDIS_PIPE_H

#include "backends/common/arena.h"
#include "net/in_flight.h"
#include "net/link.h"
#include "reply.h"

/* While the send buffer holds more bytes than this, no more requests are
 * sent. */
#define RD_OUT_HIGH (64u << 10)

struct rd_pipe;
struct rd_sent;

/* Handles an answer to this command. Returns 0, or an error code, which ends
 * the connection as an error code of data() does (link.h); the command then
 * counts as unanswered. The pointer to the command is invalid once another
 * command is sent. */
typedef int rd_reply_fn(struct rd_pipe *, struct rd_sent *,
                        const struct rd_node *, hf__time now);

/* A command in flight. The owner's struct for a command begins with this
 * one. */
struct rd_sent {
    struct net_sent net;
    rd_reply_fn *fn;
    uint32_t replies; /* number of answers still to come */
};

struct rd_owner {
    /* Called when the pipe is connected, and AUTH and SELECT have been sent.
     * Sends the other commands that must be answered before the pipe is up; an
     * error reply to one of them ends the connection. Returns 0 or HF_ENOMEM.
     * May be NULL if there are no other commands. */
    int (*hello)(struct rd_pipe *, hf__time now);
    /* Called when the user lacks a right that the hello needs. Writes advice,
     * which is appended to the error message. May be NULL. */
    void (*advise)(const struct rd_pipe *, char *to, size_t size);
    /* Called when the pipe is up and ready for commands. */
    void (*up)(struct rd_pipe *, hf__time now);
    /* Handles an answer that no command waits for. Returns the same as a
     * rd_reply_fn. If this is NULL, such an answer ends the connection. */
    int (*push)(struct rd_pipe *, const struct rd_node *, hf__time now);
    /* Handles the answer to a command that was sent with fn == NULL. */
    rd_reply_fn *answer;
    /* Called like the down() of a link (link.h). If was_up is true, the
     * callback may remove the commands in flight with hf__sent_lost() and
     * hf__sent_unsent(). The remaining ones are dropped afterwards. */
    void (*down)(struct rd_pipe *, int code, bool was_up, hf__time now);
};

struct rd_pipe {
    struct net_link link;
    const struct rd_owner *type;
    void *owner;
    const char *user, *password; /* the owner's memory; "" if not set */
    uint32_t db;                 /* 0: SELECT is not sent */
    bool auth;                   /* the next answer is the reply to AUTH */
    redisReader *reader;
    struct hf__arena arena;
    struct net_sents sents;
};

/* Initializes a pipe. `size` is the size of the owner's struct for a command,
 * which begins with a struct rd_sent. */
void hf__rd_pipe_init(struct rd_pipe *, const struct hf__core *, hf_client *,
                      const struct rd_owner *, void *owner, size_t size);
void hf__rd_pipe_fini(struct rd_pipe *);
/* Closes a connection that is no longer wanted, without calling down(). */
void hf__rd_pipe_stop(struct rd_pipe *);

/* Makes room for a command of at most `bytes` bytes that has no answers, or
 * whose answers go to push(). Returns NULL if there is no memory. The caller
 * writes the command with hf__rd_put...(); the next hf__net_flush() sends
 * it. */
struct net_out *hf__rd_pipe_room(struct rd_pipe *, size_t bytes);

/* Makes room for a command of at most `bytes` bytes that gets `replies`
 * answers. They go to fn, or to the owner's answer() if fn is NULL. Returns the
 * owner's struct for the command, or NULL if there is no memory. The struct's
 * fields after the rd_sent are zeroed, for the caller to fill in. */
void *hf__rd_pipe_send(struct rd_pipe *p, rd_reply_fn *fn, uint32_t replies,
                       size_t bytes);

/* Handles a complete answer. Returns the same as a rd_reply_fn. Only pipe.c and
 * tests call it. */
int hf__rd_pipe_reply(struct rd_pipe *, const struct rd_node *, hf__time now);

/* Returns 0, or HF_EBACKEND if the major version of the server is less than
 * `oldest`; the error ends the hello of the pipe. The scripts call TIME before
 * they write, which a server older than 5.0 refuses; RD_TAKE and similar
 * scripts use SET with KEEPTTL, which needs 6.0. */
#define RD_OLDEST 6
#define RD_OLDEST_VOTE 5 /* for vote.lua */
int hf__rd_refuse_old(struct rd_pipe *, const char *info, int oldest,
                      hf__time now);

/* ---- commands: the caller has reserved room ------------------------------ */

/* Writes the head of a command of n words (type '*'), or of a word of n bytes
 * ('$'). */
void hf__rd_put_count(struct net_out *, char type, size_t n);
/* Writes one word of the command. */
void hf__rd_put(struct net_out *, const void *, size_t);

/* Writes one word of the command, given in two parts. */
void hf__rd_put_two(struct net_out *, const void *, size_t, const void *,
                    size_t);
void hf__rd_put_text(struct net_out *, const char *);
void hf__rd_put_num(struct net_out *, int64_t);

/* Writes the number without a terminator. Returns its length. */
size_t hf__rd_decimal(char to[21], uint64_t);

#endif
