/*
 * The drawing of a timeline: a lane for each actor, its spans as boxes, and
 * notes below for marks and for labels that do not fit into a span. Where two
 * or more actors hold the lock at once, a hatched band crosses their lanes.
 *
 * Text in a drawing cannot wrap, so each timeline is drawn twice: once for wide
 * and once for narrow windows. The narrow drawing has numbers instead of notes,
 * and a list of the notes below.
 */
#include "page_timeline.h"

#include "../runner/memory.h"
#include "../runner/report.h"
#include "page_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDE = 1080,
    NARROW = 340,
    BAND = 22,      /* height of a span */
    STRIP = 9,      /* height of a span inside another span */
    TEXT_LINE = 17, /* height of a line of notes */
    GAP = 12,       /* between lanes */
    MARGIN = 6,     /* space left and right of a text */
    AXIS = 26,
    GUTTER_MAX = 210, /* width of the lanes' names */
    OVERLAPS_MAX = 4, /* how many overlaps are labelled at most */
    LABELS_MAX = 12,  /* how many labels of spans become notes at most */
};

struct note {
    const char *lane, *text;
    int64_t at;
    bool bad;
    size_t number, row;
    double x, left, width;
};

struct view {
    const struct page_times *times;
    bool narrow;
    double width, gutter, top, height;
    struct note *notes; /* in the order of time */
    size_t notes_len;
};

static const char *const kinds[] = {"holds", "shares", "waits", "stopped"};

static double timeline_x_of(const struct view *view, int64_t at)
{
    const struct page_times *times = view->times;
    double part =
        (double)(at - times->from) / (double)(times->to - times->from);
    return view->gutter + part * (view->width - view->gutter - 2);
}

static double timeline_span_px(const struct view *view,
                               const struct lab_span *span)
{
    return fmax(2, timeline_x_of(view, span->to) -
                       timeline_x_of(view, span->from));
}

static const char *timeline_span_text(const struct lab_span *span)
{
    return *span->label ? span->label : kinds[span->kind];
}

static bool timeline_fits(const struct view *view, const struct lab_span *span)
{
    return !page_nested(view->times->row, span) &&
           page_text_px(timeline_span_text(span)) + 2 * MARGIN <=
               timeline_span_px(view, span);
}

static int timeline_by_moment(const void *a, const void *b)
{
    const struct note *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void timeline_collect_notes(struct view *view)
{
    const struct lab_row *row = view->times->row;
    view->notes =
        lab_alloc((row->spans_len + row->marks_len) * sizeof(*view->notes));
    for (size_t i = 0; i < row->marks_len; i++) {
        const struct lab_mark *mark = &row->marks[i];
        view->notes[view->notes_len++] = (struct note){.lane = mark->lane,
                                                       .text = mark->label,
                                                       .at = mark->at,
                                                       .bad = mark->bad};
    }
    for (size_t i = 0; row->spans_len <= LABELS_MAX && i < row->spans_len;
         i++) {
        const struct lab_span *span = &row->spans[i];
        bool has_label = strcmp(span->label, kinds[span->kind]) != 0;
        if (*span->label && has_label && !timeline_fits(view, span))
            view->notes[view->notes_len++] = (struct note){
                .lane = span->lane, .text = span->label, .at = span->from};
    }
    qsort(view->notes, view->notes_len, sizeof(*view->notes),
          timeline_by_moment);
    for (size_t i = 0; i < view->notes_len; i++)
        view->notes[i].number = i + 1;
}

static bool timeline_is_free(const struct view *view, const struct note *note)
{
    for (size_t i = note->number; i < view->notes_len; i++) {
        const struct note *other = &view->notes[i];
        if (other->row == note->row && !strcmp(other->lane, note->lane) &&
            note->left < other->left + other->width + MARGIN &&
            other->left < note->left + note->width + MARGIN)
            return false;
    }
    return true;
}

/* Places the notes from the latest to the earliest, each in the topmost line
 * that has room. Later texts, which begin further to the right, are therefore
 * above earlier texts, and the vertical line from a mark down to its text
 * passes to the left of them. */
static void timeline_place_notes(struct view *view, struct page_lane *lanes)
{
    for (size_t i = view->notes_len; i-- > 0;) {
        struct note *note = &view->notes[i];
        char number[24];
        snprintf(number, sizeof(number), "%zu", note->number);
        const char *text = view->narrow ? number : note->text;
        note->width =
            (note->bad ? page_bold_px(text) : page_text_px(text)) + MARGIN;
        note->x = timeline_x_of(view, note->at);
        note->left = fmin(note->x, view->width - note->width);
        while (!timeline_is_free(view, note))
            note->row++;
        struct page_lane *lane = &lanes[page_lane(view->times, note->lane)];
        if (lane->rows <= note->row)
            lane->rows = note->row + 1;
    }
}

static void timeline_place_lanes(struct view *view, struct page_lane *lanes)
{
    double y = view->top;
    for (size_t i = 0; i < view->times->lanes_len; i++) {
        struct page_lane *lane = &lanes[i];
        lane->y = y + (view->narrow ? TEXT_LINE : 0);
        y = lane->y + BAND + (lane->strip ? STRIP + 2 : 0) +
            TEXT_LINE * (double)lane->rows + GAP;
    }
    view->height = y + AXIS;
}

static void timeline_place(struct view *view)
{
    const struct page_times *times = view->times;
    struct page_lane *lanes = times->lanes;
    view->width = view->narrow ? NARROW : WIDE;
    for (size_t i = 0; i < times->lanes_len; i++) {
        lanes[i].rows = 0;
        if (!view->narrow)
            view->gutter = fmax(view->gutter, page_bold_px(lanes[i].name) + 12);
    }
    view->gutter = fmin(view->gutter, GUTTER_MAX);
    view->top = 6 + TEXT_LINE * fmin(2, (double)times->overlaps_len);
    timeline_collect_notes(view);
    timeline_place_notes(view, lanes);
    timeline_place_lanes(view, lanes);
}

static void timeline_draw_rect(FILE *out, const char *class, double x, double y,
                               double width, double height)
{
    fprintf(out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>",
            class, x, y, width, height);
}

static void timeline_draw_text(FILE *out, double x, double y, const char *class,
                               const char *text)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    page_text(out, text);
    fputs("</text>", out);
}

