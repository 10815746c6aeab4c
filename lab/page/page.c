/*
 * The page of --html: one file, without scripts and without references to other
 * files. page.css has the styles, page_table.c the tables, page_times.c and
 * page_timeline.c the timelines.
 */
#include "page.h"

#include "../runner/memory.h"
#include "../runner/scenario.h"
#include "page_table.h"
#include "page_text.h"
#include "page_timeline.h"
#include "page_times.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* If a scenario has more timelines than this, all of them can be folded. */
enum { TIMELINES_OPEN = 6 };

static const char *const style[] = {
#include "page.css.h"
};

struct counts {
    size_t rows, good, told, unexpected;
};

static void page_count(struct counts *counts, const struct lab_section *section)
{
    for (size_t i = 0; i < section->rows_len; i++) {
        const struct lab_row *row = section->rows[i];
        counts->rows++;
        if (row->outcome != row->expected)
            counts->unexpected++;
        else if (row->outcome == LAB_OK)
            counts->good++;
        else
            counts->told++;
    }
}

static void page_write_head(FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<title>holdfast lab</title>\n<link rel=\"icon\" href=\"data:,\">\n"
          "<style>\n",
          out);
    for (size_t i = 0; i < sizeof(style) / sizeof(*style); i++)
        fprintf(out, "%s\n", style[i]);
    /* Definitions that the drawings refer to. */
    fputs("</style>\n</head>\n<body>\n"
          "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\">"
          "<defs>"
          "<pattern id=\"hatch\" width=\"7\" height=\"7\" "
          "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
          "<rect class=\"stripe\" width=\"2.5\" height=\"7\"/></pattern>"
          "<pattern id=\"dots\" width=\"5\" height=\"5\" "
          "patternUnits=\"userSpaceOnUse\">"
          "<rect class=\"ground\" width=\"5\" height=\"5\"/>"
          "<circle class=\"dot\" cx=\"2.5\" cy=\"2.5\" r=\"1\"/></pattern>"
          "<symbol id=\"sign-good\" viewBox=\"0 0 16 16\">"
          "<circle cx=\"8\" cy=\"8\" r=\"7\"/><path d=\"M4.5 8.4l2.4 2.4 "
          "4.6-5\"/>"
          "</symbol>"
          "<symbol id=\"sign-told\" viewBox=\"0 0 16 16\">"
          "<rect x=\"1.5\" y=\"1.5\" width=\"13\" height=\"13\" rx=\"2\"/>"
          "<path d=\"M5 5l6 6M11 5l-6 6\"/></symbol>"
          "<symbol id=\"sign-unexpected\" viewBox=\"0 0 16 16\">"
          "<path class=\"full\" d=\"M8 .8L15.6 14.6H.4z\"/>"
          "<path class=\"knock\" d=\"M8 5.6v4.4M8 11.6v1.4\"/></symbol>"
          "</defs></svg>\n<main>\n",
          out);
}

static void page_write_duration(FILE *out, double seconds)
{
    char number[PAGE_NUMBER];
    if (seconds < 60) {
        fprintf(out, "%s s", page_number(seconds, number));
        return;
    }
    long whole = (long)(seconds + 0.5);
    fprintf(out, "%ld min %ld s", whole / 60, whole % 60);
}

static void page_write_count(FILE *out, const char *class, size_t number,
                             const char *what)
{
    fputs("<li>", out);
    page_sign(out, class);
    fprintf(out, "<span><b>%zu</b> %s</span></li>\n", number, what);
}

static void page_write_unexpected(FILE *out, const struct lab_section *section)
{
    for (size_t i = 0; i < section->rows_len; i++) {
        const struct lab_row *row = section->rows[i];
        if (row->outcome == row->expected)
            continue;
        fprintf(out, "<li><a href=\"#%s-%zu\">%s, ", row->scenario->name, i + 1,
                row->scenario->name);
        page_row_name(out, row);
        fputs("</a>: ", out);
        page_text(out, row->verdict);
        fputs("</li>\n", out);
    }
}

