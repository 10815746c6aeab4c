/*
 * How temporary servers are executed, and how they are asked whether they are
 * ready. The process of a server is a child of a cleanup process, with
 * /dev/null as standard input.
 */
#include "server_recipes.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"
#include "redis.h"
#include "sql.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define JAR "/usr/share/java/zookeeper.jar"
#define CLASSPATH JAR ":/usr/share/java/slf4j-simple.jar"

enum { ARGS = 64, ANSWER = 2048 };

/* Called in the server's process before it executes the server: writes the
 * reason to server->failure, which the runner can read, and exits. */
static _Noreturn void recipe_give_up(struct lab_server *server,
                                     const char *what)
{
    snprintf(server->failure, sizeof(server->failure), "%s: %s", what,
             strerror(errno));
    _exit(127);
}

struct argv {
    const char *arg[ARGS + 1];
    size_t len;
};

static void recipe_add(struct argv *argv, const char *arg)
{
    if (argv->len < ARGS)
        argv->arg[argv->len++] = arg;
}

static void recipe_add_list(struct argv *argv, const char *const *list)
{
    for (; list && *list; list++)
        recipe_add(argv, *list);
}

/* Adds a formatted argument. Its memory is not freed, because the process is
 * about to execute the server. */
static void recipe_add_print(struct argv *argv, const char *fmt, ...)
{
    char *text;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        _exit(127);
    recipe_add(argv, text);
}

static void recipe_execute(const struct launch *launch, const struct argv *argv)
{
    execv(argv->arg[0], (char *const *)argv->arg);
    recipe_give_up(launch->server, argv->arg[0]);
}

static FILE *recipe_create(struct lab_server *server, const char *name)
{
    char path[SERVER_RECIPE_PATH];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", server->directory, name);
    f = fopen(path, "we");
    if (!f)
        recipe_give_up(server, path);
    return f;
}

static void recipe_finish(struct lab_server *server, FILE *f)
{
    if (fclose(f))
        recipe_give_up(server, server->directory);
}

void server_recipe_run(void *arg)
{
    const struct launch *launch = arg;
    struct lab_server *server = launch->server;
    FILE *log;

    /* server->directory is in shared memory. mkdtemp() writes the name there
     * before it creates the directory, so the cleanup process always knows the
     * name. */
    if (!mkdtemp(server->directory))
        recipe_give_up(server, server->directory);
    log = recipe_create(server, "log");
    dup2(fileno(log), 1);
    dup2(fileno(log), 2);
    launch->recipe->execute(launch);
}

static void recipe_execute_redis(const struct launch *launch)
{
    static const char *const plain[] = {
        "--bind",      "127.0.0.1", "--save",    "", "--appendonly", "no",
        "--daemonize", "no",        "--logfile", "", NULL,
    };
    struct argv argv = {.arg = {launch->program[0]}, .len = 1};
    FILE *f = recipe_create(launch->server, "config");

    /* The password is not an argument, because other users of this machine
     * could see it. */
    fprintf(f, "requirepass %s\nmasterauth %s\n", launch->secret,
            launch->secret);
    recipe_finish(launch->server, f);
    recipe_add_print(&argv, "%s/config", launch->server->directory);
    recipe_add_list(&argv, plain);
    recipe_add(&argv, "--dir");
    recipe_add(&argv, launch->server->directory);
    recipe_add(&argv, "--port");
    recipe_add_print(&argv, "%d", launch->server->port);
    recipe_add_list(&argv, launch->args);
    recipe_execute(launch, &argv);
}

static bool recipe_redis_answers(const struct lab_server *server)
{
    char why[RD_WHY];
    int status;
    redisContext *redis = rd_connect(&server->place, &status, why);

    if (redis)
        redisFree(redis);
    return redis != NULL;
}

static void recipe_write_config(const struct launch *launch)
{
    struct lab_server *server = launch->server;
    FILE *f = recipe_create(server, "config");

    /* Ticks are short, so that sessions may be as short as the leases of the
     * other servers: a session lasts for two ticks or more. ZooKeeper's own
     * default is 3000 ms; packages install its sample configuration, which has
     * 2000 ms. */
    fprintf(f,
            "tickTime=100\ndataDir=%s\n"
            "clientPort=%d\nclientPortAddress=127.0.0.1\n"
            "minSessionTimeout=200\nmaxSessionTimeout=400000\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=*\n",
            server->directory, server->port);
    for (const char *const *arg = launch->args; arg && *arg; arg++)
        if (**arg != '-')
            fprintf(f, "%s\n", *arg);
    recipe_finish(server, f);
}

