/*
 * The speed that holdfast promises, as ratios. A floor is the same work done by
 * raw operations of the kernel or of a server, or by another library. A pair is
 * one acquire and its release. Each line of the table measures holdfast and, if
 * the line has a floor, the floor, in turn, five times each (three times or
 * once if that takes seconds), and shows the medians. The program starts its
 * own servers. Exit status 1: a target was missed; 2: something could not be
 * measured.
 */
#include "ratios.h"
#include "../tests/lib/redis_server.h"
#ifdef HAVE_ZOOKEEPER
#include "../tests/lib/zk_server.h"
#endif

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum rule { AT_MOST, AT_LEAST };
enum { TURNS = 3 }; /* how often a measurement that takes seconds is repeated */
enum place {
    SHM,
    REDIS,
    REDIS_TLS,
    REDLOCK,
    ZK,
    ETCD,
    ETCD_NOW,
    MYSQL,
    PLACES
};

struct line {
    const char *what;
    enum place place;
    measure_fn *ours, *floor; /* if `floor' is NULL, the target is for ours() */
    const char *unit;
    enum rule rule;
    double target; /* the target of ours/floor; 0: no target */
    int rounds;
};

/* If a line of the table measures times and its rule is AT_LEAST, the target is
 * how many times as fast as the floor holdfast must be. The two functions of
 * such a line are swapped, so that the ratio is floor/ours. */
