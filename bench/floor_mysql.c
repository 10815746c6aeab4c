/*
 * The floors (the least that a lock can cost) on MySQL, with libmariadb's
 * blocking calls on one connection: the two packets of a pair (one acquire and
 * its release), and a queue of eight processes in GET_LOCK. Also measures many
 * waiting processes, and the connections of many holds.
 */
#include "../tests/lib/mysql_server.h"
#include "ratios.h"

#include <mysql.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "holdfast-floor"
#define LITERAL "x'686f6c64666173742d666c6f6f72'" /* NAME in hexadecimal */

enum {
    PROCESSES = 8,
    EIGHT_MS = 2000,
    READY_MS = 30000,
    WAITERS = 100,
    SETTLED_MS = 3000, /* time for what a waiter does only when it begins to
                          wait */
    WATCHED_MS = 10000,
    HELD = 200,
};

static struct my_server server = {.durable = true};

static void nap(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* The kernel kills the child when this process ends. */
static pid_t fork_or_abort(void)
{
    pid_t pid = fork();

    if (pid < 0) {
        perror("ratios: fork");
        abort();
    }
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static int my_complain(MYSQL *db, const char *what)
{
    fprintf(stderr, "ratios: %s: %s\n", what, mysql_error(db));
    return -1;
}

static MYSQL *dial(void)
{
    MYSQL *db = mysql_init(NULL);

    if (!mysql_real_connect(db, "127.0.0.1", MY_SERVER_USER, MY_SERVER_SECRET,
                            MY_SERVER_DB, (unsigned)server.port, NULL,
                            CLIENT_MULTI_STATEMENTS)) {
        my_complain(db, "connect");
        mysql_close(db);
        return NULL;
    }
    return db;
}

/* Sends a packet of statements, and reads all answers. Returns the value that
 * the last statement selected, or else how many rows that statement changed; or
 * -1. */
static long ask(MYSQL *db, const char *text)
{
    long n = -1;
    int rc = mysql_real_query(db, text, strlen(text));

    for (; rc == 0; rc = mysql_next_result(db)) {
        MYSQL_RES *rows = mysql_store_result(db);
        MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;

        n = row && row[0] ? strtol(row[0], NULL, 10)
                          : (long)mysql_affected_rows(db);
        mysql_free_result(rows);
    }
    return rc > 0 ? my_complain(db, text) : n;
}

/*
 * The packets of a pair, as the server has received them from holdfast, to be
 * sent again unchanged. Part of them is about the user lock (GET_LOCK) that
 * wakes a waiter. `statements' has the same packets without that part, to
 * measure the least that a lock in a row of a table can cost.
 */
struct texts {
    char take[4096], drop[1024];
};

static struct texts packets, statements;

static int copy(char *to, size_t size, const char *from)
{
    return (size_t)snprintf(to, size, "%s", from) < size ? 0 : -1;
}

/* Reads the two packets of holdfast's pair from the server's log. */
static int read_log(void)
{
    MYSQL *db = server.admin;
    MYSQL_RES *rows;
    MYSQL_ROW take, drop;
    const char *row;
    int rc = -1;

    if (mysql_query(db, "select argument from mysql.general_log where "
                        "command_type='Query' and user_host like "
                        "'" MY_SERVER_USER "%' order by event_time"))
        return my_complain(db, "general_log");
    rows = mysql_store_result(db);
    if (rows && mysql_num_rows(rows) == 2) {
        take = mysql_fetch_row(rows);
        drop = mysql_fetch_row(rows);
        row = strchr(take[0], ';');
        if (row)
            rc = copy(packets.take, sizeof packets.take, take[0]) ||
                 copy(packets.drop, sizeof packets.drop, drop[0]) ||
                 copy(statements.take, sizeof statements.take, row + 1) ||
                 copy(statements.drop, sizeof statements.drop, drop[0]);
    }
    mysql_free_result(rows);
    if (rc) {
        packets.take[0] = '\0';
        return my_complain(db, "a pair is not two packets");
    }
    statements.drop[strcspn(statements.drop, ";")] = '\0';
    return 0;
}

/* Logs the packets of the second pair, because the first pair also creates the
 * row. */
static int log_pair(hf_lock *lock)
{
    hf_error err = HF_ERROR_INIT;
    int rc = HF_OK;

    my_server_do(&server, "set global log_output='TABLE', general_log=1");
    for (int i = 0; i < 2 && rc == HF_OK; i++) {
        my_server_do(&server, "truncate table mysql.general_log");
        rc = hf_lock_acquire(lock, NULL, &err);
        if (rc == HF_OK)
            rc = hf_lock_release(lock, &err);
    }
    my_server_do(&server, "set global general_log=0");
    if (rc != HF_OK)
        complain("pair", rc, &err);
    return rc == HF_OK ? read_log() : -1;
}

static int learn(const char *url)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    int rc;

    if (packets.take[0])
        return 0;
    rc = hf_open(url, NULL, &client, &err);
    if (rc == HF_OK)
        rc = hf_lock_new(client, NAME, HF_CSTRING, NULL, &lock, &err);
    if (rc == HF_OK)
        rc = log_pair(lock);
    else
        complain("floor", rc, &err);
    hf_lock_free(lock);
    hf_close(client);
    return rc == HF_OK ? 0 : -1;
}

struct hand {
    MYSQL *db;
    const struct texts *texts;
};

static int step(void *arg)
{
    const struct hand *hand = arg;

    for (int i = 0; i < 1000; i++)
        if (ask(hand->db, hand->texts->take) < 0 ||
            ask(hand->db, hand->texts->drop) < 0)
            return -1;
    return 0;
}

/* Checks that the statements sent by hand take the lock: each pair raises the
 * token by one. */
static int check_token(unsigned long long before)
{
    unsigned long long now = (unsigned long long)my_server_number(
        &server, "select token from holdfast_locks where name='" NAME "'");

    if (now < before + 1000)
        fprintf(stderr, "ratios: the statements by hand take no lock\n");
    return now < before + 1000 ? -1 : 0;
}

static double pair_by_hand(const char *url, const struct texts *texts)
{
    struct hand hand = {.texts = texts};
    unsigned long long before;
    double ns = -1;

    if (learn(url) < 0)
        return -1;
    hand.db = dial();
    if (!hand.db)
        return -1;
    before = (unsigned long long)my_server_number(
        &server, "select token from holdfast_locks where name='" NAME "'");
    if (ask(hand.db, "set session transaction isolation level read committed;"
                     "set @b=1") >= 0)
        ns = ns_per_pair(step, &hand);
    mysql_close(hand.db);
    return check_token(before) < 0 ? -1 : ns;
}

double floor_mysql_packets(const char *url)
{
    return pair_by_hand(url, &packets);
}

double floor_mysql_statements(const char *url)
{
    return pair_by_hand(url, &statements);
}

#define NOW "utc_timestamp(6)"

struct racer {
    const char *url;
    MYSQL *db; /* for by_hand */
    unsigned long long hold;
    char owner[48]; /* a literal of SQL */
    hf_client *client;
    hf_lock *lock;
};

/* Each returns 0, or -1 after printing what failed. */
struct how {
    int (*open)(struct racer *);
    int (*take)(struct racer *);
    int (*drop)(struct racer *);
};

static int hand_open(struct racer *r)
{
    snprintf(r->owner, sizeof r->owner, "x'%032d'", (int)getpid());
    r->db = dial();
    return r->db ? 0 : -1;
}

static int hand_take(struct racer *r)
{
    char text[512];

    if (ask(r->db, "select get_lock('" NAME "',10)") != 1)
        return my_complain(r->db, "get_lock");
    snprintf(text, sizeof text,
             "update floor_locks set token=last_insert_id(token+1),owner=%s,"
             "hold=%llu,label='',lease_until=" NOW
             "+interval 30000000 microsecond where name=" LITERAL
             " and kind=1 and lease_until<=" NOW,
             r->owner, ++r->hold);
    return ask(r->db, text) == 1 ? 0 : my_complain(r->db, "take");
}

static int hand_drop(struct racer *r)
{
    char text[512];

    snprintf(text, sizeof text,
             "update floor_locks set lease_until='1970-01-02' where "
             "name=" LITERAL " and owner=%s and hold=%llu and lease_until>" NOW,
             r->owner, r->hold);
    if (ask(r->db, text) != 1)
        return my_complain(r->db, "release");
    return ask(r->db, "do release_lock('" NAME "')") < 0 ? -1 : 0;
}

static int ours_open(struct racer *r)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_open(r->url, NULL, &r->client, &err);

    if (rc == HF_OK)
        rc = hf_lock_new(r->client, "holdfast-eight", HF_CSTRING, NULL,
                         &r->lock, &err);
    if (rc != HF_OK)
        complain("eight", rc, &err);
    return rc == HF_OK ? 0 : -1;
}

