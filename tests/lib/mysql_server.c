#include "mysql_server.h"

#include "certs.h"
#include "wait.h"

#include <errno.h>

#include <limits.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <stdarg.h>
#include <sys/wait.h>

/* Options for a server with few data, all in memory: nothing has to be
 * synced. */
static const char *const plain[] = {
    "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
    "--innodb-flush-method=nosync",  "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=0",        "--innodb-use-native-aio=0",
    "--skip-name-resolve",           NULL,
};

/* Options that only servers other than Debian's mariadbd need. A server ignores
 * a "loose" option that it does not know. All of these servers have the plugin
 * mysql_native_password; tests of other plugins create their own users. */
static const char *const elsewhere[] = {
    "--loose-mysqlx=0", "--loose-auto-generate-certs=0",
    "--loose-default-authentication-plugin=mysql_native_password", NULL};

/* Returns whether TEST_MYSQL is the directory of a MySQL rather than of a
 * MariaDB. */
static bool is_mysql(void)
{
    const char *dir = getenv("TEST_MYSQL");
    char program[PATH_MAX];

    if (!dir)
        return false;
    snprintf(program, sizeof(program), "%s/bin/mariadbd", dir);
    return access(program, X_OK) != 0;
}

/* Begins the arguments of the server or of the program that creates its system
 * tables. With TEST_MYSQL set, the program is in `folder` of that directory. */
static void begin_args(struct server_args *a, const struct my_server *s,
                       const char *folder, const char *program)
{
    const char *dir = getenv("TEST_MYSQL");

    if (dir)
        server_arg(a, "%s/%s/%s", dir, folder, program);
    else
        server_arg(a, "%s", program);
    server_arg(a, "--no-defaults");
    if (dir) {
        server_arg(a, "--basedir=%s", dir);
        server_args(a, elsewhere, SIZE_MAX);
    }
    server_arg(a, "--datadir=%s/data", s->dir);
    server_arg(a, "--tmpdir=%s", s->dir);
    if (geteuid() == 0) /* the server refuses to run as root without it */
        server_arg(a, "--user=root");
    if (!s->durable)
        server_args(a, plain, SIZE_MAX);
}

static void run(void *server)
{
    static const char *const rest[] = {"--bind-address=127.0.0.1",
                                       "--performance-schema=0",
                                       "--max-connections=400",
                                       "--max-user-connections=390",
                                       "--skip-log-bin",
                                       "--key-buffer-size=1M",
                                       "--loose-aria-pagecache-buffer-size=1M",
                                       NULL};
    struct my_server *s = server;
    struct server_args a = {0};

    unlink(s->socket);
    begin_args(&a, s, "bin", is_mysql() ? "mysqld" : "mariadbd");
    server_args(&a, rest, SIZE_MAX);
    server_arg(&a, "--port=%d", s->port);
    server_arg(&a, "--socket=%s", s->socket);
    server_arg(&a, "--pid-file=%s/pid", s->dir);
    if (s->tls) {
        server_arg(&a, "--ssl-cert=%s/%s.pem", s->dir, s->tls);
        server_arg(&a, "--ssl-key=%s/%s.key", s->dir, s->tls);
        server_arg(&a, "--ssl-ca=%s/ca.pem", s->dir);
    } else {
        server_arg(&a, "--skip-ssl");
    }
    server_args(&a, s->args, MY_SERVER_ARGS);
    server_exec(&s->process, &a);
}

/* Creates the system tables, which takes half a second, or a few seconds with
 * MySQL 8. */
static int install(const struct my_server *s)
{
    static const char *const mariadb[] = {
        "--auth-root-authentication-method=normal", "--skip-test-db", NULL};
    static const char *const mysql[] = {"--initialize-insecure", NULL};
    struct server_args a = {0};
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        begin_args(&a, s, is_mysql() ? "bin" : "scripts",
                   is_mysql() ? "mysqld" : "mariadb-install-db");
        server_args(&a, is_mysql() ? mysql : mariadb, SIZE_MAX);
        server_exec(&s->process, &a);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 || status ? -1 : 0;
}

static void forget_admin(void *server)
{
    struct my_server *s = server;

    if (s->admin)
        mysql_close(s->admin);
    s->admin = NULL;
}

/* Returns whether the server answers. If it does, the connection stays open for
 * the administrator. */
static bool answers(void *server)
{
    struct my_server *s = server;
    unsigned socket = MYSQL_PROTOCOL_SOCKET;

    s->admin = mysql_init(NULL);
    if (!s->admin)
        return false;
    mysql_options(s->admin, MYSQL_OPT_PROTOCOL, &socket);
    if (mysql_real_connect(s->admin, NULL, "root", "", NULL, 0, s->socket,
                           CLIENT_REMEMBER_OPTIONS) &&
        !mysql_query(s->admin, "do 1")) {
        fcntl(mysql_get_socket(s->admin), F_SETFD, FD_CLOEXEC);
        mysql_query(s->admin, "use " MY_SERVER_DB); /* if it exists */
        return true;
    }
    forget_admin(s);
    return false;
}

static int make_users(struct my_server *s)
{
    static const char *const steps[] = {
        "create database " MY_SERVER_DB,
        "create user " MY_SERVER_USER " identified by '" MY_SERVER_SECRET "'",
        "grant " MY_SERVER_GRANTS ", create on " MY_SERVER_DB
        ".* to " MY_SERVER_USER,
        "use " MY_SERVER_DB,
    };

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (mysql_query(s->admin, steps[i])) {
            fprintf(stderr, "%s: %s\n", steps[i], mysql_error(s->admin));
            return -1;
        }
    return 0;
}

