#include "sql.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"
#include "address.h"

#include <errno.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_S 5
#define ANSWER_S 90 /* longer than the server waits for a row lock */
#define GRANTS "CREATE, DROP, SELECT, INSERT, UPDATE, DELETE"

struct sql {
    MYSQL *conn;
    const char *name; /* name of the place */
    char database[160];
};

/* Returns whether the connection is lost. The errors of the client library have
 * the numbers 2000 to 2999, and 5000 and above. They concern the connection,
 * not the statement. */
static bool sql_is_lost(unsigned error)
{
    return (error >= 2000 && error < 3000) || error >= 5000;
}

/* Returns whether the error says that the user exists but lacks a right. */
static bool sql_is_refused(unsigned error)
{
    switch (error) {
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
        return true;
    default:
        return false;
    }
}

/* Writes to `why' a message about the last error; the message begins with
 * `what', which names the attempt that failed. Returns an exit status. */
static int sql_explain(const struct sql *sql, const char *what,
                       char why[SQL_WHY])
{
    unsigned error = mysql_errno(sql->conn);
    const char *text = mysql_error(sql->conn);

    if (error == ER_ACCESS_DENIED_ERROR ||
        error == ER_ACCESS_DENIED_NO_PASSWORD_ERROR) {
        snprintf(why, SQL_WHY,
                 "%s: %s; check the user and the password of the URL, or of "
                 "HOLDFAST_LAB_PASSWORD",
                 what, text);
        return CLI_NOPERM;
    }
    if (sql_is_refused(error)) {
        snprintf(why, SQL_WHY,
                 "%s: %s; the lab needs a user with GRANT " GRANTS " ON `%s`.*",
                 what, text, sql->database);
        return CLI_NOPERM;
    }
    if (error == ER_BAD_DB_ERROR)
        snprintf(why, SQL_WHY, "%s: %s; create it: CREATE DATABASE `%s`", what,
                 text, sql->database);
    else
        snprintf(why, SQL_WHY, "%s: %s (error %u)", what, text, error);
    return sql_is_lost(error) || error == ER_BAD_DB_ERROR ? CLI_UNAVAILABLE
                                                          : CLI_FAILED;
}

