/*
 * The ZooKeeper backend: what its files share. One session per client, through
 * the library's single-threaded form: it has no thread, we drive it.
 *
 * Everything here runs with the client's mutex held, except open() and close(),
 * which run on the helper thread before and after that. The library's callbacks
 * run inside its own functions, so under the mutex too; in close() they only
 * free what is theirs (zk.closing).
 *
 * The words: a *line* is the core's (hf__remote), and a *lock* what we keep for
 * one (lock.h). A *node* is one entry of it at the server, made for one hold id
 * (node.h): it outlives the lock's interest in it until it is known to be gone,
 * so that whatever was created or may have been is removed. A *call* is one
 * request to the server (call.h); it is answered exactly once, and belongs to a
 * node, or a query, never to a lock: so what comes late finds the node of its
 * time, and no newer one. A *watch* is on one path, for all locks that wait for
 * it (watch.h).
 *
 * struct zk is one client's; zookeeper.c makes and frees it. README.md says
 * what is at the server, and which file is for what.
 */
#ifndef HF_ZOOKEEPER_H
#define HF_ZOOKEEPER_H

#include "backends/backend.h"
#include "backends/common/latch_requests.h"
#include "backends/common/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

struct zk_addrs;
struct zk_call;
struct zk_changes;
struct zk_chunk;
struct zk_lock;
struct zk_node;
struct zk_notify;
struct zk_query;

struct zk {
    const struct hf__core *core;
    hf_client *client;
    zhandle_t *zh;          /* NULL: lost, a new one is made at again_at */
    struct zk_addrs *addrs; /* the last that were found */
    struct hf__lookup *job; /* under way, or over; NULL */
    bool numeric;           /* there are no names to be looked up again */
    bool up;                /* connected, and let in: calls may be sent */
    bool greeting;          /* connected; the first word is under way */
    bool greeted;           /* and was answered */
    bool opened;            /* it was up once */
    bool closing;           /* callbacks touch nothing */
    bool moving;            /* within advance() */
    bool warned;            /* of a sequence that nears its end */
    bool said;              /* text is new */
    bool unwatched;   /* there was no room for own_fd: looked at by time */
    bool first_words; /* of this connection have been looked at */
    int open_code;    /* why it never was up */
    bool was_late;    /* while opening: one who might have answered */
    size_t untried;   /* while opening: addresses */
    hf__time open_until;
    int refusal;  /* while opening: what is worse than no answer */
    int fd;       /* the library's, which closes it; -1 */
    int own_fd;   /* ours for the same: what is watched; -1 */
    uint32_t tag; /* of own_fd */
    int interest;
    int ready;            /* of that, what can be done at once */
    uint32_t patience_ms; /* with an attempt to connect */
    uint32_t timeout_ms;  /* of the session, as negotiated */
    int64_t session_id;
    int parent_refusal;       /* why the last one was not made; or ZOK */
    uintptr_t refused_parent; /* which one: a hash of its path */
    hf__time timer;           /* the library's */
    hf__time lookup_at;       /* not up: names are looked up again */
    hf__time again_at;        /* without a handle: the next attempt */
    hf__time up_at;           /* since when it is, or was last */
    hf__time pause_until;     /* no connection is made before */
    uint32_t pause_ms;        /* and how long that was; it grows */
    hf__time starved_until;   /* no memory: nothing is sent to stay alive */
    hf__time sweep_at; /* what nobody wants is seen to again; 0: no need */
    hf__time connect_at;
    hf__time sent;       /* the last call of all, */
    hf__time used;       /* and of those outside of advance() */
    hf__time touched[8]; /* send times of calls that were answered */
    unsigned touched_at; /* of them, the newest */
    hf__time proved;     /* send time of the last write that was acknowledged */
    hf__time good_until; /* by that, the session lives */
    bool beating;        /* a beat is under way */
    uint8_t nudges;      /* requests sent because answers did not come */
    unsigned waiting;    /* locks in a queue, */
    unsigned waiting_latch; /* and those that wait for a latch */
    hf__time poll_at;       /* while there are any */
    uint32_t polls;         /* safety polls that are not answered yet */
    hf__time pass_at; /* when a lock that passes has done so for too long */

    struct zk_call *calls, *spare; /* under way, and memory for more */
    unsigned calls_len;
    struct zk_node *nodes;    /* all of this session */
    struct zk_chunk *chunks;  /* renewals under way */
    struct hf__table watches; /* by path */
    uintptr_t watch_ids;      /* so far */
    struct zk_query *queries; /* under way */
    struct zk_notify *listening;
    uint64_t holders; /* of unfair mutexes, so far: each has its own name */
    struct hf__latch_requests latch_requests;

    uint8_t salt[16]; /* of this session: hold ids become uuids by it */
    char nowhere[64]; /* a path where nothing is, of this session */
    char about[96];   /* what our entries say: "<pid>\n<host>\n", then the label
                       */
    char *hosts;      /* "h1:2181,h2:2181" */
    char *root;       /* "" or "/a/b": the URL's path */
    const struct ACL_vector *acl;
    uint32_t ttl_ms, open_timeout_ms;
    uint32_t tick_ms; /* of the servers, as the URL says; 0: it does not */
    bool kazoo;       /* dialect */
    bool listens;     /* the program hears of events */
    char *secret;     /* "user:password"; NULL: none */
    char text[120];   /* the library's last word: "host:port: why" */
    char cause[64];   /* why we end a connection: the library does not know */
};

#endif
