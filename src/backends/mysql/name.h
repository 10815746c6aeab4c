/*
 * A name as the server sees it: the hash in the names of its user locks, and
 * how much of a label goes into a row. Pure.
 */
#ifndef HF_MYSQL_NAME_H
#define HF_MYSQL_NAME_H

#include "mysql.h"

/* Of the database and the name: user locks are those of the whole server. */
void hf__my_hash(const struct mysql *, const char *name, size_t len,
                 uint8_t to[MY_HASH_LEN]);
/* At most as many bytes of the label as the column holds. */
size_t hf__my_label_len(const struct hf__remote *);

/* Binds the letters that statements have for a lock, and for its client, in the
 * packet that was begun (hf__my_sql()):
 *
 *   %N  the name, %Q its hash for the names of user locks
 *   %O  the owner, %C the same for the name of its user lock
 *   %A  the host, %P the pid, %B the label
 *   %T  the server's number of the connection that waits for it; 0: none
 *   %K  the kind, %S the size, %F is it fair, %W is it for writing
 */
void hf__my_bind_lock(const struct mysql *, struct my_conn *,
                      const struct my_lock *);
void hf__my_bind_client(const struct mysql *, struct my_conn *);
void hf__my_bind_name(struct my_conn *, const char *name, size_t len,
                      const uint8_t hash[MY_HASH_LEN]);

#endif
