/*
 * Text and numbers of the page: escaped, measured, grouped.
 */
#ifndef HF_LAB_PAGE_TEXT_H
#define HF_LAB_PAGE_TEXT_H

#include "../runner/report.h"

#include <stdint.h>
#include <stdio.h>

enum { PAGE_NUMBER = 48 };

/* Prints the text, escaped. It may contain any bytes: control characters and
 * what is not UTF-8 become U+FFFD; the end of a line becomes a space. */
void page_text(FILE *out, const char *text);
/* An upper estimate of the text's width in a font of 12 px, and in bold. */
double page_text_px(const char *text);
double page_bold_px(const char *text);
/* "12 345.67": grouped, with decimals that suit its size. */
const char *page_number(double number, char out[PAGE_NUMBER]);
/* With that many decimals; for values below 1e15. */
const char *page_fixed(double number, int decimals, char out[PAGE_NUMBER]);
/* A time in ns as "312 ms", "0.05 ms". */
const char *page_ms(int64_t ns, char out[PAGE_NUMBER]);

/* The fields that name a row: "lock · redis · file". */
void page_row_name(FILE *out, const struct lab_row *row);
/* "good", "told" (it goes wrong, as expected) or "unexpected". */
const char *page_row_class(const struct lab_row *row);
/* The sign of that class, with its meaning for screen readers. */
void page_sign(FILE *out, const char *class);

#endif
