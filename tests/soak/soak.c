/*
 * soak NAME|URL [--seed N] [--seconds N] [--rounds N] [--useless]
 * soak --names
 *
 * Processes acquire a lock, read and write what it guards, and release it. In
 * the meantime some of them are killed and stopped, the network fails, and
 * servers are stopped or killed: a seed decides which faults occur. NAME is one
 * of the names of the conformance suite. With a URL, only processes are killed
 * and stopped, and neither the server nor the network fails.
 *
 * A round has one lock of some kind, a few faults and a verdict. Each round has
 * its own seed: the first round has the seed of --seed, and each following
 * round has the next number. The verdict comes from the history (history.h)
 * that the processes write (record.h): a holder claims the lock until the
 * deadline that it knows. The seed does not control the scheduler, so a
 * repeated round has the same faults but another history.
 *
 * --useless: every process has its own lock, so that the locks protect nothing;
 * the verdict must be a violation. --names: prints the names that this build
 * has.
 */
#include "../conformance/conf.h"
#include "../conformance/servers.h"
#include "../lib/tally.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#define WORKERS 5
#define STEPS 4 /* the number of steps of a round */
#define TTL_MS 600
#define OP_TIMEOUT_MS 5000
#define PATIENCE 5     /* the number of retries on a machine that stalls */
#define STUCK_MS 60000 /* longer than any call */
#define MS ((int64_t)1000000)

_Static_assert(WORKERS *(STEPS + 1) <= RECORD_OWNERS,
               "the record has room for every owner");

struct worker {
    struct proc p;
    uint32_t owner, process;
    bool far; /* whether it connects through the proxy */
    bool stopped;
};

struct round {
    uint64_t chance;
    enum hf_kind kind;
    uint32_t size;
    enum hf_fairness fairness;
    char name[64];
    char path[256];
    struct record *record;
    struct history history;
    uint32_t owners;
    struct worker worker[WORKERS];
    bool unhurried; /* a server or the network has failed, so waits are not
                       judged */
    int64_t excused;
    char verdict[320]; /* "" if there is no violation */
};

static const char *started_as;
static bool useless;
static struct proxy *proxy;
static struct tally_line total;
static volatile sig_atomic_t asked_to_end;

static void on_signal(int sig)
{
    (void)sig;
    asked_to_end = 1;
}

/* This is splitmix64: similar seeds give unrelated numbers. */
static uint32_t draw(struct round *r, uint32_t below)
{
    uint64_t x = r->chance += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((x ^ (x >> 31)) >> 32) % below;
}

static void nap_ms(uint32_t ms)
{
    NEVER_MS(asked_to_end, ms);
}

static void against(struct round *r, const char *check, const char *text)
{
    if (!r->verdict[0])
        snprintf(r->verdict, sizeof(r->verdict), "%s: %.280s", check, text);
}

static const char *url_of(const struct worker *w)
{
    return w->far ? conf.url_at(proxy_port(proxy)) : conf.url;
}

static int tell(struct worker *w, struct proc_cmd *cmd, struct proc_reply *r)
{
    memset(r, 0, sizeof(*r));
    return proc_do(&w->p, cmd, r) || r->rc ? -1 : 0;
}

/* Starts a process as this worker. Must be called while the network and the
 * servers work. */
static void join(struct round *r, struct worker *w)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = TTL_MS};
    struct proc_reply reply = {0};

    w->owner = w->process = r->owners++;
    w->stopped = false;
    snprintf(cmd.text, sizeof(cmd.text), "%s", url_of(w));
    snprintf(cmd.label, sizeof(cmd.label), "soak");
    if (proc_start(&w->p)) {
        against(r, "START", "cannot start a process");
        return;
    }
    for (int tries = 0; tell(w, &cmd, &reply); tries++)
        if (!reply.err.may_pass || tries == PATIENCE || asked_to_end) {
            against(r, "OPEN", reply.err.text);
            return;
        }
    cmd.op = PROC_NEW;
    cmd.kind = r->kind;
    cmd.permits = r->size;
    cmd.fairness = r->fairness;
    cmd.name_len =
        (size_t)(useless ? snprintf(cmd.name, sizeof(cmd.name), "%s-%u",
                                    r->name, w->owner)
                         : snprintf(cmd.name, sizeof(cmd.name), "%s", r->name));
    if (tell(w, &cmd, &reply)) {
        against(r, "NEW", reply.err.text);
        return;
    }
    cmd = (struct proc_cmd){.op = PROC_LOOP,
                            .kind = r->kind,
                            .permits = r->size,
                            .owner = w->owner,
                            .process = w->process,
                            .wait_ms = OP_TIMEOUT_MS,
                            .flags = 1};
    snprintf(cmd.text, sizeof(cmd.text), "%s", r->path);
    if (proc_send(&w->p, &cmd))
        against(r, "START", "the process is gone");
}

