/*
 * Real ZooKeeper servers for a test, one or an ensemble of three: on free
 * loopback ports, in a directory of their own, with short ticks so that
 * sessions may be short, and empty containers swept all the time, so that what
 * is left is garbage. They die with the thread that started them, and readiness
 * is an answer to `srvr`, never a sleep.
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
    bool durable; /* syncs its log as servers do; else as fast as can be */
    int tick_ms, min_session_ms;        /* 0: ZK_TICK_MS, and two ticks */
    const char *flags[ZK_SERVER_FLAGS]; /* for java, NULL at the end */
    char url[64];                       /* zk://127.0.0.1:port */
    struct zk_hand *admin; /* for zk_server_hand; connects when needed */
};

SERVER_VERBS(zk_server)
/* All return 0, or -1 with a text on stderr. */
int zk_server_start(struct zk_server *); /* set durable to flags before */

/* What it says to one of the words of four letters, "" if it says nothing. */
void zk_server_ask(const struct zk_server *, const char *word, char *text,
                   size_t size);
/* A number of `mntr`, -1 if it is not there: "zk_watch_count". */
long zk_server_number(const struct zk_server *, const char *name);
/* Serves requests: it is a single server, or knows a leader that has a
 * quorum. */
bool zk_server_serves(const struct zk_server *);

/* A session of the administrator; fails the test if there is none. */
struct zk_hand *zk_server_hand(struct zk_server *);
void zk_server_leave(struct zk_server *); /* ends it */
/* Nodes that are there, but for ZooKeeper's own. Containers go by themselves
 * soon after their last child. */
long zk_server_nodes(struct zk_server *);
long zk_server_nodes_below(struct zk_server *, const char *path);
void zk_server_print_nodes(struct zk_server *);
/* How many children of the path, 0 if there is no such node. */
long zk_server_children(struct zk_server *, const char *path);

struct zk_ensemble {
    struct zk_server server[ZK_ENSEMBLE];
    bool can_be_cut; /* set before */
    bool is_cut;
    /* The first one's ways to the others: as long as it follows, it reaches the
     * others only through these. */
    struct proxy *way[ZK_ENSEMBLE];
    char hosts[96]; /* 127.0.0.1:port,... */
    char url[112];
};

int zk_ensemble_start(struct zk_ensemble *); /* what is set before: the same */
/* Until all that run serve. */
int zk_ensemble_serves(struct zk_ensemble *);
struct zk_server *zk_ensemble_leader(struct zk_ensemble *);   /* or NULL */
struct zk_server *zk_ensemble_follower(struct zk_ensemble *); /* or NULL */
/* Until another than the first one leads. */
int zk_ensemble_elect(struct zk_ensemble *);
/* The first one, which follows, is cut off from the others, and does not know
 * for some seconds; it is with them again. */
void zk_ensemble_cut(struct zk_ensemble *);
int zk_ensemble_heal(struct zk_ensemble *);
/* All killed, and all again. */
int zk_ensemble_restart(struct zk_ensemble *);
void zk_ensemble_end(struct zk_ensemble *);

#endif
