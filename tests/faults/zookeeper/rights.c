/* Who may do what: users that are kept apart, rights that are taken away. */
#include "zk_faults.h"

#include <stdio.h>

/* ---- users ------------------------------------------------------------- */

static hf_client *open_at(struct world *w, const char *user, const char *path)
{
    hf_client *c = NULL;
    char url[128];

    snprintf(url, sizeof(url), "zk://%s@127.0.0.1:%d%s", user, w->zk->port,
             path);
    if (hf_open(url, NULL, &c, &w->err))
        fail_msg("%s", w->err.text);
    return c;
}

static hf_client *open_as(struct world *w, const char *user)
{
    return open_at(w, user, "");
}

static int try_as(struct world *w, hf_client *c, const char *name)
{
    hf_lock *lock;
    int rc;

    assert_int_equal(hf_lock_new(c, name, HF_CSTRING, NULL, &lock, &w->err), 0);
    w->err.text[0] = '\0';
    rc = hf_lock_try(lock, &w->err);
    if (!rc)
        rc = hf_lock_release(lock, &w->err);
    assert_int_equal(hf_lock_free(lock), 0);
    return rc;
}

static void says(const struct world *w, const char *text)
{
    if (!strstr(w->err.text, text))
        fail_msg("\"%s\" says nothing of \"%s\"", w->err.text, text);
}

static void test_users_have_their_own(void **state)
{
    struct world *w = *state;
    hf_client *ann = open_as(w, "ann:Geheimnis-1"),
              *bob = open_as(w, "bob:Geheimnis-2"), *none;
    hf_lock *lock;

    assert_int_equal(hf_open(w->zk->url, NULL, &none, &w->err), 0);
    assert_int_equal(hf_lock_new(ann, "t/n", 3, NULL, &lock, &w->err), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, &w->err), 0);
    assert_int_equal(try_as(w, bob, "t/n"), HF_EAUTH);
    assert_null(strstr(w->err.text, "Geheimnis"));
    says(w, "CREATE below /t/n as user bob");
    assert_int_equal(try_as(w, none, "t/n"), HF_EAUTH);
    says(w, "CREATE below /t/n without a user");
    assert_int_equal(try_as(w, bob, "t/m"), HF_EAUTH); /* below ann's */
    says(w, "CREATE above /t/m as user bob");
    assert_int_equal(try_as(w, bob, "u"), 0);
    assert_int_equal(hf_break(bob, "t/n", 3, &w->err), HF_EAUTH);
    says(w, "READ /t/n as user bob");
    assert_int_equal(hf_inspect(bob, "t/n", 3, &(hf_info *){NULL}, &w->err),
                     HF_EAUTH);
    assert_int_equal(hf_lock_check(lock), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(try_as(w, ann, "t/m"), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(ann), 0);
    assert_int_equal(hf_close(bob), 0);
    assert_int_equal(hf_close(none), 0);
    world_is_clean(w);
}

static bool is_quiet(struct world *w)
{
    uint64_t before = proxy_sent(w->proxy);

    return NEVER_MS(proxy_sent(w->proxy) != before, 300);
}

/* The name's node is everybody's, the holder's entry is not: who waits does not
 * ask without end, and is told. */
static void waits_behind_another_user(struct world *w,
                                      enum hf_fairness fairness)
{
    char ann[128], bob[128];
    hf_lock *a, *b;
    struct taker *t;

    snprintf(ann, sizeof(ann), "zk://ann:x@127.0.0.1:%d", w->zk->port);
    snprintf(bob, sizeof(bob), "zk://bob:y@127.0.0.1:%d", proxy_port(w->proxy));
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    a = world_lock(w, ann, 30000, 5000, fairness);
    b = world_lock(w, bob, 30000, 5000, fairness);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, 20000);
    assert_true(WAIT_FOR(proxy_sent(w->proxy) > 200));
    assert_true(WAIT_FOR_MS(is_quiet(w), 3000));
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 4000);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

static void test_users_wait_behind_each_other(void **state)
{
    waits_behind_another_user(*state, HF_FAIR);
}

static void test_users_wait_behind_each_other_unfair(void **state)
{
    waits_behind_another_user(*state, HF_UNFAIR);
}

/* ---- rights that go ---------------------------------------------------- */

static void count_refusals(void *count, const char *text)
{
    if (strstr(text, "cannot be deleted"))
        __atomic_add_fetch((int *)count, 1, __ATOMIC_RELAXED);
}

/* Nobody may delete it: that is said once, and tried seldom; and when it is
 * allowed again all goes on. */
