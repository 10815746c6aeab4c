/* Latches: another client acts between two requests of one call, the replies to
 * these requests are lost, or the server that is read is behind the others. */
#include "zk_faults.h"

#include <dlfcn.h>
#include <stdio.h>

#define NAME "/l"
#define LATCH NAME "/latch"
#define LOCK NAME "/_c_00000000-0000-4000-8000-000000000001-lock-0000000007"

/* Functions to call before or after certain requests of the client. The thread
 * that drives the client calls them while the case waits for its own call. */
static struct {
    struct world *w; /* atomic; NULL if nothing happens */
    const zhandle_t *hand;
    void (*before_multi[2])(struct world *);
    void (*after_multi[2])(struct world *);
    void (*before_mark_deleted)(struct world *);
    void (*after_mark_deleted)(struct world *); /* first mark only */
    unsigned multis, deletes;                   /* atomic */
    unsigned stale_reads; /* atomic: how many reads will still miss the latch */
} meddler;

static void meddle(struct world *w)
{
    if (w)
        meddler.hand = zk_hand_handle(hand(w));
    __atomic_store_n(&meddler.w, w, __ATOMIC_RELEASE);
}

static struct world *meddled_with(const zhandle_t *zh)
{
    struct world *w = __atomic_load_n(&meddler.w, __ATOMIC_ACQUIRE);

    return w && zh != meddler.hand ? w : NULL;
}

