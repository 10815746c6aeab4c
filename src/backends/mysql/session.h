/*
 * The first statements of a connection. They set up its session. On cmd they
 * also find out what the server is, whether the tables exist (missing ones are
 * created), and whether the thread of an earlier connection is still running.
 *
 * cmd.c and wait.c call these functions, most of them from the hello of a
 * connection; a code that the hello returns ends the connection. mysql.c calls
 * hf__my_aim(). The client's mutex is held.
 */
#ifndef HF_MYSQL_SESSION_H
#define HF_MYSQL_SESSION_H

#include "mysql.h"

/* Sets the server, the timeouts and the login of a connection. The caller sets
 * link.lost. */
void hf__my_aim(struct mysql *, struct my_conn *, struct net_endpoint *,
                uint32_t connect_ms);
/* The hello of cmd (struct my_owner). */
int hf__my_session_hello(struct my_conn *, hf__time now);

/* Begins the packet of a hello, with the settings of the session. */
void hf__my_put_session(const struct mysql *, struct my_conn *,
                        uint32_t idle_s);
/* Sets the message for an answer that ends with an error, with advice. Returns
 * the code. */
int hf__my_hello_refused(struct my_conn *, const struct my_answer *);

#endif