static int ours_take(struct racer *r)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_acquire(r->lock, NULL, &err);

    if (rc != HF_OK)
        complain("acquire", rc, &err);
    return rc == HF_OK ? 0 : -1;
}

static int ours_drop(struct racer *r)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_release(r->lock, &err);

    if (rc != HF_OK)
        complain("release", rc, &err);
    return rc == HF_OK ? 0 : -1;
}

static const struct how by_hand = {hand_open, hand_take, hand_drop};
static const struct how ours = {ours_open, ours_take, ours_drop};

struct race {
    atomic_int ready, inside, violations;
    atomic_bool go, stop;
    struct tally {
        long long pairs, waited_ns, longest_ns;
    } of[PROCESSES];
};

static int pair(const struct how *how, struct racer *r, struct race *race,
                struct tally *tally)
{
    int64_t waited, before = cli_now_ns(CLOCK_MONOTONIC);

    if (how->take(r) < 0)
        return -1;
    waited = cli_now_ns(CLOCK_MONOTONIC) - before;
    if (race->inside++ != 0)
        race->violations++;
    race->inside--;
    if (how->drop(r) < 0)
        return -1;
    tally->pairs++;
    tally->waited_ns += waited;
    if (waited > tally->longest_ns)
        tally->longest_ns = waited;
    return 0;
}