static unsigned next(unsigned *number)
{
    return __atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static unsigned read_number(const unsigned *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

typedef int multi_fn(zhandle_t *, int, const zoo_op_t *, zoo_op_result_t *,
                     void_completion_t, const void *);

__attribute__((visibility("default"))) int
zoo_amulti(zhandle_t *zh, int count, const zoo_op_t *ops,
           zoo_op_result_t *results, void_completion_t done, const void *arg)
{
    multi_fn *real = (multi_fn *)dlsym(RTLD_NEXT, "zoo_amulti");
    struct world *w = meddled_with(zh);
    unsigned i = w && count > 1 ? next(&meddler.multis) : 2;
    int rc;

    if (i < 2 && meddler.before_multi[i])
        meddler.before_multi[i](w);
    rc = real(zh, count, ops, results, done, arg);
    if (i < 2 && meddler.after_multi[i])
        meddler.after_multi[i](w);
    return rc;
}

typedef int delete_fn(zhandle_t *, const char *, int, void_completion_t,
                      const void *);

__attribute__((visibility("default"))) int
zoo_adelete(zhandle_t *zh, const char *path, int version,
            void_completion_t done, const void *arg)
{
    delete_fn *real = (delete_fn *)dlsym(RTLD_NEXT, "zoo_adelete");
    struct world *w = strstr(path, "/_d_") ? meddled_with(zh) : NULL;
    int rc;

    if (w && next(&meddler.deletes))
        w = NULL;
    if (w && meddler.before_mark_deleted)
        meddler.before_mark_deleted(w);
    rc = real(zh, path, version, done, arg);
    if (w && meddler.after_mark_deleted)
        meddler.after_mark_deleted(w);
    return rc;
}

typedef int get_fn(zhandle_t *, const char *, watcher_fn, void *,
                   data_completion_t, const void *);

/* Simulates reads from a server that has not applied the creation of the latch
 * yet, although another server has. */
__attribute__((visibility("default"))) int
zoo_awget(zhandle_t *zh, const char *path, watcher_fn watcher, void *context,
          data_completion_t done, const void *arg)
{
    get_fn *real = (get_fn *)dlsym(RTLD_NEXT, "zoo_awget");

    if (meddled_with(zh) && strcmp(path, LATCH) == 0 &&
        read_number(&meddler.stale_reads)) {
        __atomic_sub_fetch(&meddler.stale_reads, 1, __ATOMIC_RELAXED);
        path = NAME "/none";
    }
    return real(zh, path, watcher, context, done, arg);
}

static int begin(struct world *w)
{
    memset(&meddler, 0, sizeof(meddler));
    return 0;
}

static int end(struct world *w)
{
    meddle(NULL);
    return 0;
}

GROUP("latch", .begin = begin, .end = end);

static void must(bool done)
{
    if (!done)
        abort();
}

static void lock(struct world *w)
{
    must(!zk_hand_create(hand(w), LOCK, "", ZOO_EPHEMERAL, NULL, 0, NULL));
}

static void unlock(struct world *w)
{
    must(!zk_hand_delete(hand(w), LOCK));
}

static bool is_set(struct world *w)
{
    return zk_hand_stat(hand(w), LATCH, NULL) == 0;
}

/* Counts the latch down as another client would. The round stays the same. */
static void count_down(struct world *w)
{
    char data[128] = "", *five;

    must(!zk_hand_get(hand(w), LATCH, data, sizeof(data)));
    five = strchr(data, '5');
    must(five != NULL);
    *five = '4';
    must(!zk_hand_set(hand(w), LATCH, data));
}

static void swallow(struct world *w)
{
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
}

static void heal_when_undone(struct world *w)
{
    must(WAIT_FOR(!is_set(w)));
    unlock(w);
    world_heal(w);
}

static void go_deaf(struct world *w)
{
    proxy_set(w->proxy, PROXY_DEAF, 0);
}

/* Cuts the connection and lets new ones pass. After that, everything that was
 * sent on the old connection is certainly lost. */
static void cut_and_heal(struct world *w)
{
    proxy_cut(w->proxy);
    proxy_set(w->proxy, PROXY_PASS, 0);
}

static hf_latch *far_latch(struct world *w)
{
    hf_latch *latch;

    world_far(w, 30000, 10000);
    latch = world_latch(w, w->clients[0], "l");
    /* This node is not a container, so that the server does not remove it. */
    OK(zk_hand_create(hand(w), NAME, "", 0, NULL, 0, NULL));
    return latch;
}

static void drop_latch(struct world *w, hf_latch *latch)
{
    meddle(NULL);
    world_ends(w, latch);
    COMES(!zk_hand_delete(hand(w), NAME));
    world_is_clean(w);
}

/* The client finds a lock next to the latch that it has just set, and must
 * remove the latch. In the meantime another client has counted the latch
 * down. */
CASE(test_latch_counted_before_it_is_taken_back)
{
    hf_latch *latch = far_latch(w);

    meddler.before_multi[0] = lock;
    meddler.before_multi[1] = count_down;
    meddle(w);
    EXPECT(HF_EMISMATCH, hf_latch_set(latch, 5, &w->err));
    assert_int_equal(read_number(&meddler.multis), 2);
    assert_false(is_set(w));
    unlock(w);
    drop_latch(w, latch);
}

/* As in the case before, the client must remove the latch, but the reply to the
 * removal is lost. Then the lock is removed. The retry must set the latch
 * again; it must not report success only because the latch was set before. */
CASE(test_latch_taken_back_unheard)
{
    hf_latch *latch = far_latch(w);

    meddler.before_multi[0] = lock;
    meddler.before_multi[1] = swallow;
    meddler.after_multi[1] = heal_when_undone;
    meddle(w);
    OK(hf_latch_set(latch, 1, &w->err));
    assert_true(read_number(&meddler.multis) > 1);
    meddle(NULL);
    assert_true(is_set(w));
    OK(hf_latch_down(latch, NULL, &w->err));
    assert_false(is_set(w));
    drop_latch(w, latch);
}

/* The connection breaks when the client must delete its mark: the client
 * deletes the mark after reconnecting. */
CASE(test_latch_mark_is_deleted_at_last)
{
    hf_latch *latch = far_latch(w);

    meddler.before_mark_deleted = go_deaf;
    meddler.after_mark_deleted = cut_and_heal;
    meddle(w);
    OK(hf_latch_set(latch, 1, &w->err));
    COMES(zk_server_children(w->zk, NAME) == 1);
    assert_true(read_number(&meddler.deletes) > 1);
    assert_true(is_set(w));
    OK(hf_latch_down(latch, NULL, &w->err));
    drop_latch(w, latch);
}

CASE(test_latch_read_at_a_server_that_is_behind)
{
    hf_latch *latch = far_latch(w);
    uint64_t count = 0;

    OK(hf_latch_set(latch, 2, &w->err));
    meddle(w);
    __atomic_store_n(&meddler.stale_reads, 2, __ATOMIC_RELAXED);
    EXPECT(HF_EBUSY, hf_latch_wait(latch, 0, NULL, &w->err));
    __atomic_store_n(&meddler.stale_reads, 2, __ATOMIC_RELAXED);
    OK(hf_latch_get(latch, &count, &w->err));
    assert_int_equal(count, 2);
    for (uint64_t left = 2; left--;) {
        __atomic_store_n(&meddler.stale_reads, 2, __ATOMIC_RELAXED);
        OK(hf_latch_down(latch, &count, &w->err));
        assert_int_equal(count, left);
    }
    assert_int_equal(read_number(&meddler.stale_reads), 0);
    meddle(NULL);
    assert_false(is_set(w));
    OK(hf_latch_wait(latch, 0, NULL, &w->err));
    OK(hf_latch_get(latch, &count, &w->err));
    assert_int_equal(count, 0);
    drop_latch(w, latch);
}