void my_server_url_at(int port, const char *options, char *url, size_t size)
{
    snprintf(url, size,
             "mysql://" MY_SERVER_USER ":" MY_SERVER_SECRET
             "@127.0.0.1:%d/" MY_SERVER_DB "%s",
             port, options);
}

int my_server_start(struct my_server *s)
{
    static const struct server_kind kind = {
        .name = "the MySQL server",
        .run = run,
        .answers = answers,
        .forget = forget_admin,
    };
    char tls[96];

    s->kind = &kind;
    if (server_dir(&s->process, "holdfast-mysql", s->durable) ||
        server_port(&s->process, &s->port))
        return -1;
    snprintf(s->socket, sizeof(s->socket), "%s/socket", s->dir);
    my_server_url_at(s->port, "", s->url, sizeof(s->url));
    snprintf(tls, sizeof(tls), "?tls=yes&cacert=%s/ca.pem", s->dir);
    my_server_url_at(s->port, tls, s->tls_url, sizeof(s->tls_url));
    if ((s->tls && certs_make(s->dir)) || install(s)) {
        fprintf(stderr, "cannot make the server's files; see %s/log\n", s->dir);
        return -1;
    }
    return my_server_again(s) || make_users(s) ? -1 : 0;
}

static unsigned vtry(struct my_server *s, const char *fmt, va_list ap)
{
    static char sql[16384];
    int len = vsnprintf(sql, sizeof(sql), fmt, ap);
    unsigned error;

    if (!s->admin || len < 0 || (size_t)len >= sizeof(sql)) {
        fprintf(stderr, "no server runs for: %s\n", fmt);
        abort();
    }
    if (!mysql_real_query(s->admin, sql, (unsigned long)len))
        return 0;
    error = mysql_errno(s->admin);
    if (error >= 2000 && error < 3000) {
        fprintf(stderr, "%s: %s\n", sql, mysql_error(s->admin));
        abort();
    }
    return error;
}

static void must(struct my_server *s, unsigned error, const char *fmt)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s (%u)\n", fmt, mysql_error(s->admin), error);
    abort();
}

unsigned my_server_try(struct my_server *s, const char *fmt, ...)
{
    unsigned error;
    va_list ap;

    va_start(ap, fmt);
    error = vtry(s, fmt, ap);
    va_end(ap);
    if (!error)
        mysql_free_result(mysql_store_result(s->admin));
    return error;
}

long long my_server_do(struct my_server *s, const char *fmt, ...)
{
    unsigned error;
    va_list ap;

    va_start(ap, fmt);
    error = vtry(s, fmt, ap);
    va_end(ap);
    must(s, error, fmt);
    mysql_free_result(mysql_store_result(s->admin));
    return (long long)mysql_affected_rows(s->admin);
}

/* Stores the first value of the result as a string; returns false if there is
 * none or the table does not exist. */
static bool first(struct my_server *s, char *out, size_t size, const char *fmt,
                  va_list ap)
{
    unsigned error = vtry(s, fmt, ap);
    MYSQL_RES *res;
    MYSQL_ROW row;

    *out = '\0';
    if (error == ER_NO_SUCH_TABLE)
        return false;
    must(s, error, fmt);
    res = mysql_store_result(s->admin);
    row = res ? mysql_fetch_row(res) : NULL;
    if (row && row[0])
        snprintf(out, size, "%s", row[0]);
    mysql_free_result(res);
    return *out;
}

long long my_server_number(struct my_server *s, const char *fmt, ...)
{
    char text[64];
    bool found;
    va_list ap;

    va_start(ap, fmt);
    found = first(s, text, sizeof(text), fmt, ap);
    va_end(ap);
    return found ? strtoll(text, NULL, 10) : -1;
}

const char *my_server_text(struct my_server *s, const char *fmt, ...)
{
    static char text[1024];
    va_list ap;

    va_start(ap, fmt);
    first(s, text, sizeof(text), fmt, ap);
    va_end(ap);
    return text;
}

#define OF_WORKER                                                              \
    "select count(*) from information_schema.processlist where "               \
    "user='" MY_SERVER_USER "'"

long my_server_connections(struct my_server *s)
{
    return (long)my_server_number(s, OF_WORKER);
}

long my_server_waiting(struct my_server *s)
{
    return (long)my_server_number(s, OF_WORKER
                                  " and state in ('User lock', 'User sleep')");
}

static const char *const tables[] = {"holdfast_locks", "holdfast_holds"};

static long held(struct my_server *s, const char *table)
{
    long long n = my_server_number(
        s, "select count(*) from %s where lease_until > utc_timestamp(6)",
        table);

    return n < 0 ? 0 : (long)n; /* -1: the table does not exist yet */
}

long my_server_left(struct my_server *s, bool print)
{
    long waiting = my_server_waiting(s), n = waiting;

    for (int i = 0; i < 2; i++) {
        long rows = held(s, tables[i]);

        n += rows;
        if (print && rows)
            fprintf(stderr, "left behind: %ld rows of %s; the first: %s\n",
                    rows, tables[i],
                    my_server_text(s,
                                   "select hex(name) from %s where "
                                   "lease_until > utc_timestamp(6)",
                                   tables[i]));
    }
    if (print && waiting)
        fprintf(stderr, "left behind: %ld waiting\n", waiting);
    return n;
}

void my_server_empty(struct my_server *s)
{
    my_server_try(s, "update holdfast_locks set size=if(kind=4,0,size), "
                     "lease_until='1970-01-02'");
    my_server_try(s, "delete from holdfast_holds");
    my_server_try(s, "delete from holdfast_requests");
    my_server_try(s, "delete from holdfast_values");
}
