/* Starts the server, or creates the directory, that a name on the command line
 * selects. */
#ifndef CONF_SERVERS_H
#define CONF_SERVERS_H

#include <stdbool.h>

/* Sets conf.url and the fields that belong to it. Returns 0, or -1 after a
 * message. */
int servers_start(const char *name_or_url);
/* Called in a child: switches to its own part of the server, which looks as if
 * no other client used the server. Only for zk and zk-ensemble. */
int servers_part(unsigned index);
void servers_stop(void);

/* Faults of a server, for the soak tests. */
enum servers_fault {
    SERVERS_STOPPED, /* SIGSTOP */
    SERVERS_KILLED,  /* SIGKILL; only servers that keep data */
};
/* Stops or kills one of the started servers; `which` may be any number. Returns
 * false if none was stopped or killed. */
bool servers_hurt(enum servers_fault, unsigned which);
/* Continues or restarts the servers that were stopped or killed. Returns 0 when
 * all started servers serve again, or -1 if one does not. */
int servers_heal(void);

#endif
