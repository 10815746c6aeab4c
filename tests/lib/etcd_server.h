/*
 * A real etcd for a test: one member, or a cluster of three, on free loopback
 * ports, with its data in memory. It dies with the thread that started it. It
 * is ready when it answers a read that needs a leader, never after a sleep.
 */
#ifndef TESTS_ETCD_SERVER_H
#define TESTS_ETCD_SERVER_H

#include "server_process.h"

#define ETCD_SERVER_ARGS 8
/* How much later than its time a lease may end: it is whole seconds long, and
 * is looked at twice a second. */
#define ETCD_TICK_MS 1500
#define ETCD_CLUSTER 3

struct etcd_server {
    SERVER_PROCESS;
    const char *cluster;   /* its members; NULL: it is alone */
    const char *program;   /* NULL: what TEST_ETCD names, or Debian's */
    int port;              /* for clients */
    int peer, look;        /* for other members; for /health, without TLS */
    const char *tls;       /* its certificate (certs.h): TLS on its port */
    bool asks_certificate; /* with TLS: of a client, signed by ca */
    char url[64];          /* etcd://127.0.0.1:port */
    char tls_url[128];     /* etcds://127.0.0.1:port?cacert=... */
    const char *password;  /* of the user root, once authentication is on */
    const char *args[ETCD_SERVER_ARGS]; /* more of them, NULL at the end */
};

SERVER_VERBS(etcd_server)
/* Those that return an int return 0, or -1 with a text on stderr. */
int etcd_server_start(struct etcd_server *); /* set tls, args ... before */
/* Killed, and started again without its data. */
int etcd_server_empty(struct etcd_server *);

/* From now on it wants a user: root has all rights, and `worker` those to what
 * begins with the prefix. Both have that password. */
int etcd_server_lock(struct etcd_server *, const char *password,
                     const char *prefix);
/* etcdctl with these arguments; its exit status. What it prints goes to `out`
 * (NULL: nowhere), terminated. */
int etcd_server_ctl(struct etcd_server *, const char *args, char *out,
                    size_t size);
/* A number that it gives of itself, or -1. The name is "\nNAME ". */
double etcd_server_metric(const struct etcd_server *, const char *name);
/* How many keys there are, but for those of clients as such; may print them. */
long etcd_server_keys(struct etcd_server *, bool print);

struct etcd_cluster {
    struct etcd_server server[ETCD_CLUSTER];
    char members[160];
    char url[80]; /* of all of them */
};

int etcd_cluster_start(struct etcd_cluster *); /* args: of the first one */
/* All run, and are one cluster: those that were killed or stopped, too. */
int etcd_cluster_heal(struct etcd_cluster *);
/* Of those that run; NULL: none is known. */
struct etcd_server *etcd_cluster_leader(struct etcd_cluster *);
/* Until there is one. The n-th that follows. */
struct etcd_server *etcd_cluster_follower(struct etcd_cluster *, int n);
void etcd_cluster_end(struct etcd_cluster *);

#endif