static void page_write_summary(FILE *out, const struct lab_report *report)
{
    struct counts all = {0};
    for (size_t i = 0; i < report->sections_len; i++)
        page_count(&all, &report->sections[i]);
    fputs("<header>\n<h1>holdfast lab</h1>\n<p class=\"command\"><code>", out);
    page_text(out, report->command);
    fputs("</code></p>\n<p class=\"facts\">", out);
    page_text(out, report->machine);
    fputs(" \u00b7 took ", out);
    page_write_duration(out, report->seconds);
    fprintf(out,
            "</p>\n</header>\n<section class=\"summary\">\n<h2>%zu row%s, ",
            all.rows, all.rows == 1 ? "" : "s");
    if (all.unexpected)
        fprintf(out, "%zu not as expected</h2>\n", all.unexpected);
    else
        fputs("all as expected</h2>\n", out);
    fputs("<ul class=\"counts\">\n", out);
    page_write_count(out, "good", all.good, "go well");
    page_write_count(out, "told", all.told, "go wrong, as expected");
    page_write_count(out, "unexpected", all.unexpected, "unexpected");
    fputs("</ul>\n", out);
    if (all.unexpected) {
        fputs("<ul class=\"unexpected-rows\">\n", out);
        for (size_t i = 0; i < report->sections_len; i++)
            page_write_unexpected(out, &report->sections[i]);
        fputs("</ul>\n", out);
    }
    fputs("</section>\n", out);
}

static void page_write_contents(FILE *out, const struct lab_report *report)
{
    fputs("<nav aria-labelledby=\"contents\">\n"
          "<h2 id=\"contents\">Scenarios</h2>\n<ul>\n",
          out);
    for (size_t i = 0; i < report->sections_len; i++) {
        const struct lab_section *section = &report->sections[i];
        const struct lab_scenario *scenario = section->scenario;
        struct counts counts = {0};
        page_count(&counts, section);
        fprintf(out, "<li><a href=\"#%s\">%s</a><span class=\"what\">",
                scenario->name, scenario->name);
        page_text(out, scenario->summary);
        fputs("</span><span class=\"how\">", out);
        if (*section->skipped)
            fputs("not run", out);
        else if (counts.unexpected) {
            page_sign(out, "unexpected");
            fprintf(out, "%zu of %zu unexpected", counts.unexpected,
                    counts.rows);
        } else
            fprintf(out, "%zu row%s", counts.rows, counts.rows == 1 ? "" : "s");
        fputs("</span></li>\n", out);
    }
    fputs("</ul>\n</nav>\n", out);
}

/* Writes the paragraphs of a text, which are separated by empty lines. */
static void page_write_text(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t len = end ? (size_t)(end - text) : strlen(text);
        char *one = lab_alloc(len + 1);
        memcpy(one, text, len);
        fputs("<p>", out);
        page_text(out, one);
        fputs("</p>\n", out);
        free(one);
        text += len;
        text += strspn(text, "\n");
    }
}

