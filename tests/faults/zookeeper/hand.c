/* Entries that an administrator deletes. */
#include "zk_faults.h"

#include <stdio.h>

GROUP("hand");

static void delete_last_entry(struct world *w)
{
    struct String_vector names = {0};
    const char *last = NULL;

    OK(zk_hand_children(hand(w), NODE, &names));
    for (int i = 0; i < names.count; i++)
        if (!last ||
            strcmp(strrchr(names.data[i], '-'), strrchr(last, '-')) > 0)
            last = names.data[i];
    assert_non_null(last);
    OK(zk_hand_delete(hand(w), text_of(NODE "/%s", last)));
    deallocate_String_vector(&names);
}

/* The second client in the queue has lost its entry. It is granted the lock
 * nevertheless as soon as the first entry is deleted, but it learns long before
 * its next renewal that the hold is lost. */
CASE(test_second_without_an_entry_is_told)
{
    hf_lock *a = deaf_lock(w), *b = deaf_lock(w), *c = deaf_lock(w);
    struct taker *t = taker_behind(w, a, b, 20000);

    COMES(zk_server_number(w->zk, "zk_watch_count") >= 1);
    delete_last_entry(w);
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, WAIT_LONG_MS);
    OK(hf_lock_timed(c, 5000, &w->err));
    COMES_MS(hf_lock_check(b) == HF_ELOST, 3000);
    OK(hf_lock_check(c));
    taker_end(t);
    assert_int_equal(t->release_rc, HF_ELOST);
    OK(hf_lock_release(c, &w->err));
}

static void join_queue(struct world *w, char *path, size_t size)
{
    static const char uuid[] = "00000000-0000-4000-8000-000000000001";

    OK(zk_hand_create(hand(w), text_of(NODE "/_c_%s-lock-", uuid), "",
                      ZOO_EPHEMERAL_SEQUENTIAL, path, size, NULL));
}

/* The second client in the queue has lost its entry. When the first entry is
 * deleted, the client's last proof of its session is old. The client lists the
 * entries, does not find its own and creates another one, but receives only the
 * reply to that create. It was next after the deleted entry, but its new entry
 * is behind others, so it must not acquire. */
CASE(test_second_with_another_entry_is_not_second)
{
    enum { OTHERS = 40 }; /* enough for a list that is cut before its end */
    char first[256], other[OTHERS][256];
    struct taker *t;
    hf_lock *b = world_far(w, 3000, 10000);

    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    join_queue(w, first, sizeof(first));
    t = taker_start(w, b, 30000);
    COMES(zk_server_number(w->zk, "zk_watch_count") >= 1);
    delete_last_entry(w);
    for (int i = 0; i < OTHERS; i++)
        join_queue(w, other[i], sizeof(other[i]));
    proxy_set(w->proxy, PROXY_DELAY, 1300);
    OK(zk_hand_delete(hand(w), first));
    world_has_entries(w, OTHERS + 1);
    proxy_set(w->proxy, PROXY_HALF_CLOSE, 1000);
    assert_true(NEVER_MS(taker_back(t), 1500));
    for (int i = 0; i < OTHERS; i++)
        OK(zk_hand_delete(hand(w), other[i]));
    taker_gets_it(t, 4000);
    COMES(!zk_hand_delete(hand(w), NODE));
}

/* Deletes only the node `_h_...`, which names the holder. The node `lock`
 * stays, and so does the session that owns both nodes. */
static void delete_holder(struct world *w)
{
    struct String_vector names = {0};
    char path[256] = "";

    OK(zk_hand_children(hand(w), NODE, &names));
    for (int i = 0; i < names.count; i++)
        if (strncmp(names.data[i], "_h_", 3) == 0)
            snprintf(path, sizeof(path), NODE "/%s", names.data[i]);
    deallocate_String_vector(&names);
    OK(zk_hand_delete(hand(w), path));
}

CASE(test_unfair_holder_is_deleted_alone)
{
    hf_lock *a = world_lock(w, w->zk->url, 1500, 5000, HF_UNFAIR);
    hf_lock *b = world_lock(w, w->zk->url, 30000, 5000, HF_UNFAIR);

    for (int renewed = 0; renewed < 2; renewed++) {
        OK(hf_lock_timed(a, 5000, &w->err));
        delete_holder(w);
        if (renewed)
            COMES(hf_lock_check(a) == HF_ELOST);
        EXPECT(HF_ELOST, hf_lock_release(a, NULL));
        world_free_for_all(w, b);
    }
}
