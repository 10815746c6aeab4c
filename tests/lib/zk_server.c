#include "zk_server.h"

#include "proxy.h"
#include "wait.h"
#include "zk_hand.h"

#include <sys/socket.h>

#define ELECTIONS 20
#define SERVES_MS 180000 /* a dozen suites may start servers at once */
/* long, because no thread sends pings between requests */
#define ADMIN_MS 300000
#define WARM_LITTLE 3
#define WARM_TIMES 20
#define WARM_QUICK_MS 25
#define WARM_MS 10000
#define CLASSPATH                                                              \
    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"

static FILE *create(const struct zk_server *s, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", s->dir, name);
    return fopen(path, "we");
}

static void write_peers(FILE *f, const struct zk_server *s,
                        const struct zk_ensemble *e)
{
    for (int i = 0; e && i < ZK_ENSEMBLE; i++) {
        const struct zk_server *other = &e->server[i];
        int port = e->way[i] && s == &e->server[0] ? proxy_port(e->way[i])
                                                   : other->peer_port;

        fprintf(f, "server.%d=127.0.0.1:%d:%d\n", other->id, port,
                other->election_port);
    }
}

static int write_config(const struct zk_server *s, const struct zk_ensemble *e)
{
    FILE *f = create(s, "config");
    int tick_ms = s->tick_ms ? s->tick_ms : ZK_TICK_MS;
    /* A stall of the machine for seconds must not cut a member off. Only tests
     * that cut a member off on purpose have short limits, because they wait
     * until the member notices. */
    bool soon = e && e->can_be_cut;

    if (!f)
        return -1;
    fprintf(f,
            "tickTime=%d\ninitLimit=%d\nsyncLimit=%d\ndataDir=%s\n"
            "clientPort=%d\nclientPortAddress=127.0.0.1\n"
            "minSessionTimeout=%d\nmaxSessionTimeout=400000\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=*\n",
            tick_ms, soon ? 30 : 300, soon ? 50 : 300, s->dir, s->port,
            s->min_session_ms ? s->min_session_ms : 2 * tick_ms);
    write_peers(f, s, e);
    if (fclose(f))
        return -1;
    f = create(s, "myid");
    if (!f)
        return -1;
    fprintf(f, "%d\n", s->id);
    return fclose(f);
}

static void run(void *server)
{
    static const char *const fixed[] = {
        "java",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xms48m",
        "-Xmx192m",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.preAllocSize=1024",
        "-Dznode.container.checkIntervalMs=300",
        "-Dzookeeper.fastleader.maxNotificationInterval=400",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-cp",
        CLASSPATH,
        NULL,
    };
    struct zk_server *s = server;
    struct server_args a = {0};

    server_args(&a, fixed, SIZE_MAX);
    server_arg(&a, "-Dzookeeper.forceSync=%s", s->durable ? "yes" : "no");
    server_args(&a, s->flags, ZK_SERVER_FLAGS);
    server_arg(&a, "org.apache.zookeeper.server.quorum.QuorumPeerMain");
    server_arg(&a, "%s/config", s->dir);
    server_exec(&s->process, &a);
}

void zk_server_leave(struct zk_server *s)
{
    zk_hand_close(s->admin);
    s->admin = NULL;
}

static void leave(void *server)
{
    zk_server_leave(server);
}

/* Sends the requests that one acquire and one release of a lock would send. */
static void use(const struct zk_server *s)
{
    struct zk_hand *h = zk_hand_open(s->url + strlen("zk://"), ADMIN_MS);
    struct String_vector names = {0};
    char path[64] = "";

    if (!h)
        return;
    zk_hand_create(h, "/warm", NULL, ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, "/warm/x-", "x", ZOO_EPHEMERAL_SEQUENTIAL, path,
                   sizeof(path), NULL);
    zk_hand_children(h, "/warm", &names);
    deallocate_String_vector(&names);
    zk_hand_delete(h, path);
    zk_hand_delete(h, "/warm");
    zk_hand_close(h);
}

/* Warms a restarted server up: a new JVM takes half a second for its first
 * replies, longer than some tests wait. */
static int warm_a_little(void *server)
{
    for (int i = 0; i < WARM_LITTLE; i++)
        use(server);
    return 0;
}

