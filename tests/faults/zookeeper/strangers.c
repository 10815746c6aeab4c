/*
 * Children of unknown form. The client asks the server about each of them. In
 * the meantime the child is created or deleted, or the client cancels its
 * acquire.
 */
#include "zk_faults.h"

#include <dlfcn.h>
#include <stdio.h>

GROUP("strangers");

/* The node of a permit of a kazoo semaphore. Its name has no sequence number,
 * so a node that is removed and created again has the same name. */
#define STRANGER NODE "/00000000000040008000000000000001"

/* The functions to call just before the client sends a request. The thread that
 * drives the client calls them. Therefore no other thread may use hand(w) while
 * `w` is set. */
static struct {
    struct world *w; /* atomic; NULL if nothing happens */
    const zhandle_t *hand;
    void (*before_exists)(struct world *);
    void (*before_list)(struct world *);
    int times;
} meddler;

static void meddle(struct world *w, void (*before_exists)(struct world *),
                   void (*before_list)(struct world *))
{
    meddler.before_exists = before_exists;
    meddler.before_list = before_list;
    meddler.times = 0;
    meddler.hand = zk_hand_handle(hand(w));
    __atomic_store_n(&meddler.w, w, __ATOMIC_RELEASE);
}

static void leave_alone(void)
{
    __atomic_store_n(&meddler.w, NULL, __ATOMIC_RELEASE);
}

static struct world *meddled_with(const zhandle_t *zh)
{
    struct world *w = __atomic_load_n(&meddler.w, __ATOMIC_ACQUIRE);

    return w && zh != meddler.hand ? w : NULL;
}

typedef int exists_fn(zhandle_t *, const char *, watcher_fn, void *,
                      stat_completion_t, const void *);

__attribute__((visibility("default"))) int
zoo_awexists(zhandle_t *zh, const char *path, watcher_fn watcher, void *context,
             stat_completion_t done, const void *arg)
{
    exists_fn *real = (exists_fn *)dlsym(RTLD_NEXT, "zoo_awexists");
    struct world *w = meddled_with(zh);

    if (w && meddler.before_exists && strcmp(path, STRANGER) == 0)
        meddler.before_exists(w);
    return real(zh, path, watcher, context, done, arg);
}

typedef int list_fn(zhandle_t *, const char *, watcher_fn, void *,
                    strings_completion_t, const void *);

__attribute__((visibility("default"))) int
zoo_awget_children(zhandle_t *zh, const char *path, watcher_fn watcher,
                   void *context, strings_completion_t done, const void *arg)
{
    list_fn *real = (list_fn *)dlsym(RTLD_NEXT, "zoo_awget_children");
    struct world *w = meddled_with(zh);

    if (w && meddler.before_list && strcmp(path, NODE) == 0)
        meddler.before_list(w);
    return real(zh, path, watcher, context, done, arg);
}

static void come(struct world *w)
{
    create_below(w, NODE, STRANGER, ZOO_EPHEMERAL, NULL, 0);
}

static void go(struct world *w)
{
    if (zk_hand_delete(hand(w), STRANGER))
        abort(); /* assertions work only on the case's thread */
}

static void keep_back(struct world *w)
{
    proxy_hoard(w->proxy);
}

static uint64_t answered;

static void is_asked_for(struct world *w)
{
    meddler.times++;
    answered = proxy_answered(w->proxy);
}

static void keep_back_list(struct world *w)
{
    if (meddler.times && WAIT_FOR(proxy_answered(w->proxy) > answered))
        proxy_hoard(w->proxy);
}

