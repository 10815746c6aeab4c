/*
 * The lines of a name that are in use, newest first, and the entries of those
 * who read through them. line->mu is held.
 */
#ifndef HF_LINE_LIST_H
#define HF_LINE_LIST_H

#include "base/list.h"
#include "core/line.h"

/* Takes back entries that are not needed any more, and the line if nobody uses
 * it any more (that of a mutex stays). hf__line_run() does it too. */
void hf__lines_rest(struct hf__line *);
/* Those that are taken, newest first. */
struct hf__line *hf__lines_newest(struct hf__line *first); /* or NULL */
struct hf__line *hf__lines_after(const struct hf__line *); /* or NULL */
/* Takes all but the first out of their list; see hf__lines_after(). */
struct hf__line *hf__lines_all_but_first(struct hf__line *first);
void hf__lines_free_readers(struct hf__line *); /* the entries it has */
/* The line that this is the entry of. */
static inline struct hf__line *hf__lines_of_entry(struct hf__line_entry *entry)
{
    return hf__container(entry->queue, struct hf__line, queue);
}

#endif