static _Noreturn void racer_main(const struct how *how, const char *url,
                                 struct race *race, struct tally *tally)
{
    struct racer r = {.url = url};
    struct tally warm = {0};

    if (how->open(&r) < 0 || pair(how, &r, race, &warm) < 0)
        _exit(1);
    race->ready++;
    while (!race->go)
        nap(1);
    while (!race->stop)
        if (pair(how, &r, race, tally) < 0)
            _exit(1);
    _exit(0);
}

static bool is_ready(struct race *race)
{
    for (int i = 0; i < READY_MS / 10 && race->ready < PROCESSES; i++)
        nap(10);
    if (race->ready < PROCESSES)
        fprintf(stderr, "ratios: only %d of %d are ready\n", race->ready,
                PROCESSES);
    return race->ready == PROCESSES;
}

/* Adds up the results of the processes. Returns -1 if one of them has
 * failed. */
static int end_race(struct race *race, const pid_t *pids, struct tally *sum)
{
    int failed = 0, status;

    for (int i = 0; i < PROCESSES; i++) {
        if (waitpid(pids[i], &status, 0) != pids[i] || status)
            failed++;
        sum->pairs += race->of[i].pairs;
        sum->waited_ns += race->of[i].waited_ns;
        if (race->of[i].longest_ns > sum->longest_ns)
            sum->longest_ns = race->of[i].longest_ns;
    }
    if (race->violations)
        fprintf(stderr, "ratios: %d violations\n", race->violations);
    return failed || race->violations || sum->pairs == 0 ? -1 : 0;
}

/* Returns pairs per second, or -1. */
static double run_race(const struct how *how, const char *url,
                       struct tally *sum)
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];
    int64_t begin, ns;
    int rc;

    if (race == MAP_FAILED)
        return -1;
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork_or_abort();
        if (pids[i] == 0)
            racer_main(how, url, race, &race->of[i]);
    }
    race->stop = !is_ready(race);
    race->go = true;
    begin = cli_now_ns(CLOCK_MONOTONIC);
    if (!race->stop)
        nap(EIGHT_MS);
    race->stop = true;
    ns = cli_now_ns(CLOCK_MONOTONIC) - begin;
    rc = end_race(race, pids, sum);
    munmap(race, sizeof *race);
    return rc < 0 ? -1 : 1e9 * (double)sum->pairs / (double)ns;
}

double floor_mysql_eight(const char *url)
{
    struct tally sum = {0};

    return run_race(&by_hand, url, &sum);
}

double my_eight(const char *url)
{
    struct tally sum = {0};

    return run_race(&ours, url, &sum);
}

/* The longest wait of the last run that mean_us() has measured. */
static double longest_us;

static double mean_us(const struct how *how, const char *url)
{
    struct tally sum = {0};

    if (run_race(how, url, &sum) < 0)
        return -1;
    longest_us = (double)sum.longest_ns / 1e3;
    return (double)sum.waited_ns / 1e3 / (double)sum.pairs;
}

double my_mean_wait(const char *url)
{
    return mean_us(&ours, url);
}

double floor_mysql_mean_wait(const char *url)
{
    return mean_us(&by_hand, url);
}

