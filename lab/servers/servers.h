/*
 * Temporary servers from the installed packages: each on a free loopback port,
 * in its own directory. Contrary to the defaults of their packages, they sync
 * nothing to disk; only etcd does, because version 3.4 has no option to prevent
 * that. Each server has a cleanup process, which stops the server and removes
 * its directory when the runner has ended (cleanup.h).
 */
#ifndef HF_LAB_SERVERS_H
#define HF_LAB_SERVERS_H

#include "../runner/place.h"

#include <stddef.h>

struct lab;

struct lab_server {
    struct lab_place place;
    int port;
    int reserved; /* keeps the port bound until lab_server_end() */
    char directory[128];
    char failure[128]; /* why it could not be executed */
    int cleanup;       /* for cleanup_end() */
};

/*
 * Starts LAB_REDIS, LAB_ZOOKEEPER, LAB_ETCD or LAB_MARIADB. The list `args' has
 * further arguments of the server, with NULL at the end; it may be NULL. For
 * ZooKeeper an argument with a dash is an argument of the JVM, and any other is
 * a line of the server's configuration.
 *
 * Waits until the server answers. If the server is not installed, dies and
 * names the Debian package. If it does not start, dies with the last lines of
 * its log. The lab owns the server, which lives until lab_server_end(), or the
 * end of the run.
 *
 * A MariaDB has a database "lab", and its port as server_id. Its root has a
 * password, which is in the URL. For replication ("--log-bin" at the master)
 * there is a user without a password:
 *
 *     CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d,
 *         MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos,
 *         MASTER_CONNECT_RETRY = 1
 */
struct lab_server *lab_server_start(struct lab *lab, enum lab_engine engine,
                                    const char *const *args);
/* Does the same for the n members of one etcd cluster. */
void lab_etcd_start(struct lab *lab, struct lab_server **members, size_t n);
/* Starts the independent servers of Redlock: one for each element of `servers'
 * that is NULL. Then fills in `place', the place that consists of all the
 * servers in `servers'. */
void lab_redlock_start(struct lab *lab,
                       struct lab_server *servers[LAB_REDLOCK_SERVERS],
                       struct lab_place *place);
/* Dies if a server of one of these kinds is not installed. Names all packages
 * that are missing. */
void lab_servers_check(const enum lab_engine *engines, size_t n);
/* Sends SIGKILL; the server is dead on return, and is never started again. Its
 * cleanup process stays. */
void lab_server_kill(struct lab_server *server);
/* Stops the server, and removes its directory. */
void lab_server_end(struct lab_server *server);

/* Returns the CPU time in ms that a place has used so far: the time of its
 * processes, or, if a Redis was given by a URL, the time that this Redis
 * reports. Returns a negative number if the time is not known. */
double lab_place_cpu_ms(const struct lab_place *place);

#endif