/* Returns the distance between two ticks: 1, 2 or 5 times a power of ten, so
 * that there are at most about nine ticks, or five in the narrow drawing. */
static double timeline_tick_step(const struct view *view)
{
    double span = (double)(view->times->to - view->times->from);
    double least = span / (view->narrow ? 5 : 9);
    double step = pow(10, floor(log10(least)));
    return least <= step       ? step
           : least <= 2 * step ? 2 * step
           : least <= 5 * step ? 5 * step
                               : 10 * step;
}

static void timeline_draw_axis(FILE *out, const struct view *view)
{
    const struct page_times *times = view->times;
    double step = timeline_tick_step(view);
    long first = (long)ceil((double)(times->from - times->zero) / step);
    long last = (long)floor((double)(times->to - times->zero) / step);
    int decimals = step < 1e6 ? (int)ceil(6 - log10(step)) : 0;
    double bottom = view->height - AXIS;
    double space = view->width; /* right limit of the next label; the labels are
                                   drawn from the last, which has the unit, to
                                   the first */
    for (long i = last; i >= first; i--) {
        char label[PAGE_NUMBER];
        double x =
            timeline_x_of(view, times->zero + (int64_t)((double)i * step));
        fprintf(out,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                "y2=\"%.1f\"/>",
                x, x, view->top - 2, bottom);
        page_fixed((double)i * step / 1e6, decimals, label);
        if (i == last) {
            size_t len = strlen(label);
            snprintf(label + len, sizeof(label) - len, "\u00a0ms");
        }
        double half = page_text_px(label) / 2;
        double middle = fmin(fmax(x, half), view->width - half);
        if (middle + half > space)
            continue;
        timeline_draw_text(out, middle, bottom + 16, "tick", label);
        space = middle - half - MARGIN;
    }
}

static void timeline_draw_lanes(FILE *out, const struct view *view)
{
    for (size_t i = 0; i < view->times->lanes_len; i++)
        timeline_draw_rect(out, "lane", view->gutter, view->times->lanes[i].y,
                           view->width - view->gutter, BAND);
}

static void timeline_draw_names(FILE *out, const struct view *view)
{
    for (size_t i = 0; i < view->times->lanes_len; i++) {
        const struct page_lane *lane = &view->times->lanes[i];
        timeline_draw_text(out, 0, lane->y + (view->narrow ? -5 : 15), "name",
                           lane->name);
    }
}

