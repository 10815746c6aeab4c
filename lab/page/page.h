/*
 * One self-contained HTML page, from the report of a run.
 */
#ifndef HF_LAB_PAGE_H
#define HF_LAB_PAGE_H

#include "../runner/report.h"

#include <stdio.h>

/* Writes the page. Returns 0, or -1 with errno set. */
int lab_page_write(FILE *out, const struct lab_report *report);

#endif