double my_longest_wait(const char *url)
{
    (void)url;
    return longest_us;
}

static _Noreturn void wait_for_it(const char *url)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    hf_lock *lock;

    if (hf_open(url, NULL, &client, &err) == HF_OK &&
        hf_lock_new(client, "holdfast-crowd", HF_CSTRING, NULL, &lock, &err) ==
            HF_OK)
        hf_lock_acquire(lock, NULL, &err);
    fprintf(stderr, "ratios: a waiter: %s\n", err.text);
    _exit(1);
}

static double cpu_of(const pid_t *pids, size_t n)
{
    struct timespec t;
    clockid_t clock;
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        if (clock_getcpuclockid(pids[i], &clock) == 0 &&
            clock_gettime(clock, &t) == 0)
            sum += (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    return sum;
}

/* Returns the processor time of these processes and of the server together, in
 * per cent of a core. */
static double watch(const pid_t *pids, size_t n)
{
    double cpu;

    nap(SETTLED_MS);
    cpu = cpu_of(pids, n) + cpu_of(&server.pid, 1);
    nap(WATCHED_MS);
    cpu = cpu_of(pids, n) + cpu_of(&server.pid, 1) - cpu;
    return cpu / (WATCHED_MS / 1000.0) * 100;
}

static double watch_crowd(const char *url)
{
    pid_t pids[WAITERS + 1];
    double percent = -1;
    long waiting = 0;

    for (int i = 0; i < WAITERS; i++) {
        pids[i] = fork_or_abort();
        if (pids[i] == 0)
            wait_for_it(url);
    }
    pids[WAITERS] = getpid(); /* the holder */
    for (int i = 0; i < READY_MS / 100 && waiting < WAITERS; i++) {
        nap(100);
        waiting = my_server_waiting(&server);
    }
    if (waiting < WAITERS)
        fprintf(stderr, "ratios: only %ld of %d wait\n", waiting, WAITERS);
    else
        percent = watch(pids, WAITERS + 1);
    for (int i = 0; i < WAITERS; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < WAITERS; i++)
        waitpid(pids[i], NULL, 0);
    return percent;
}

/* Returns what look() measures while this process holds n locks. If n is 1, the
 * lock is the one for which wait_for_it() waits. */
static double while_held(const char *url, size_t n,
                         double (*look)(const char *url))
{
    hf_lock *locks[HELD] = {NULL};
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    double seen = -1;
    char name[64] = "holdfast-crowd";
    int rc = hf_open(url, NULL, &client, &err);

    for (size_t i = 0; i < n && rc == HF_OK; i++) {
        if (n > 1)
            snprintf(name, sizeof name, "holdfast-held-%zu", i);
        rc = hf_lock_new(client, name, HF_CSTRING, NULL, &locks[i], &err);
        if (rc == HF_OK)
            rc = hf_lock_acquire(locks[i], NULL, &err);
    }
    if (rc == HF_OK)
        seen = look(url);
    else
        complain("held", rc, &err);
    for (size_t i = 0; i < n && locks[i]; i++) {
        hf_lock_release(locks[i], NULL);
        hf_lock_free(locks[i]);
    }
    hf_close(client);
    return seen;
}

double my_waiters_cpu(const char *url)
{
    return while_held(url, 1, watch_crowd);
}

/* Measures the server without clients, for comparison. */
double my_idle_cpu(const char *url)
{
    (void)url;
    return watch(NULL, 0);
}

static double connections(const char *url)
{
    (void)url;
    return (double)my_server_connections(&server);
}

/* Begins only when the connections of earlier measurements have ended, or after
 * five seconds. */
double my_held_connections(const char *url)
{
    for (int i = 0; i < 50 && my_server_connections(&server) > 0; i++)
        nap(100);
    return while_held(url, HELD, connections);
}

int my_start(const char **url)
{
    *url = server.url;
    if (my_server_start(&server) < 0)
        return -1;
    my_server_do(&server,
                 "create table floor_locks(name varbinary(512) primary key, "
                 "kind tinyint unsigned not null, size bigint unsigned not "
                 "null, token bigint unsigned not null, owner binary(16) not "
                 "null, hold bigint unsigned not null, lease_until datetime(6) "
                 "not null, label varbinary(255) not null) engine=InnoDB");
    my_server_do(&server, "insert into floor_locks values(" LITERAL
                          ",1,1,1,x'00',0,'1970-01-02','')");
    return 0;
}

void my_end(void)
{
    my_server_end(&server);
}
