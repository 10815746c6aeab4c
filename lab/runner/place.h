/*
 * A place for locks or for a stock: data only. The functions of
 * servers/places.h return the places of this run.
 */
#ifndef HF_LAB_PLACE_H
#define HF_LAB_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

enum lab_engine {
    LAB_SHM,
    LAB_FILE,
    LAB_REDIS,
    LAB_REDLOCK, /* several servers of Redis */
    LAB_ZOOKEEPER,
    LAB_ETCD,
    LAB_MARIADB,
    LAB_ENGINES,
};

enum { LAB_REDLOCK_SERVERS = 5 };

/* A place is given by a URL, or is a temporary server. */
struct lab_place {
    enum lab_engine engine;
    const char *name; /* its name in rows, such as "redis" */
    char url[256];    /* may contain a password: never print it */
    pid_t pid;        /* the pid of a temporary server, or 0 */
    pid_t others[LAB_REDLOCK_SERVERS - 1]; /* the other servers of Redlock */
    bool given; /* by a URL: the run must leave nothing in it */
};

#endif
