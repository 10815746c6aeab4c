/*
 * What a connection says before it is used: the settings of its session, and,
 * for cmd, what the server is, whether the tables are there (if not, it makes
 * them), and whether the thread of an earlier connection is still at work.
 *
 * cmd.c and wait.c call this from the hello of their connections; a code that
 * is returned ends the connection, and its text is set. The client's mutex is
 * held.
 */
#ifndef HF_MYSQL_SESSION_H
#define HF_MYSQL_SESSION_H

#include "mysql.h"

/* Where a connection leads, and how long it may take; its link lacks `lost`.
 * The login is that of the client. */
void hf__my_aim(struct mysql *, struct my_conn *, struct net_endpoint *,
                uint32_t connect_ms);
/* The hello of cmd (struct my_owner). */
int hf__my_session_hello(struct my_conn *, hf__time now);

/* For a hello: begins the packet, with the settings of a session. */
void hf__my_put_session(const struct mysql *, struct my_conn *,
                        uint32_t idle_s);
/* The answer ends with an error: the text, with advice. Returns the code. */
int hf__my_hello_refused(struct my_conn *, const struct my_answer *);

#endif
