/*
 * A real etcd for a test: one member, or a cluster of three, on free loopback
 * ports, with its data in memory. It dies with the thread that started it. It
 * is ready when it answers a read that needs a leader, never after a sleep.
 */
#ifndef TESTS_ETCD_SERVER_H
#define TESTS_ETCD_SERVER_H

#include "server_process.h"

#define ETCD_SERVER_ARGS 8
/* How late a lease may end: etcd counts whole seconds and checks twice a
 * second. */
#define ETCD_TICK_MS 1500
#define ETCD_CLUSTER 3

struct etcd_server {
    SERVER_PROCESS;
    const char *cluster; /* its members, or NULL if it is single */
    const char *program; /* NULL: of TEST_ETCD, or Debian's */
    int port;            /* for clients */
    int peer, look;      /* peer: other members; look: /health, no TLS */
    const char *tls; /* name of its certificate (certs.h), or NULL: no TLS */
    bool asks_certificate; /* with TLS: client certificates signed by ca */
    char url[64];          /* etcd://127.0.0.1:port */
    char tls_url[128];     /* etcds://127.0.0.1:port?cacert=... */
    const char *password;  /* of the user root, with authentication on */
    const char *args[ETCD_SERVER_ARGS]; /* further arguments, NULL at the end */
};

SERVER_VERBS(etcd_server)
/* Functions that return int return 0, or -1 with a message on stderr. */
int etcd_server_start(struct etcd_server *); /* set tls, args, ... before */
/* Kills the server and starts it again without its data. */
int etcd_server_empty(struct etcd_server *);

/* Turns authentication on: root has all rights, and `worker` has those to keys
 * with the prefix. Both users get the given password. */
int etcd_server_lock(struct etcd_server *, const char *password,
                     const char *prefix);
/* Runs etcdctl with these arguments and returns its exit status. Its output
 * goes to `out`, terminated, unless that is NULL. */
int etcd_server_ctl(struct etcd_server *, const char *args, char *out,
                    size_t size);
/* A metric of the server, or -1. The name is "\nNAME ". */
double etcd_server_metric(const struct etcd_server *, const char *name);
/* The number of keys, without those of the clients themselves; prints them on
 * request. */
long etcd_server_keys(struct etcd_server *, bool print);

struct etcd_cluster {
    struct etcd_server server[ETCD_CLUSTER];
    char members[160];
    char url[80]; /* names all three members */
};

int etcd_cluster_start(struct etcd_cluster *); /* args: the first server's */
/* Starts or continues every killed or stopped member; returns when all run as
 * one cluster. */
int etcd_cluster_heal(struct etcd_cluster *);
/* The leader among the running members; NULL if none is known. */
struct etcd_server *etcd_cluster_leader(struct etcd_cluster *);
/* Waits for a leader; returns the n-th member that follows it. */
struct etcd_server *etcd_cluster_follower(struct etcd_cluster *, int n);
void etcd_cluster_end(struct etcd_cluster *);

#endif