static void test_rights_to_delete_are_taken_away(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    int refusals = 0;
    hf_hooks hooks = {.ctx = &refusals, .log = count_refusals};
    hf_lock *a;

    opt.hooks = &hooks;
    opt.op_timeout_ms = 1000;
    assert_int_equal(hf_open(w->far_url, &opt, &w->clients[0], &w->err), 0);
    w->len = 1;
    a = world_change(w, 0, HF_MUTEX, 0);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EAUTH);
    says(w, "no right to DELETE below " NODE);
    assert_true(WAIT_FOR_MS(is_quiet(w), 5000));
    assert_int_equal(__atomic_load_n(&refusals, __ATOMIC_RELAXED), 1);
    set_rights(w, NODE, ZOO_PERM_ALL);
    assert_true(WAIT_FOR_MS(!zk_server_children(w->zk, NODE), 12000));
    assert_true(WAIT_FOR(hf_lock_timed(a, 1000, &w->err) == 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(hf_close(w->clients[0]), 0); /* before its log goes */
    w->clients[0] = NULL;
    world_is_clean(w);
}

static void note_result(void *arg, hf_lock *lock, int result)
{
    (void)lock;
    *(int *)arg = result;
}

static bool became(hf_client *c, const int *result, int wanted)
{
    hf_client_dispatch(c);
    return *result == wanted;
}

/* The place of a waiter that has given up cannot be deleted. The next one of
 * this process would wait behind it: it is told why it cannot. */
static void test_given_up_place_cannot_be_deleted(void **state)
{
    struct world *w = *state;
    hf_lock *x = deaf_lock(w), *a = deaf_lock(w),
            *b = own_handle(w, 1, HF_MUTEX);
    hf_acquire_options fixed = HF_ACQUIRE_OPTIONS_INIT;
    int first = 1, second = 1;

    fixed.lease_ms = 60000; /* so that the question is another one */
    assert_int_equal(hf_lock_timed(x, 5000, &w->err), 0);
    assert_int_equal(hf_lock_acquire_async(a, NULL, note_result, &first, NULL),
                     0);
    world_has_entries(w, 2);
    assert_int_equal(
        hf_lock_acquire_async(b, &fixed, note_result, &second, NULL), 0);
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    assert_int_equal(hf_lock_cancel(a), 0);
    assert_true(WAIT_FOR(became(w->clients[1], &first, HF_ECANCELED)));
    assert_true(WAIT_FOR(became(w->clients[1], &second, HF_EAUTH)));
    assert_true(NEVER_MS(second == 0, 300));
    set_rights(w, NODE, ZOO_PERM_ALL);
    assert_int_equal(
        hf_lock_acquire_async(b, &fixed, note_result, &second, NULL), 0);
    assert_int_equal(hf_lock_release(x, &w->err), 0);
    assert_true(WAIT_FOR(became(w->clients[1], &second, 0)));
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    assert_true(WAIT_FOR(hf_lock_free(b) == 0));
    world_is_clean(w);
}

/* A writer that may not become a reader at the server stays a writer there, and
 * is gone when it is released. */
static void test_rights_to_downgrade_are_taken_away(void **state)
{
    struct world *w = *state;
    hf_lock *a, *b;

    world_far(w, 30000, 1000);
    world_near(w);
    a = world_change(w, 0, HF_RWLOCK, 0);
    b = world_change(w, 1, HF_RWLOCK, 0);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
    assert_int_equal(hf_lock_downgrade(a, &w->err), HF_EUNKNOWN);
    assert_int_equal(hf_lock_check(a), 0);
    set_rights(w, NODE, ZOO_PERM_ALL);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(hf_lock_timed(b, 5000, &w->err), 0);
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    world_is_clean(w);
}

/* ---- the root ---------------------------------------------------------- */

static bool is_gone(struct world *w, const char *path)
{
    return zk_hand_stat(hand(w), path, NULL) == ZNONODE;
}

/* What the URL names lasts, and is its user's, when no lock is in use below it.
 * Otherwise it would be whoever's who comes next. */
static void test_root_stays(void **state)
{
    struct world *w = *state;
    struct zk_hand *h = hand(w);
    hf_client *ann = open_at(w, "ann:x", "/teams/a"), *bob;

    assert_int_equal(try_as(w, ann, "d/n"), 0);
    assert_true(WAIT_FOR(is_gone(w, "/teams/a/d")));
    /* And whatever else could have been swept by then. */
    zk_hand_create(h, "/mark", "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, "/mark/x", "", 0, NULL, 0, NULL);
    zk_hand_delete(h, "/mark/x");
    assert_true(WAIT_FOR(is_gone(w, "/mark")));
    assert_false(is_gone(w, "/teams/a"));
    bob = open_at(w, "bob:y", "/teams/a");
    assert_int_equal(try_as(w, bob, "n"), HF_EAUTH);
    says(w, "CREATE above /teams/a/n as user bob");
    assert_int_equal(try_as(w, ann, "n"), 0);
    assert_int_equal(hf_close(ann), 0);
    assert_int_equal(hf_close(bob), 0);
    assert_int_equal(
        zoo_add_auth(zk_hand_handle(h), "digest", "ann:x", 5, NULL, NULL), 0);
    assert_true(WAIT_FOR(!zk_hand_delete(h, "/teams/a")));
    assert_int_equal(zk_hand_delete(h, "/teams"), 0);
    world_is_clean(w);
}

/* What cannot be made is not tried without end. */
static void test_semaphore_and_latch_may_not_be_made(void **state)
{
    struct world *w = *state;
    hf_lock *a;
    hf_latch *l;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    assert_int_equal(hf_latch_new(w->clients[0], "n/l", 3, &l, &w->err), 0);
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    assert_int_equal(
        zk_hand_create(hand(w), NODE "/locks", "", 0, NULL, 0, NULL), 0);
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), HF_EAUTH);
    says(w, "CREATE above " NODE "/leases");
    assert_int_equal(hf_latch_set(l, 1, &w->err), HF_EAUTH);
    says(w, "CREATE above " NODE "/l");
    assert_int_equal(hf_latch_free(l), 0);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE "/locks")));
    assert_int_equal(zk_hand_delete(hand(w), NODE), 0);
    world_is_clean(w);
}

