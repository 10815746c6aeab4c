#include "history_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (!p)
        abort();
    return p;
}

struct table history_table_new(const struct history *h)
{
    struct table t = {.locks = h->locks};

    t.stand = zeroed((size_t)h->locks * h->owners, sizeof(*t.stand));
    t.place = zeroed(h->locks, sizeof(*t.place));
    t.resumed = zeroed(h->processes, sizeof(*t.resumed));
    t.away = zeroed(h->processes, sizeof(*t.away));
    t.lists = zeroed(2 * (size_t)h->locks * h->owners, sizeof(*t.lists));
    for (uint32_t l = 0; l < h->locks; l++) {
        t.place[l].whole = 1;
        t.place[l].holder = t.lists + 2 * (size_t)l * h->owners;
        t.place[l].waiter = t.place[l].holder + h->owners;
        t.place[l].free_at = HISTORY_NEVER;
    }
    for (size_t i = 0; i < (size_t)h->locks * h->owners; i++) {
        t.stand[i].back_by = HISTORY_NEVER;
        t.stand[i].process = UINT32_MAX;
        t.stand[i].wish = 1;
    }
    return t;
}

bool history_table_free(struct table *t, bool ok)
{
    free(t->stand);
    free(t->place);
    free(t->resumed);
    free(t->away);
    free(t->lists);
    return ok;
}

void history_init(struct history *h)
{
    *h = (struct history){0};
}

void history_fini(struct history *h)
{
    free(h->event);
    history_init(h);
}

void history_clear(struct history *h)
{
    h->len = 0;
    h->locks = h->owners = h->processes = 0;
}

void history_add(struct history *h, const struct history_event *e)
{
    if (h->len == h->room) {
        h->room = h->room ? 2 * h->room : 1024;
        h->event = realloc(h->event, h->room * sizeof(*e));
        if (!h->event)
            abort();
    }
    h->event[h->len++] = *e;
    if (e->lock >= h->locks)
        h->locks = e->lock + 1;
    if (e->owner >= h->owners)
        h->owners = e->owner + 1;
    if (e->process >= h->processes)
        h->processes = e->process + 1;
}

/* A merge sort: it is stable, and takes linear time for sorted input. */
static void sort_part(struct history_event *e, struct history_event *spare,
                      size_t n)
{
    size_t half = n / 2, i = 0, j = half, k = 0;

    if (n < 2)
        return;
    sort_part(e, spare, half);
    sort_part(e + half, spare, n - half);
    if (e[half - 1].at <= e[half].at)
        return;
    memcpy(spare, e, half * sizeof(*e));
    while (i < half)
        if (j < n && e[j].at < spare[i].at)
            e[k++] = e[j++];
        else
            e[k++] = spare[i++];
}

void history_sort(struct history *h)
{
    struct history_event *spare = zeroed(h->len, sizeof(*spare));

    sort_part(h->event, spare, h->len);
    free(spare);
}

bool history_against(struct history_verdict *v, const char *check,
                     const struct history *h, size_t index, const char *fmt,
                     ...)
{
    va_list ap;
    int n = snprintf(v->text, sizeof(v->text), "at %.6f s: ",
                     (double)(index < h->len ? h->event[index].at : 0) / 1e9);

    v->check = check;
    v->index = index;
    va_start(ap, fmt);
    vsnprintf(v->text + n, sizeof(v->text) - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}

static void begin_hold(struct table *t, const struct history_event *e)
{
    struct place *p = &t->place[e->lock];
    struct stand *s = stand_of(t, e);

    s->share = s->wish;
    s->cap = e->cap;
    s->place = p->holders;
    p->holder[p->holders++] = e->owner;
}

static void end_hold(struct table *t, uint32_t owner, uint32_t lock)
{
    struct place *p = &t->place[lock];
    struct stand *s = stand_at(t, owner, lock);

    if (!s->count)
        return;
    s->count = 0;
    p->holder[s->place] = p->holder[--p->holders];
    stand_at(t, p->holder[s->place], lock)->place = s->place;
}

/* Ends all holds and pending calls of the process's owners. */
static void process_ends(struct table *t, const struct history *h,
                         const struct history_event *e)
{
    size_t n = (size_t)h->owners * h->locks;

    for (size_t i = 0; i < n; i++) {
        if (t->stand[i].process != e->process)
            continue;
        end_hold(t, (uint32_t)(i / t->locks), (uint32_t)(i % t->locks));
        t->stand[i].pending = false;
        t->stand[i].back_by = HISTORY_NEVER;
    }
}

void history_follow(struct table *t, const struct history *h,
                    const struct history_event *e)
{
    struct stand *s = stand_of(t, e);

    switch (e->kind) {
    case HISTORY_CALL:
        s->process = e->process;
        s->wish = e->share ? e->share : 1;
        if (e->whole)
            t->place[e->lock].whole = e->whole;
        break;
    case HISTORY_RETURN:
        if (e->result)
            break;
        if (!s->count)
            begin_hold(t, e);
        s->count++;
        s->until = e->until;
        s->token = e->token;
        break;
    case HISTORY_DEADLINE:
        s->until = e->until;
        break;
    case HISTORY_RENEW:
        s->cap = e->until;
        break;
    case HISTORY_DOWNGRADE:
        s->share = 1;
        break;
    case HISTORY_RELEASE:
        if (s->count > 1)
            s->count--;
        else
            end_hold(t, e->owner, e->lock);
        break;
    case HISTORY_LOST:
        end_hold(t, e->owner, e->lock);
        break;
    case HISTORY_KILLED:
        process_ends(t, h, e);
        break;
    default:
        break;
    }
}

void history_print(const struct history_event *e, char *buf, size_t len)
{
    static const char *const kinds[] = {
        "call",     "return", "deadline", "renew",   "downgrade", "release",
        "released", "lost",   "killed",   "stopped", "continued", "fault",
        "read",     "write",  "left",     "end"};
    char until[32] = "never";

    if (e->until != HISTORY_NEVER)
        snprintf(until, sizeof(until), "%.6f", (double)e->until / 1e9);
    snprintf(buf, len,
             "%12.6f %-9s lock %u owner %u process %u share %u result %d token "
             "%" PRIu64 " value %" PRIu64 " until %s",
             (double)e->at / 1e9, kinds[e->kind], e->lock, e->owner, e->process,
             e->share, e->result, e->token, e->value, until);
}