static void recipe_execute_zookeeper(const struct launch *launch)
{
    static const char *const plain[] = {
        "-XX:TieredStopAtLevel=1", /* the server runs only for seconds */
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xms48m",
        "-Xmx256m",
        "-Djute.maxbuffer=8388608", /* one answer lists thousands of waiters */
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.preAllocSize=1024",
        "-Dzookeeper.forceSync=no",
        "-Dznode.container.checkIntervalMs=300",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        NULL,
    };
    struct argv argv = {.arg = {launch->program[0]}, .len = 1};

    recipe_write_config(launch);
    recipe_add_list(&argv, plain);
    for (const char *const *arg = launch->args; arg && *arg; arg++)
        if (**arg == '-')
            recipe_add(&argv, *arg);
    recipe_add(&argv, "-cp");
    recipe_add(&argv, CLASSPATH);
    recipe_add(&argv, "org.apache.zookeeper.server.quorum.QuorumPeerMain");
    recipe_add_print(&argv, "%s/config", launch->server->directory);
    recipe_execute(launch, &argv);
}

/* Sends the words, and reads what the server answers before it closes the
 * connection. The text is "" if the server does not answer. */
static void recipe_query(const struct lab_server *server, const char *words,
                         char text[ANSWER])
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_usec = 200000}; /* the caller asks again */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ssize_t n = (ssize_t)strlen(words);
    size_t len = 0;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&in, sizeof(in)) &&
        send(fd, words, (size_t)n, MSG_NOSIGNAL) == n)
        for (; n > 0 && len + 1 < ANSWER; len += n > 0 ? (size_t)n : 0)
            n = read(fd, text + len, ANSWER - 1 - len);
    text[len] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Returns whether the server is ready: its answer then contains its mode. */
static bool recipe_zookeeper_answers(const struct lab_server *server)
{
    char text[ANSWER];

    recipe_query(server, "srvr", text);
    return strstr(text, "Mode: ") != NULL;
}

static void recipe_execute_etcd(const struct launch *launch)
{
    static const char *const plain[] = {
        /* With these values a lease may be as short as one second: the shortest
         * lease that etcd grants is one and a half election timeouts, rounded
         * up to whole seconds. */
        "--heartbeat-interval=10",
        "--election-timeout=100",
        "--logger=zap",
        "--log-level=error",
        NULL,
    };
    struct argv argv = {.arg = {launch->program[0]}, .len = 1};
    const char *directory = launch->server->directory;
    int port = launch->server->port;

    if (chdir(directory) || chdir(".."))
        recipe_give_up(launch->server, directory);
    /* Without this variable etcd refuses to run on arm64. */
    setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 1);
    recipe_add_print(&argv, "--name=m%d", port);
    recipe_add_print(&argv, "--data-dir=%s/data", directory);
    recipe_add_print(&argv, "--listen-client-urls=http://127.0.0.1:%d", port);
    recipe_add_print(&argv, "--advertise-client-urls=http://127.0.0.1:%d",
                     port);
    recipe_add_print(&argv, "--listen-peer-urls=" SERVER_RECIPE_PEER, port);
    recipe_add_print(&argv, "--initial-advertise-peer-urls=" SERVER_RECIPE_PEER,
                     port);
    recipe_add_print(&argv, "--initial-cluster=m%d=" SERVER_RECIPE_PEER, port,
                     port);
    recipe_add_list(&argv, plain);
    recipe_add_list(&argv, launch->args);
    recipe_execute(launch, &argv);
}

/* Returns whether the member is ready, which includes that it has a leader. */
static bool recipe_etcd_answers(const struct lab_server *server)
{
    char text[ANSWER];

    recipe_query(server, "GET /health HTTP/1.0\r\n\r\n", text);
    return strstr(text, "\"health\":\"true\"") != NULL;
}

bool lab_etcd_leads(const struct lab_server *member)
{
    static const char own[] = "\"member_id\":\"", leader[] = "\"leader\":\"";
    char text[ANSWER];
    const char *a, *b;

    recipe_query(
        member,
        "POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
        text);
    a = strstr(text, own);
    b = strstr(text, leader);
    return a && b &&
           strtoull(a + sizeof(own) - 1, NULL, 10) ==
               strtoull(b + sizeof(leader) - 1, NULL, 10);
}

/* Adds the options that both the installation of the files and the server
 * need. */
static void recipe_add_mariadb(struct argv *argv, const struct launch *launch)
{
    static const char *const plain[] = {
        "--innodb-log-file-size=16M",   "--innodb-buffer-pool-size=32M",
        "--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",       "--innodb-use-native-aio=0",
        "--skip-name-resolve",          NULL,
    };

    recipe_add_print(argv, "--datadir=%s/data", launch->server->directory);
    recipe_add_print(argv, "--tmpdir=%s", launch->server->directory);
    if (geteuid() == 0) /* as root, the server runs only with this option */
        recipe_add(argv, "--user=root");
    recipe_add_list(argv, plain);
}

static void recipe_install_mariadb(const struct launch *launch)
{
    static const char *const plain[] = {
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        NULL,
    };
    struct argv argv = {.arg = {launch->program[1]}, .len = 1};
    int status = 0;
    pid_t pid;

    recipe_add_list(&argv, plain);
    recipe_add_mariadb(&argv, launch);
    pid = fork();
    if (pid == 0)
        recipe_execute(launch, &argv);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status)
        _exit(127); /* the log has the reason */
}

