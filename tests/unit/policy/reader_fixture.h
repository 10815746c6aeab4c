/* Readers and their entries: the entry of each reader is in queue.readers or in
 * queue.left, exactly once. */
#ifndef READER_FIXTURE_H
#define READER_FIXTURE_H

#include "local_queue_fixture.h"

#define ENTRIES 16
#define JOIN_MS (HF__JOIN / HF__MS)

static struct hf__reader entry[ENTRIES];
static size_t entries; /* number of entries given out */

static inline struct hf__queue shared_queue(void)
{
    struct hf__queue g = queue(true);

    g.shared = true;
    entries = 0;
    return g;
}

static inline struct hf__waiter reads(uint64_t owner)
{
    struct hf__waiter w = want(owner);

    assert_true(entries < ENTRIES);
    entry[entries] = (struct hf__reader){0};
    w.reader = &entry[entries++];
    return w;
}

static inline size_t occurs(const struct hf__reader *list,
                            const struct hf__reader *r)
{
    size_t n = 0;

    for (; list; list = list->next)
        n += list == r;
    return n;
}

/* Asserts that, of the entries given out, readers have `readers` and waiters
 * have `waiting`, and that the rest are in queue.left, to be taken back. */
static inline void assert_entries(const struct hf__queue *g, size_t readers,
                                  size_t waiting)
{
    size_t in_use = 0, left = 0;

    for (size_t i = 0; i < entries; i++) {
        size_t r = occurs(g->readers, &entry[i]);
        size_t l = occurs(g->left, &entry[i]);

        assert_true(r + l <= 1);
        in_use += r;
        left += l;
    }
    assert_int_equal(in_use, readers);
    assert_int_equal(left, entries - readers - waiting);
}

static inline void assert_reads(struct hf__queue *g, uint64_t owner, int64_t ms)
{
    assert_int_equal(hf__queue_check(g, owner, at(ms)), HF__DONE);
}

#define SHARED_CASE(fn) CASE_OF(fn, shared_queue())

#endif
