/* Starts what a name on the command line stands for: a directory or a
 * server. */
#ifndef CONF_SERVERS_H
#define CONF_SERVERS_H

#include <stdbool.h>

/* Sets conf.url and the fields that go with it. Returns 0, or -1 after a
 * message. */
int servers_start(const char *name_or_url);
/* Called in a child: switches to a part of the server of its own, as if no
 * other client used it. Only for zk and zk-ensemble. */
int servers_part(unsigned index);
void servers_stop(void);

/* Faults of a server, for the soak tests. */
enum servers_fault {
    SERVERS_STOPPED, /* SIGSTOP */
    SERVERS_KILLED,  /* SIGKILL; only servers that keep their data */
};
/* Damages one of the started servers that way, chosen by any number. False if
 * none of them can be damaged that way. */
bool servers_hurt(enum servers_fault, unsigned which);
/* Returns when all started servers serve again: 0, or -1 if they do not. */
int servers_heal(void);

#endif
