/* Which changes ZooKeeper reports to hf_watch_new(). */
#include "zk_faults.h"

#include "../any/watch.h"

#include <stdio.h>

GROUP("watch");

/* The session ends, and so do its watches at the server. The client's watch
 * (hf_watch_new) continues. */
CASE(test_watch_outlives_its_session)
{
    hf_lock *a = world_lock(w, w->near_url, 30000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    char path[128];
    struct Stat stat;
    struct seen s;
    unsigned calls = watch_taken(w, &s, a);

    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_stat(hand(w), path, &stat));
    do /* retries, as the client may reclaim its session first */
        zk_hand_close(zk_hand_steal(text_of("127.0.0.1:%d", w->zk->port),
                                    stat.ephemeralOwner));
    while (hf_lock_check(a) == 0 &&
           !WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, 3000));
    COMES(is_seen(&s, calls));
    hf_lock_release(a, NULL);
    hears(w, &s, b);
}

CASE(test_watch_needs_rights)
{
    hf_lock *a = world_near(w);
    struct seen s;

    world_near(w);
    OK(hf_lock_timed(a, 5000, &w->err));
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_READ);
    watch_is_refused(w, w->clients[1], "n", 0, HF_EAUTH, "READ");
    set_rights(w, NODE, ZOO_PERM_ALL);
    watch(w, 1, "n", 0, &s);
    OK(hf_lock_release(a, &w->err));
    hears(w, &s, a);
}

CASE(test_watch_of_a_prefix_is_refused)
{
    world_near(w);
    watch_is_refused(w, w->clients[0], "n", HF_WATCH_PREFIX, HF_ENOTSUP,
                     "recursive");
    watch_is_refused(w, w->clients[0], "a/locks", 0, HF_EINVAL, "locks");
}

CASE_IS(test_watch_again_and_again, watch_again_and_again(w, 0))
