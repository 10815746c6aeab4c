/* What a name of the command line stands for: a directory, a server. */
#ifndef CONF_SERVERS_H
#define CONF_SERVERS_H

/* Sets conf.url and what goes with it. 0, or -1 after a message. */
int servers_start(const char *name_or_url);
/* In a child: a place of its own in what was started, as if nobody else used
 * it. Of zk and zk-ensemble alone. */
int servers_part(unsigned index);
void servers_stop(void);

#endif
