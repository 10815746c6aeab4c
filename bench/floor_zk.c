/*
 * The floor on ZooKeeper: the same requests by hand, through libzookeeper_st,
 * blocking, one thread: an entry is created and the queue read in one go, the
 * entry deleted again, waited for or not. And Curator, in processes of its own
 * that are started once: HOLDFAST_CURATOR is the class path of
 * tests/interop/curator.
 */
#include "../tests/lib/zk_hand.h"
#include "ratios.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NODE "/holdfast-floor"
#define ENTRY NODE "/_c_00000000-0000-4000-8000-000000000000-lock-"
#define DATA "1\nhost\nlabel"

struct floor {
    struct zk_hand *hand;
    char last[128], path[128]; /* to be deleted, created */
};

static int answered(int rc, const char *what)
{
    if (rc)
        fprintf(stderr, "zookeeper: %s: %s\n", what, zerror(rc));
    return rc ? -1 : 0;
}

/* In one packet with what was begun before. */
static int take(struct floor *f)
{
    struct String_vector names = {0};
    int rc;

    zk_hand_begin_create(f->hand, ENTRY, DATA, ZOO_EPHEMERAL_SEQUENTIAL,
                         f->path, sizeof f->path);
    zk_hand_begin_children(f->hand, NODE, &names);
    rc = zk_hand_await(f->hand);
    deallocate_String_vector(&names);
    return answered(rc, "create");
}

static int waited_step(void *arg)
{
    struct floor *f = arg;

    for (int i = 0; i < 1000; i++)
        if (take(f) || answered(zk_hand_delete(f->hand, f->path), "delete"))
            return -1;
    return 0;
}

static int nowait_step(void *arg)
{
    struct floor *f = arg;

    for (int i = 0; i < 1000; i++) {
        if (take(f))
            return -1;
        memcpy(f->last, f->path, sizeof f->last);
        zk_hand_begin_delete(f->hand, f->last);
    }
    return answered(zk_hand_await(f->hand), "delete");
}

static const char *hosts_of(const char *url)
{
    return url + strlen("zk://");
}

static double floor_of(const char *url, int (*step)(void *arg))
{
    struct floor f = {.hand = zk_hand_open(hosts_of(url), 30000)};
    double ns;

    if (!f.hand)
        return -1;
    zk_hand_create(f.hand, NODE, NULL, ZOO_CONTAINER, NULL, 0, NULL);
    ns = ns_per_pair(step, &f);
    zk_hand_close(f.hand);
    return ns;
}

double floor_zk_waited(const char *url)
{
    return floor_of(url, waited_step);
}

double floor_zk_nowait(const char *url)
{
    return floor_of(url, nowait_step);
}

/* ---- Curator ------------------------------------------------------------- */

enum { PEERS = 8, WARM_MS = 3000 };

struct peer {
    FILE *to, *from;
};

static struct peer peers[PEERS];

static void run_peer(const char *url, const char *path)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("java", "java", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx128m",
           "-cp", path, "CuratorPeer", hosts_of(url), "30000", (char *)NULL);
    _exit(127);
}

static int start_peer(struct peer *p, const char *url, const char *path)
{
    int to[2], from[2];
    char line[256];

    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        return -1;
    if (fork() == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        run_peer(url, path);
    }
    close(to[0]);
    close(from[1]);
    p->to = fdopen(to[1], "w");
    p->from = fdopen(from[0], "r");
    return p->from && fgets(line, sizeof line, p->from) ? 0 : -1;
}

/* All of them together on one lock: nanoseconds a pair. */
static double race(int n, int ms)
{
    unsigned long long pairs, us, all = 0, longest = 0;
    char line[256];

    for (int i = 0; i < n; i++) {
        fprintf(peers[i].to, "race fair holdfast-curator 1 %d\n", ms);
        fflush(peers[i].to);
    }
    for (int i = 0; i < n; i++) {
        if (!fgets(line, sizeof line, peers[i].from) ||
            sscanf(line, "done pairs=%llu us=%llu", &pairs, &us) != 2)
            return -1;
        all += pairs;
        longest = us > longest ? us : longest;
    }
    return all ? 1000.0 * (double)longest / (double)all : -1;
}

static double curator(const char *url, int n)
{
    static bool is_warm[PEERS + 1];
    const char *path = getenv("HOLDFAST_CURATOR");

    if (!path) {
        fprintf(stderr, "ratios: HOLDFAST_CURATOR is not set\n");
        return -1;
    }
    for (int i = 0; i < n; i++)
        if (!peers[i].to && start_peer(&peers[i], url, path) < 0)
            return -1;
    /* Java is slow until it has seen some of its code run. */
    if (!is_warm[n] && race(n, WARM_MS) < 0)
        return -1;
    is_warm[n] = true;
    return race(n, 3 * RUN_MS);
}

double floor_curator_pair(const char *url)
{
    return curator(url, 1);
}

double floor_curator_eight(const char *url)
{
    return curator(url, PEERS);
}

/* ---- threads that wait --------------------------------------------------- */

enum { THREADS = 16, WAIT_MS = 1000 };

static void *wait_in_vain(void *arg)
{
    hf_lock_timed(arg, WAIT_MS, NULL);
    return NULL;
}

static int most_children(struct zk_hand *hand, const pthread_t *thread)
{
    struct String_vector names = {0};
    int most = 0;

    while (pthread_tryjoin_np(thread[0], NULL) != 0) {
        if (zk_hand_children(hand, NODE, &names))
            return -1;
        most = names.count > most ? names.count : most;
        deallocate_String_vector(&names);
    }
    for (int i = 1; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return most;
}

double zk_waiting_nodes(const char *url)
{
    struct zk_hand *hand = zk_hand_open(hosts_of(url), 30000);
    pthread_t thread[THREADS];
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    int most = -1;

    if (!hand)
        return -1;
    zk_hand_create(hand, NODE, NULL, ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(hand, ENTRY, DATA, ZOO_EPHEMERAL_SEQUENTIAL, NULL, 0, NULL);
    if (hf_open(url, NULL, &client, NULL) == HF_OK &&
        hf_lock_new(client, NODE + 1, HF_CSTRING, NULL, &lock, NULL) == HF_OK) {
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&thread[i], NULL, wait_in_vain, lock))
                abort();
        most = most_children(hand, thread);
    }
    hf_close(client);
    hf_lock_free(lock);
    zk_hand_close(hand);
    return most < 0 ? -1 : most - 1; /* without the holder's */
}
