/*
 * The names of a client: a hash table with chains, under client->mu. A line
 * lives while it is referred to by a handle, a request under way, news, or a
 * refused let_go that will be sent again (hf__line.owes).
 */
#ifndef HF_NAME_TABLE_H
#define HF_NAME_TABLE_H

#include "core/line.h"

/* Finds or creates the first line of a name, and adds one to the line's
 * references and one to its handles. May wait for the backend, for op_timeout
 * at most. Returns 0, or an error code with a message. */
int hf__names_get(hf_client *, const void *name, size_t len,
                  const hf_lock_options *, struct hf__line **, hf_error *);
/* Creates one more line for the name of `first`, whose mutex is held. The
 * caller adds it to the name's lists. Returns 0, or an error code with a
 * message. */
int hf__names_add_line(struct hf__line *first, enum hf_mode, struct hf__line **,
                       hf_error *);
/* Drops the reference of a handle. The caller has already subtracted the handle
 * from the line's handles. */
void hf__names_put(struct hf__line *);
/* Drops a reference to the line; the last one frees it. */
void hf__line_unref(struct hf__line *);
/* Does what hf__line_unref() does, with client->mu held. */
void hf__line_unref_locked(struct hf__line *);

#endif
