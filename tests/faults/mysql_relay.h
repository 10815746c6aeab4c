/* What is between a client and its server and shares connections, as far as a
 * client can tell: the number that it is greeted with is not that of the
 * server's connection. */
#ifndef MYSQL_RELAY_H
#define MYSQL_RELAY_H

struct relay;

/* To 127.0.0.1:port. NULL on failure. */
struct relay *relay_start(int port);
int relay_port(const struct relay *);
/* From now on the greeting does not say that it is MariaDB, and sessions have
 * another time zone than the client says. */
void relay_hides_name(struct relay *);
void relay_changes_zone(struct relay *);
void relay_end(struct relay *);

#endif