static void page_write_claims(FILE *out, const struct lab_section *section)
{
    if (!section->claims_len)
        return;
    fputs("<h3>Common claims</h3>\n<ul class=\"claims\">\n", out);
    for (size_t i = 0; i < section->claims_len; i++) {
        const struct lab_claim *claim = &section->claims[i];
        fprintf(out, "<li><span class=\"%s\">%s</span> <span>",
                claim->confirmed ? "yes" : "no",
                claim->confirmed ? "\u2713 confirmed" : "\u2717 not confirmed");
        page_text(out, claim->text);
        fputs("</span> <span class=\"figures\">", out);
        page_text(out, claim->figures);
        fputs("</span></li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void page_write_overlaps(FILE *out, const struct page_times *times)
{
    char text[96], ms[PAGE_NUMBER];
    size_t most = 0;
    int64_t ns = 0;
    for (size_t i = 0; i < times->overlaps_len; i++) {
        const struct page_overlap *one = &times->overlaps[i];
        ns += one->to - one->from;
        most = one->most > most ? one->most : most;
        page_overlap_text(one, text, sizeof(text));
    }
    if (times->overlaps_len == 1)
        fprintf(out, "<span class=\"overlaps\">%s</span>", text);
    else if (times->overlaps_len)
        fprintf(out,
                "<span class=\"overlaps\">%zu overlaps, up to %zu holders, "
                "%s in all</span>",
                times->overlaps_len, most, page_ms(ns, ms));
}

static void page_write_timeline(FILE *out, const struct lab_row *row,
                                size_t number, const struct page_times *times,
                                const char *fold)
{
    const char *title = fold ? "summary" : "figcaption";
    const char *name = row->scenario->name;
    if (fold)
        fprintf(out, "<details%s>", fold);
    else
        fprintf(out, "<figure id=\"%s-%zu-timeline\">", name, number);
    fprintf(out, "<%s><span class=\"title\">", title);
    page_sign(out, page_row_class(row));
    fputs("<span><b>", out);
    page_row_name(out, row);
    fputs("</b> <span class=\"words\">", out);
    page_text(out, row->verdict);
    fputs("</span> ", out);
    page_write_overlaps(out, times);
    fprintf(out, "</span></span></%s>\n", title);
    if (fold) /* the id is inside <details>, so that a link to it unfolds it */
        fprintf(out, "<figure id=\"%s-%zu-timeline\">", name, number);
    page_timeline(out, times);
    fputs(fold ? "</figure></details>\n" : "</figure>\n", out);
}

static void page_write_timelines(FILE *out, const struct lab_section *section)
{
    size_t len = 0;
    for (size_t i = 0; i < section->rows_len; i++)
        len += page_has_times(section->rows[i]);
    if (!len)
        return;
    fputs("<h3>Who held the lock, and when</h3>\n<div class=\"timelines\">\n",
          out);
    /* If the timelines can be folded, two are unfolded at first: the first
     * timeline with an overlap, and the first without. */
    bool seen[2] = {false, false};
    for (size_t i = 0; i < section->rows_len; i++) {
        const struct lab_row *row = section->rows[i];
        if (!page_has_times(row))
            continue;
        struct page_times times;
        page_times_init(&times, row);
        bool *known = &seen[times.overlaps_len > 0];
        page_write_timeline(out, row, i + 1, &times,
                            len <= TIMELINES_OPEN ? NULL
                            : *known              ? ""
                                                  : " open");
        *known = true;
        page_times_fini(&times);
    }
    fputs("</div>\n", out);
}

static void page_write_section(FILE *out, const struct lab_section *section)
{
    const struct lab_scenario *scenario = section->scenario;
    fprintf(out, "<section class=\"scenario\" id=\"%s\">\n<h2>%s</h2>\n",
            scenario->name, scenario->name);
    fputs("<div class=\"text\">\n<p class=\"lead-in\">", out);
    page_text(out, scenario->summary);
    fputs("</p>\n", out);
    page_write_text(out, scenario->text);
    fputs("</div>\n", out);
    if (*section->skipped) {
        fputs("<p class=\"skipped\">Not run: ", out);
        page_text(out, section->skipped);
        fputs("</p>\n", out);
    }
    if (section->rows_len)
        page_table(out, section);
    page_write_claims(out, section);
    page_write_timelines(out, section);
    fputs("</section>\n", out);
}

int lab_page_write(FILE *out, const struct lab_report *report)
{
    errno = 0;
    page_write_head(out);
    page_write_summary(out, report);
    page_write_contents(out, report);
    for (size_t i = 0; i < report->sections_len; i++)
        page_write_section(out, &report->sections[i]);
    fputs("</main>\n</body>\n</html>\n", out);
    if (!fflush(out) && !ferror(out))
        return 0;
    if (!errno) /* an earlier call failed, and its errno has been lost */
        errno = EIO;
    return -1;
}
