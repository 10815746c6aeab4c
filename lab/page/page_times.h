/*
 * What a timeline is drawn from: lanes, overlaps and the visible time. All of
 * it is computed from the row, and does not depend on the width of the drawing.
 */
#ifndef HF_LAB_PAGE_TIMES_H
#define HF_LAB_PAGE_TIMES_H

#include "../runner/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A time in which spans of LAB_HOLDS in two or more lanes overlap. */
struct page_overlap {
    int64_t from, to;
    size_t least, most; /* how many actors hold at once */
    size_t top, bottom; /* indices of its lanes */
};

struct page_lane {
    const char *name;
    int64_t first; /* its first moment */
    bool strip;    /* some spans overlap a hold: a strip below shows them */
    size_t rows;   /* lines of notes */
    double y;      /* top of its spans */
};

/* What a timeline is drawn from, for any width. */
struct page_times {
    const struct lab_row *row;
    struct page_lane *lanes; /* in the order of their first moments */
    size_t lanes_len;
    struct page_overlap *overlaps; /* in the order of time */
    size_t overlaps_len;
    int64_t zero;     /* origin of the axis: beginning of the first span, or
                         first mark */
    int64_t from, to; /* the visible time */
};

/* Returns whether the row has spans or marks. */
bool page_has_times(const struct lab_row *row);
/* Computes the lanes, the overlaps and the visible time of a row;
 * page_times_fini() frees them. */
void page_times_init(struct page_times *times, const struct lab_row *row);
void page_times_fini(struct page_times *times);
/* Returns the index of the lane of that name; lanes_len if there is none. */
size_t page_lane(const struct page_times *times, const char *name);
/* Returns whether the span waits or is stopped, and overlaps a span of its lane
 * that holds or shares. */
bool page_nested(const struct lab_row *row, const struct lab_span *span);
/* Writes a text such as "2 holders for 312 ms". */
void page_overlap_text(const struct page_overlap *overlap, char *out,
                       size_t size);

#endif
