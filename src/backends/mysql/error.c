/* What the server's errors mean, by their numbers, which are the same in MySQL
 * and MariaDB (but for a few, which only one of them has). */
#include "error.h"

#include "tables.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

bool hf__my_in_the_way(uint16_t error)
{
    switch (error) {
    case 1213: /* a deadlock */
    case 3058: /* the same, of user locks; MySQL */
    case 1205: /* a lock was waited for for too long */
    case 1020: /* the record has changed */
    case 3100: /* Group Replication: refused at the commit, */
    case 3101: /* or rolled back by it: a member has changed the same rows */
        return true;
    default:
        return false;
    }
}

bool hf__my_again(uint16_t error)
{
    switch (error) {
    case 1317: /* KILL QUERY */
    case 1969: /* max_statement_time; MariaDB */
    case 3024: /* max_execution_time; MySQL */
        return true;
    default:
        return hf__my_in_the_way(error);
    }
}

bool hf__my_leaves(uint16_t error)
{
    switch (error) {
    case 1290: /* read_only */
    case 1836:
    case 1792:
    case 1053:        /* it shuts down */
    case 1047:        /* Galera: not ready for use */
    case 1927:        /* the connection was killed */
    case 4031:        /* it was idle for too long */
    case MY_NO_TABLE: /* the next one makes it, or says what is missing */
    case MY_NO_COLUMN:
        return true;
    default:
        return false;
    }
}

static bool error_is_forbidden(uint16_t error)
{
    switch (error) {
    case 1044:
    case 1045:
    case MY_FORBIDDEN:
    case 1143:
    case 1227:
    case 1370:
    case 1698:
    case 1820: /* the password has expired */
    case 1862:
    case 3118: /* the account is locked; MySQL */
    case 4151: /* the same; MariaDB */
        return true;
    default:
        return false;
    }
}

bool hf__my_passes(uint16_t error)
{
    return !error_is_forbidden(error) && error != MY_NO_TABLE &&
           error != MY_NO_COLUMN && error != 1049;
}

bool hf__my_untouched(uint16_t error)
{
    return error_is_forbidden(error) || error == MY_NO_COLUMN ||
           error == MY_NO_TABLE || error == 1290 || error == 1836 ||
           error == 1792;
}

int hf__my_code(uint16_t error)
{
    return error_is_forbidden(error) ? HF_EAUTH : HF_EBACKEND;
}

/* ---- what to run -------------------------------------------------------- */

#define MAKE "create table if not exists "

/* The definition of a column in the statement that makes its table. */
static bool error_definition(const char *table, const char *column, char *to,
                             size_t size)
{
    size_t len = strlen(column);

    for (const char *p = table; (p = strpbrk(p, "(,"));) {
        p++;
        if (strncmp(p, column, len) == 0 && p[len] == ' ') {
            snprintf(to, size, "%.*s", (int)strcspn(p, ",)"), p);
            /* varbinary(64) has the parenthesis inside. */
            if (strchr(to, '('))
                snprintf(to, size, "%.*s",
                         (int)(strcspn(p, ")") + 1 +
                               strcspn(p + strcspn(p, ")") + 1, ",)")),
                         p);
            return true;
        }
    }
    return false;
}

/* "Unknown column 'lease_us' in 'field list'" does not say of which table. */
static void error_advise_column(const char *error, const char *table,
                                const char *database, char *to, size_t size)
{
    const char *begin = strchr(error, '\'');
    const char *end = begin ? strchr(begin + 1, '\'') : NULL;
    const char *name = table + strlen(MAKE);
    char column[64], what[128];

    if (!end || end - begin > (long)sizeof(column))
        return;
    snprintf(column, sizeof(column), "%.*s", (int)(end - begin) - 1, begin + 1);
    if (error_definition(table, column, what, sizeof(what)))
        snprintf(to, size, "alter table `%s`.%.*s add column %s", database,
                 (int)strcspn(name, "("), name, what);
}

/* Of all tables: this is the first that a client needs, one after the other. */
static void error_advise_grants(const char *user, int user_len,
                                const char *database, char *to, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; hf__my_tables[i]; i++) {
        const char *name = hf__my_tables[i] + strlen(MAKE);
        int n = snprintf(to + at, size - at,
                         "%sgrant select, insert, update, delete on `%s`.%.*s "
                         "to %.*s",
                         at ? "; " : "", database, (int)strcspn(name, "("),
                         name, user_len, user);

        if (n < 0 || (size_t)n >= size - at) {
            to[at] = '\0';
            return;
        }
        at += (size_t)n;
    }
    snprintf(to + at, size - at,
             " (or as `select current_user()' names the account)");
}

/* "INSERT command denied to user 'shop'@'%' for table ..." */
static void error_advise_right(const char *error, const char *table,
                               const char *database, char *to, size_t size)
{
    const char *name = table + strlen(MAKE);
    const char *user = strstr(error, " user "), *end;
    char quoted[64];

    snprintf(quoted, sizeof(quoted), "%.*s", (int)strcspn(name, "("), name);
    if (!strstr(error, quoted) || !user)
        return;
    user += strlen(" user ");
    end = strstr(user, " for ");
    if (strncmp(error, "CREATE", 6) == 0)
        snprintf(to, size, MAKE "`%s`.%s", database, name);
    else if (end && strncmp(error, "SELECT", 6) == 0)
        error_advise_grants(user, (int)(end - user), database, to, size);
    else if (end)
        snprintf(to, size,
                 "grant select, insert, update, delete on `%s`.%s to %.*s (or "
                 "as `select current_user()' names the account)",
                 database, quoted, (int)(end - user), user);
}

void hf__my_advice(const struct my_result *first, const struct my_login *login,
                   char *to, size_t size)
{
    const struct my_result *r = hf__my_last(first);
    size_t before = 0;

    to[0] = '\0';
    while (hf__my_at(first, before) != r)
        before++;
    for (size_t i = 0; hf__my_tables[i]; i++) {
        if (r->error == MY_NO_COLUMN && i == before)
            error_advise_column(r->text, hf__my_tables[i], login->database, to,
                                size);
        if (r->error == MY_FORBIDDEN)
            error_advise_right(r->text, hf__my_tables[i], login->database, to,
                               size);
    }
}

int hf__my_refusal(struct mysql *m, const struct my_result *first)
{
    const struct my_result *r = hf__my_last(first);
    char advice[640];

    hf__my_advice(first, &m->login, advice, sizeof(advice));
    return (hf__my_passes(r->error) ? m->core->why : m->core->lasts)(
        m->client, hf__my_code(r->error), "%.160s (error %u)%s%s", r->text,
        r->error, advice[0] ? ". Run: " : "", advice);
}
