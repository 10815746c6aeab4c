/*
 * The drawing of a timeline, as SVG.
 */
#ifndef HF_LAB_PAGE_TIMELINE_H
#define HF_LAB_PAGE_TIMELINE_H

#include "page_times.h"

#include <stdio.h>

/* Prints a wide and a narrow drawing; the style sheet shows one of them. */
void page_timeline(FILE *out, const struct page_times *times);

#endif