static const struct line lines[] = {
    {"shm: pair / robust mutex", SHM, ours_pair, floor_robust_mutex, "ns",
     AT_MOST, 3, ROUNDS},
    {"shm: flock(2) / pair", SHM, floor_flock, ours_pair, "ns", AT_LEAST, 5,
     ROUNDS},
    {"shm: 4 processes, unfair / flock(2)", SHM, ours_four_unfair,
     floor_flock_four, "/s", AT_LEAST, 3, ROUNDS},
    {"shm: fair hand-over / futex", SHM, ours_handover_two, floor_futex, "ns",
     AT_MOST, 2, ROUNDS},
    {"shm: 16 threads, handoff 1000, unfair", SHM, ours_threads_unfair, NULL,
     "/s", AT_LEAST, 1e6, ROUNDS},
    {"shm: 16 threads, handoff 1000, fair", SHM, ours_threads_fair, NULL, "/s",
     AT_LEAST, 250e3, ROUNDS},
    {"shm: read pair / mutex pair", SHM, ours_pair_read, ours_pair, "ns",
     AT_MOST, 2, ROUNDS},
    {"shm: write pair / mutex pair", SHM, ours_pair_write, ours_pair, "ns",
     AT_MOST, 2, ROUNDS},
    {"shm: semaphore pair / mutex pair", SHM, ours_pair_semaphore, ours_pair,
     "ns", AT_MOST, 3, ROUNDS},
    {"shm: 16 threads reading", SHM, ours_threads_reading, NULL, "/s", AT_LEAST,
     1e6, ROUNDS},
    {"shm: idle handle", SHM, scale_handle_bytes, NULL, "B", AT_MOST, 512, 1},
    {"shm: 10 000 held locks", SHM, scale_renewal_cpu, NULL, "%", AT_MOST, 2,
     1},
    {"redis: pair / two trips", REDIS, ours_pair, floor_redis_two_trips, "ns",
     AT_MOST, 1.15, ROUNDS},
    {"redis: pair, no wait / one trip", REDIS, ours_pair_nowait,
     floor_redis_one_trip, "ns", AT_MOST, 1.15, ROUNDS},
    {"redis: pair, no wait / only acquire", REDIS, ours_pair_nowait,
     floor_redis_acquire, "ns", AT_MOST, 0, ROUNDS},
    {"redis: 8 processes, fair / hand-over", REDIS, ours_eight_fair,
     floor_redis_handover, "ns", AT_MOST, 1.5, ROUNDS},
    {"redis: 8 processes, unfair / hand-over", REDIS, ours_eight_unfair,
     floor_redis_handover, "ns", AT_MOST, 1.5, ROUNDS},
    {"redis: 8 processes reading / by hand", REDIS, ours_eight_reading,
     floor_redis_reading, "ns", AT_MOST, 1.15, ROUNDS},
    {"redis: 16 threads reading", REDIS, ours_threads_reading, NULL, "/s",
     AT_LEAST, 1e6, ROUNDS},
    {"redis: 16 threads, handoff 1000, unfair", REDIS, ours_threads_unfair,
     NULL, "/s", AT_LEAST, 1e6, ROUNDS},
    {"redis: 16 threads, handoff 1000, fair", REDIS, ours_threads_fair, NULL,
     "/s", AT_LEAST, 250e3, ROUNDS},
    {"redis: idle handle", REDIS, scale_handle_bytes, NULL, "B", AT_MOST, 512,
     1},
    {"redis: renewing 10 000 locks", REDIS, scale_renewal_cpu, NULL, "%",
     AT_MOST, 5, 1},
    {"redis: 1000 waiting processes", REDIS, scale_waiters_cpu, NULL, "%",
     AT_MOST, 1, 1},
    {"rediss: pair / two trips", REDIS_TLS, ours_pair, floor_redis_two_trips,
     "ns", AT_MOST, 1.15, ROUNDS},
    {"rediss: pair, no wait / one trip", REDIS_TLS, ours_pair_nowait,
     floor_redis_one_trip, "ns", AT_MOST, 1.15, ROUNDS},
    {"redlock: pair / by hand", REDLOCK, ours_pair, floor_redlock, "ns",
     AT_MOST, 1.2, ROUNDS},
    {"redlock: redsync / pair", REDLOCK, floor_redsync_pair, ours_pair, "ns",
     AT_LEAST, 2.5, ROUNDS},
    {"redlock: node-redlock 4 / pair", REDLOCK, floor_node4_pair, ours_pair,
     "ns", AT_LEAST, 2.5, ROUNDS},
    {"redlock: node-redlock 5 / pair", REDLOCK, floor_node5_pair, ours_pair,
     "ns", AT_LEAST, 2.5, ROUNDS},
    {"redlock: 8 take turns / redsync", REDLOCK, ours_turns,
     floor_redsync_turns, "/s", AT_LEAST, 2, TURNS},
    {"redlock: 8 take turns / node-redlock 4", REDLOCK, ours_turns,
     floor_node4_turns, "/s", AT_LEAST, 2, TURNS},
    {"redlock: p99 of waits / redsync", REDLOCK, ours_turns_p99,
     floor_redsync_p99, "ms", AT_MOST, 1, TURNS},
    {"redlock: p99 of waits / node-redlock 4", REDLOCK, ours_turns_p99,
     floor_node4_p99, "ms", AT_MOST, 1, TURNS},
#ifdef HAVE_ZOOKEEPER
    {"zk: pair / create, list, delete", ZK, ours_pair_fair, floor_zk_waited,
     "ns", AT_MOST, 1.15, ROUNDS},
    {"zk: pair, no wait / by hand", ZK, ours_pair_fair_nowait, floor_zk_nowait,
     "ns", AT_MOST, 1.15, ROUNDS},
    {"zk: Curator / pair, no wait", ZK, floor_curator_pair,
     ours_pair_fair_nowait, "ns", AT_LEAST, 1.3, ROUNDS},
    {"zk: Curator / 8 processes, fair", ZK, floor_curator_eight,
     ours_eight_fair, "ns", AT_LEAST, 1.5, ROUNDS},
    {"zk: nodes of 16 threads that wait", ZK, zk_waiting_nodes, NULL, "",
     AT_MOST, 1, 1},
#endif
#ifdef HAVE_ETCD
    {"etcd: pair / two calls of our client", ETCD, ours_pair_fair,
     floor_etcd_grpc, "ns", AT_MOST, 1.15, ROUNDS},
    {"etcd: pair / two calls on a socket", ETCD, ours_pair_fair,
     floor_etcd_bare, "ns", AT_MOST, 1.3, ROUNDS},
    {"etcd: Go / pair", ETCD, floor_go_pair, ours_pair_fair, "ns", AT_LEAST,
     1.25, ROUNDS},
    {"etcd: Go / 8 processes", ETCD, floor_go_eight, ours_eight_fair, "ns",
     AT_LEAST, 15, ROUNDS},
    {"etcd: 1000 names that a client waits for", ETCD, etcd_many_cpu, NULL, "%",
     AT_MOST, 1, 1},
    {"etcd: streams of that client", ETCD, etcd_many_streams, NULL, "", AT_MOST,
     1, 1},
    {"current etcd: pair / two calls", ETCD_NOW, ours_pair_fair,
     floor_etcd_grpc, "ns", AT_MOST, 1.15, ROUNDS},
    {"current etcd: Go / pair", ETCD_NOW, floor_go_pair, ours_pair_fair, "ns",
     AT_LEAST, 1.25, ROUNDS},
    {"current etcd: Go / 8 processes", ETCD_NOW, floor_go_eight,
     ours_eight_fair, "ns", AT_LEAST, 20, ROUNDS},
#endif
#ifdef HAVE_MYSQL
    {"mysql: pair / two packets by hand", MYSQL, ours_pair_default,
     floor_mysql_packets, "ns", AT_MOST, 1.15, ROUNDS},
    {"mysql: pair / two UPDATEs by hand", MYSQL, ours_pair_default,
     floor_mysql_statements, "ns", AT_MOST, 0, ROUNDS},
    {"mysql: 8 processes / GET_LOCK by hand", MYSQL, my_eight,
     floor_mysql_eight, "/s", AT_LEAST, 0.8, ROUNDS},
    {"mysql: longest of their waits / mean", MYSQL, my_longest_wait,
     my_mean_wait, "us", AT_MOST, 4, ROUNDS},
    {"mysql: the same by hand", MYSQL, my_longest_wait, floor_mysql_mean_wait,
     "us", AT_MOST, 0, ROUNDS},
    {"mysql: 100 wait, max_connections 400", MYSQL, my_waiters_cpu, NULL, "%",
     AT_MOST, 1, TURNS},
    {"mysql: the server, without clients", MYSQL, my_idle_cpu, NULL, "%",
     AT_MOST, 0, TURNS},
    {"mysql: connections of 200 held locks", MYSQL, my_held_connections, NULL,
     "", AT_MOST, 1, TURNS},
#endif
};

