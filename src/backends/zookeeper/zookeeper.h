/*
 * The ZooKeeper backend: the state of one client (struct zk), which all files
 * share. A client has one session, through the single-threaded form of
 * libzookeeper, which starts no thread: the backend drives it.
 *
 * Every function runs with the client's mutex held, except open() and close(),
 * which run on the helper thread before the client exists and after it has
 * ended. The library calls its callbacks from inside its own functions, so they
 * run under the mutex too. During close() (zk.closing) a callback only frees
 * what it owns.
 *
 * Terms: a *line* is the core's record of one wait or hold (hf__remote). A
 * *lock* is what the backend keeps for one line (lock.h). A *node* is the
 * client's record of one entry at the server, created for one hold id (node.h).
 * A node stays in memory until its entry is known to be gone, even if the lock
 * no longer wants it, so that the client deletes every entry that it has, or
 * may have, created. A *call* is one request to the server (call.h). It is
 * answered exactly once and belongs to a node or a query, never to a lock, so a
 * late answer cannot reach a newer node. A *watch* is on one path and serves
 * all locks that wait for that path (watch.h).
 *
 * zookeeper.c creates and frees struct zk. README.md describes the nodes at the
 * server and lists the files.
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
    zhandle_t *zh;          /* NULL between sessions, until again_at */
    struct zk_addrs *addrs; /* the addresses that the last lookup found */
    struct hf__lookup *job; /* a name lookup, running or finished; or NULL */
    bool numeric;           /* the hosts are addresses: no lookup is needed */
    bool up;                /* connected and authenticated: calls may be sent */
    bool greeting;          /* the first request of this connection was sent */
    bool greeted;           /* that request was answered */
    bool opened;            /* `up` was true at least once */
    bool closing;   /* close() is running: callbacks only free what they own */
    bool moving;    /* advance() is running */
    bool warned;    /* it was logged that a sequence nears its end */
    bool said;      /* `text` has changed since it was last reported */
    bool unwatched; /* the core could not watch own_fd: fd is polled */
    bool first_words; /* the server's first bytes were checked */
    int open_code;    /* why opening failed, or 0 */
    bool was_late;    /* while opening: some server did not answer in time */
    size_t untried;   /* while opening: addresses not tried yet */
    hf__time open_until;
    int refusal;  /* while opening: a code to return instead of "no answer" */
    int fd;       /* the descriptor that the library owns; or -1 */
    int own_fd;   /* our duplicate of fd, which the core watches; or -1 */
    uint32_t tag; /* changes with each new own_fd */
    int interest;
    int ready;            /* the events of `interest` that have arrived */
    uint32_t patience_ms; /* how long an attempt to connect may take */
    uint32_t timeout_ms;  /* the session's timeout, as negotiated */
    int64_t session_id;
    int parent_refusal;       /* why a parent was not created; or ZOK */
    uintptr_t refused_parent; /* a hash of that parent's path */
    hf__time timer;           /* when the library wants to be called */
    hf__time lookup_at;       /* while down: time of the next lookup */
    hf__time again_at;        /* if there is no handle: when to create the
                                 next */
    hf__time up_at;           /* start of the current or last connection */
    hf__time pause_until;     /* no connection is attempted before this time */
    uint32_t pause_ms;        /* limit of the pause (session.c); 0 if none */
    hf__time starved_until; /* out of memory: no keep-alive is sent before this
                               time */
    hf__time sweep_at;      /* next retry of deletions that failed, or 0 */
    hf__time connect_at;
    hf__time sent;       /* when the last call was sent */
    hf__time used;       /* when a call was last sent outside of advance() */
    hf__time touched[8]; /* send times of answered calls */
    unsigned touched_at; /* index of the newest time in `touched` */
    hf__time proved;     /* send time of the last acknowledged write */
    hf__time good_until; /* until then the session is sure to live */
    bool beating;        /* a keep-alive write is unanswered */
    uint8_t nudges;      /* requests sent because answers were late */
    unsigned waiting;    /* queued locks, except those that wait for a latch */
    unsigned waiting_latch; /* queued locks that wait for a latch */
    hf__time poll_at; /* next safety poll, or time limit of unanswered ones */
    uint32_t polls;   /* unanswered safety polls */
    hf__time pass_at; /* the earliest zk_lock.pass_until */

    struct zk_call *calls, *spare; /* unanswered calls; spare memory for new
                                      ones */
    unsigned calls_len;
    struct zk_node *nodes;    /* all nodes of this session */
    struct zk_chunk *chunks;  /* transactions of unanswered renewals */
    struct hf__table watches; /* all watches, by path */
    uintptr_t watch_ids;      /* the last watch id */
    struct zk_query *queries; /* unfinished queries */
    struct zk_notify *listening;
    uint64_t holders; /* number in the name of the newest entry of an unfair
                         mutex */
    struct hf__latch_requests latch_requests;

    uint8_t salt[16]; /* random per session; mixed into the uuids of hold ids */
    char nowhere[64]; /* a path at which no node ever exists */
    char about[96];   /* "<pid>\n<host>\n", to which an entry adds the label */
    char *hosts;      /* the hosts of the URL, "h1:2181,h2:2181" */
    char *root;       /* "" or "/a/b": the URL's path */
    const struct ACL_vector *acl;
    uint32_t ttl_ms, open_timeout_ms;
    uint32_t tick_ms; /* the servers' tick from the URL, or 0 */
    bool kazoo;       /* dialect=kazoo */
    bool listens;     /* the program listens for events */
    char *secret;     /* "user:password"; or NULL */
    char text[120];   /* the last error of the library: "host:port: why" */
    char cause[64];   /* why the backend itself ended a connection */
};

#endif
