/*
 * A place where locks or a stock live: data alone. servers/places.h says which
 * places there are in this run.
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

/* Where locks or a stock live: given by a URL, or a temporary server. */
enum { LAB_REDLOCK_SERVERS = 5 };

struct lab_place {
    enum lab_engine engine;
    const char *name; /* "redis": as rows say it */
    char url[256];    /* may have a password in it: never print it */
    pid_t pid;        /* of a temporary server, else 0 */
    pid_t others[LAB_REDLOCK_SERVERS - 1]; /* of Redlock, beside pid */
    bool given; /* by a URL: nothing may be left in it */
};

#endif
