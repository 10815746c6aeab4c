/*
 * Renews the holds of a batch. The answers also show whether another client
 * wants a hold; a program with an event handler gets this as an event. The slot
 * hf__my_renew() is in the backend's table, the other functions are in the
 * table of struct my_op (cmd.h). A batch is reported when all its chunks are
 * answered. The client's mutex is held.
 */
#ifndef HF_MYSQL_RENEW_H
#define HF_MYSQL_RENEW_H

#include "mysql.h"

struct my_flight;

int hf__my_renew(void *, struct hf__batch *);
/* These handle RENEW, as struct my_op requires. */
int hf__my_renew_encode(struct mysql *, struct hf__req *);
int hf__my_renew_answer(struct mysql *, const struct my_flight *,
                        const struct my_answer *);
void hf__my_renew_failed(struct mysql *, const struct my_flight *, int code);

#endif
