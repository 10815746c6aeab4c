/* holdfast ls: lists the locks. */
#include "client.h"
#include "json.h"
#include "lock_error.h"
#include "lock_print.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/screen.h"
#include "shared/verb.h"
#include "verbs.h"

#include <getopt.h>
#include <holdfast.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_NO_HEADERS = 256 };

struct options {
    const char *url, *prefix;
    bool is_long, nul, json, no_headers;
};

static const struct cli_flag flags[] = {
    CLI_FLAG_BACKEND,
    {'l', "long", NULL, "also kind, holder, since when, token and waiters"},
    {OPT_NO_HEADERS, "no-headers", NULL, "no header line with -l"},
    {'0', "null", NULL, "raw names, each followed by a NUL, for xargs -0"},
    {CLI_JSON, "json", NULL, "print a JSON object per name, one per line"},
    CLI_FLAG_END,
};

enum { COLUMNS = 6 };

struct row {
    char *name;
    const char *kind;
    char holder[160], since[24], token[24], waiting[24];
};

struct table {
    struct row *rows;
    size_t len;
    int width[COLUMNS];
};

static const struct row headers = {"NAME",  "KIND",  "HOLDER",
                                   "SINCE", "TOKEN", "WAITING"};

static const char *ls_cell(const struct row *row, int column)
{
    const char *const cells[COLUMNS] = {row->name,  row->kind,  row->holder,
                                        row->since, row->token, row->waiting};

    return cells[column];
}

/* Returns how many columns a text takes on a terminal. A character from U+3000
 * on counts as two columns, any other as one; only few characters have another
 * width. */
static int ls_width_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80
                 ? 1 + ((unsigned char)*text >= 0xe3)
                 : 0;
    return n;
}

static void ls_measure(struct table *t, const struct row *row)
{
    for (int i = 0; i < COLUMNS; i++) {
        int width = ls_width_of(ls_cell(row, i));

        if (width > t->width[i])
            t->width[i] = width;
    }
}

static void ls_print_row(const struct table *t, const struct row *row)
{
    for (int i = 0; i < COLUMNS; i++)
        printf("%s%*s", ls_cell(row, i),
               i < COLUMNS - 1 ? t->width[i] - ls_width_of(ls_cell(row, i)) + 3
                               : 1,
               i < COLUMNS - 1 ? "" : "\n");
}

static void ls_print_table(struct table *t, const struct options *o)
{
    if (!o->no_headers && t->len > 0)
        ls_measure(t, &headers);
    for (size_t i = 0; i < t->len; i++)
        ls_measure(t, &t->rows[i]);
    if (!o->no_headers && t->len > 0)
        ls_print_row(t, &headers);
    for (size_t i = 0; i < t->len; i++)
        ls_print_row(t, &t->rows[i]);
}

/* Writes the holder as "4711@host" or, if its pid is unknown, as the owner's id
 * in the form of the backend. For a latch, writes the remaining count. */
static void ls_fill_holder(struct row *row, const hf_info *info)
{
    const hf_party *p = info->holders;
    char more[24] = "";

    if (info->holders_len > 1)
        snprintf(more, sizeof more, ",+%zu", info->holders_len - 1);
    if (info->kind == HF_LATCH)
        snprintf(row->holder, sizeof row->holder, "left=%" PRIu64, info->count);
    else if (info->holders_len > 0 && p->pid > 0)
        snprintf(row->holder, sizeof row->holder, "%" PRId64 "@%s%s", p->pid,
                 p->host, more);
    else if (info->holders_len > 0)
        snprintf(row->holder, sizeof row->holder, "%s%s",
                 p->owner[0] ? p->owner : "?", more);
}

static void ls_fill_row(struct row *row, const hf_info *info)
{
    const hf_party *p = info->holders;

    ls_fill_holder(row, info);
    if (info->waiters_unknown)
        snprintf(row->waiting, sizeof row->waiting, "?");
    else
        snprintf(row->waiting, sizeof row->waiting, "%zu", info->waiters_len);
    if (info->holders_len == 0)
        return;
    if (p->since_unix_ms > 0)
        snprintf(row->since, sizeof row->since, "%s",
                 lock_age_since(p->since_unix_ms).text);
    if (p->token > 0)
        snprintf(row->token, sizeof row->token, "%" PRIu64, p->token);
}

static char *ls_shown_name(const struct hf_name *name)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    cli_print_bytes(out, name->bytes, name->len);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Adds a row. info is NULL if the name is in use, but not as a kind of lock
 * that holdfast knows. */
static int ls_add_row(struct table *t, const struct hf_name *name,
                      const hf_info *info)
{
    struct row *row = &t->rows[t->len];

    *row = (struct row){
        .kind = "?", .holder = "-", .since = "-", .token = "-", .waiting = "?"};
    if (info) {
        row->kind = lock_kind_name(info);
        ls_fill_row(row, info);
    }
    row->name = ls_shown_name(name);
    if (!row->name)
        return HF_ENOMEM;
    t->len++;
    return HF_OK;
}

