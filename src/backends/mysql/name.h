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

#endif