static void timeline_draw_span(FILE *out, const struct view *view,
                               const struct lab_span *span)
{
    const struct page_times *times = view->times;
    const struct page_lane *lane = &times->lanes[page_lane(times, span->lane)];
    bool nested = page_nested(times->row, span);
    char from[PAGE_NUMBER], to[PAGE_NUMBER];
    fprintf(out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%d\" rx=\"2\"><title>",
            kinds[span->kind], timeline_x_of(view, span->from),
            lane->y + (nested ? BAND + 2 : 0), timeline_span_px(view, span),
            nested ? STRIP : BAND);
    page_text(out, span->lane);
    fprintf(out, " %s, %s to %s", kinds[span->kind],
            page_ms(span->from - times->zero, from),
            page_ms(span->to - times->zero, to));
    fputs(*span->label ? ": " : "", out);
    page_text(out, span->label);
    fputs("</title></rect>", out);
}

/* Draws the text inside the span. If marks would cross the text, draws it to
 * the right of the marks, if there is room. */
static void timeline_draw_span_text(FILE *out, const struct view *view,
                                    const struct lab_span *span)
{
    const struct page_times *times = view->times;
    const struct page_lane *lane = &times->lanes[page_lane(times, span->lane)];
    if (!timeline_fits(view, span))
        return;
    double first = timeline_x_of(view, span->from) + MARGIN, x = first;
    double width = page_text_px(timeline_span_text(span));
    for (size_t i = 0; i < view->notes_len; i++) {
        const struct note *note = &view->notes[i];
        if (!strcmp(note->lane, span->lane) && x - MARGIN < note->x &&
            note->x < x + width)
            x = note->x + MARGIN;
    }
    if (x + width > timeline_x_of(view, span->to))
        x = first;
    char class[32];
    snprintf(class, sizeof(class), "in-%s", kinds[span->kind]);
    timeline_draw_text(out, x, lane->y + 15, class, timeline_span_text(span));
}

/* Draws a band across all lanes from the topmost holder to the lowest, hatched
 * in the lanes of holders. */
static void timeline_draw_overlap(FILE *out, const struct view *view,
                                  const struct page_overlap *overlap)
{
    const struct page_times *times = view->times;
    double top = times->lanes[overlap->top].y - 3;
    double bottom = times->lanes[overlap->bottom].y + BAND + 3;
    double x = timeline_x_of(view, overlap->from);
    double width = fmax(2, timeline_x_of(view, overlap->to) - x);
    char text[96];
    page_overlap_text(overlap, text, sizeof(text));
    fprintf(out, "<g class=\"overlap\"><title>%s</title>", text);
    timeline_draw_rect(out, "tint", x, top, width, bottom - top);
    for (size_t i = 0; i < times->row->spans_len; i++) {
        const struct lab_span *span = &times->row->spans[i];
        int64_t from = span->from > overlap->from ? span->from : overlap->from;
        int64_t to = span->to < overlap->to ? span->to : overlap->to;
        if (span->kind != LAB_HOLDS || from >= to)
            continue;
        double y = times->lanes[page_lane(times, span->lane)].y;
        timeline_draw_rect(
            out, "hatch", timeline_x_of(view, from), y - 3,
            fmax(2, timeline_x_of(view, to) - timeline_x_of(view, from)),
            BAND + 6);
    }
    timeline_draw_rect(out, "frame", x, top, width, bottom - top);
    fputs("</g>", out);
}

static const struct page_overlap *
timeline_longest(const struct page_times *times, const bool *done)
{
    const struct page_overlap *best = NULL;
    for (size_t i = 0; i < times->overlaps_len; i++) {
        const struct page_overlap *one = &times->overlaps[i];
        if (!done[i] && (!best || one->to - one->from > best->to - best->from))
            best = one;
    }
    return best;
}

/* Labels the longest overlaps: at most OVERLAPS_MAX, and only those whose
 * labels fit into two lines. */
static void timeline_draw_overlap_labels(FILE *out, const struct view *view)
{
    const struct page_times *times = view->times;
    bool *done = lab_alloc(times->overlaps_len * sizeof(*done));
    double left[2] = {view->width, view->width}, right[2] = {0};
    const struct page_overlap *one;
    for (size_t n = 0;
         n < OVERLAPS_MAX && (one = timeline_longest(times, done)); n++) {
        done[one - times->overlaps] = true;
        char text[96];
        page_overlap_text(one, text, sizeof(text));
        double width = page_bold_px(text);
        double x =
            (timeline_x_of(view, one->from) + timeline_x_of(view, one->to)) / 2;
        double begin = fmin(fmax(x - width / 2, 0), view->width - width);
        size_t row = 0;
        while (row < 2 && begin < right[row] && left[row] < begin + width)
            row++;
        if (row == 2)
            continue;
        left[row] = fmin(left[row], begin);
        right[row] = fmax(right[row], begin + width);
        double y = view->top - TEXT_LINE * (double)(row + 1) + 10;
        fprintf(out, "<path class=\"lead bad\" d=\"M%.1f %.1fV%.1f\"/>", x,
                y + 3, times->lanes[one->top].y - 3);
        timeline_draw_text(out, begin + width / 2, y, "two", text);
    }
    free(done);
}

