/* A proxy that appears to share connections: the thread id in its greeting is
 * not that of the connection to the server, unless relay_keeps_number() was
 * called. */
#ifndef MYSQL_RELAY_H
#define MYSQL_RELAY_H

#include <stdint.h>

struct relay;

/* Starts a proxy to 127.0.0.1:port; returns NULL on failure. */
struct relay *relay_start(int port);
int relay_port(const struct relay *);
/* After relay_hides_name() the greeting does not name MariaDB. After
 * relay_changes_zone() sessions get a time zone other than the one that the
 * client sets. */
void relay_hides_name(struct relay *);
void relay_changes_zone(struct relay *);
/* After relay_greets_as_old() the greeting contains version 5.5.30, like that
 * of an old ProxySQL. After relay_keeps_number() it contains the server's own
 * thread id. */
void relay_greets_as_old(struct relay *);
void relay_keeps_number(struct relay *);
/* From now on, garbles requests for the server's clock, so that the server
 * answers them with a syntax error. */
void relay_garbles_clock(struct relay *);
/* Returns how many packets of clients tried to kill a thread of the server or
 * to list its threads. */
uint32_t relay_kills(struct relay *);
void relay_end(struct relay *);

#endif