static void kill_one(struct round *r, struct worker *w)
{
    int64_t before = wait_now();
    struct proc_reply reply = {0};

    if (proc_ready(&w->p, 0) && !proc_recv(&w->p, &reply, WAIT_LONG_MS) &&
        reply.rc) /* the process has ended by itself: report why */
        against(r, hf_error_name(reply.rc), "was returned by a call");
    proc_kill(&w->p);
    record_killed(r->record, &r->history, w->process, before);
    total.kills++;
}

static void stop_one(struct round *r, struct worker *w)
{
    int64_t before = wait_now();

    if (w->stopped || proc_stop(&w->p))
        return;
    w->stopped = true;
    record_stopped(&r->history, w->process, before);
    total.stops++;
}

static void hurt_network(struct round *r)
{
    static const enum proxy_mode modes[] = {
        PROXY_SWALLOW, PROXY_DEAF,       PROXY_BLACK_HOLE, PROXY_DELAY,
        PROXY_RESET,   PROXY_HALF_CLOSE, PROXY_DRIP,       PROXY_REFUSE};
    enum proxy_mode mode = modes[draw(r, sizeof(modes) / sizeof(modes[0]))];

    proxy_set(proxy, mode, 1 + (long)draw(r, 400));
    if (mode == PROXY_REFUSE)
        proxy_cut(proxy);
    r->unhurried = true;
    total.faults++;
}

static void hurt_server(struct round *r)
{
    enum servers_fault fault = draw(r, 2) ? SERVERS_STOPPED : SERVERS_KILLED;

    if (!servers_hurt(fault, draw(r, 16)))
        return;
    r->unhurried = true;
    total.faults++;
}

/* Replaces killed processes, continues stopped ones, and repairs the servers
 * and the network. */
static void heal(struct round *r)
{
    if (servers_heal())
        against(r, "SERVER", "a server does not restart");
    if (proxy) {
        proxy_set(proxy, PROXY_PASS, 0);
        proxy_cut(proxy);
    }
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &r->worker[i];

        if (w->stopped) {
            record_continued(&r->history, w->process);
            proc_continue(&w->p);
            w->stopped = false;
        }
        if (!w->p.pid)
            join(r, w);
    }
}

static uint64_t grants(const struct round *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->owners; i++)
        sum += record_grants(r->record, i);
    return sum;
}

/* Waits until each process has acquired the lock once more, or has ended
 * because its record is full or a call failed. */
static void all_work(struct round *r)
{
    for (int i = 0; i < WORKERS && !r->verdict[0]; i++) {
        struct worker *w = &r->worker[i];
        uint64_t before = record_grants(r->record, w->owner);
        char text[64];

        if (WAIT_FOR_MS(asked_to_end ||
                            record_grants(r->record, w->owner) > before ||
                            proc_ready(&w->p, 0),
                        STUCK_MS))
            continue;
        snprintf(text, sizeof(text), "owner %u gets no more grants", w->owner);
        against(r, "STUCK", text);
    }
}