static void timeline_draw_note(FILE *out, const struct view *view,
                               const struct note *note)
{
    const struct page_times *times = view->times;
    const struct page_lane *lane = &times->lanes[page_lane(times, note->lane)];
    const char *bad = note->bad ? " bad" : "";
    double band = lane->y + BAND + (lane->strip ? STRIP + 2 : 0);
    double y = band + 13 + TEXT_LINE * (double)note->row;
    char class[16], number[24];
    snprintf(class, sizeof(class), "note%s", bad);
    snprintf(number, sizeof(number), "%zu", note->number);
    fprintf(out, "<path class=\"lead%s\" d=\"M%.1f %.1fV%.1f\"/>", bad, note->x,
            lane->y - 2, y);
    timeline_draw_text(out, note->left + 4, y, class,
                       view->narrow ? number : note->text);
}

static void timeline_draw(FILE *out, const struct view *view)
{
    const struct page_times *times = view->times;
    const struct lab_row *row = times->row;
    fprintf(out,
            "<svg class=\"timeline %s\" role=\"img\" viewBox=\"0 0 %.0f "
            "%.0f\"><title>Timeline of ",
            view->narrow ? "narrow" : "wide", view->width, view->height);
    page_row_name(out, row);
    fputs(": ", out);
    page_text(out, row->verdict);
    fputs("</title>\n", out);
    timeline_draw_lanes(out, view);
    timeline_draw_axis(out, view);
    for (size_t i = 0; i < row->spans_len; i++)
        timeline_draw_span(out, view, &row->spans[i]);
    for (size_t i = 0; i < times->overlaps_len; i++)
        timeline_draw_overlap(out, view, &times->overlaps[i]);
    for (size_t i = 0; i < row->spans_len; i++)
        timeline_draw_span_text(out, view, &row->spans[i]);
    for (size_t i = 0; i < view->notes_len; i++)
        timeline_draw_note(out, view, &view->notes[i]);
    timeline_draw_overlap_labels(out, view);
    timeline_draw_names(out, view);
    fputs("</svg>\n", out);
}

static void timeline_list_notes(FILE *out, const struct view *view)
{
    if (!view->notes_len)
        return;
    fputs("<ol class=\"notes narrow\">\n", out);
    for (size_t i = 0; i < view->notes_len; i++) {
        const struct note *note = &view->notes[i];
        char ms[PAGE_NUMBER];
        fprintf(out, "<li%s>", note->bad ? " class=\"bad\"" : "");
        fprintf(out, "%s, ", page_ms(note->at - view->times->zero, ms));
        page_text(out, note->lane);
        fputs(": ", out);
        page_text(out, note->text);
        fputs("</li>\n", out);
    }
    fputs("</ol>\n", out);
}

static void timeline_write_key(FILE *out, const struct page_times *times)
{
    const struct lab_row *row = times->row;
    fputs("<p class=\"key\">", out);
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
        size_t i = 0;
        while (i < row->spans_len && (size_t)row->spans[i].kind != kind)
            i++;
        if (i < row->spans_len)
            fprintf(out, "<span><i class=\"key-%s\"></i>%s</span>", kinds[kind],
                    kinds[kind]);
    }
    if (times->overlaps_len)
        fputs("<span><i class=\"key-overlap\"></i>more than one holder</span>",
              out);
    fputs("</p>\n", out);
}

void page_timeline(FILE *out, const struct page_times *times)
{
    struct view wide = {.times = times};
    timeline_place(&wide);
    timeline_draw(out, &wide);
    free(wide.notes);
    struct view narrow = {.times = times, .narrow = true};
    timeline_place(&narrow);
    timeline_draw(out, &narrow);
    timeline_list_notes(out, &narrow);
    free(narrow.notes);
    timeline_write_key(out, times);
}
