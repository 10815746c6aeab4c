/*
 * The lines of a name that are in use (here called taken), newest first, and
 * the entries of their readers. line->mu is held.
 */
#ifndef HF_LINE_LIST_H
#define HF_LINE_LIST_H

#include "base/list.h"
#include "core/line.h"

/* Takes back the unused reader entries of the line's queue, and moves the line
 * to the list that the state of its queue calls for (hf__line_set_rest). Does
 * nothing for a mutex. hf__line_run() also calls this. */
void hf__lines_rest(struct hf__line *);
/* Returns the newest line that is taken, or NULL if there is none. For a mutex,
 * returns its line in either case. */
struct hf__line *hf__lines_newest(struct hf__line *first);
/* Returns the next older taken line, or NULL if there is none. */
struct hf__line *hf__lines_after(const struct hf__line *);
/* Removes all lines but the first from their lists. These lines then form a
 * chain, which hf__lines_after() walks. Returns the head of the chain, or NULL
 * if there are no such lines. */
struct hf__line *hf__lines_all_but_first(struct hf__line *first);
/* Frees all reader entries of the line. */
void hf__lines_free_readers(struct hf__line *);
/* Returns the line that this entry belongs to. */
static inline struct hf__line *hf__lines_of_entry(struct hf__line_entry *entry)
{
    return hf__container(entry->queue, struct hf__line, queue);
}

#endif