static void note(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

static bool is_over(hf_client *c, const int *result)
{
    hf_client_dispatch(c);
    return *result <= 0;
}

static hf_lock *far_handle(struct world *w, enum hf_fairness fairness)
{
    world_far(w, 30000, 5000);
    OK(hf_lock_free(w->locks[0]));
    w->locks[0] = NULL;
    OK(hf_lock_new(
        w->clients[0], "n", 1,
        KIND(HF_MUTEX, .fairness = fairness, .flags = HF_OWNER_HANDLE),
        &w->locks[0], &w->err));
    return w->locks[0];
}

/* The client cancels its acquire while its request is held back, and the
 * request reaches the server afterwards. */
static void gives_up(struct world *w, hf_lock *a)
{
    int result = 1;

    OK(hf_lock_acquire_async(a, NULL, note, &result, &w->err));
    COMES(proxy_hoarded(w->proxy) > 0);
    leave_alone();
    OK(hf_lock_cancel(a));
    COMES(is_over(w->clients[0], &result));
    assert_int_equal(result, HF_ECANCELED);
    proxy_deliver(w->proxy);
}

static void is_refused(struct world *w, hf_lock *a)
{
    EXPECT(HF_EMISMATCH, hf_lock_timed(a, WAIT_LONG_MS, &w->err));
    expect_words(w->err.text, STRANGER + strlen(NODE) + 1);
}

static void minds_after_giving_up(struct world *w, enum hf_fairness fairness)
{
    hf_lock *a = far_handle(w, fairness);

    come(w);
    meddle(w, keep_back, NULL);
    gives_up(w, a);
    is_refused(w, a);
    is_refused(w, a);
    go(w);
    world_free_for_all(w, a);
}

CASE_IS(test_stranger_asked_for_in_vain, minds_after_giving_up(w, HF_FAIR))
CASE_IS(test_unfair_stranger_asked_for_in_vain,
        minds_after_giving_up(w, HF_UNFAIR))

/* The client receives the reply about the child of unknown form and then gives
 * up. Its next attempt must not use that reply, which is stale by then. */
CASE(test_stranger_of_an_earlier_question)
{
    hf_lock *a = far_handle(w, HF_FAIR);

    come(w);
    meddle(w, is_asked_for, keep_back_list);
    gives_up(w, a);
    go(w);
    world_free_for_all(w, a);
}

static void come_again(struct world *w)
{
    zk_hand_create(hand(w), STRANGER, "", ZOO_EPHEMERAL, NULL, 0, NULL);
}

/* The child of unknown form is removed whenever the client asks about it, and
 * is created again behind the client's entry. The client gets the lock. At its
 * next attempt the child is in front of the client's entry, and must not count
 * as a node that was found to be harmless. */
static void minds_its_return(struct world *w, hf_lock *a)
{
    come(w);
    meddle(w, go, come_again);
    OK(hf_lock_timed(a, WAIT_LONG_MS, &w->err));
    leave_alone();
    come_again(w);
    OK(hf_lock_release(a, &w->err));
    is_refused(w, a);
    is_refused(w, a);
    go(w);
    world_free_for_all(w, a);
    world_is_clean(w);
}

CASE_IS(test_stranger_is_back, minds_its_return(w, world_near(w)))
CASE_IS(test_unfair_stranger_is_back,
        minds_its_return(w, world_lock(w, w->near_url, 30000, 5000, HF_UNFAIR)))

CASE(test_semaphore_stranger_is_back)
{
    world_near(w);
    minds_its_return(w, world_change(w, 0, HF_SEMAPHORE, 2));
}

static const char *lasting(int i, char path[64])
{
    snprintf(path, 64, NODE "/%032x", i);
    return path;
}

static void one_more(struct world *w)
{
    char path[64];

    if (zk_hand_create(hand(w), lasting(meddler.times++, path), "", 0, NULL, 0,
                       NULL))
        abort();
}

/* Other locks, whose names begin with this lock's name and a slash, are created
 * all the time: acquires succeed nevertheless. */
static void comes_to_rest(struct world *w, hf_lock *a)
{
    char path[64];

    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    for (int i = 0; i < 2; i++) {
        meddle(w, NULL, one_more);
        if (hf_lock_timed(a, WAIT_LONG_MS, &w->err))
            fail_msg("%s", w->err.text);
        leave_alone();
        OK(hf_lock_release(a, &w->err));
        assert_true(meddler.times > 0);
        while (meddler.times)
            OK(zk_hand_delete(hand(w), lasting(--meddler.times, path)));
    }
    COMES(!zk_hand_delete(hand(w), NODE));
}

CASE_IS(test_strangers_all_the_time,
        comes_to_rest(w, world_lock(w, w->near_url, 30000, 5000, HF_FAIR)))
CASE_IS(test_unfair_strangers_all_the_time,
        comes_to_rest(w, world_lock(w, w->near_url, 30000, 5000, HF_UNFAIR)))
