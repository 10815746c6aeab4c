/* Classifies the errors of the server. MySQL and MariaDB use the same error
 * numbers, except for a few that only one of them has. */
#include "error.h"

#include "tables.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

#define IN_THE_WAY (MY_IN_THE_WAY | MY_AGAIN)
#define REFUSED (MY_LEAVES | MY_UNTOUCHED)
#define DENIED (MY_DENIED | MY_UNTOUCHED | MY_LASTS)

static const struct {
    uint16_t error;
    uint8_t is;
} errors[] = {
    {1213, IN_THE_WAY}, /* a deadlock */
    {3058, IN_THE_WAY}, /* a deadlock of user locks; MySQL */
    {1205, IN_THE_WAY}, /* a row lock took too long */
    {1020, IN_THE_WAY}, /* the record has changed */
    {3100, IN_THE_WAY}, /* Group Replication refused the commit */
    {3101, IN_THE_WAY}, /* a conflict with another member of the group */
    {1317, MY_AGAIN},   /* KILL QUERY */
    {1969, MY_AGAIN},   /* max_statement_time; MariaDB */
    {3024, MY_AGAIN},   /* max_execution_time; MySQL */
    {1290, REFUSED},    /* read_only */
    {1836, REFUSED},
    {1792, REFUSED},
    {1053, MY_LEAVES}, /* the server shuts down */
    {1047, MY_LEAVES}, /* Galera: not ready for use */
    {1927, MY_LEAVES}, /* the connection was killed */
    {4031, MY_LEAVES}, /* the connection was idle for too long */
    /* The next connection creates the table, or reports what is missing. */
    {MY_NO_TABLE, REFUSED | MY_LASTS},
    {MY_NO_COLUMN, REFUSED | MY_LASTS},
    {1049, MY_LASTS}, /* no such database */
    {1044, DENIED},
    {1045, DENIED},
    {MY_FORBIDDEN, DENIED},
    {1143, DENIED},
    {1227, DENIED},
    {1370, DENIED},
    {1698, DENIED},
    {1820, DENIED}, /* the password has expired */
    {1862, DENIED},
    {3118, DENIED}, /* the account is locked; MySQL */
    {4151, DENIED}, /* the account is locked; MariaDB */
};

bool hf__my_means(uint16_t error, enum my_meaning what)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].error == error)
            return errors[i].is & what;
    return false;
}

int hf__my_code(uint16_t error)
{
    return hf__my_means(error, MY_DENIED) ? HF_EAUTH : HF_EBACKEND;
}

/* ---- advice ------------------------------------------------------------- */

/* Advises how to repair the cause of an error like "Unknown column 'lease_us'
 * in 'field list'", whose text does not name the table. */
static void error_advise_column(const char *error, const struct my_table *t,
                                const char *database, char *to, size_t size)
{
    const char *name = strchr(error, '\''), *end;
    size_t len;

    end = name ? strchr(++name, '\'') : NULL;
    if (!end)
        return;
    len = (size_t)(end - name);
    for (size_t i = 0; t->column[i]; i++)
        if (strncmp(t->column[i], name, len) == 0 && t->column[i][len] == ' ')
            snprintf(to, size, "alter table `%s`.%s add column %s", database,
                     t->name, t->column[i]);
}

/* Advises how to repair the cause of an error like "INSERT command denied to
 * user 'shop'@'%' for table ...". A client uses SELECT before any other right.
 * If SELECT is missing on one table, the user probably has no rights at all, so
 * the advice is for all tables. */
static void error_advise_right(const char *error, size_t table,
                               const char *database, char *to, size_t size)
{
    bool is_select = strncmp(error, "SELECT", 6) == 0;
    const char *user = strstr(error, " user "), *end;
    char sql[MY_STATEMENT_MAX];
    size_t at;

    if (!strstr(error, hf__my_tables[table].name) || !user)
        return;
    user += strlen(" user ");
    end = strstr(user, " for ");
    if (!end)
        return;
    if (strncmp(error, "CREATE", 6) == 0) {
        snprintf(to, size, "%s", hf__my_make_table(sql, table, database));
        return;
    }
    for (size_t i = 0; i < MY_TABLES; i++)
        if ((is_select || i == table) &&
            !hf__my_add_grant(to, size, i, "select, insert, update, delete",
                              database, user, (int)(end - user)))
            return;
    at = strlen(to);
    snprintf(to + at, size - at,
             " (or as `select current_user()' names the account)");
}

void hf__my_advice(const struct my_answer *a, const struct my_login *login,
                   char *to, size_t size)
{
    const struct my_result *r = a->last;
    size_t before = 0;

    to[0] = '\0';
    while (hf__my_at(a->first, before) != r)
        before++;
    if (r->error == MY_NO_COLUMN && before < MY_TABLES)
        error_advise_column(r->text, &hf__my_tables[before], login->database,
                            to, size);
    for (size_t i = 0; i < MY_TABLES && r->error == MY_FORBIDDEN && !to[0]; i++)
        error_advise_right(r->text, i, login->database, to, size);
}

int hf__my_refusal(struct mysql *m, const struct my_answer *a)
{
    const struct my_result *r = a->last;
    char advice[640];

    hf__my_advice(a, &m->login, advice, sizeof(advice));
    return (hf__my_means(r->error, MY_LASTS) ? m->core->lasts : m->core->why)(
        m->client, hf__my_code(r->error), "%.160s (error %u)%s%s", r->text,
        r->error, advice[0] ? ". Run: " : "", advice);
}
