/*
 * The results of a run: scenarios, their rows and claims. With --json a row is
 * printed when it is done; otherwise the table of a scenario is printed when
 * the scenario ends. All results are kept for the page, in the report of struct
 * lab.
 *
 * Only the runner calls these functions, except report_json_text(), which `list
 * --json' needs, too. Scenarios call lab_...(); main.c, supervisor.c and the
 * page call report_...(). A function dies if it cannot print.
 */
#ifndef HF_LAB_REPORT_H
#define HF_LAB_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab;
struct lab_scenario;

enum lab_column_flag {
    LAB_BAR = 1 << 0,       /* drawn as a bar; one column per scenario */
    LAB_WIDE = 1 << 1,      /* on the page, but not in printed tables */
    LAB_LEFT = 1 << 2,      /* text, aligned left */
    LAB_JSON_ONLY = 1 << 3, /* neither printed in tables nor on the page */
};

struct lab_column {
    const char *key;   /* its name in JSON */
    const char *title; /* its name in tables */
    int width;         /* its width in printed tables */
    unsigned flags;
};

/* The outcome of what a row tried. A row that is expected to fail is good if it
 * fails. */
enum lab_outcome { LAB_OK, LAB_FAILS };

enum { LAB_TEXT_MAX = 200, LAB_COLUMNS_MAX = 20 };

/* A field of a row: a text, a number, or nothing ("-", null). */
struct lab_field {
    const char *key;
    char text[64];
    double number;
    enum { LAB_NOTHING, LAB_STRING, LAB_NUMBER } type;
};

/* A time in which an actor believes that it holds the lock, waits for the lock,
 * or is stopped. */
struct lab_span {
    char lane[24];    /* the actor */
    char label[40];   /* what it does: "works", "stopped"; or "" */
    int64_t from, to; /* lab_now() */
    enum lab_span_kind {
        LAB_HOLDS,  /* two of these at once are an overlap */
        LAB_SHARES, /* holds together with others on purpose: as a reader, or by
                       a permit */
        LAB_WAITS,
        LAB_STOPPED, /* stopped by the lab */
    } kind;
};

/* A moment: "killed", "writes 499", "refused". */
struct lab_mark {
    char lane[24];
    char label[60];
    int64_t at;
    bool bad;
};

struct lab_row {
    const struct lab_scenario *scenario;
    struct lab_field *fields; /* one for each column, in their order */
    size_t fields_len;
    enum lab_outcome outcome, expected;
    char verdict[LAB_TEXT_MAX];
    struct lab_span *spans;
    size_t spans_len;
    struct lab_mark *marks;
    size_t marks_len;
};

/* A claim of the documents (tutorials; see lab/README.md) about speed. It is
 * reported, and does not affect the exit status. */
struct lab_claim {
    char text[LAB_TEXT_MAX];    /* "one statement > for update > optimistic" */
    char figures[LAB_TEXT_MAX]; /* "9120 > 4410 > 380 per second" */
    bool confirmed;
};

struct lab_section {
    const struct lab_scenario *scenario;
    struct lab_row **rows;
    size_t rows_len;
    struct lab_claim *claims;
    size_t claims_len;
    char skipped[LAB_TEXT_MAX]; /* why it was not run; "" if it was */
};

struct lab_report {
    struct lab_section *sections;
    size_t sections_len;
    double seconds;    /* duration of the whole run */
    char command[256]; /* as typed, without the secrets of URLs */
    char machine[128]; /* "2 processors, x86_64, Linux 6.1" */
};

/* Begins a row, which lab_row_done() ends. `expected' is the outcome that it
 * must have. */
struct lab_row *lab_row(struct lab *lab, enum lab_outcome expected);
/* Set a field of the row. `key' names a column of the scenario. A field that is
 * not set stays empty. */
void lab_row_text(struct lab_row *row, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void lab_row_number(struct lab_row *row, const char *key, double number);
/* Returns the number of a field, or 0 if it has none. */
double lab_row_get(const struct lab_row *row, const char *key);
/* Add a span or a mark to the timeline. Both are copied. */
void lab_row_span(struct lab_row *row, const struct lab_span *span);
void lab_row_mark(struct lab_row *row, const struct lab_mark *mark);
/* Ends the row with its outcome and its verdict: one sentence, without a full
 * stop, such as "oversold by 37". */
void lab_row_done(struct lab *lab, struct lab_row *row,
                  enum lab_outcome outcome, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a claim to the scenario, with the figures that confirm it or not. */
void lab_claim(struct lab *lab, bool confirmed, const char *text,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Begins the section of a scenario. report_skip() records why that scenario is
 * not run. */
void report_begin(struct lab *lab, const struct lab_scenario *scenario);
void report_skip(struct lab *lab, const char *why);
/* Ends the scenario. Without --json, prints the table with the rows so far. A
 * second call has no effect. */
void report_end(struct lab *lab);
/* Prints a JSON string, which is valid whatever bytes the text contains. */
void report_json_text(const char *text);
/* Flushes standard output, and dies if that fails. If no process reads standard
 * output, dies without a message. */
void report_flush(void);
/* Returns the length in bytes of the UTF-8 character at s, or 0 if no valid
 * character begins there. */
size_t report_character(const unsigned char *s);

#endif
