/* What the files that write the page share. */
#ifndef HF_LAB_PAGE_H
#define HF_LAB_PAGE_H

#include "../runner/frame.h"

enum { PAGE_NUMBER = 48 };

/* The text, escaped. It may have any bytes: what is not UTF-8, and control
 * characters, become U+FFFD. A line's end is a space. */
void page_text(FILE *out, const char *text);
/* How wide the text is at most in a font of 12 px, as far as one can tell
 * without the font; and if it is bold. */
double page_text_px(const char *text);
double page_bold_px(const char *text);
/* "12 345.67": grouped, with as many decimals as its size makes sensible. */
const char *page_number(double number, char out[PAGE_NUMBER]);
/* With so many; below 1e15. */
const char *page_fixed(double number, int decimals, char out[PAGE_NUMBER]);
/* A time in ns as "312 ms", "0.05 ms". */
const char *page_ms(int64_t ns, char out[PAGE_NUMBER]);

/* The fields of a row that are names: "lock · redis · file". */
void page_row_name(FILE *out, const struct lab_row *row);
/* "good", "told" (it goes wrong, as expected) or "unexpected". */
const char *page_row_class(const struct lab_row *row);
/* The sign of that class, with its meaning for screen readers. */
void page_sign(FILE *out, const char *class);

/* The rows, a line each; on a narrow page, a card each. */
void page_table(FILE *out, const struct lab_section *section);

/* Two or more of LAB_HOLDS at once, in different lanes. */
struct page_overlap {
    int64_t from, to;
    size_t least, most; /* how many at once */
    size_t top, bottom; /* lanes */
};

struct page_lane {
    const char *name;
    int64_t first; /* when it is seen first */
    bool strip;    /* has spans inside of spans: a strip below */
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
    int64_t from, to; /* what is drawn */
};

bool page_has_times(const struct lab_row *row);
void page_times_init(struct page_times *times, const struct lab_row *row);
void page_times_fini(struct page_times *times);
size_t page_lane(const struct page_times *times, const char *name);
/* Is it inside of a span of its lane that holds or shares? */
bool page_nested(const struct lab_row *row, const struct lab_span *span);
/* "2 holders for 312 ms". */
void page_overlap_text(const struct page_overlap *overlap, char *out,
                       size_t size);

/* Two drawings, a wide and a narrow one, of which the style shows one. */
void page_timeline(FILE *out, const struct page_times *times);

#endif