/* Writes one statement per line, for --init-file. Replicas receive none of the
 * statements. root has a password because other users of this machine can
 * connect to the port. */
static void recipe_write_init(const struct launch *launch)
{
    FILE *f = recipe_create(launch->server, "init.sql");

    fprintf(f,
            "SET sql_log_bin = 0;\n"
            "ALTER USER root@localhost IDENTIFIED BY '%s';\n"
            "CREATE OR REPLACE USER root@127.0.0.1 IDENTIFIED BY '%s';\n"
            "GRANT ALL ON *.* TO root@127.0.0.1 WITH GRANT OPTION;\n"
            "CREATE USER replica@127.0.0.1;\n"
            "GRANT REPLICATION SLAVE ON *.* TO replica@127.0.0.1;\n"
            "CREATE DATABASE lab;\n",
            launch->secret, launch->secret);
    recipe_finish(launch->server, f);
}

static void recipe_execute_mariadb(const struct launch *launch)
{
    static const char *const plain[] = {
        "--socket=socket", /* relative to the data directory, because a full
                              path may be too long */
        "--bind-address=127.0.0.1",
        "--performance-schema=0",
        "--max-connections=1000",
        "--skip-log-bin",
        NULL,
    };
    struct argv argv = {.arg = {launch->program[0], "--no-defaults"}, .len = 2};

    recipe_install_mariadb(launch);
    recipe_write_init(launch);
    recipe_add_mariadb(&argv, launch);
    recipe_add_list(&argv, plain);
    recipe_add_print(&argv, "--init-file=%s/init.sql",
                     launch->server->directory);
    recipe_add_print(&argv, "--pid-file=%s/pid", launch->server->directory);
    recipe_add_print(&argv, "--port=%d", launch->server->port);
    recipe_add_print(&argv, "--server-id=%d", launch->server->port);
    recipe_add_list(&argv, launch->args);
    recipe_execute(launch, &argv);
}

static bool recipe_mariadb_answers(const struct lab_server *server)
{
    char why[SQL_WHY];
    int status;
    struct sql *sql = sql_connect(&server->place, &status, why);

    sql_close(sql);
    return sql != NULL;
}

/* Finds a file. A name with a slash is used as it is. A program is looked up in
 * PATH and in the sbin directories, which contain servers and are not in every
 * user's PATH. */
static bool recipe_find(const char *file, char out[SERVER_RECIPE_PATH])
{
    const char *env = getenv("PATH");
    char path[4096], *rest = NULL;

    snprintf(out, SERVER_RECIPE_PATH, "%s", file);
    if (strchr(file, '/'))
        return access(file, R_OK) == 0;
    snprintf(path, sizeof(path), "%s:/usr/sbin:/usr/local/sbin:/sbin",
             env ? env : "/usr/bin:/bin");
    for (char *dir = strtok_r(path, ":", &rest); dir;
         dir = strtok_r(NULL, ":", &rest)) {
        snprintf(out, SERVER_RECIPE_PATH, "%s/%s", dir, file);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

const struct server_recipe server_recipes[LAB_ENGINES] = {
    [LAB_REDIS] = {"redis",
                   {{"redis-server", "redis-server", "redis-server"}},
                   recipe_execute_redis,
                   recipe_redis_answers},
    [LAB_REDLOCK] = {"redlock",
                     {{"redis-server", "redis-server", "redis-server"}},
                     NULL,
                     NULL},
    [LAB_ZOOKEEPER] = {"zookeeper",
                       {{"java", "java", "openjdk-17-jre-headless"},
                        {JAR, "zookeeper", "zookeeper"}},
                       recipe_execute_zookeeper,
                       recipe_zookeeper_answers},
    [LAB_ETCD] = {"etcd",
                  {{"etcd", "etcd", "etcd-server"}},
                  recipe_execute_etcd,
                  recipe_etcd_answers},
    [LAB_MARIADB] = {"mariadb",
                     {{"mariadbd", "mariadbd", "mariadb-server"},
                      {"mariadb-install-db", "mariadb-install-db",
                       "mariadb-server"}},
                     recipe_execute_mariadb,
                     recipe_mariadb_answers},
};

void server_recipe_missing(const struct server_recipe *recipe, char *out,
                           size_t size)
{
    char path[SERVER_RECIPE_PATH];

    for (size_t i = 0; i < SERVER_RECIPE_FILES && recipe->needs[i].file; i++) {
        const char *package = recipe->needs[i].package;
        size_t len = strlen(out);

        if (!recipe_find(recipe->needs[i].file, path) && !strstr(out, package))
            snprintf(out + len, size - len, " %s", package);
    }
}

void server_recipe_find(struct launch *launch)
{
    const struct server_recipe *recipe = launch->recipe;

    for (size_t i = 0; i < SERVER_RECIPE_FILES && recipe->needs[i].file; i++)
        if (!recipe_find(recipe->needs[i].file, launch->program[i]))
            lab_die(CLI_UNAVAILABLE, "%s is not installed: apt install %s",
                    recipe->needs[i].what, recipe->needs[i].package);
}