double ns_per_pair(int (*step)(void *arg), void *arg)
{
    int64_t start, now, pairs = 0;

    if (step(arg) < 0) /* warm-up */
        return -1;
    start = now = cli_now_ns(CLOCK_MONOTONIC);
    while (now - start < RUN_MS * 1000000LL) {
        if (step(arg) < 0)
            return -1;
        pairs += 1000;
        now = cli_now_ns(CLOCK_MONOTONIC);
    }
    return (double)(now - start) / (double)pairs;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

struct figures {
    double ours, floor, ratio;
};

/* Returns false if a figure could not be measured. */
static bool measure(const struct line *line, const char *url,
                    struct figures *out)
{
    double ours[ROUNDS] = {0}, floor[ROUNDS] = {0}, ratio[ROUNDS] = {0};

    for (int i = 0; i < line->rounds; i++) {
        floor[i] = line->floor ? line->floor(url) : 1;
        ours[i] = line->ours(url);
        if (ours[i] < 0 || floor[i] <= 0)
            return false;
        ratio[i] = ours[i] / floor[i];
    }
    out->ours = median(ours, line->rounds);
    out->floor = median(floor, line->rounds);
    out->ratio = median(ratio, line->rounds);
    return true;
}

static bool is_met(const struct line *line, double ratio)
{
    if (line->target == 0)
        return true;
    return line->rule == AT_MOST ? ratio <= line->target
                                 : ratio >= line->target;
}

static void print_figure(double value, const char *unit)
{
    char text[32];

    snprintf(text, sizeof text, value < 100 ? "%.2f %s" : "%.0f %s", value,
             unit);
    printf(" %14s", text);
}

static void print_line(const struct line *line, const struct figures *figures)
{
    char target[32] = "-";

    if (line->target != 0)
        snprintf(target, sizeof target, "%s %.*f",
                 line->rule == AT_MOST ? "<=" : ">=",
                 line->target < 3 && line->floor ? 2 : 0, line->target);
    printf("%-40s", line->what);
    print_figure(figures->ours, line->unit);
    if (line->floor) {
        print_figure(figures->floor, line->unit);
        printf(" %8.2f", figures->ratio);
    } else {
        printf(" %14s %8s", "-", "-");
    }
    printf(" %12s  %s\n", target,
           line->target == 0              ? ""
           : is_met(line, figures->ratio) ? "ok"
                                          : "MISSED");
    fflush(stdout);
}

static int run_all(const char *const urls[PLACES], const char *only)
{
    struct figures figures;
    int missed = 0, broken = 0, chosen = 0;

    printf("%-40s %14s %14s %8s %12s\n", "", "ours", "floor", "ratio",
           "target");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct line *line = &lines[i];

        if (only && !strstr(line->what, only))
            continue;
        chosen++;
        if (!measure(line, urls[line->place], &figures)) {
            printf("%-40s could not be measured\n", line->what);
            broken++;
            continue;
        }
        print_line(line, &figures);
        missed += !is_met(line, figures.ratio);
    }
    if (!chosen) {
        fprintf(stderr, "no line contains `%s'\n", only);
        return 2;
    }
    printf("%d missed, %d not measured\n", missed, broken);
    return broken ? 2 : missed ? 1 : 0;
}

