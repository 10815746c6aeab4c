/*
 * The floor (the least that a lock can cost) on ZooKeeper: the requests of a
 * pair (one acquire and its release), sent by hand, through libzookeeper_st,
 * blocking, in one thread. The acquire creates an entry and reads the queue in
 * one packet. The release deletes the entry, with or without waiting for the
 * answer. Also measures Curator, in separate processes that are started once:
 * the environment variable HOLDFAST_CURATOR is the class path of
 * tests/interop/curator.
 */
#include "../tests/lib/zk_hand.h"
#include "peers.h"
#include "ratios.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE "/holdfast-floor"
#define ENTRY NODE "/_c_00000000-0000-4000-8000-000000000000-lock-"
#define DATA "1\nhost\nlabel"

struct floor {
    struct zk_hand *hand;
    char last[128], path[128]; /* the entry to delete, and the entry that was
                                  created */
};

static int answered(int rc, const char *what)
{
    if (rc)
        fprintf(stderr, "zookeeper: %s: %s\n", what, zerror(rc));
    return rc ? -1 : 0;
}

/* Sends the create and the read of the queue in one packet, together with the
 * delete that nowait_step() may have begun before. */
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

static double curator(const char *url, int n)
{
    static struct peers peers;
    const char *path = getenv("HOLDFAST_CURATOR");
    const char *const argv[] = {
        "java", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx128m", "-cp",
        path,   "CuratorPeer",      hosts_of(url),      "30000",    NULL};

    if (!path) {
        fprintf(stderr, "ratios: HOLDFAST_CURATOR is not set\n");
        return -1;
    }
    /* Java is slow at first, so the processes run for three seconds before the
     * measurement. */
    return peers_race(&peers, argv, n, 3000);
}

double floor_curator_pair(const char *url)
{
    return curator(url, 1);
}

double floor_curator_eight(const char *url)
{
    return curator(url, PEERS);
}

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
    return most < 0 ? -1 : most - 1; /* the holder's node is not counted */
}