static void sql_set_options(MYSQL *conn, const struct lab_address *to)
{
    unsigned patience = CONNECT_S, answer = ANSWER_S;
    unsigned tcp = MYSQL_PROTOCOL_TCP;

    mysql_options(conn, MYSQL_OPT_CONNECT_TIMEOUT, &patience);
    mysql_options(conn, MYSQL_OPT_READ_TIMEOUT, &answer);
    mysql_options(conn, MYSQL_OPT_WRITE_TIMEOUT, &answer);
    mysql_options(conn, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (to->port) /* otherwise "localhost" means the socket */
        mysql_options(conn, MYSQL_OPT_PROTOCOL, &tcp);
}

static bool sql_reach(const struct sql *sql, const struct lab_address *to,
                      int *status, char why[SQL_WHY])
{
    /* The password may be in the environment, because fewer users can see the
     * environment than the command line. */
    const char *ours = getenv("HOLDFAST_LAB_PASSWORD");
    const char *env = ours ? ours : getenv("HOLDFAST_PASSWORD");
    const char *password = *to->password || !env ? to->password : env;
    const char *host = *to->host ? to->host : "localhost";
    char what[256];

    sql_set_options(sql->conn, to);
    if (mysql_real_connect(sql->conn, host, *to->user ? to->user : NULL,
                           password, sql->database, (unsigned)to->port, NULL,
                           0))
        return true;
    snprintf(what, sizeof(what), "cannot use MariaDB at %s port %d", host,
             to->port ? to->port : 3306);
    *status = sql_explain(sql, what, why);
    return false;
}

static const char *sql_check(const char *url, struct lab_address *to)
{
    const char *wrong = lab_address_parse(url, to);

    if (!wrong && strcmp(to->scheme, "mariadb") != 0 &&
        strcmp(to->scheme, "mysql") != 0)
        wrong = "the URL must begin with mariadb:// or mysql://";
    if (!wrong && strstr(to->options, "tls=yes"))
        wrong = "the lab's own connections to MariaDB have no TLS";
    if (!wrong && !*to->path)
        wrong = "the URL must name a database: mariadb://user@host/database";
    return wrong;
}

struct sql *sql_connect(const struct lab_place *place, int *status,
                        char why[SQL_WHY])
{
    struct lab_address to;
    const char *wrong = sql_check(place->url, &to);
    struct sql *sql = wrong ? NULL : calloc(1, sizeof(*sql));

    *status = wrong ? CLI_USAGE : CLI_OSERR;
    snprintf(why, SQL_WHY, "%s", wrong ? wrong : "out of memory");
    if (sql) {
        sql->name = place->name;
        sql->conn = mysql_init(NULL);
        memcpy(sql->database, to.path, sizeof(sql->database));
    }
    if (sql && (!sql->conn || !sql_reach(sql, &to, status, why))) {
        sql_close(sql);
        sql = NULL;
    }
    explicit_bzero(&to, sizeof(to));
    return sql;
}

struct sql *sql_open(const struct lab_place *place)
{
    char why[SQL_WHY];
    int status;
    struct sql *sql = sql_connect(place, &status, why);

    if (!sql)
        lab_die(status, "%s: %s", place->name, why);
    return sql;
}

void sql_close(struct sql *sql)
{
    if (!sql)
        return;
    if (sql->conn)
        mysql_close(sql->conn);
    free(sql);
}

void sql_fail(const struct sql *sql, const char *statement)
{
    char why[SQL_WHY], what[96];
    int status;

    snprintf(what, sizeof(what), "%.80s%s", statement,
             strlen(statement) > 80 ? "..." : "");
    status = sql_explain(sql, what, why);
    lab_die(status, "%s: %s", sql->name, why);
}

static char *sql_print(const char *fmt, va_list ap)
{
    char *text;

    if (vasprintf(&text, fmt, ap) < 0)
        lab_die(CLI_OSERR, "out of memory");
    return text;
}

static unsigned sql_read_row(MYSQL_RES *answer, int64_t *out, unsigned max)
{
    unsigned columns = mysql_num_fields(answer);
    MYSQL_ROW row = mysql_fetch_row(answer);

    for (unsigned i = 0; row && i < columns && i < max; i++)
        out[i] = row[i] ? strtoll(row[i], NULL, 10) : 0;
    mysql_free_result(answer);
    return row ? columns : 0;
}

unsigned sql_send(struct sql *sql, const char *statement, int64_t *number)
{
    MYSQL_RES *answer;

    if (mysql_real_query(sql->conn, statement, strlen(statement)))
        return mysql_errno(sql->conn);
    /* An answer with rows must be read before the next statement. */
    answer = mysql_store_result(sql->conn);
    if (answer)
        sql_read_row(answer, number, number ? 1 : 0);
    return mysql_errno(sql->conn);
}

void sql_do(struct sql *sql, const char *fmt, ...)
{
    char *statement;
    va_list ap;

    va_start(ap, fmt);
    statement = sql_print(fmt, ap);
    va_end(ap);
    if (sql_send(sql, statement, NULL))
        sql_fail(sql, statement);
    free(statement);
}

unsigned sql_try(struct sql *sql, const char *fmt, ...)
{
    char *statement;
    unsigned error;
    va_list ap;

    va_start(ap, fmt);
    statement = sql_print(fmt, ap);
    va_end(ap);
    error = sql_send(sql, statement, NULL);
    if (sql_is_lost(error))
        sql_fail(sql, statement);
    free(statement);
    return error;
}

/* Runs a query. Returns its result, which the caller frees. Dies if there is
 * none. */
static MYSQL_RES *sql_query(struct sql *sql, const char *fmt, va_list ap)
{
    char *statement = sql_print(fmt, ap);
    MYSQL_RES *answer = NULL;

    if (!mysql_real_query(sql->conn, statement, strlen(statement)))
        answer = mysql_store_result(sql->conn);
    if (!answer)
        sql_fail(sql, statement);
    free(statement);
    return answer;
}

unsigned sql_row(struct sql *sql, int64_t *out, unsigned max, const char *fmt,
                 ...)
{
    MYSQL_RES *answer;
    va_list ap;

    va_start(ap, fmt);
    answer = sql_query(sql, fmt, ap);
    va_end(ap);
    return sql_read_row(answer, out, max);
}

int64_t sql_number(struct sql *sql, const char *fmt, ...)
{
    MYSQL_RES *answer;
    int64_t number = 0;
    va_list ap;

    va_start(ap, fmt);
    answer = sql_query(sql, fmt, ap);
    va_end(ap);
    return sql_read_row(answer, &number, 1) ? number : -1;
}

void sql_text(struct sql *sql, char *out, size_t size, const char *fmt, ...)
{
    MYSQL_RES *answer;
    MYSQL_ROW row;
    va_list ap;

    va_start(ap, fmt);
    answer = sql_query(sql, fmt, ap);
    va_end(ap);
    row = mysql_fetch_row(answer);
    snprintf(out, size, "%s", row && row[0] ? row[0] : "");
    mysql_free_result(answer);
}

uint64_t sql_changed(const struct sql *sql)
{
    return mysql_affected_rows(sql->conn);
}

const char *sql_error(const struct sql *sql)
{
    return mysql_error(sql->conn);
}
