#include "mysql_server.h"

#include "../../lab/servers/port.h"
#include "certs.h"
#include "server_process.h"
#include "shm_dir.h"

#include <limits.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- the process -------------------------------------------------------- */

/* Its data are in memory: nothing has to be synced. */
static const char *const plain[] = {
    "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
    "--innodb-flush-method=nosync",  "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=0",        "--innodb-use-native-aio=0",
    "--skip-name-resolve",           NULL,
};

/* What is not of Debian's mariadbd. The server takes what begins with "loose"
 * only if it knows the rest. The backend's way to log in is the one that all of
 * them have; the tests of other ways make a user for it. */
static const char *const elsewhere[] = {
    "--loose-mysqlx=0", "--loose-auto-generate-certs=0",
    "--loose-default-authentication-plugin=mysql_native_password", NULL};

/* The arguments of the server and of what makes its files. */
struct argv {
    const char *arg[48];
    size_t len;
    char program[PATH_MAX], base[PATH_MAX], data[96], tmp[96];
};

static void add_list(struct argv *a, const char *const *list)
{
    for (; *list; list++)
        a->arg[a->len++] = *list;
}

/* MySQL, of which TEST_MYSQL names the directory? */
static bool is_mysql(void)
{
    const char *dir = getenv("TEST_MYSQL");
    char program[PATH_MAX];

    if (!dir)
        return false;
    snprintf(program, sizeof(program), "%s/bin/mariadbd", dir);
    return access(program, X_OK) != 0;
}

/* folder: of TEST_MYSQL, in which the program is. */
static void begin_argv(struct argv *a, const struct my_server *s,
                       const char *folder, const char *program)
{
    const char *dir = getenv("TEST_MYSQL");

    snprintf(a->program, sizeof(a->program), "%s%s%s%s%s", dir ? dir : "",
             dir ? "/" : "", dir ? folder : "", dir ? "/" : "", program);
    a->arg[a->len++] = a->program;
    a->arg[a->len++] = "--no-defaults";
    if (dir) {
        snprintf(a->base, sizeof(a->base), "--basedir=%s", dir);
        a->arg[a->len++] = a->base;
        add_list(a, elsewhere);
    }
    snprintf(a->data, sizeof(a->data), "--datadir=%s/data", s->dir);
    snprintf(a->tmp, sizeof(a->tmp), "--tmpdir=%s", s->dir);
    a->arg[a->len++] = a->data;
    a->arg[a->len++] = a->tmp;
    if (geteuid() == 0) /* it does not run as root unless it is told to */
        a->arg[a->len++] = "--user=root";
    if (!s->durable)
        add_list(a, plain);
}

/* What it says goes to the log. */
static _Noreturn void execute(const struct my_server *s, const struct argv *a,
                              pid_t parent)
{
    char log[96];
    int fd;

    snprintf(log, sizeof(log), "%s/log", s->dir);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(127);
    server_process_exec(a->arg, parent);
}

static _Noreturn void run(const struct my_server *s, pid_t parent)
{
    static const char *const rest[] = {"--bind-address=127.0.0.1",
                                       "--performance-schema=0",
                                       "--max-connections=400",
                                       "--max-user-connections=390",
                                       "--skip-log-bin",
                                       "--key-buffer-size=1M",
                                       "--loose-aria-pagecache-buffer-size=1M",
                                       NULL};
    char port[16], socket[112], pid[96], cert[112], key[112], ca[112];
    const char *const tls[] = {cert, key, ca, NULL};
    const char *const no_tls[] = {"--skip-ssl", NULL};
    struct argv a = {0};

    begin_argv(&a, s, "bin", is_mysql() ? "mysqld" : "mariadbd");
    add_list(&a, rest);
    snprintf(port, sizeof(port), "--port=%d", s->port);
    snprintf(socket, sizeof(socket), "--socket=%s", s->socket);
    snprintf(pid, sizeof(pid), "--pid-file=%s/pid", s->dir);
    add_list(&a, (const char *const[]){port, socket, pid, NULL});
    snprintf(cert, sizeof(cert), "--ssl-cert=%s/%s.pem", s->dir,
             s->tls ? s->tls : "");
    snprintf(key, sizeof(key), "--ssl-key=%s/%s.key", s->dir,
             s->tls ? s->tls : "");
    snprintf(ca, sizeof(ca), "--ssl-ca=%s/ca.pem", s->dir);
    add_list(&a, s->tls ? tls : no_tls);
    for (size_t i = 0; i < MY_SERVER_ARGS && s->args[i]; i++)
        a.arg[a.len++] = s->args[i];
    execute(s, &a, parent);
}

