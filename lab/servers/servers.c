/*
 * Each server's process creates the server's directory itself, as a child of a
 * cleanup process. Therefore each directory, as soon as it exists, has a
 * cleanup process that will remove it. What the runner and these processes must
 * know is in memory that they share.
 */
#include "servers.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/cleanup.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/progress.h"
#include "port.h"
#include "redis.h"
#include "server_recipes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    START_MS = 120000, /* the machine may be busy */
    POLL_MS = 10,
    LOG_BYTES = 700,
    LOG_LINES = 6,
};

/* Writes the password, which is the same for all servers of a run, because a
 * replica must know the password of its master. */
static void servers_make_secret(char out[SERVER_RECIPE_SECRET])
{
    static uint64_t random;

    if (!random &&
        getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        lab_die(CLI_OSERR, "getrandom: %s", strerror(errno));
    snprintf(out, SERVER_RECIPE_SECRET, "%016llx", (unsigned long long)random);
}

static void servers_name_place(struct lab_place *place, enum lab_engine engine,
                               int port, const char *secret)
{
    place->engine = engine;
    place->name = server_recipes[engine].name;
    if (engine == LAB_MARIADB)
        snprintf(place->url, sizeof(place->url),
                 "mariadb://root:%s@127.0.0.1:%d/lab", secret, port);
    else if (engine == LAB_REDIS)
        snprintf(place->url, sizeof(place->url), "redis://:%s@127.0.0.1:%d",
                 secret, port);
    else
        snprintf(place->url, sizeof(place->url), "%s://127.0.0.1:%d",
                 engine == LAB_ETCD ? "etcd" : "zk", port);
}

static struct lab_server *servers_make(struct lab *lab, const char *name)
{
    struct lab_server *server = lab_share(sizeof(*server));

    server->reserved = port_reserve(&server->port);
    if (server->reserved < 0)
        lab_die(CLI_OSERR, "no free port at 127.0.0.1: %s", strerror(errno));
    snprintf(server->directory, sizeof(server->directory), "%s/%s-XXXXXX",
             lab_directory(lab), name);
    return server;
}

/* Copies a newline and the last lines of the server's log to `out', or "" if
 * the log is empty. */
static void servers_read_log(const struct lab_server *server,
                             char out[LOG_BYTES])
{
    char path[SERVER_RECIPE_PATH];
    int fd, lines = 0;
    ssize_t n, from;

    snprintf(path, sizeof(path), "%s/log", server->directory);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && lseek(fd, -(LOG_BYTES - 2), SEEK_END) < 0)
        lseek(fd, 0, SEEK_SET);
    n = fd < 0 ? 0 : read(fd, out + 1, LOG_BYTES - 2);
    if (fd >= 0)
        close(fd);
    while (n > 0 && out[n] == '\n')
        n--;
    out[n > 0 ? n + 1 : 0] = '\0';
    for (from = n; from > 0 && lines < LOG_LINES; from--)
        lines += out[from] == '\n';
    out[0] = n > 0 ? '\n' : '\0';
    if (from > 0)
        memmove(out + 1, out + from + 2, (size_t)(n - from));
}

static _Noreturn void servers_complain(const struct lab_server *server,
                                       const char *what)
{
    char log[LOG_BYTES] = "";

    if (*server->failure)
        lab_die(CLI_UNAVAILABLE, "%s does not start: %s", server->place.name,
                server->failure);
    servers_read_log(server, log);
    lab_die(CLI_UNAVAILABLE, "%s %s; its log%s%s", server->place.name, what,
            *log ? " ends with:" : " is empty", log);
}

/* Returns whether the process of this pidfd ends within ms milliseconds. The
 * pidfd of a process with several threads becomes readable only when all of
 * them have ended. The cleanup process does not reap the server's process
 * before it cleans up, so the pid is not reused. */
static bool servers_is_over(int process, int ms)
{
    struct pollfd pfd = {.fd = process, .events = POLLIN};

    return poll(&pfd, 1, ms) > 0;
}

static int servers_follow(pid_t pid)
{
    int process = pidfd_open(pid, 0);

    if (process < 0)
        lab_die(CLI_OSERR, "pidfd_open: %s", strerror(errno));
    return process;
}

static void servers_await(struct lab *lab, const struct lab_server *server)
{
    const struct server_recipe *recipe = &server_recipes[server->place.engine];
    int64_t until = lab_now() + START_MS * 1000000LL;
    int process = servers_follow(server->place.pid);

    while (!recipe->answers(server)) {
        lab_tick(lab);
        if (servers_is_over(process, POLL_MS))
            servers_complain(server, "does not start");
        if (lab_now() > until)
            servers_complain(server, "has not answered for two minutes");
    }
    close(process);
}

static int servers_clean(void *arg)
{
    const struct launch *launch = arg;

    return cleanup_remove(launch->server->directory);
}

void lab_servers_check(const enum lab_engine *engines, size_t n)
{
    char missing[256] = "";

    for (size_t i = 0; i < n; i++)
        server_recipe_missing(&server_recipes[engines[i]], missing,
                              sizeof(missing));
    if (*missing)
        lab_die(CLI_UNAVAILABLE,
                "servers are not installed: apt install%s; or exclude them "
                "with --backends and --stores",
                missing);
}

static struct launch servers_prepare(enum lab_engine engine,
                                     const char *const *args)
{
    struct launch launch = {.recipe = &server_recipes[engine], .args = args};

    if (!launch.recipe->execute)
        lab_die(CLI_FAILED, "engine %d has no server", (int)engine);
    server_recipe_find(&launch);
    servers_make_secret(launch.secret);
    return launch;
}

