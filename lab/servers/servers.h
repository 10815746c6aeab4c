/*
 * Temporary servers from the installed packages: on a free loopback port, in a
 * directory of their own, durable as their packages' defaults are not: nothing
 * is synced to disk, but for etcd 3.4, which has no option for that. Each has a
 * process of its own that stops it and removes its directory when the runner is
 * gone (cleanup.h).
 */
#ifndef HF_LAB_SERVERS_H
#define HF_LAB_SERVERS_H

#include "../runner/place.h"

#include <stddef.h>

struct lab;

struct lab_server {
    struct lab_place place;
    int port;
    int reserved; /* the port is bound by this until lab_server_end() */
    char directory[128];
    char failure[128]; /* why it could not even be executed */
    int cleanup;       /* its pipe */
};

/*
 * LAB_REDIS, LAB_ZOOKEEPER, LAB_ETCD or LAB_MARIADB. args: more arguments of
 * the server, NULL at the end; may be NULL. For ZooKeeper an argument with a
 * dash is one of the JVM, another one is a line of its configuration. Waits
 * until it answers. Dies, naming the Debian package, if it is not installed,
 * and with the last lines of its log if it does not start. Owned by the lab: it
 * lives until lab_server_end(), or the end of the run.
 *
 * A MariaDB has a database "lab", and its port as server_id. Its root has a
 * password, which is in the URL. For replication ("--log-bin" at the master)
 * there is a user that has none:
 *
 *     CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d,
 *         MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos,
 *         MASTER_CONNECT_RETRY = 1
 */
struct lab_server *lab_server_start(struct lab *lab, enum lab_engine engine,
                                    const char *const *args);
/* The same for n members of one cluster of etcd. */
void lab_etcd_start(struct lab *lab, struct lab_server **members, size_t n);
/* The independent servers of Redlock: starts those that are NULL. place: all of
 * them. */
void lab_redlock_start(struct lab *lab,
                       struct lab_server *servers[LAB_REDLOCK_SERVERS],
                       struct lab_place *place);
/* Dies, naming all packages that are missing, if one of these servers, which
 * have to be started, is not installed. */
void lab_servers_check(const enum lab_engine *engines, size_t n);
/* SIGKILL, gone; its cleanup process stays. Never started again. */
void lab_server_kill(struct lab_server *server);
/* Stopped, its directory gone. */
void lab_server_end(struct lab_server *server);

/* CPU that a place has used so far, in ms: of its process, or what Redis
 * tells. Negative: not known. */
double lab_place_cpu_ms(const struct lab_place *place);

#endif
