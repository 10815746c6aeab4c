/*
 * The names of a client: a plain hash with chains, under client->mu. A line
 * lives as long as a handle, a request under way or news refer to it.
 */
#ifndef HF_NAME_TABLE_H
#define HF_NAME_TABLE_H

#include "core/line.h"

/* The line of a name, made if the client has none, with a reference and a
 * handle counted. May wait for the backend until op_timeout. */
int hf__names_get(hf_client *, const void *name, size_t len,
                  const hf_lock_options *, struct hf__line **, hf_error *);
/* One more line to the name of this one, whose mutex is held; not in its list
 * of lines yet. */
int hf__names_add_line(struct hf__line *first, enum hf_mode, struct hf__line **,
                       hf_error *);
/* What a handle that is not counted any more referred to. */
void hf__names_put(struct hf__line *);
void hf__line_unref(struct hf__line *);
void hf__line_unref_locked(struct hf__line *);

#endif