static void servers_start(struct lab *lab, struct launch *launch,
                          struct lab_server *server)
{
    enum lab_engine engine = (enum lab_engine)(launch->recipe - server_recipes);

    launch->server = server;
    servers_name_place(&server->place, engine, server->port, launch->secret);
    lab_progress(lab, "starts %s", server->place.name);
    server->cleanup = cleanup_run(server_recipe_run, servers_clean, launch,
                                  &server->place.pid);
}

struct lab_server *lab_server_start(struct lab *lab, enum lab_engine engine,
                                    const char *const *args)
{
    struct launch launch = servers_prepare(engine, args);
    struct lab_server *server = servers_make(lab, launch.recipe->name);

    servers_start(lab, &launch, server);
    servers_await(lab, server);
    return server;
}

void lab_etcd_start(struct lab *lab, struct lab_server **members, size_t n)
{
    char cluster[256] = "--initial-cluster=";
    /* These are etcd's defaults. With shorter times, a busy machine would cause
     * elections repeatedly. */
    const char *const args[] = {cluster, "--heartbeat-interval=100",
                                "--election-timeout=1000", NULL};
    struct launch launch = servers_prepare(LAB_ETCD, args);

    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(cluster);
        int port;

        members[i] = servers_make(lab, launch.recipe->name);
        port = members[i]->port;
        snprintf(cluster + len, sizeof(cluster) - len,
                 "%sm%d=" SERVER_RECIPE_PEER, i ? "," : "", port, port);
    }
    for (size_t i = 0; i < n; i++)
        servers_start(lab, &launch, members[i]);
    for (size_t i = 0; i < n; i++)
        servers_await(lab, members[i]);
}

/*
 * These servers lose their keys when they restart, but they are never
 * restarted. With max_lease=0, clients assume that a server keeps its keys when
 * it restarts. Without this option, a client would not use a server that has
 * run for less than the longest lease, because that server might have just lost
 * its keys.
 *
 * server_timeout is long, because a server on a busy machine may answer late. A
 * dead server is noticed at once, because it refuses connections.
 */
static void servers_name_redlock(struct lab_place *place,
                                 struct lab_server *const *servers,
                                 const char *secret)
{
    int port[LAB_REDLOCK_SERVERS];

    for (size_t i = 0; i < LAB_REDLOCK_SERVERS; i++) {
        port[i] = servers[i]->port;
        if (i)
            place->others[i - 1] = servers[i]->place.pid;
    }
    place->engine = LAB_REDLOCK;
    place->name = server_recipes[LAB_REDLOCK].name;
    place->pid = servers[0]->place.pid;
    snprintf(place->url, sizeof(place->url),
             "redlock://:%s@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,"
             "127.0.0.1:%d,127.0.0.1:%d?max_lease=0&server_timeout=1s",
             secret, port[0], port[1], port[2], port[3], port[4]);
}

void lab_redlock_start(struct lab *lab,
                       struct lab_server *servers[LAB_REDLOCK_SERVERS],
                       struct lab_place *place)
{
    struct launch launch = servers_prepare(LAB_REDIS, NULL);
    bool started[LAB_REDLOCK_SERVERS] = {false};

    *place = (struct lab_place){0};
    for (size_t i = 0; i < LAB_REDLOCK_SERVERS; i++) {
        started[i] = !servers[i];
        if (!started[i])
            continue;
        servers[i] = servers_make(lab, launch.recipe->name);
        servers_start(lab, &launch, servers[i]);
    }
    for (size_t i = 0; i < LAB_REDLOCK_SERVERS; i++)
        if (started[i])
            servers_await(lab, servers[i]);
    servers_name_redlock(place, servers, launch.secret);
}

void lab_server_kill(struct lab_server *server)
{
    int process = servers_follow(server->place.pid);

    kill(server->place.pid, SIGKILL);
    while (!servers_is_over(process, -1))
        ;
    close(process);
}

/* The struct is not freed, because a scenario may still use its place. */
void lab_server_end(struct lab_server *server)
{
    cleanup_end(server->cleanup);
    port_give_back(&server->reserved);
    server->place.pid = 0;
}

static double servers_redis_cpu_ms(const struct lab_place *place)
{
    char why[RD_WHY];
    int status;
    redisContext *redis = rd_connect(place, &status, why);
    redisReply *reply = redis ? redisCommand(redis, "INFO cpu") : NULL;
    const char *text =
        reply && reply->type == REDIS_REPLY_STRING ? reply->str : "";
    const char *sys = strstr(text, "used_cpu_sys:");
    const char *user = strstr(text, "used_cpu_user:");
    double ms = -1;

    if (sys && user)
        ms = 1000 * (strtod(strchr(sys, ':') + 1, NULL) +
                     strtod(strchr(user, ':') + 1, NULL));
    freeReplyObject(reply);
    if (redis)
        redisFree(redis);
    return ms;
}

static double servers_process_cpu_ms(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        return -1;
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

double lab_place_cpu_ms(const struct lab_place *place)
{
    double ms, more;

    if (!place->pid)
        return place->engine == LAB_REDIS ? servers_redis_cpu_ms(place) : -1;
    ms = servers_process_cpu_ms(place->pid);
    for (size_t i = 0; i + 1 < LAB_REDLOCK_SERVERS; i++) {
        more = place->others[i] ? servers_process_cpu_ms(place->others[i]) : 0;
        ms = ms < 0 || more < 0 ? -1 : ms + more;
    }
    return ms;
}