static void ls_print_json(const struct hf_name *name, const hf_info *info)
{
    json_open(NULL, '{');
    if (info)
        lock_print_json(name->bytes, name->len, info);
    else
        json_name("name", name->bytes, name->len);
    json_close('}');
    json_end();
}

static void ls_print_name(const struct options *o, const struct hf_name *name)
{
    if (o->json) {
        ls_print_json(name, NULL);
    } else if (o->nul) {
        fwrite(name->bytes, 1, name->len, stdout);
        putchar('\0');
    } else {
        cli_print_bytes(stdout, name->bytes, name->len);
        putchar('\n');
    }
}

/* Inspects a lock, and prints it or adds its row. A lock that was released
 * after the list was made is left out. */
static int ls_inspect(hf_client *client, const struct options *o,
                      const struct hf_name *name, struct table *t,
                      hf_error *err)
{
    hf_info *info = NULL;
    int rc = hf_inspect(client, name->bytes, name->len, &info, err);

    if (rc != HF_OK && rc != HF_EMISMATCH)
        return rc;
    rc = HF_OK;
    if (info && !lock_is_used(info))
        ;
    else if (o->json)
        ls_print_json(name, info);
    else
        rc = ls_add_row(t, name, info);
    hf_info_free(info);
    return rc;
}

static int ls_print_long(hf_client *client, const struct options *o,
                         const hf_names *names, hf_error *err)
{
    struct row *rows = calloc(names->len + 1, sizeof *rows);
    struct table t = {.rows = rows};
    int rc = rows ? HF_OK : HF_ENOMEM;

    for (size_t i = 0; rc == HF_OK && i < names->len; i++)
        rc = ls_inspect(client, o, &names->names[i], &t, err);
    if (rc == HF_OK)
        ls_print_table(&t, o);
    while (t.len > 0)
        free(rows[--t.len].name);
    free(rows);
    return rc;
}

static int ls_list(hf_client *client, const struct options *o)
{
    hf_error err = HF_ERROR_INIT;
    static hf_names none;
    hf_names *names = &none;
    int rc = client ? hf_list(client, o->prefix, &names, &err) : HF_OK;

    if (rc == HF_OK && names->len == 0 && isatty(STDOUT_FILENO))
        cli_say(&cli_ls, "no locks found");
    if (rc == HF_OK && o->is_long)
        rc = ls_print_long(client, o, names, &err);
    else if (rc == HF_OK)
        for (size_t i = 0; i < names->len; i++)
            ls_print_name(o, &names->names[i]);
    if (client)
        hf_names_free(names);
    return rc == HF_OK ? CLI_OK
                       : cli_lock_failed(&cli_ls, o->url, "the list", rc, &err);
}

static int ls_take_option(struct options *o, int option)
{
    switch (option) {
    case 'b':
        o->url = optarg;
        return CLI_OK;
    case 'l':
        o->is_long = true;
        return CLI_OK;
    case '0':
        o->nul = true;
        return CLI_OK;
    case CLI_JSON:
        o->json = true;
        return CLI_OK;
    case OPT_NO_HEADERS:
        o->no_headers = true;
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

static int ls_parse(struct options *o, int argc, char **argv)
{
    int option, status = CLI_OK;

    while (status == CLI_OK && (option = cli_flag(&cli_ls, argc, argv)) != -1)
        status = ls_take_option(o, option);
    if (status != CLI_OK)
        return status;
    if (o->nul && (o->is_long || o->json))
        return cli_misuse(&cli_ls, "-0 prints only names; omit %s",
                          o->is_long ? "-l" : "--json");
    return cli_prefix(&cli_ls, argc - optind, argv + optind, o->url,
                      &o->prefix);
}

static int ls_main(int argc, char **argv)
{
    struct options o = {0};
    hf_client *client;
    int status = ls_parse(&o, argc, argv);

    if (status == CLI_OK)
        status = cli_open_existing(&cli_ls, o.url, &client);
    if (status != CLI_OK)
        return status;
    status = ls_list(client, &o);
    hf_close(client);
    return status;
}

const struct cli_verb cli_ls = {
    .name = "ls",
    .summary = "lists the locks that are in use",
    .synopsis = "ls [OPTION...] [PREFIX]",
    .about = "Lists the names that are held or waited for, or those of them "
             "that begin with PREFIX.",
    .flags = flags,
    .notes =
        "Control characters, backslashes and bytes that are not UTF-8 are "
        "shown as \\xNN.\nOn Redis, MySQL and MariaDB a name that is waited "
        "for and not held is not found.\n"
        "\n"
        "  holdfast ls -l                        the locks of this user here\n"
        "  holdfast ls -b redis://db1 jobs/      names that begin with jobs/\n"
        "  holdfast ls -l --json | jq -r 'select(.waiters[0]).name'\n",
    .operand = CLI_NAME,
    .main = ls_main,
};
