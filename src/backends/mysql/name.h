/*
 * How statements refer to a lock: the hash in the names of its user locks, the
 * part of its label that a row holds, and the letters that statements
 * contain.
 */
#ifndef HF_MYSQL_NAME_H
#define HF_MYSQL_NAME_H

#include "mysql.h"

/* Writes the hash of the database and the name. It includes the database
 * because user locks are common to all databases of the server. */
void hf__my_hash(const struct mysql *, const char *name, size_t len,
                 uint8_t to[MY_HASH_LEN]);
/* Returns the length of the label, cut to the size of the column. */
size_t hf__my_label_len(const struct hf__remote *);

/* These bind letters of statements (hf__my_sql()). hf__my_bind_lock() binds all
 * letters below, the other two only those of the client or of the name.
 *
 *   name    %N the name, %Q its hash as hex digits, for the names of user locks
 *   client  %O the client's id as a literal, %C the same id as hex digits, for
 *           the name of the client's user lock, %A the host, %P the pid
 *   lock    %B the label, %K the kind, %S the size, %F 1 if it is fair, %W 1 if
 *           it is for writing, %T the connection id of its waiting connection,
 *           or 0 */
void hf__my_bind_lock(const struct mysql *, struct my_conn *,
                      const struct my_lock *);
void hf__my_bind_client(const struct mysql *, struct my_conn *);
void hf__my_bind_name(struct my_conn *, const char *name, size_t len,
                      const uint8_t hash[MY_HASH_LEN]);

#endif
