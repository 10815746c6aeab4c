/*
 * Text and numbers of the page: escaped, measured, grouped.
 */
#ifndef HF_LAB_PAGE_TEXT_H
#define HF_LAB_PAGE_TEXT_H

#include "../runner/report.h"

#include <stdint.h>
#include <stdio.h>

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

#endif
