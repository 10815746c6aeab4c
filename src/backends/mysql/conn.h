/*
 * A connection to one MySQL or MariaDB server: the protocol, the login, and
 * statements whose answers come in the order of sending. It knows nothing of
 * locks: conn.c, login.c and wire.c need src/net and OpenSSL, and nothing else
 * of this folder. README.md says why it is our own and not libmariadb.
 *
 * Everything runs with the client's mutex held. The owner (struct my_owner) is
 * called from hf__link_ready(), hf__link_advance() and hf__link_fail() on
 * c->link, never from a function that sends. The link is the connection's: its
 * owner reads state, text and where, sets what is marked as the owner's in
 * link.h (but for talk, owner and understood), and starts, drives and fails it.
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

/* The whole answer to a packet of statements: 0, or a code that ends the
 * connection, as that of data() (link.h); the packet counts as unanswered then,
 * and nothing was sent in the meantime. */
typedef int my_answer_fn(struct my_conn *, const struct my_answer *);

/* A packet that is under way. The owner's struct of it begins with this. */
struct my_sent {
    struct net_sent sent;
    my_answer_fn *fn;
};

/* Memory of the connection's, gone when the function returns. */
struct my_answer {
    struct my_sent *sent; /* not to be used once another was sent */
    const struct my_result *first, *last; /* of a statement each */
    hf__time now;
};

/* What a letter stands for in statements. */
struct my_param {
    const void *bytes; /* of 'x' and 'h' */
    uint64_t n;        /* how many; the number itself of 'u' */
    char as;           /* 'x', 'h', 'u', as hf__my_sql() has them */
};

struct my_owner {
    /* Logged in: sends what must be answered before it is up, as often as it
     * likes: it is up when nothing is under way any more. As above. */
    int (*hello)(struct my_conn *, hf__time now);
    void (*up)(struct my_conn *, hf__time now);
    /* As that of a link; was_up: what is under way can be taken out
     * (hf__sent_lost(), hf__sent_unsent()), and is forgotten then. */
    void (*down)(struct my_conn *, int code, bool was_up, hf__time now);
};

struct my_conn {
    struct net_link link;
    const struct my_owner *type;
    void *owner;
    const struct my_login *login;
    struct net_sents sents;
    /* What the server has said of itself. */
    uint32_t thread; /* its number of this connection, for KILL */
    bool is_mariadb;
    bool is_too_old; /* by its version, which a proxy may have made up */
    char version[64];
    /* Private from here on: wire.c, login.c, conn.c. */
    uint8_t phase; /* enum my_phase */
    uint8_t seq;   /* of the next packet, ours or the server's */
    struct hf__arena arena;
    struct net_out in; /* the beginning of a packet whose rest has not come */
    struct my_gather {
        struct my_result *first, *last;
        struct my_row *row; /* the last of the last */
        size_t columns;     /* whose descriptions are to come */
        uint8_t at;         /* enum my_at, what comes next */
        size_t bytes;       /* of the answer so far */
    } answer;
    struct my_param param[26];
    uint64_t start;         /* where the packet that is written begins */
    bool failed;            /* it cannot be sent */
    uint32_t offers;        /* what the server can */
    char plugin[64];        /* by which we log in */
    unsigned char salt[20]; /* for it */
};

enum my_phase {
    MY_GREETING, /* the server speaks first */
    MY_LOGIN,
    MY_READY,
};

/* size: of the owner's struct my_sent. */
void hf__my_conn_init(struct my_conn *, const struct hf__core *, hf_client *,
                      const struct my_owner *, void *owner, size_t size);
void hf__my_conn_fini(struct my_conn *);
/* It is not wanted any more; down() is not called. */
void hf__my_conn_stop(struct my_conn *);

/*
 * A packet of statements: begin, sql as often as needed, end. It goes out with
 * the next hf__net_flush(). Separated by ";" if there are several.
 *
 * sql: %x const void *, size_t: a literal of these bytes, x'6162'; %h the same
 * without x''; %u uint64_t; %s const char *, a constant of ours; %A to %Z
 * what hf__my_bind_bytes() or hf__my_bind_number() has bound to the letter; %%
 * a percent sign. All else is as it stands. end: the owner's struct, but for
 * its my_sent all zero; NULL: there was no memory, and nothing of the packet is
 * left.
 */
void hf__my_begin(struct my_conn *);
void hf__my_sql(struct my_conn *, const char *fmt, ...);
void hf__my_vsql(struct my_conn *, const char *fmt, va_list);
void *hf__my_end(struct my_conn *, my_answer_fn *);
/* A packet of these statements, which have letters as sql has them. 0,
 * HF_ENOMEM. */
int hf__my_say(struct my_conn *, const char *sql, my_answer_fn *);
/* For the statements of the packet that was begun. as: 'x' or 'h'. */
void hf__my_bind_bytes(struct my_conn *, char letter, char as, const void *,
                       size_t len);
void hf__my_bind_number(struct my_conn *, char letter, uint64_t);

#endif
