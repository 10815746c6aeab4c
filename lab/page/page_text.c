/* Texts and numbers of the page. */
#include "page_text.h"

#include "../runner/scenario.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *page_text_escape(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\n':
    case '\t':
        return " ";
    default:
        return c < 0x20 || c == 0x7f ? "&#xfffd;" : NULL;
    }
}

void page_text(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t len = report_character(s);
        const char *instead = len ? page_text_escape(*s) : "&#xfffd;";
        if (instead)
            fputs(instead, out);
        else
            fwrite(s, 1, len, out);
        s += len ? len : 1;
    }
}

/* Returns the width in DejaVu Sans, which is wider than most fonts. */
static double page_text_character_px(const unsigned char *s)
{
    bool space = !strncmp((const char *)s, "\u202f", 3) ||
                 !strncmp((const char *)s, "\u00a0", 2);
    if (space || strchr(" iljI.,:;'|!()[]", *s))
        return 4.8;
    if (*s < 0x20 || *s >= 0x80 || strchr("MWmw@%", *s))
        return 12;
    return (*s >= 'A' && *s <= 'Z') || *s == '&' ? 9.4 : 7.8;
}

double page_text_px(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    double px = 0;
    while (*s) {
        size_t len = report_character(s);
        px += page_text_character_px(s);
        s += len ? len : 1;
    }
    return px;
}

double page_bold_px(const char *text)
{
    return 1.13 * page_text_px(text);
}

const char *page_fixed(double number, int decimals, char out[PAGE_NUMBER])
{
    static const char space[] = "\u202f"; /* a narrow no-break space */
    char digits[32];
    snprintf(digits, sizeof(digits), "%.*f", decimals, fabs(number));
    size_t whole = strcspn(digits, ".");
    size_t len = 0;
    if (number < 0)
        len += (size_t)snprintf(out, PAGE_NUMBER, "\u2212");
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % 3 == 0) {
            memcpy(out + len, space, sizeof(space) - 1);
            len += sizeof(space) - 1;
        }
        out[len++] = digits[i];
    }
    snprintf(out + len, PAGE_NUMBER - len, "%s", digits + whole);
    return out;
}

const char *page_number(double number, char out[PAGE_NUMBER])
{
    double size = fabs(number);
    if (!isfinite(number) || size >= 1e15)
        snprintf(out, PAGE_NUMBER, "%.3g", number);
    else if (size == floor(size) || size >= 100)
        page_fixed(number, 0, out);
    else
        page_fixed(number, size >= 10 ? 1 : size >= 0.1 ? 2 : 3, out);
    return out;
}

const char *page_ms(int64_t ns, char out[PAGE_NUMBER])
{
    double ms = (double)ns / 1e6, size = fabs(ms);
    page_fixed(ms,
               size >= 10 || !ns ? 0
               : size >= 1       ? 1
               : size >= 0.01    ? 2
                                 : 3,
               out);
    size_t len = strlen(out);
    snprintf(out + len, PAGE_NUMBER - len, "\u00a0ms");
    return out;
}

void page_row_name(FILE *out, const struct lab_row *row)
{
    const struct lab_column *columns = row->scenario->columns;
    bool any = false;
    for (size_t i = 0; i < row->fields_len && columns[i].key; i++) {
        const struct lab_field *field = &row->fields[i];
        if (!(columns[i].flags & LAB_LEFT) || field->type != LAB_STRING)
            continue;
        if (any)
            fputs(" \u00b7 ", out);
        page_text(out, field->text);
        any = true;
    }
    if (!any)
        page_text(out, row->scenario->name);
}

const char *page_row_class(const struct lab_row *row)
{
    if (row->outcome != row->expected)
        return "unexpected";
    return row->outcome == LAB_OK ? "good" : "told";
}

void page_sign(FILE *out, const char *class)
{
    const char *title = !strcmp(class, "good")   ? "goes well"
                        : !strcmp(class, "told") ? "goes wrong, as expected"
                                                 : "unexpected";
    fprintf(out,
            "<svg class=\"sign %s\" role=\"img\" viewBox=\"0 0 16 16\">"
            "<title>%s</title><use href=\"#sign-%s\"/></svg>",
            class, title, class);
}
