/* What a name of the command line stands for: a directory, a server. */
#ifndef CONF_SERVERS_H
#define CONF_SERVERS_H

/* Sets conf.url and what goes with it. 0, or -1 after a message. */
int servers_start(const char *name_or_url);
void servers_stop(void);

#endif
