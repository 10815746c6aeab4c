/*
 * Real ZooKeeper servers for a test, one or an ensemble of three: on free
 * loopback ports, in their own directory. Ticks are short, so that sessions can
 * be short, and empty containers are removed all the time, so that what is left
 * is garbage. The servers die with the thread that started them. They are ready
 * when they answer `srvr`, never after a sleep.
 */
#ifndef TESTS_ZK_SERVER_H
#define TESTS_ZK_SERVER_H

#include "server_process.h"

#define ZK_SERVER_FLAGS 8
#define ZK_TICK_MS 100
#define ZK_ENSEMBLE 3

struct proxy;
struct zk_hand;

struct zk_server {
    SERVER_PROCESS; /* the JVM */
    int port, peer_port, election_port;
    int id;       /* in an ensemble, from 1; 0: a single server */
    bool durable; /* sync the log, ZooKeeper's default; false: run fast */
    int tick_ms, min_session_ms;        /* 0: ZK_TICK_MS, and two ticks */
    const char *flags[ZK_SERVER_FLAGS]; /* for java, NULL at the end */
    char url[64];                       /* zk://127.0.0.1:port */
    struct zk_hand *admin; /* for zk_server_hand(); connects when needed */
};

SERVER_VERBS(zk_server)
/* Functions that return int return 0, or -1 with a message on stderr. */
int zk_server_start(struct zk_server *); /* set durable to flags before */

/* The reply to a four-letter word, or "" if there is none. */
void zk_server_ask(const struct zk_server *, const char *word, char *text,
                   size_t size);
/* A number of `mntr`, such as "zk_watch_count", or -1 if it is not there. */
long zk_server_number(const struct zk_server *, const char *name);
/* True if it serves requests: a single server, or one with a leader that has a
 * quorum. */
bool zk_server_serves(const struct zk_server *);

/* The administrator's session; fails the test if there is none. */
struct zk_hand *zk_server_hand(struct zk_server *);
void zk_server_leave(struct zk_server *); /* ends the administrator's session */
/* The number of nodes, without ZooKeeper's own. Containers disappear soon after
 * their last child. */
long zk_server_nodes(struct zk_server *);
long zk_server_nodes_below(struct zk_server *, const char *path);
void zk_server_print_nodes(struct zk_server *);
/* The number of children of the path, 0 if there is no such node. */
long zk_server_children(struct zk_server *, const char *path);

struct zk_ensemble {
    struct zk_server server[ZK_ENSEMBLE];
    bool can_be_cut; /* set before the start */
    bool is_cut;
    /* Proxies from the first server to the others: while it is a follower, it
     * reaches the others only through these. */
    struct proxy *way[ZK_ENSEMBLE];
    char hosts[96]; /* 127.0.0.1:port,... */
    char url[112];
};

int zk_ensemble_start(struct zk_ensemble *); /* the caller sets the servers'
                                                fields and can_be_cut before */
/* Waits until all running servers serve. */
int zk_ensemble_serves(struct zk_ensemble *);
/* NULL if none is known */
struct zk_server *zk_ensemble_leader(struct zk_ensemble *);
/* Waits until another server than the first leads. */
int zk_ensemble_elect(struct zk_ensemble *);
/* zk_ensemble_cut() cuts the first server, a follower, off from the others,
 * which it does not notice for some seconds; zk_ensemble_heal() reconnects
 * it. */
void zk_ensemble_cut(struct zk_ensemble *);
int zk_ensemble_heal(struct zk_ensemble *);
/* Kills all servers and starts them again. */
int zk_ensemble_restart(struct zk_ensemble *);
void zk_ensemble_end(struct zk_ensemble *);

#endif
