/* What is between a client and its server and shares connections, as far as a
 * client can tell: the number that it is greeted with is not that of the
 * server's connection, unless relay_keeps_number(). */
#ifndef MYSQL_RELAY_H
#define MYSQL_RELAY_H

#include <stdint.h>

struct relay;

/* To 127.0.0.1:port. NULL on failure. */
struct relay *relay_start(int port);
int relay_port(const struct relay *);
/* From now on the greeting does not say that it is MariaDB, and sessions have
 * another time zone than the client says. */
void relay_hides_name(struct relay *);
void relay_changes_zone(struct relay *);
/* From now on the greeting's version is 5.5.30, as that of old ProxySQL. */
void relay_greets_as_old(struct relay *);
void relay_keeps_number(struct relay *);
/* From now on the server does not understand how clients ask for its clock. */
void relay_garbles_clock(struct relay *);
/* How many packets of clients have ended other threads of the server, or looked
 * for threads. */
uint32_t relay_kills(struct relay *);
void relay_end(struct relay *);

#endif
