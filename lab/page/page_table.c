/*
 * The table of a scenario. One column may be drawn as bars. If the largest
 * value of that column is more than ten times the smallest, the scale is
 * logarithmic, so that small values stay visible.
 */
#include "page_table.h"

#include "../runner/scenario.h"
#include "page_text.h"
#include "page_times.h"

#include <math.h>
#include <stdbool.h>

/* The scale of the bars. */
struct scale {
    const struct lab_column *column; /* NULL: no bars */
    size_t index;
    bool log;
    double low, high; /* ends of the scale, as logarithms if `log' */
};

enum { MANY_COLUMNS = 8, LINEAR_UP_TO = 10 };

static struct scale page_table_scale_of(const struct lab_section *section)
{
    struct scale scale = {0};
    const struct lab_column *column = section->scenario->columns;
    while (column->key && !(column->flags & LAB_BAR))
        column++;
    if (!column->key)
        return scale;
    scale.index = (size_t)(column - section->scenario->columns);
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < section->rows_len; i++) {
        const struct lab_field *field = &section->rows[i]->fields[scale.index];
        if (field->type != LAB_NUMBER || !(field->number > 0) ||
            !isfinite(field->number))
            continue;
        least = fmin(least, field->number);
        most = fmax(most, field->number);
    }
    if (most <= 0)
        return scale;
    scale.column = column;
    scale.high = most;
    scale.log = most / least > LINEAR_UP_TO;
    if (scale.log) {
        /* Even the smallest bar must be visible. */
        scale.low = floor(log10(least) - 0.1);
        scale.high = ceil(log10(most));
    }
    return scale;
}

static double page_table_part_of(const struct scale *scale, double value)
{
    if (!(value > 0) || !isfinite(value))
        return 0;
    if (!scale->log)
        return value / scale->high;
    return (log10(value) - scale->low) / (scale->high - scale->low);
}

static void page_table_write_caption(FILE *out,
                                     const struct lab_section *section,
                                     const struct scale *scale)
{
    fprintf(out, "<caption>%zu row%s", section->rows_len,
            section->rows_len == 1 ? "" : "s");
    if (scale->column) {
        fputs(". The bars show \u201c", out);
        page_text(out, scale->column->title);
        fputs("\u201d", out);
    }
    if (scale->log) {
        char low[PAGE_NUMBER], high[PAGE_NUMBER];
        fprintf(out,
                " on a logarithmic scale from %s to %s: each line is ten times "
                "the one before",
                page_number(pow(10, scale->low), low),
                page_number(pow(10, scale->high), high));
    }
    fputs(scale->column ? ".</caption>\n" : "</caption>\n", out);
}

static void page_table_write_value(FILE *out, const struct lab_field *field)
{
    char number[PAGE_NUMBER];
    switch (field->type) {
    case LAB_STRING:
        page_text(out, field->text);
        break;
    case LAB_NUMBER:
        fputs(page_number(field->number, number), out);
        break;
    case LAB_NOTHING:
        fputs("<span class=\"nothing\">\u2013</span>", out);
        break;
    }
}

static void page_table_write_bar(FILE *out, const struct scale *scale,
                                 const struct lab_field *field)
{
    double number = field->type == LAB_NUMBER ? field->number : 0;
    fputs("<span class=\"value\">", out);
    page_table_write_value(out, field);
    fprintf(out,
            "</span><span class=\"track\"><span class=\"fill\" "
            "style=\"width:%.1f%%\"></span></span>",
            100 * page_table_part_of(scale, number));
}

static const char *page_table_class_of(const struct lab_column *column,
                                       const struct scale *scale)
{
    if (column == scale->column)
        return "bar";
    return column->flags & LAB_LEFT ? "left" : "right";
}

static void page_table_write_cell(FILE *out, const struct lab_row *row,
                                  size_t i, const struct scale *scale)
{
    const struct lab_column *column = &row->scenario->columns[i];
    /* The first column names the row. */
    fprintf(out, "<%s class=\"%s\" data-title=\"",
            i ? "td role=\"cell\"" : "th scope=\"row\" role=\"rowheader\"",
            page_table_class_of(column, scale));
    page_text(out, column->title);
    fputs("\">", out);
    if (column == scale->column)
        page_table_write_bar(out, scale, &row->fields[i]);
    else
        page_table_write_value(out, &row->fields[i]);
    fprintf(out, "</%s>", i ? "td" : "th");
}

static void page_table_write_verdict(FILE *out, const struct lab_row *row,
                                     size_t number)
{
    const char *class = page_row_class(row);
    fprintf(out,
            "<td role=\"cell\" class=\"verdict %s\" data-title=\"verdict\">",
            class);
    fputs("<span>", out);
    page_sign(out, class);
    fputs("<span class=\"words\">", out);
    page_text(out, row->verdict);
    if (row->outcome != row->expected)
        fprintf(out, " <strong>unexpected: it should have gone %s</strong>",
                row->expected == LAB_OK ? "well" : "wrong");
    if (page_has_times(row))
        fprintf(out, " <a href=\"#%s-%zu-timeline\">timeline</a>",
                row->scenario->name, number);
    fputs("</span></span></td>", out);
}

static void page_table_write_head(FILE *out, const struct lab_column *columns,
                                  const struct scale *scale)
{
    fputs("<thead role=\"rowgroup\"><tr role=\"row\">", out);
    for (const struct lab_column *column = columns; column->key; column++) {
        if (column->flags & LAB_JSON_ONLY)
            continue;
        fprintf(out, "<th scope=\"col\" role=\"columnheader\" class=\"%s\">",
                page_table_class_of(column, scale));
        page_text(out, column->title);
        fputs("</th>", out);
    }
    fputs("<th scope=\"col\" role=\"columnheader\" class=\"verdict\">verdict"
          "</th>"
          "</tr></thead>\n",
          out);
}

void page_table(FILE *out, const struct lab_section *section)
{
    struct scale scale = page_table_scale_of(section);
    const struct lab_column *columns = section->scenario->columns;
    size_t count = 0, shown = 0;
    while (columns[count].key)
        count++;
    for (size_t i = 0; i < count; i++)
        shown += !(columns[i].flags & LAB_JSON_ONLY);
    fprintf(out, "<div class=\"scroll\"><table role=\"table\" class=\"rows%s\"",
            shown > MANY_COLUMNS ? " many" : "");
    if (scale.log)
        fprintf(out, " style=\"--step:%.3f%%\"",
                100 / (scale.high - scale.low));
    fputs(">\n", out);
    page_table_write_caption(out, section, &scale);
    page_table_write_head(out, columns, &scale);
    fputs("<tbody role=\"rowgroup\">\n", out);
    for (size_t i = 0; i < section->rows_len; i++) {
        const struct lab_row *row = section->rows[i];
        fprintf(out, "<tr role=\"row\" id=\"%s-%zu\" class=\"%s\">",
                section->scenario->name, i + 1, page_row_class(row));
        for (size_t k = 0; k < count && k < row->fields_len; k++)
            if (!(columns[k].flags & LAB_JSON_ONLY))
                page_table_write_cell(out, row, k, &scale);
        page_table_write_verdict(out, row, i + 1);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}