/* The system tables: half a second, of MySQL 8 a few. */
static int install(const struct my_server *s)
{
    static const char *const mariadb[] = {
        "--auth-root-authentication-method=normal", "--skip-test-db", NULL};
    static const char *const mysql[] = {"--initialize-insecure", NULL};
    pid_t parent = getpid(), pid = fork();
    struct argv a = {0};
    int status = 0;

    if (pid == 0) {
        begin_argv(&a, s, is_mysql() ? "bin" : "scripts",
                   is_mysql() ? "mysqld" : "mariadb-install-db");
        add_list(&a, is_mysql() ? mysql : mariadb);
        execute(s, &a, parent);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 || status ? -1 : 0;
}

/* Reaps the server if it has ended. */
static bool ended(struct my_server *s)
{
    if (waitpid(s->pid, NULL, WNOHANG) != s->pid)
        return false;
    s->pid = 0;
    return true;
}

static void forget_admin(struct my_server *s)
{
    if (s->admin)
        mysql_close(s->admin);
    s->admin = NULL;
}

/* The connection stays: it is the administrator's. */
static bool answers(struct my_server *s)
{
    unsigned socket = MYSQL_PROTOCOL_SOCKET;

    s->admin = mysql_init(NULL);
    if (!s->admin)
        return false;
    mysql_options(s->admin, MYSQL_OPT_PROTOCOL, &socket);
    if (mysql_real_connect(s->admin, NULL, "root", "", NULL, 0, s->socket,
                           CLIENT_REMEMBER_OPTIONS) &&
        !mysql_query(s->admin, "do 1")) {
        fcntl(mysql_get_socket(s->admin), F_SETFD, FD_CLOEXEC);
        mysql_query(s->admin, "use " MY_SERVER_DB); /* once it is there */
        return true;
    }
    forget_admin(s);
    return false;
}

int my_server_again(struct my_server *s)
{
    pid_t parent = getpid();

    forget_admin(s);
    unlink(s->socket);
    s->pid = fork();
    if (s->pid == 0)
        run(s, parent);
    if (s->pid < 0)
        return -1;
    if (!WAIT_FOR(ended(s) || answers(s)) || !s->pid)
        return -1;
    return 0;
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
    char tls[96];

    if (s->durable) {
        snprintf(s->dir, sizeof(s->dir), "/tmp/holdfast-mysql.XXXXXX");
        if (!mkdtemp(s->dir))
            return -1;
    } else if (!shm_dir_make(s->dir, sizeof(s->dir), "holdfast-mysql")) {
        return -1;
    }
    snprintf(s->socket, sizeof(s->socket), "%s/socket", s->dir);
    s->reserved = port_reserve(&s->port);
    my_server_url_at(s->port, "", s->url, sizeof(s->url));
    snprintf(tls, sizeof(tls), "?tls=yes&cacert=%s/ca.pem", s->dir);
    my_server_url_at(s->port, tls, s->tls_url, sizeof(s->tls_url));
    if (s->tls && certs_make(s->dir))
        return -1;
    if (s->reserved >= 0 && !install(s) && !my_server_again(s) &&
        !make_users(s))
        return 0;
    fprintf(stderr, "the server does not start; see %s/log\n", s->dir);
    return -1;
}

void my_server_kill(struct my_server *s)
{
    server_process_kill(&s->pid);
    forget_admin(s);
}

int my_server_stop(struct my_server *s)
{
    return server_process_stop(s->pid);
}

int my_server_continue(struct my_server *s)
{
    return kill(s->pid, SIGCONT);
}

void my_server_end(struct my_server *s)
{
    my_server_kill(s);
    port_give_back(&s->reserved);
    if (s->dir[0])
        server_dir_remove(s->dir);
    s->dir[0] = '\0';
}

/* ---- the administrator --------------------------------------------------- */

static unsigned vtry(struct my_server *s, const char *fmt, va_list ap)
{
    static char sql[16384];
    int len = vsnprintf(sql, sizeof(sql), fmt, ap);
    unsigned error;

    if (!s->admin || len < 0 || (size_t)len >= sizeof(sql)) {
        fprintf(stderr, "there is no server for: %s\n", fmt);
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

/* What has gone wrong, and is meant to go well. */
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

/* False: there is none. */
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

/* ---- what there is of ours ------------------------------------------------
 */

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

    return n < 0 ? 0 : (long)n; /* there is no table yet */
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
        fprintf(stderr, "left behind: %ld that wait\n", waiting);
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
