/* What a name of the command line stands for: a directory, a server. */
#ifndef CONF_SERVERS_H
#define CONF_SERVERS_H

#include <stdbool.h>

/* Sets conf.url and what goes with it. 0, or -1 after a message. */
int servers_start(const char *name_or_url);
/* In a child: a place of its own in what was started, as if nobody else used
 * it. Of zk and zk-ensemble alone. */
int servers_part(unsigned index);
void servers_stop(void);

/* For the soak: what befalls a server. */
enum servers_fault {
    SERVERS_STOPPED, /* SIGSTOP */
    SERVERS_KILLED,  /* SIGKILL; where it forgets nothing by that */
};
/* To one of those that were started, chosen by any number. False: there is none
 * to which that can be done. */
bool servers_hurt(enum servers_fault, unsigned which);
/* All that were started serve again. 0, or -1. */
int servers_heal(void);

#endif
