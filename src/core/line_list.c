#include "core/line_list.h"

#include "base/thread_id.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/line.h"
#include "policy/line_set.h"
#include "policy/local_queue.h"

struct hf__line *hf__lines_after(const struct hf__line *n)
{
    struct hf__line_entry *next = n->kin ? n->kin->line.next : NULL;

    return next ? hf__lines_of_entry(next) : NULL;
}

struct hf__line *hf__lines_newest(struct hf__line *first)
{
    struct hf__line_entry *newest;

    if (!first->kin)
        return first;
    newest = first->kin->lines.at[HF__TAKEN];
    return newest ? hf__lines_of_entry(newest) : NULL;
}

struct hf__line *hf__lines_all_but_first(struct hf__line *first)
{
    struct hf__line_entry *line =
        hf__line_set_all_but_first(&first->kin->lines);

    return line ? hf__lines_of_entry(line) : NULL;
}

void hf__lines_rest(struct hf__line *n)
{
    struct hf__kin *f = hf__line_first(n)->kin;
    struct hf__reader *r;

    if (!f)
        return;
    while (n->queue.shared && (r = n->queue.left)) {
        n->queue.left = r->next;
        r->next = f->spare;
        f->spare = r;
    }
    hf__line_set_rest(&f->lines, &n->kin->line);
}

static void lines_free_chain(hf_client *c, struct hf__reader *r)
{
    struct hf__reader *next;

    for (; r; r = next) {
        next = r->next;
        hf__thread_unref(r->thread);
        hf__free(c, r);
    }
}

void hf__lines_free_readers(struct hf__line *n)
{
    if (n->queue.shared) {
        lines_free_chain(n->client, n->queue.readers);
        lines_free_chain(n->client, n->queue.left);
    }
    lines_free_chain(n->client, n->kin->spare);
}
