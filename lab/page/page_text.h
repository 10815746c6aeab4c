/*
 * Text and numbers of the page: escaping, measuring and grouping of digits.
 */
#ifndef HF_LAB_PAGE_TEXT_H
#define HF_LAB_PAGE_TEXT_H

#include "../runner/report.h"

#include <stdint.h>
#include <stdio.h>

enum { PAGE_NUMBER = 48 };

/* Prints the text, escaped. It may contain any bytes: control characters and
 * bytes that are not UTF-8 become U+FFFD; a newline or a tab becomes a
 * space. */
void page_text(FILE *out, const char *text);
/* Return an upper estimate of the width of the text in a font of 12 px, regular
 * and bold. */
double page_text_px(const char *text);
double page_bold_px(const char *text);
/* Formats a number as "12 345.67": with digits in groups, and as many decimals
 * as suit its size. Returns out. */
const char *page_number(double number, char out[PAGE_NUMBER]);
/* Does the same with a given number of decimals, for values below 1e15. */
const char *page_fixed(double number, int decimals, char out[PAGE_NUMBER]);
/* Formats a time in ns as "312 ms" or "0.05 ms". Returns out. */
const char *page_ms(int64_t ns, char out[PAGE_NUMBER]);

/* Prints the fields that name a row, such as "lock · redis · file". */
void page_row_name(FILE *out, const struct lab_row *row);
/* Returns the class of a row: "good", "told" (it goes wrong, as expected) or
 * "unexpected". */
const char *page_row_class(const struct lab_row *row);
/* Prints the sign of such a class, with its meaning for screen readers. */
void page_sign(FILE *out, const char *class);

#endif
