/*
 * The table of a section of the page.
 */
#ifndef HF_LAB_PAGE_TABLE_H
#define HF_LAB_PAGE_TABLE_H

#include "../runner/report.h"

#include <stdio.h>

/* Prints a line for each row; on a narrow page, a card. */
void page_table(FILE *out, const struct lab_section *section);

#endif
