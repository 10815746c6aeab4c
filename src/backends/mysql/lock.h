/*
 * The slots of a lock of any kind, and its state (struct my_lock, from attach
 * to detach). mysql.c puts the slots into the backend's table, and the other
 * functions into the table of struct my_op (cmd.h). A slot reports to the core
 * only by its return value. The client's mutex is held.
 */
#ifndef HF_MYSQL_LOCK_H
#define HF_MYSQL_LOCK_H

#include "mysql.h"

struct my_flight;

int hf__my_attach(void *, struct hf__remote *);
void hf__my_detach(void *, struct hf__remote *);
int hf__my_attempt(void *, struct hf__req *);
int hf__my_release(void *, struct hf__req *);
int hf__my_abandon(void *, struct hf__req *);

/* These handle ATTEMPT, RELEASE and ABANDON (struct my_op). */
int hf__my_verb_encode(struct mysql *, struct hf__req *);
int hf__my_verb_answer(struct mysql *, const struct my_flight *,
                       const struct my_answer *);

#endif
