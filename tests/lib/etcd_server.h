/*
 * A real etcd for a test: one member, or a cluster of three, on free loopback
 * ports, with its data in memory. It dies with the thread that started it.
 * etcd_server_start() returns when the server has answered a read that needs a
 * leader; it never waits for a fixed time.
 */
#ifndef TESTS_ETCD_SERVER_H
#define TESTS_ETCD_SERVER_H

#include "server_process.h"

#define ETCD_SERVER_ARGS 8
/* How late a lease may end: etcd counts in whole seconds and looks for expired
 * leases twice a second. */
#define ETCD_TICK_MS 1500
#define ETCD_CLUSTER 3

struct etcd_server {
    SERVER_PROCESS;
    const char *cluster; /* all members, or NULL for a single server */
    const char *program; /* NULL: $TEST_ETCD, or etcd from PATH */
    int port;            /* for clients */
    int peer, look;      /* peer: for members; look: HTTP for /health, no TLS */
    const char *tls; /* name of its certificate (certs.h), or NULL: no TLS */
    bool asks_certificate; /* with TLS: requires certificates signed by ca */
    char url[64];          /* etcd://127.0.0.1:port */
    char tls_url[128];     /* etcds://127.0.0.1:port?cacert=... */
    const char *password;  /* password of root, if authentication is on */
    const char *args[ETCD_SERVER_ARGS]; /* further arguments, NULL at the end */
};

SERVER_VERBS(etcd_server)
/* Functions that return int return 0, or -1 with a message on stderr. */
int etcd_server_start(struct etcd_server *); /* the caller sets tls, args, ...
                                                first */
/* Kills the server and starts it again without its data. */
int etcd_server_empty(struct etcd_server *);

/* Turns authentication on. Creates the user root, with all rights, and the user
 * `worker`, with rights to the keys with the prefix; both users have the given
 * password. */
int etcd_server_lock(struct etcd_server *, const char *password,
                     const char *prefix);
/* Runs etcdctl with these arguments and returns its exit status. Stores its
 * output in `out` as a string, unless `out` is NULL. */
int etcd_server_ctl(struct etcd_server *, const char *args, char *out,
                    size_t size);
/* Returns a metric of the server, or -1. The argument is "\nNAME ", because the
 * name must be a whole word at the start of a line. */
double etcd_server_metric(const struct etcd_server *, const char *name);
/* Returns the number of entries of locks and latches, or -1; prints them if
 * `print`. */
long etcd_server_keys(struct etcd_server *, bool print);

struct etcd_cluster {
    struct etcd_server server[ETCD_CLUSTER];
    char members[160];
    char url[80]; /* names all three members */
};

int etcd_cluster_start(struct etcd_cluster *); /* the caller sets args in
                                                  server[0] first */
/* Starts every killed member and continues every stopped one; returns when all
 * members form one cluster. */
int etcd_cluster_heal(struct etcd_cluster *);
/* Returns the leader among the running members, or NULL if none is known. */
struct etcd_server *etcd_cluster_leader(struct etcd_cluster *);
/* Waits for a leader; returns the n-th of the members that follow it. */
struct etcd_server *etcd_cluster_follower(struct etcd_cluster *, int n);
void etcd_cluster_end(struct etcd_cluster *);

#endif
