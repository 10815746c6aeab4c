/*
 * Temporary servers from the installed packages: on a free loopback port, in a
 * directory of their own, durable as their packages' defaults are not: nothing
 * is synced to disk. Each has a keeper, a process that stops it and removes its
 * directory when the runner is gone (keeper.h).
 */
#ifndef HF_LAB_SERVERS_H
#define HF_LAB_SERVERS_H

#include "lab.h"

struct lab_server {
    struct lab_place place;
    int port;
    char directory[64];
    int keeper; /* its pipe */
};

/* LAB_REDIS, LAB_ZOOKEEPER or LAB_MARIADB. args: more arguments of the server,
 * NULL at the end; may be NULL. Waits until it answers. Dies, naming the Debian
 * package, if it is not installed, and with the last lines of its log if it
 * does not start. Owned by the lab: it lives until lab_server_end(), or the end
 * of the run. */
struct lab_server *lab_server_start(struct lab *lab, enum lab_engine engine,
                                    const char *const *args);
/* SIGKILL, gone; its keeper stays. Never started again. */
void lab_server_kill(struct lab_server *server);
/* Stopped, its directory gone. */
void lab_server_end(struct lab_server *server);

/* CPU that a place has used so far, in ms: of its process, or what Redis
 * tells. Negative: not known. */
double lab_place_cpu_ms(const struct lab_place *place);

#endif