/* Repeats use() until the JVM has reached its full speed, for at most
 * WARM_MS. */
static void warm_up(const struct zk_server *s)
{
    int64_t until = wait_now() + (int64_t)WARM_MS * 1000000;

    for (int quick = 0; quick < WARM_TIMES && wait_now() < until;) {
        int64_t began = wait_now();

        use(s);
        quick = wait_ms_since(began) < WARM_QUICK_MS ? quick + 1 : 0;
    }
}

static bool answers(void *server)
{
    return zk_server_serves(server);
}

static int make(struct zk_server *s)
{
    static const struct server_kind kind = {
        .name = "zookeeper",
        .run = run,
        .answers = answers,
        .forget = leave,
        .warm = warm_a_little,
        .ready_ms = SERVES_MS,
    };
    int *port[] = {&s->port, &s->peer_port, &s->election_port};

    s->kind = &kind;
    for (int i = 0; i < 3; i++)
        if (server_port(&s->process, port[i]))
            return -1;
    snprintf(s->url, sizeof(s->url), "zk://127.0.0.1:%d", s->port);
    return server_dir(&s->process, "holdfast-zk", true);
}

int zk_server_start(struct zk_server *s)
{
    if (make(s) || write_config(s, NULL) || zk_server_again(s))
        return -1;
    warm_up(s);
    return 0;
}

/* Returns whether the reply refuses the request: a server that is still
 * starting says so, and does not close the connection. */
static bool is_refusal(const char *text)
{
    return strstr(text, "not currently serving requests") != NULL;
}

void zk_server_ask(const struct zk_server *s, const char *word, char *text,
                   size_t size)
{
    int fd = server_connect(s->port);
    size_t len = 0;
    ssize_t n = 1;

    text[0] = '\0';
    if (fd >= 0 && send(fd, word, 4, MSG_NOSIGNAL) == 4)
        while (n > 0 && len + 1 < size && !is_refusal(text)) {
            n = read(fd, text + len, size - 1 - len);
            len += n > 0 ? (size_t)n : 0;
            text[len] = '\0';
        }
    if (fd >= 0)
        close(fd);
}

long zk_server_number(const struct zk_server *s, const char *name)
{
    char text[65536], line[64], *at;

    zk_server_ask(s, "mntr", text, sizeof(text));
    snprintf(line, sizeof(line), "\n%s\t", name);
    at = strstr(text, line);
    return at ? atol(at + strlen(line)) : -1;
}

static bool has_mode(const struct zk_server *s, const char *mode)
{
    char text[1024];

    zk_server_ask(s, "srvr", text, sizeof(text));
    return strstr(text, mode) != NULL;
}

bool zk_server_serves(const struct zk_server *s)
{
    return has_mode(s, "Mode: ");
}

static bool reached(struct zk_server *s)
{
    char host[32];

    snprintf(host, sizeof(host), "127.0.0.1:%d", s->port);
    if (!s->admin)
        s->admin = zk_hand_open(host, ADMIN_MS);
    if (s->admin && !zk_hand_sync(s->admin))
        return true;
    zk_server_leave(s);
    return false;
}

struct zk_hand *zk_server_hand(struct zk_server *s)
{
    if (!WAIT_FOR_MS(reached(s), SERVES_MS)) {
        fprintf(stderr, "zookeeper at port %d does not answer\n", s->port);
        abort();
    }
    return s->admin;
}

static long count(struct zk_hand *h, const char *path, bool print);

static long count_children(struct zk_hand *h, const char *path, bool print)
{
    struct String_vector names = {0};
    char child[1024];
    long n = 0;
    int rc = zk_hand_children(h, path, &names);

    if (rc) /* 0 for a removed node, 1 for any other error */
        return rc == ZNONODE ? 0 : 1;
    for (int i = 0; i < names.count; i++) {
        snprintf(child, sizeof(child), "%s/%s", path[1] ? path : "",
                 names.data[i]);
        if (strcmp(child, "/zookeeper") != 0)
            n += count(h, child, print);
    }
    deallocate_String_vector(&names);
    return n;
}

