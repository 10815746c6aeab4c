/*
 * Real ZooKeeper servers for a test, a single one or an ensemble of three: on
 * free loopback ports, in their own directories. Ticks are short, so that
 * sessions can be short. Empty containers are removed continually, so that any
 * node that remains was left behind. The servers die with the thread that
 * started them. A start waits until they answer `srvr`, never for a fixed time.
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
    int id;       /* from 1 in an ensemble; 0: a single server */
    bool durable; /* sync the log, as by default; false: faster */
    int tick_ms, min_session_ms;        /* if 0: ZK_TICK_MS, two ticks */
    const char *flags[ZK_SERVER_FLAGS]; /* for java, NULL at the end */
    char url[64];                       /* zk://127.0.0.1:port */
    struct zk_hand *admin; /* for zk_server_hand(); connects when needed */
};

SERVER_VERBS(zk_server)
/* Functions that return int return 0, or -1 with a message on stderr. */
int zk_server_start(struct zk_server *); /* the caller sets the fields from
                                            durable to flags first */

/* Stores the reply to a four-letter word, or "" if there is none. */
void zk_server_ask(const struct zk_server *, const char *word, char *text,
                   size_t size);
/* Returns a number of `mntr`, such as "zk_watch_count", or -1 if the reply does
 * not contain it. */
long zk_server_number(const struct zk_server *, const char *name);
/* Returns whether the server serves requests: a single server, or a member with
 * a leader that has a quorum. */
bool zk_server_serves(const struct zk_server *);

/* Returns the administrator's session; ends the program if the server does not
 * answer. */
struct zk_hand *zk_server_hand(struct zk_server *);
void zk_server_leave(struct zk_server *); /* ends that session */
/* Return the number of nodes, not counting ZooKeeper's own. Containers
 * disappear soon after their last child. */
long zk_server_nodes(struct zk_server *);
long zk_server_nodes_below(struct zk_server *, const char *path);
void zk_server_print_nodes(struct zk_server *);
/* Returns the number of children of the path, or 0 if the node does not
 * exist. */
long zk_server_children(struct zk_server *, const char *path);

struct zk_ensemble {
    struct zk_server server[ZK_ENSEMBLE];
    bool can_be_cut; /* set before the start */
    bool is_cut;
    /* Proxies from the first server to the others, or NULL unless can_be_cut.
     * While the first server is a follower, it reaches the leader only through
     * these, except in elections. */
    struct proxy *way[ZK_ENSEMBLE];
    char hosts[96]; /* 127.0.0.1:port,... */
    char url[112];
};

/* The caller sets can_be_cut and the fields of the servers first. */
int zk_ensemble_start(struct zk_ensemble *);
/* Waits until all running servers serve requests. */
int zk_ensemble_serves(struct zk_ensemble *);
/* Returns the leader, or NULL if none is known. */
struct zk_server *zk_ensemble_leader(struct zk_ensemble *);
/* Restarts the first server until another server leads. Returns -1 after 20
 * restarts, or if a server fails to start or no server leads in time. */
int zk_ensemble_elect(struct zk_ensemble *);
/* zk_ensemble_cut() cuts the first server, which must be a follower, off from
 * the others; the server does not notice this for some seconds.
 * zk_ensemble_heal() reconnects it. */
void zk_ensemble_cut(struct zk_ensemble *);
int zk_ensemble_heal(struct zk_ensemble *);
/* Kills all servers and starts them again. */
int zk_ensemble_restart(struct zk_ensemble *);
void zk_ensemble_end(struct zk_ensemble *);

#endif