/* ---- a tenant's path ------------------------------------------------------
 */

#define TENANT "/top/team" /* whose parent is not ours to create in */

/* A client of the tenant's, through the proxy, that knows of the latter. */
static hf_client *open_tenant(struct world *w)
{
    char url[128];
    hf_client *c = NULL;

    zk_hand_create(hand(w), "/top", "", 0, NULL, 0, NULL);
    assert_int_equal(zk_hand_create(hand(w), TENANT, "", 0, NULL, 0, NULL), 0);
    set_rights(w, "/top", ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
    snprintf(url, sizeof(url), "%s" TENANT, w->far_url);
    if (hf_open(url, NULL, &c, &w->err))
        fail_msg("%s", w->err.text);
    w->clients[w->len++] = c;
    if (try_as(w, c, "m"))
        fail_msg("%s", w->err.text);
    return c;
}

static void tenant_is_clean(struct world *w)
{
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), TENANT)));
    assert_int_equal(zk_hand_delete(hand(w), "/top"), 0);
    world_is_clean(w);
}

static void note_set(void *arg, hf_latch *latch, int result)
{
    (void)latch;
    *(int *)arg = result;
}

/* The name's node is there when it looks, and is swept then: it is made anew,
 * as any other. */
static void test_tenants_latch_is_swept(void **state)
{
    struct world *w = *state;
    hf_client *c = open_tenant(w);
    uint64_t answered;
    hf_latch *l;
    int set = 1;

    assert_int_equal(hf_latch_new(c, "l", 1, &l, &w->err), 0);
    assert_int_equal(zk_hand_create(hand(w), TENANT "/l", "", 0, NULL, 0, NULL),
                     0);
    proxy_set(w->proxy, PROXY_DELAY, 300);
    answered = proxy_answered(w->proxy);
    assert_int_equal(hf_latch_set_async(l, 1, note_set, &set, NULL), 0);
    /* A sync, a list, and that there is no latch. */
    assert_true(WAIT_FOR(proxy_answered(w->proxy) > answered + 60));
    assert_int_equal(zk_hand_delete(hand(w), TENANT "/l"), 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(WAIT_FOR(became(c, &set, 0) || set < 0));
    assert_int_equal(set, 0);
    assert_int_equal(hf_latch_down(l, NULL, &w->err), 0);
    assert_int_equal(hf_latch_free(l), 0);
    tenant_is_clean(w);
}

/* The same with what a semaphore that has rested keeps its leases in. */
static void test_tenants_semaphore_is_swept(void **state)
{
    struct world *w = *state;
    hf_client *c = open_tenant(w);
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    struct taker *t;

    opt.kind = HF_SEMAPHORE;
    opt.permits = 2;
    assert_int_equal(hf_lock_new(c, "s", 1, &opt, &w->locks[0], &w->err), 0);
    assert_int_equal(zk_hand_create(hand(w), TENANT "/s", "", 0, NULL, 0, NULL),
                     0);
    assert_int_equal(
        zk_hand_create(hand(w), TENANT "/s/leases", "", 0, NULL, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_DELAY, 300);
    t = taker_start(w, w->locks[0], 10000);
    assert_true(WAIT_FOR(zk_server_children(w->zk, TENANT "/s/locks") == 1));
    assert_int_equal(zk_hand_delete(hand(w), TENANT "/s/leases"), 0);
    taker_gets_it(t, 6000);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), TENANT "/s")));
    tenant_is_clean(w);
}

static void test_users_need_a_password(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;
    char url[128];

    snprintf(url, sizeof(url), "zk://ann@127.0.0.1:%d", w->zk->port);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), HF_EINVAL);
    snprintf(url, sizeof(url), "zk://:x@127.0.0.1:%d", w->zk->port);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), HF_EINVAL);
}

int run_rights_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_users_have_their_own),
        T(test_users_wait_behind_each_other),
        T(test_users_wait_behind_each_other_unfair),
        T(test_rights_to_delete_are_taken_away),
        T(test_given_up_place_cannot_be_deleted),
        T(test_rights_to_downgrade_are_taken_away),
        T(test_root_stays),
        T(test_semaphore_and_latch_may_not_be_made),
        T(test_tenants_latch_is_swept),
        T(test_tenants_semaphore_is_swept),
        T(test_users_need_a_password),
    };

    return cmocka_run_group_tests_name("zookeeper: rights", tests, group_one,
                                       group_one_end);
}
