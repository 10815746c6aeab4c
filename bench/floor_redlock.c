/*
 * The floor (the least that a lock can cost) of Redlock: holdfast's own script
 * sent by hand. The same request goes to all servers at once, to each on its
 * own socket. The program waits until a majority has answered; the other
 * answers are read when they arrive. Also measures redsync and node-redlock, in
 * separate processes: the environment variable HOLDFAST_REDSYNC is the path of
 * the program of tests/interop/redlock, HOLDFAST_NODE_REDLOCK that of its
 * node/peer.js.
 */
#include "../tests/lib/redlock_servers.h"
#include "backends/redis/scripts.h"
#include "peers.h"
#include "ratios.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME "holdfast-floor"
#define RESERVE "holdfast:reserve:{" NAME "}"
#define AHEAD_US 500000ULL
#define NEVER "4000000000000000" /* us by the server's clock: year 2096 */

enum { MAJORITY = REDLOCK_SERVERS / 2 + 1 };

static struct redlock_servers servers;
static char url[256], hosts[160];

struct voter {
    char in[1024];
    size_t len;
    int late; /* answers that are no longer waited for */
};

struct assembly {
    struct pollfd polled[REDLOCK_SERVERS];
    struct voter voter[REDLOCK_SERVERS];
    unsigned long long value, token;
};

