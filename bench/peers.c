#include "peers.h"

#include "ratios.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int start_peer(struct peer *p, const char *const *argv)
{
    int to[2], from[2];
    char line[256];

    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        return -1;
    if (fork() == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    p->to = fdopen(to[1], "w");
    p->from = fdopen(from[0], "r");
    return p->from && fgets(line, sizeof line, p->from) ? 0 : -1;
}

static double race(struct peer *peer, int n, int ms)
{
    unsigned long long pairs, us, all = 0, longest = 0;
    char line[256];

    for (int i = 0; i < n; i++) {
        fprintf(peer[i].to, "race fair holdfast-peers 1 %d\n", ms);
        fflush(peer[i].to);
    }
    for (int i = 0; i < n; i++) {
        if (!fgets(line, sizeof line, peer[i].from) ||
            sscanf(line, "done pairs=%llu us=%llu", &pairs, &us) != 2)
            return -1;
        all += pairs;
        longest = us > longest ? us : longest;
    }
    return all ? 1000.0 * (double)longest / (double)all : -1;
}

static int start(struct peers *peers, const char *const *argv, int n)
{
    for (int i = 0; i < n; i++)
        if (!peers->peer[i].to && start_peer(&peers->peer[i], argv) < 0)
            return -1;
    return 0;
}

double peers_race(struct peers *peers, const char *const *argv, int n,
                  int warm_ms)
{
    if (start(peers, argv, n) < 0)
        return -1;
    if (!peers->is_warm[n] && race(peers->peer, n, warm_ms) < 0)
        return -1;
    peers->is_warm[n] = true;
    return race(peers->peer, n, 3 * RUN_MS);
}

/* Reads the waits of one process from its answer, in which they follow the
 * counts; they are in microseconds. */
static void add_waits(struct hist *waits, const char *line)
{
    const char *at = strstr(line, " waits");
    char *end;
    long long us;

    for (at = at ? at + strlen(" waits") : "";; at = end) {
        us = strtoll(at, &end, 10);
        if (end == at)
            return;
        hist_add(waits, us * 1000);
    }
}

static double take_turns(struct peer *peer, int n,
                         const struct peers_turns *turns, struct hist *waits)
{
    unsigned long long pairs, us, all = 0, longest = 0;
    char *line = NULL;
    size_t size = 0;
    bool ok = true;

    for (int i = 0; i < n; i++) {
        fprintf(peer[i].to, "turns unfair holdfast-peers %d %d %d\n", turns->ms,
                turns->hold_ms, turns->think_ms);
        fflush(peer[i].to);
    }
    for (int i = 0; i < n && ok; i++) {
        ok = getline(&line, &size, peer[i].from) > 0 &&
             sscanf(line, "done pairs=%llu us=%llu", &pairs, &us) == 2;
        if (!ok)
            break;
        add_waits(waits, line);
        all += pairs;
        longest = us > longest ? us : longest;
    }
    if (!ok)
        fprintf(stderr, "ratios: a peer says %s\n", line ? line : "nothing");
    free(line);
    return ok ? 1e6 * (double)all / (double)longest : -1;
}

double peers_turns(struct peers *peers, const char *const *argv, int n,
                   const struct peers_turns *turns, double *p99_us)
{
    struct hist *waits = calloc(1, sizeof *waits);
    double rate = -1;

    if (waits && start(peers, argv, n) == 0) {
        rate = take_turns(peers->peer, n, turns, waits);
        *p99_us = hist_quantile_us(waits, 0.99);
    }
    free(waits);
    return rate;
}