/* Causes one or several faults at once, for a time that may exceed a lease. */
static void step(struct round *r)
{
    uint32_t what = 1 + draw(r, 15), which = draw(r, WORKERS);
    uint32_t lasts = draw(r, 2) ? draw(r, TTL_MS / 2) : draw(r, 3 * TTL_MS);

    nap_ms(draw(r, 200));
    if ((what & 4) && proxy)
        hurt_network(r);
    if (what & 8)
        hurt_server(r);
    if (what & 1)
        kill_one(r, &r->worker[which]);
    if (what & 2)
        stop_one(r, &r->worker[(which + 1 + draw(r, WORKERS - 1)) % WORKERS]);
    nap_ms(lasts);
    heal(r);
    all_work(r);
}

static bool has(enum hf_kind kind)
{
    return conf.kind_caps[kind] & (HF_CAP_FAIR | HF_CAP_UNFAIR);
}

static void choose(struct round *r)
{
    static const enum hf_kind kinds[] = {HF_MUTEX, HF_RWLOCK, HF_SEMAPHORE};
    int caps;

    do
        r->kind = kinds[draw(r, 3)];
    while (!has(r->kind));
    r->size = r->kind == HF_SEMAPHORE ? 2 + draw(r, 4) : 0;
    caps = conf.kind_caps[r->kind];
    r->fairness = !(caps & HF_CAP_UNFAIR) || (caps & HF_CAP_FAIR && draw(r, 2))
                      ? HF_FAIR
                      : HF_UNFAIR;
}

static void begin(struct round *r, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->chance = seed;
    choose(r);
    snprintf(r->name, sizeof(r->name), "soak-%llu", (unsigned long long)seed);
    snprintf(r->path, sizeof(r->path), "%s/record", conf.dir);
    unlink(r->path);
    r->record = record_map(r->path);
    history_init(&r->history);
    r->excused = wait_stalled();
    for (int i = 0; i < WORKERS; i++) {
        r->worker[i].far = proxy && i % 2;
        join(r, &r->worker[i]);
    }
}

static void end_workers(struct round *r)
{
    record_over(r->record);
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &r->worker[i];
        struct proc_reply reply = {0};

        if (!w->p.pid)
            continue;
        if (r->verdict[0] || asked_to_end) {
            proc_kill(&w->p);
        } else if (proc_recv(&w->p, &reply, 3 * WAIT_LONG_MS)) {
            against(r, "RET", "a process does not end");
            proc_kill(&w->p);
        } else if (reply.rc) {
            against(r, hf_error_name(reply.rc), "was returned by a call");
            proc_kill(&w->p);
        } else if (proc_end(&w->p)) {
            against(r, "CLOSE", "a process could not close its client");
        }
    }
}

static void judge(struct round *r)
{
    const struct history_rules rules = {
        .ttl_ns = (conf.local ? 100 : TTL_MS) * MS,
        .tick_ns = (conf.tick_ms ? conf.tick_ms : 100) * MS,
        .wake_ns = 2000 * MS,
        .grace_ns = 2000 * MS + wait_stalled() - r->excused,
        .unhurried = r->unhurried,
        .mingled = conf.session,
        .stop_keeps = conf.local,
    };
    struct history_verdict v = {0};
    char line[256];

    record_gather(r->record, &r->history);
    if (history_check(&r->history, &rules, &v))
        return;
    for (size_t i = v.index > 20 ? v.index - 20 : 0;
         i <= v.index && i < r->history.len; i++) {
        history_print(&r->history.event[i], line, sizeof(line));
        printf("# %s\n", line);
    }
    against(r, v.check, v.text);
}

/* Checks that everything that killed processes left behind is removed when
 * their leases have ended. */
static void look_for_leaks(struct round *r)
{
    if (!conf.fresh || !conf.left || WAIT_FOR(conf.left() == 0))
        return;
    conf.print_left();
    against(r, "LEAK", "the server still has something");
}

static const char *kind_name(enum hf_kind kind)
{
    return kind == HF_MUTEX ? "mutex" : kind == HF_RWLOCK ? "rwlock" : "sem";
}