static int remove_one(const char *path, const struct stat *about, int type,
                      struct FTW *where)
{
    (void)about, (void)type, (void)where;
    return remove(path);
}

#ifdef HAVE_ZOOKEEPER

/* A ZooKeeper with the server's own default checkIntervalMs, which the tests
 * shorten. */
static struct zk_server zk = {
    .durable = true,
    .flags = {"-Dznode.container.checkIntervalMs=60000",
              "-XX:TieredStopAtLevel=4"}};

static int start_zk(const char **url)
{
    *url = zk.url;
    return zk_server_start(&zk);
}

static void end_zk(void)
{
    zk_server_end(&zk);
}

#else

static int start_zk(const char **url)
{
    *url = NULL;
    return 0;
}

static void end_zk(void)
{
}

#endif

#ifndef HAVE_ETCD

int etcd_start(const char **url, const char **current)
{
    *url = *current = NULL;
    return 0;
}

void etcd_end(void)
{
}

#endif

#ifndef HAVE_MYSQL

int my_start(const char **url)
{
    *url = NULL;
    return 0;
}

void my_end(void)
{
}

#endif

/* Runs all lines, or with an argument TEXT only the lines that contain it. */
int main(int argc, char **argv)
{
    static struct redis_server server, tls_server = {.tls = "server"};
    char directory[] = "/dev/shm/holdfast-ratios.XXXXXX", shm[64];
    const char *urls[PLACES] = {shm, server.url, tls_server.tls_url, NULL};
    int status;

    if (!mkdtemp(directory) || redis_server_start(&server) < 0 ||
        redis_server_start(&tls_server) < 0 || start_zk(&urls[ZK]) < 0 ||
        etcd_start(&urls[ETCD], &urls[ETCD_NOW]) < 0 ||
        redlock_start(&urls[REDLOCK]) < 0 || my_start(&urls[MYSQL]) < 0) {
        perror("ratios: cannot set up");
        return 2;
    }
    snprintf(shm, sizeof shm, "shm://%s", directory);
    status = run_all(urls, argc > 1 ? argv[1] : NULL);
    redis_server_end(&server);
    redis_server_end(&tls_server);
    end_zk();
    etcd_end();
    redlock_end();
    my_end();
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return status;
}
