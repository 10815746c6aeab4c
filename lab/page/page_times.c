/* Finds in the spans and marks of a row which actors take part, from when to
 * when, and at which times two or more actors hold the lock at once. */
#include "page_times.h"

#include "../runner/memory.h"
#include "page_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_NS = 10000 }; /* the shortest visible time */

bool page_has_times(const struct lab_row *row)
{
    return row->spans_len || row->marks_len;
}

size_t page_lane(const struct page_times *times, const char *name)
{
    size_t i = 0;
    while (i < times->lanes_len && strcmp(times->lanes[i].name, name) != 0)
        i++;
    return i;
}

static void page_times_see(struct page_times *times, const char *name,
                           int64_t at)
{
    size_t i = page_lane(times, name);
    if (i == times->lanes_len) {
        times->lanes[i] = (struct page_lane){.name = name, .first = at};
        times->lanes_len++;
    }
    if (at < times->lanes[i].first)
        times->lanes[i].first = at;
    if (at < times->from)
        times->from = at;
    if (at > times->to)
        times->to = at;
}

static int page_times_by_first(const void *a, const void *b)
{
    const struct page_lane *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool page_times_is_hold(const struct lab_span *span)
{
    return span->kind == LAB_HOLDS || span->kind == LAB_SHARES;
}

bool page_nested(const struct lab_row *row, const struct lab_span *span)
{
    if (page_times_is_hold(span))
        return false;
    for (size_t i = 0; i < row->spans_len; i++) {
        const struct lab_span *other = &row->spans[i];
        if (page_times_is_hold(other) && !strcmp(other->lane, span->lane) &&
            other->from < span->to && span->from < other->to)
            return true;
    }
    return false;
}

static bool page_times_holds(const struct lab_row *row, const char *lane,
                             int64_t from, int64_t to)
{
    for (size_t i = 0; i < row->spans_len; i++) {
        const struct lab_span *span = &row->spans[i];
        if (span->kind == LAB_HOLDS && span->from <= from && to <= span->to &&
            !strcmp(span->lane, lane))
            return true;
    }
    return false;
}

/* Adds an overlap if two or more actors hold between two neighbouring moments,
 * `from' and `to'. If the last overlap ends at `from', extends that overlap
 * instead. */
static void page_times_find_overlap(struct page_times *times, int64_t from,
                                    int64_t to)
{
    struct page_overlap now = {.from = from, .to = to};
    for (size_t i = 0; i < times->lanes_len; i++) {
        if (!page_times_holds(times->row, times->lanes[i].name, from, to))
            continue;
        if (!now.most++)
            now.top = i;
        now.bottom = i;
    }
    now.least = now.most;
    if (now.most < 2)
        return;
    size_t len = times->overlaps_len;
    if (!len || times->overlaps[len - 1].to != from) {
        times->overlaps[times->overlaps_len++] = now;
        return;
    }
    struct page_overlap *last = &times->overlaps[len - 1];
    last->to = to;
    last->least = now.least < last->least ? now.least : last->least;
    last->most = now.most > last->most ? now.most : last->most;
    last->top = now.top < last->top ? now.top : last->top;
    last->bottom = now.bottom > last->bottom ? now.bottom : last->bottom;
}

static void page_times_find_overlaps(struct page_times *times)
{
    const struct lab_row *row = times->row;
    int64_t *moments = lab_alloc(2 * row->spans_len * sizeof(*moments));
    size_t len = 0;
    for (size_t i = 0; i < row->spans_len; i++) {
        if (row->spans[i].kind != LAB_HOLDS)
            continue;
        moments[len++] = row->spans[i].from;
        moments[len++] = row->spans[i].to;
    }
    qsort(moments, len, sizeof(*moments), by_time);
    times->overlaps = lab_alloc(len * sizeof(*times->overlaps));
    for (size_t i = 1; i < len; i++)
        if (moments[i - 1] < moments[i])
            page_times_find_overlap(times, moments[i - 1], moments[i]);
    free(moments);
}

void page_times_init(struct page_times *times, const struct lab_row *row)
{
    *times = (struct page_times){
        .row = row, .zero = INT64_MAX, .from = INT64_MAX, .to = INT64_MIN};
    times->lanes =
        lab_alloc((row->spans_len + row->marks_len) * sizeof(*times->lanes));
    for (size_t i = 0; i < row->spans_len; i++) {
        const struct lab_span *span = &row->spans[i];
        page_times_see(times, span->lane, span->from);
        page_times_see(times, span->lane, span->to);
        if (span->from < times->zero)
            times->zero = span->from;
    }
    for (size_t i = 0; i < row->marks_len; i++)
        page_times_see(times, row->marks[i].lane, row->marks[i].at);
    if (!row->spans_len)
        times->zero = times->from;
    if (times->to - times->from < LEAST_NS)
        times->to = times->from + LEAST_NS;
    qsort(times->lanes, times->lanes_len, sizeof(*times->lanes),
          page_times_by_first);
    for (size_t i = 0; i < row->spans_len; i++)
        if (page_nested(row, &row->spans[i]))
            times->lanes[page_lane(times, row->spans[i].lane)].strip = true;
    page_times_find_overlaps(times);
}

void page_times_fini(struct page_times *times)
{
    free(times->lanes);
    free(times->overlaps);
}

void page_overlap_text(const struct page_overlap *overlap, char *out,
                       size_t size)
{
    char ms[PAGE_NUMBER];
    snprintf(out, size, "%s%zu holders for %s",
             overlap->least < overlap->most ? "up to " : "", overlap->most,
             page_ms(overlap->to - overlap->from, ms));
}
