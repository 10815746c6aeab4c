/*
 * A connection to one MySQL or MariaDB server: the protocol, the login, and
 * statements, which are answered in the order of sending. Nothing here depends
 * on locks: conn.c, login.c and wire.c need only src/net, the arena
 * (backends/common/arena.h) and OpenSSL. README.md says why libmariadb is not
 * used.
 *
 * The client's mutex is held in all functions. The owner of a connection is the
 * file that uses it: cmd.c or wait.c. The owner's functions (struct my_owner)
 * are called from hf__link_ready(), hf__link_advance() and hf__link_fail() on
 * c->link, never from a function that sends. The owner reads the link's state,
 * text and where. It sets the fields that link.h marks as the owner's, except
 * talk, owner, awaits and understood. It starts, drives and fails the link.
 */
#ifndef HF_MYSQL_CONN_H
#define HF_MYSQL_CONN_H

#include "backends/common/arena.h"
#include "net/in_flight.h"
#include "net/link.h"

#include <stdarg.h>

struct my_conn;
struct my_login;
struct my_answer;
struct my_result;
struct my_row;

/* Handles the whole answer to a packet of statements. Returns 0, or a code that
 * ends the connection, as data() does (link.h). If it returns a code, the
 * packet counts as unanswered, and the function must not have sent anything. */
typedef int my_answer_fn(struct my_conn *, const struct my_answer *);

/* A packet in flight. The owner's own struct begins with this. */
struct my_sent {
    struct net_sent sent;
    my_answer_fn *fn;
};

/* An answer. Its memory belongs to the connection and is valid until the
 * my_answer_fn returns. */
struct my_answer {
    struct my_sent *sent; /* not valid once another packet is sent */
    const struct my_result *first, *last; /* one result per statement */
    hf__time now;
};

/* The value that is bound to one of the letters A to Z. hf__my_sql() writes it
 * in place of %A to %Z. */
struct my_param {
    const void *bytes; /* 'x', 'h' */
    uint64_t n;        /* the number of bytes; for 'u', the value */
    char as;           /* 'x', 'h' or 'u', with the meaning of hf__my_sql() */
};

struct my_owner {
    /* Called when the login is complete; may be NULL. Sends the statements that
     * must be answered before the connection is up; the functions that handle
     * their answers may send more. The connection is up when nothing is in
     * flight. Returns 0 or a code, as a my_answer_fn does. */
    int (*hello)(struct my_conn *, hf__time now);
    void (*up)(struct my_conn *, hf__time now);
    /* Called like the down() of a link (link.h). If was_up is true, this
     * function may take the packets in flight out of `sents`, with
     * hf__sent_lost() and hf__sent_unsent(). The packets that it leaves there
     * are dropped. */
    void (*down)(struct my_conn *, int code, bool was_up, hf__time now);
};

struct my_conn {
    struct net_link link;
    const struct my_owner *type;
    void *owner;
    const struct my_login *login;
    struct net_sents sents;
    /* Taken from the server's greeting: */
    uint32_t thread; /* the connection id, for KILL */
    bool is_mariadb;
    bool is_too_old; /* according to its version, which a proxy may have
                        invented */
    char version[64];
    /* Private from here on: wire.c, login.c, conn.c. */
    uint8_t phase; /* enum my_phase */
    uint8_t seq;   /* sequence number of the next packet in either direction */
    struct hf__arena arena;
    struct net_out in; /* an incomplete packet: [from, len) */
    struct my_gather {
        struct my_result *first, *last;
        struct my_row *row; /* the last row of `last` */
        size_t columns;     /* how many column descriptions are still to come */
        uint8_t at;         /* enum my_at: what comes next */
        size_t bytes;       /* length of the answer so far */
    } answer;
    struct my_param param[26];
    uint64_t start;         /* where the packet being written begins */
    bool failed;            /* the packet being written cannot be sent */
    uint32_t offers;        /* the server's capabilities */
    char plugin[64];        /* the authentication plugin in use */
    unsigned char salt[20]; /* the challenge of the plugin */
};

enum my_phase {
    MY_GREETING, /* the server speaks first */
    MY_LOGIN,
    MY_READY,
};

/* `size` is the size of the owner's struct that begins with my_sent. */
void hf__my_conn_init(struct my_conn *, const struct hf__core *, hf_client *,
                      const struct my_owner *, void *owner, size_t size);
void hf__my_conn_fini(struct my_conn *);
/* Closes a connection that is no longer wanted. down() is not called. */
void hf__my_conn_stop(struct my_conn *);

/*
 * A packet of statements, separated by ";". hf__my_begin() begins it,
 * hf__my_sql() appends to it as often as needed, and hf__my_end() ends it. It
 * is sent by the next hf__net_flush().
 *
 * hf__my_sql() replaces in `fmt`:
 *   %x        const void *, size_t: these bytes as a literal, x'6162'
 *   %h        the same, without x''
 *   %u        uint64_t
 *   %s        const char *, a constant
 *   %A to %Z  the value that was bound to the letter
 *   %%        a percent sign
 * Everything else is copied.
 *
 * hf__my_end() returns the owner's struct, which is zero except for its
 * my_sent. It returns NULL if out of memory or if the packet is too long; the
 * packet is then removed.
 */
void hf__my_begin(struct my_conn *);
void hf__my_sql(struct my_conn *, const char *fmt, ...);
void hf__my_vsql(struct my_conn *, const char *fmt, va_list);
void *hf__my_end(struct my_conn *, my_answer_fn *);
/* Writes a whole packet of these statements, in which the letters are replaced.
 * Returns 0 or HF_ENOMEM. */
int hf__my_say(struct my_conn *, const char *sql, my_answer_fn *);
/* Binds a value to a letter, until the letter is bound again. `as` is 'x' or
 * 'h'. The bytes must stay valid until the packet ends. */
void hf__my_bind_bytes(struct my_conn *, char letter, char as, const void *,
                       size_t len);
void hf__my_bind_number(struct my_conn *, char letter, uint64_t);

#endif