static long count(struct zk_hand *h, const char *path, bool print)
{
    if (print)
        fprintf(stderr, "left behind: %s\n", path);
    return 1 + count_children(h, path, print);
}

static long count_all(struct zk_server *s, bool print)
{
    return count_children(zk_server_hand(s), "/", print);
}

long zk_server_nodes(struct zk_server *s)
{
    return count_all(s, false);
}

long zk_server_nodes_below(struct zk_server *s, const char *path)
{
    return count_children(zk_server_hand(s), *path ? path : "/", false);
}

void zk_server_print_nodes(struct zk_server *s)
{
    count_all(s, true);
}

long zk_server_children(struct zk_server *s, const char *path)
{
    struct String_vector names = {0};
    long n;
    int rc;

    do
        rc = zk_hand_children(zk_server_hand(s), path, &names);
    while (rc && rc != ZNONODE);
    n = names.count;
    deallocate_String_vector(&names);
    return n;
}

static int spawn_all(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        if (!e->server[i].pid && server_spawn(&e->server[i].process))
            return -1;
    return zk_ensemble_serves(e);
}

static void end_ways(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++) {
        if (e->way[i])
            proxy_end(e->way[i]);
        e->way[i] = NULL;
    }
}

static int configure_all(struct zk_ensemble *e)
{
    struct zk_server *s = e->server;

    for (int i = 1; e->can_be_cut && i < ZK_ENSEMBLE; i++)
        e->way[i] = proxy_start(s[i].peer_port);
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        if (write_config(&s[i], e))
            return -1;
    snprintf(e->hosts, sizeof(e->hosts),
             "127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", s[0].port, s[1].port,
             s[2].port);
    snprintf(e->url, sizeof(e->url), "zk://%s", e->hosts);
    return 0;
}

int zk_ensemble_start(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++) {
        e->server[i].id = i + 1;
        if (make(&e->server[i]))
            return -1;
    }
    if (configure_all(e) || spawn_all(e))
        return -1;
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        warm_up(&e->server[i]);
    return 0;
}

int zk_ensemble_serves(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        if (e->server[i].pid && server_await(&e->server[i].process))
            return -1;
    return 0;
}

struct zk_server *zk_ensemble_leader(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        if (e->server[i].pid && has_mode(&e->server[i], "Mode: leader"))
            return &e->server[i];
    return NULL;
}

int zk_ensemble_restart(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        zk_server_kill(&e->server[i]);
    return spawn_all(e);
}

void zk_ensemble_end(struct zk_ensemble *e)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++)
        zk_server_end(&e->server[i]);
    end_ways(e);
}

int zk_ensemble_elect(struct zk_ensemble *e)
{
    struct zk_server *first = &e->server[0];

    for (int i = 0; i < ELECTIONS; i++) {
        if (!WAIT_FOR(zk_ensemble_leader(e) != NULL))
            return -1;
        if (zk_ensemble_leader(e) != first)
            return 0;
        zk_server_kill(first);
        if (!WAIT_FOR(zk_ensemble_leader(e) != NULL) || zk_server_again(first))
            return -1;
    }
    return -1;
}

void zk_ensemble_cut(struct zk_ensemble *e)
{
    e->is_cut = true;
    for (int i = 1; i < ZK_ENSEMBLE; i++)
        proxy_set(e->way[i], PROXY_BLACK_HOLE, 0);
}

/* Returns whether the server serves requests and is in contact with the
 * leader. */
static bool follows(const struct zk_server *s)
{
    char host[32];
    struct zk_hand *h;
    bool ok;

    snprintf(host, sizeof(host), "127.0.0.1:%d", s->port);
    h = zk_server_serves(s) ? zk_hand_open(host, 10000) : NULL;
    ok = h && !zk_hand_sync(h);
    zk_hand_close(h);
    return ok;
}

int zk_ensemble_heal(struct zk_ensemble *e)
{
    if (!e->is_cut)
        return 0;
    e->is_cut = false;
    for (int i = 1; i < ZK_ENSEMBLE; i++) {
        proxy_set(e->way[i], PROXY_PASS, 0);
        proxy_cut(e->way[i]);
    }
    return WAIT_FOR_MS(follows(&e->server[0]), SERVES_MS) ? 0 : -1;
}
