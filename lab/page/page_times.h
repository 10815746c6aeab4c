/*
 * What a timeline is drawn from: lanes, overlaps and the visible time. It
 * depends only on the row, not on the width of the drawing.
 */
#ifndef HF_LAB_PAGE_TIMES_H
#define HF_LAB_PAGE_TIMES_H

#include "../runner/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two or more spans of LAB_HOLDS at once, in different lanes. */
struct page_overlap {
    int64_t from, to;
    size_t least, most; /* how many at once */
    size_t top, bottom; /* lanes */
};

struct page_lane {
    const char *name;
    int64_t first; /* its first moment */
    bool strip;    /* has spans inside spans, in a strip below */
    size_t rows;   /* of notes */
    double y;      /* of its spans */
};

/* What a timeline is drawn from, for any width. */
struct page_times {
    const struct lab_row *row;
    struct page_lane *lanes; /* in the order of their first moments */
    size_t lanes_len;
    struct page_overlap *overlaps; /* in the order of time */
    size_t overlaps_len;
    int64_t zero;     /* the first span's beginning */
    int64_t from, to; /* the visible time */
};

/* Has the row anything for a timeline? */
bool page_has_times(const struct lab_row *row);
/* Computes the lanes, the overlaps and the visible time of a row;
 * page_times_fini() frees them. */
void page_times_init(struct page_times *times, const struct lab_row *row);
void page_times_fini(struct page_times *times);
/* Returns the index of the lane of that name; lanes_len if there is none. */
size_t page_lane(const struct page_times *times, const char *name);
/* Is it inside a span of its lane that holds or shares? */
bool page_nested(const struct lab_row *row, const struct lab_span *span);
/* "2 holders for 312 ms". */
void page_overlap_text(const struct page_overlap *overlap, char *out,
                       size_t size);

#endif
