#include "report.h"

#include "../../cli/shared/exit_code.h"
#include "die.h"
#include "lab_state.h"
#include "memory.h"
#include "progress.h"
#include "scenario.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 16 };

static struct lab_section *report_section(struct lab *lab)
{
    return &lab->report.sections[lab->report.sections_len - 1];
}

static struct lab_field *report_field_of(const struct lab_row *row,
                                         const char *key)
{
    for (size_t i = 0; i < row->fields_len; i++)
        if (strcmp(row->fields[i].key, key) == 0)
            return &row->fields[i];
    lab_die(CLI_FAILED, "a defect: no column is called %s", key);
}

void report_flush(void)
{
    int error;

    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    error = errno;
    if (error == EPIPE)
        exit(128 + SIGPIPE);
    lab_die(CLI_FAILED, "standard output: %s", strerror(error));
}

size_t report_character(const unsigned char *s)
{
    size_t len = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;

    if (*s < 0x80)
        return 1;
    if (*s < 0xc2 || *s > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and characters beyond U+10FFFF are
     * invalid. */
    if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
        (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

void report_json_text(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    putchar('"');
    while (*s) {
        size_t len = report_character(s);

        if (!len)
            printf("\\ufffd");
        else if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s < ' ')
            printf("\\u%04x", *s);
        else
            fwrite(s, 1, len, stdout);
        s += len ? len : 1;
    }
    putchar('"');
}

static void report_json_pair(const char *key, const char *text)
{
    printf(",\"%s\":", key);
    report_json_text(text);
}

static void report_json_begin(const struct lab_scenario *scenario)
{
    printf("{\"scenario\":");
    report_json_text(scenario->name);
}

static void report_json_field(const struct lab_field *field)
{
    printf(",\"%s\":", field->key);
    if (field->type == LAB_STRING)
        report_json_text(field->text);
    else if (field->type == LAB_NUMBER && isfinite(field->number))
        printf(field->number == floor(field->number) ? "%.0f" : "%.3f",
               field->number);
    else
        printf("null");
}

static const char *report_word(enum lab_outcome outcome)
{
    return outcome == LAB_OK ? "ok" : "fails";
}

static void report_json_row(const struct lab_row *row)
{
    report_json_begin(row->scenario);
    for (size_t i = 0; i < row->fields_len; i++)
        report_json_field(&row->fields[i]);
    report_json_pair("outcome", report_word(row->outcome));
    report_json_pair("expected", report_word(row->expected));
    report_json_pair("verdict", row->verdict);
    puts("}");
    report_flush();
}

static void report_json_claim(const struct lab_section *in,
                              const struct lab_claim *claim)
{
    report_json_begin(in->scenario);
    report_json_pair("claim", claim->text);
    printf(",\"confirmed\":%s", claim->confirmed ? "true" : "false");
    report_json_pair("figures", claim->figures);
    puts("}");
    report_flush();
}

static void report_json_skipped(const struct lab_section *in)
{
    report_json_begin(in->scenario);
    report_json_pair("skipped", in->skipped);
    puts("}");
    report_flush();
}

static bool report_in_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Returns false if bars would make lines wrap on this terminal. */
static bool report_has_bars(void)
{
    struct winsize size = {0};

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col >= 100;
}

static const char *report_sign_of(const struct lab_row *row)
{
    bool utf8 = report_in_utf8();

    if (row->outcome != row->expected)
        return "!!";
    if (row->outcome == LAB_OK)
        return utf8 ? "\u2713 " : "ok";
    return utf8 ? "\u2717 " : "x ";
}

static const char *report_colour_of(const struct lab_row *row)
{
    if (!isatty(STDOUT_FILENO) || getenv("NO_COLOR"))
        return "";
    if (row->outcome != row->expected)
        return "\033[1;35m";
    return row->outcome == LAB_OK ? "\033[32m" : "\033[31m";
}

static void report_print_bar(double share)
{
    static const char *const eighths[] = {" ",      "\u258f", "\u258e",
                                          "\u258d", "\u258c", "\u258b",
                                          "\u258a", "\u2589", "\u2588"};
    int left = share > 0 ? (int)ceil(share * BAR * 8) : 0;
    bool utf8 = report_in_utf8();

    putchar(' ');
    for (int i = 0; i < BAR; i++, left -= 8) {
        int part = left < 0 ? 0 : left > 8 ? 8 : left;

        fputs(utf8 ? eighths[part] : part > 3 ? "#" : " ", stdout);
    }
}

static void report_format_field(const struct lab_field *field, char out[64])
{
    double n = field->number;

    if (field->type == LAB_STRING)
        snprintf(out, 64, "%s", field->text);
    else if (field->type == LAB_NOTHING || !isfinite(n))
        strcpy(out, "-");
    else
        snprintf(out, 64, n == floor(n) || n >= 1000 ? "%.0f" : "%.1f", n);
}

static double report_largest(const struct lab_section *in, size_t column)
{
    double most = 0;

    for (size_t i = 0; i < in->rows_len; i++)
        if (in->rows[i]->fields[column].type == LAB_NUMBER)
            most = fmax(most, in->rows[i]->fields[column].number);
    return most;
}

static void report_print_row(const struct lab_section *in,
                             const struct lab_row *row)
{
    const struct lab_column *column = in->scenario->columns;
    const char *colour = report_colour_of(row);
    char text[64];

    for (size_t i = 0; i < row->fields_len; i++, column++) {
        if (column->flags & (LAB_WIDE | LAB_JSON_ONLY))
            continue;
        report_format_field(&row->fields[i], text);
        printf(column->flags & LAB_LEFT ? "%-*s " : "%*s ", column->width,
               text);
        if (column->flags & LAB_BAR && report_has_bars())
            report_print_bar(row->fields[i].number / report_largest(in, i));
    }
    printf(" %s%s %s%s\n", colour, report_sign_of(row), row->verdict,
           colour[0] ? "\033[0m" : "");
}

static void report_print_header(const struct lab_section *in)
{
    const struct lab_column *column = in->scenario->columns;

    for (; column->key; column++) {
        if (column->flags & (LAB_WIDE | LAB_JSON_ONLY))
            continue;
        printf(column->flags & LAB_LEFT ? "%-*s " : "%*s ", column->width,
               column->title);
        if (column->flags & LAB_BAR && report_has_bars())
            printf(" %*s", BAR, "");
    }
    puts("   verdict");
}

static bool report_has_strategy(const struct lab_section *in, const char *name)
{
    for (size_t i = 0; i < in->rows_len; i++)
        if (strcmp(report_field_of(in->rows[i], "strategy")->text, name) == 0)
            return true;
    return false;
}

static void report_print_notes(const struct lab_section *in)
{
    const struct lab_note *note = in->scenario->notes;

    if (!note || !in->rows_len)
        return;
    puts("\nWhy:");
    for (; note->strategy; note++)
        if (report_has_strategy(in, note->strategy))
            printf("  %-16s  %s\n", note->strategy, note->text);
}

static void report_print_section(const struct lab_section *in)
{
    printf("%s: %s\n\n", in->scenario->name, in->scenario->summary);
    if (in->rows_len) {
        report_print_header(in);
        for (size_t i = 0; i < in->rows_len; i++)
            report_print_row(in, in->rows[i]);
    }
    if (in->skipped[0])
        printf("not run: %s\n", in->skipped);
    report_print_notes(in);
    if (in->claims_len)
        puts("\nCommon claims:");
    for (size_t i = 0; i < in->claims_len; i++)
        printf("  \"%s\": %s (%s)\n", in->claims[i].text,
               in->claims[i].confirmed ? "confirmed" : "not confirmed",
               in->claims[i].figures);
    putchar('\n');
    report_flush();
}

void report_begin(struct lab *lab, const struct lab_scenario *scenario)
{
    struct lab_report *report = &lab->report;

    lab->scenario = scenario;
    report->sections = lab_grow(report->sections, report->sections_len + 1,
                                sizeof *report->sections);
    report->sections[report->sections_len++] =
        (struct lab_section){.scenario = scenario};
}

void report_skip(struct lab *lab, const char *why)
{
    snprintf(report_section(lab)->skipped, LAB_TEXT_MAX, "%s", why);
    if (lab->json)
        report_json_skipped(report_section(lab));
}

void report_end(struct lab *lab)
{
    if (!lab->scenario || !lab->report.sections_len)
        return;
    lab->scenario = NULL; /* a failure while printing must not print again */
    progress_clear();
    if (!lab->json)
        report_print_section(report_section(lab));
}

struct lab_row *lab_row(struct lab *lab, enum lab_outcome expected)
{
    const struct lab_column *columns = lab->scenario->columns;
    struct lab_row *row = lab_alloc(sizeof *row);

    while (columns[row->fields_len].key)
        row->fields_len++;
    row->scenario = lab->scenario;
    row->expected = expected;
    row->fields = lab_alloc(row->fields_len * sizeof *row->fields);
    for (size_t i = 0; i < row->fields_len; i++)
        row->fields[i].key = columns[i].key;
    return row;
}

void lab_row_text(struct lab_row *row, const char *key, const char *fmt, ...)
{
    struct lab_field *field = report_field_of(row, key);
    va_list args;

    va_start(args, fmt);
    vsnprintf(field->text, sizeof field->text, fmt, args);
    va_end(args);
    field->type = LAB_STRING;
}

void lab_row_number(struct lab_row *row, const char *key, double number)
{
    struct lab_field *field = report_field_of(row, key);

    field->number = number;
    field->type = LAB_NUMBER;
}

double lab_row_get(const struct lab_row *row, const char *key)
{
    return report_field_of(row, key)->number;
}

void lab_row_span(struct lab_row *row, const struct lab_span *span)
{
    row->spans = lab_grow(row->spans, row->spans_len + 1, sizeof *row->spans);
    row->spans[row->spans_len++] = *span;
}

void lab_row_mark(struct lab_row *row, const struct lab_mark *mark)
{
    row->marks = lab_grow(row->marks, row->marks_len + 1, sizeof *row->marks);
    row->marks[row->marks_len++] = *mark;
}

void lab_row_done(struct lab *lab, struct lab_row *row,
                  enum lab_outcome outcome, const char *fmt, ...)
{
    struct lab_section *in = report_section(lab);
    va_list args;

    va_start(args, fmt);
    vsnprintf(row->verdict, sizeof row->verdict, fmt, args);
    va_end(args);
    row->outcome = outcome;
    if (outcome != row->expected)
        lab->as_expected = false;
    in->rows = lab_grow(in->rows, in->rows_len + 1, sizeof(struct lab_row *));
    in->rows[in->rows_len++] = row;
    if (lab->json)
        report_json_row(row);
}

void lab_claim(struct lab *lab, bool confirmed, const char *text,
               const char *fmt, ...)
{
    struct lab_section *in = report_section(lab);
    struct lab_claim *claim;
    va_list args;

    in->claims = lab_grow(in->claims, in->claims_len + 1, sizeof *in->claims);
    claim = &in->claims[in->claims_len++];
    claim->confirmed = confirmed;
    snprintf(claim->text, sizeof claim->text, "%s", text);
    va_start(args, fmt);
    vsnprintf(claim->figures, sizeof claim->figures, fmt, args);
    va_end(args);
    if (lab->json)
        report_json_claim(in, claim);
}