/* Plays a round. Returns false if there was a violation of the contract. */
static bool play(uint64_t seed)
{
    static struct round r;
    uint64_t had = total.kills + total.stops + total.faults;

    begin(&r, seed);
    for (int i = 0; i < STEPS && !r.verdict[0] && !asked_to_end; i++)
        step(&r);
    all_work(&r);
    end_workers(&r);
    if (!r.verdict[0] && !asked_to_end) {
        judge(&r);
        look_for_leaks(&r);
    }
    total.grants += grants(&r);
    if (asked_to_end && !strncmp(r.verdict, "OPEN", 4))
        r.verdict[0] = '\0'; /* the process had no time to open its client */
    total.violations += r.verdict[0] != '\0';
    printf("# seed %llu: %s %s, %llu grants, %llu faults%s%s\n",
           (unsigned long long)seed, r.fairness == HF_FAIR ? "fair" : "unfair",
           kind_name(r.kind), (unsigned long long)grants(&r),
           (unsigned long long)(total.kills + total.stops + total.faults - had),
           r.verdict[0] ? "; " : "", r.verdict);
    if (r.verdict[0])
        printf("# again: soak %s --seed %llu --rounds 1%s\n", started_as,
               (unsigned long long)seed, useless ? " --useless" : "");
    tally_line_print(&total);
    record_unmap(r.record);
    history_fini(&r.history);
    return !r.verdict[0];
}

struct options {
    uint64_t seed;
    long seconds, rounds; /* 0 for no limit */
};

static void print_names(void)
{
    puts("shm");
#ifdef HAVE_REDIS
    puts("redis\nredis-tls\nredlock");
#endif
#ifdef HAVE_EXAMPLE
    puts("example");
#endif
#ifdef HAVE_ZOOKEEPER
    puts("zk\nzk-ensemble");
#endif
#ifdef HAVE_ETCD
    puts("etcd\netcd-cluster");
#endif
#ifdef HAVE_MYSQL
    puts("mysql");
#endif
    exit(0);
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"seed", 1, NULL, 's'},   {"seconds", 1, NULL, 't'},
        {"rounds", 1, NULL, 'r'}, {"useless", 0, NULL, 'u'},
        {"names", 0, NULL, 'n'},  {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c == 's')
            o->seed = strtoull(optarg, NULL, 0);
        else if (c == 't')
            o->seconds = strtol(optarg, NULL, 10);
        else if (c == 'r')
            o->rounds = strtol(optarg, NULL, 10);
        else if (c == 'u')
            useless = true;
        else if (c == 'n')
            print_names();
        else
            return -1;
    }
    return optind + 1 == argc ? 0 : -1;
}

static int look_at_caps(void)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *c;

    if (proc_open(conf.url, NULL, &c, &err)) {
        fprintf(stderr, "soak: %s\n", err.text);
        return -1;
    }
    for (int kind = HF_MUTEX; kind <= HF_LATCH; kind++)
        conf.kind_caps[kind] = hf_client_caps(c, (enum hf_kind)kind);
    return hf_close(c);
}

static int begin_all(const char *name)
{
    conf.keeps = true;
    if (servers_start(name) || look_at_caps())
        return -1;
    if (!conf.url_at)
        return 0;
    proxy = proxy_start(conf.port);
    return proxy ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options o = {.seed = (uint64_t)wait_now(), .rounds = 0};
    int64_t end;
    bool ok;

    if (proc_is_puppet(argc, argv))
        return proc_puppet();
    if (parse(argc, argv, &o)) {
        fprintf(stderr, "usage: soak NAME|URL [--seed N] [--seconds N] "
                        "[--rounds N] [--useless]\n");
        return 64;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    setvbuf(stdout, NULL, _IOLBF, 0);
    started_as = argv[optind];
    printf("# seed %llu\n", (unsigned long long)o.seed);
    ok = !begin_all(started_as) || asked_to_end;
    total.violations = !ok;
    end = o.seconds ? wait_now() + o.seconds * 1000 * MS : HISTORY_NEVER;
    for (uint64_t i = 0; ok && !asked_to_end && (!i || wait_now() < end) &&
                         (!o.rounds || i < (uint64_t)o.rounds);
         i++)
        ok = play(o.seed + i);
    tally_line_print(&total);
    if (proxy)
        proxy_end(proxy);
    servers_stop();
    return ok ? 0 : 1;
}