static int dial(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        perror("ratios: connect");
        abort();
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

static int send_all(const struct assembly *a, const char *text, int len)
{
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        if (send(a->polled[i].fd, text, (size_t)len, MSG_NOSIGNAL) != len)
            return -1;
    return 0;
}

/* Sends the request to all servers. The letter `op' is g for a grant, or d for
 * a drop (redlock.h). */
static int ask(const struct assembly *a, char op)
{
    bool is_grant = op == 'g';
    char value[64], number[24], text[1024];
    int value_len =
        snprintf(value, sizeof value,
                 "00000000-0000-4000-8000-000000000000:%llu", a->value);
    int number_len =
        snprintf(number, sizeof number, "%llu", is_grant ? AHEAD_US : a->token);
    int len =
        snprintf(text, sizeof text,
                 "*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n"
                 "$%zu\r\n" NAME "\r\n$%zu\r\n" RESERVE "\r\n"
                 "$1\r\n%c\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n"
                 "$5\r\n30000\r\n$8\r\n86400000\r\n%s",
                 is_grant ? 11 : 10, hf__rd_script[RD_VOTE].digest,
                 strlen(NAME), strlen(RESERVE), op, value_len, value,
                 number_len, number, is_grant ? "$16\r\n" NEVER "\r\n" : "");

    return send_all(a, text, len);
}

/* Returns the end of the first answer, or NULL if the answer is not complete.
 * An answer is one line, or *N and N more lines. */
static char *end_of(struct voter *v)
{
    int lines = v->len > 1 && v->in[0] == '*' ? v->in[1] - '0' + 1 : 1;
    char *at = v->in;

    for (int i = 0; i < lines && at; i++) {
        at = memchr(at, '\n', (size_t)(v->in + v->len - at));
        at = at ? at + 1 : NULL;
    }
    return at;
}

/* Returns whether the answer is a grant or a successful drop. The last number
 * of a grant is a base (redlock.h); sets a->token to one more than the highest
 * base. */
static bool is_yes(struct assembly *a, const struct voter *v)
{
    unsigned long long what, now, base;

    if (sscanf(v->in, "*3\r\n:%llu\r\n:%llu\r\n:%llu", &what, &now, &base) ==
        3) {
        if (base >= a->token)
            a->token = base + 1;
        return what == RD_GRANTED;
    }
    return strncmp(v->in, ":1\r\n", 4) == 0;
}

/* Reads what server i has sent. Returns how many of its answers count as votes
 * (late answers do not), or -1. */
static int hear(struct assembly *a, int i)
{
    struct voter *v = &a->voter[i];
    ssize_t n =
        recv(a->polled[i].fd, v->in + v->len, sizeof v->in - 1 - v->len, 0);
    int votes = 0;
    char *end;

    if (n <= 0)
        return -1;
    v->len += (size_t)n;
    v->in[v->len] = '\0';
    while ((end = end_of(v))) {
        if (v->late > 0)
            v->late--;
        else if (is_yes(a, v))
            votes++;
        else {
            fprintf(stderr, "ratios: a server says %s\n", v->in);
            return -1;
        }
        v->len -= (size_t)(end - v->in);
        memmove(v->in, end, v->len + 1);
    }
    return votes;
}

/* Sends one request to all servers, and waits until a majority has answered
 * yes. */
static int vote(struct assembly *a, char op)
{
    bool has_voted[REDLOCK_SERVERS] = {0};
    int votes = 0, n;

    if (ask(a, op) < 0)
        return -1;
    while (votes < MAJORITY) {
        if (poll(a->polled, REDLOCK_SERVERS, -1) < 0)
            return -1;
        for (int i = 0; i < REDLOCK_SERVERS; i++) {
            if (!a->polled[i].revents)
                continue;
            n = hear(a, i);
            if (n < 0)
                return -1;
            has_voted[i] |= n > 0;
            votes += n;
        }
    }
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        a->voter[i].late += !has_voted[i];
    return 0;
}

static int vote_step(void *arg)
{
    struct assembly *a = arg;

    for (int i = 0; i < 1000; i++) {
        a->value++;
        a->token = 0;
        if (vote(a, 'g') < 0 || vote(a, 'd') < 0)
            return -1;
    }
    return 0;
}

double floor_redlock(const char *any)
{
    struct assembly a = {.value = 0};
    double ns;

    (void)any;
    for (int i = 0; i < REDLOCK_SERVERS; i++) {
        struct redis_server *s = &servers.server[i];

        redis_server_do(s, "SCRIPT LOAD %s", hf__rd_script[RD_VOTE].text);
        a.polled[i] = (struct pollfd){dial(s->port), POLLIN, 0};
    }
    ns = ns_per_pair(vote_step, &a);
    for (int i = 0; i < REDLOCK_SERVERS; i++) {
        /* Reads the late answers before the socket is closed. If a socket is
         * closed with unread data, its connection is reset, and the server may
         * lose the last request, too. */
        while (ns > 0 && a.voter[i].late > 0 && hear(&a, i) == 0)
            ;
        close(a.polled[i].fd);
    }
    return ns;
}

enum other { REDSYNC, NODE_4, NODE_5, OTHERS };

static struct peers peers[OTHERS];

static bool command_of(enum other other, const char *argv[8])
{
    const char *redsync = getenv("HOLDFAST_REDSYNC");
    const char *node = getenv("HOLDFAST_NODE_REDLOCK");
    int n = 0;

    if (!redsync || !node) {
        fprintf(stderr, "ratios: HOLDFAST_REDSYNC or HOLDFAST_NODE_REDLOCK is "
                        "not set\n");
        return false;
    }
    if (other == REDSYNC) {
        argv[n++] = redsync;
    } else {
        argv[n++] = "node";
        argv[n++] = node;
        argv[n++] = other == NODE_4 ? "4" : "5";
    }
    argv[n++] = hosts;
    argv[n++] = "30000";
    argv[n] = NULL;
    return true;
}

static double pair_of(enum other other)
{
    const char *argv[8];

    return command_of(other, argv)
               ? peers_race(&peers[other], argv, 1, 3 * RUN_MS)
               : -1;
}

double floor_redsync_pair(const char *any)
{
    (void)any;
    return pair_of(REDSYNC);
}

double floor_node4_pair(const char *any)
{
    (void)any;
    return pair_of(NODE_4);
}

double floor_node5_pair(const char *any)
{
    (void)any;
    return pair_of(NODE_5);
}

/* Lets eight processes take turns. Returns pairs per second; or, with
 * wants_p99, the 99th percentile of the waits in milliseconds.
 *
 * There is no measurement of node-redlock 5: if an acquire gets no majority, it
 * keeps the votes that it got until its last try has failed, so eight processes
 * may lock each other out for minutes. */
static double turns_of(enum other other, bool wants_p99)
{
    const struct peers_turns turns = {TURNS_MS, TURNS_HOLD_MS, TURNS_THINK_MS};
    const char *argv[8];
    double p99_us = 0, rate;

    if (!command_of(other, argv))
        return -1;
    rate = peers_turns(&peers[other], argv, PEERS, &turns, &p99_us);
    return rate < 0 ? -1 : wants_p99 ? p99_us / 1000 : rate;
}

double floor_redsync_turns(const char *any)
{
    (void)any;
    return turns_of(REDSYNC, false);
}

double floor_redsync_p99(const char *any)
{
    (void)any;
    return turns_of(REDSYNC, true);
}

double floor_node4_turns(const char *any)
{
    (void)any;
    return turns_of(NODE_4, false);
}

double floor_node4_p99(const char *any)
{
    (void)any;
    return turns_of(NODE_4, true);
}

int redlock_start(const char **out)
{
    size_t len = 0;

    if (redlock_servers_start(&servers) < 0)
        return -1;
    redlock_servers_url(&servers, url, sizeof url, "");
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        len +=
            (size_t)snprintf(hosts + len, sizeof hosts - len, "%s127.0.0.1:%d",
                             i ? "," : "", servers.server[i].port);
    *out = url;
    return 0;
}

void redlock_end(void)
{
    redlock_servers_end(&servers);
}
