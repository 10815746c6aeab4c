/* Rights: users that must not affect each other, and rights that are
 * revoked. */
#include "zk_faults.h"

#include <stdio.h>

GROUP("rights");

static hf_client *open_at(struct world *w, const char *user, const char *path)
{
    return world_open(
        w, text_of("zk://%s@127.0.0.1:%d%s", user, w->zk->port, path), NULL);
}

static hf_client *open_as(struct world *w, const char *user)
{
    return open_at(w, user, "");
}

static int try_as(struct world *w, hf_client *c, const char *name)
{
    hf_lock *lock;
    int rc;

    OK(hf_lock_new(c, name, HF_CSTRING, NULL, &lock, &w->err));
    w->err.text[0] = '\0';
    rc = hf_lock_try(lock, &w->err);
    if (!rc)
        rc = hf_lock_release(lock, &w->err);
    OK(hf_lock_free(lock));
    return rc;
}

static void says(const struct world *w, const char *text)
{
    expect_words(w->err.text, text);
}

CASE(test_users_have_their_own)
{
    hf_client *ann = open_as(w, "ann:Geheimnis-1"),
              *bob = open_as(w, "bob:Geheimnis-2"), *none;
    hf_lock *lock;

    none = world_open(w, w->zk->url, NULL);
    lock = world_handle(w, ann, "t/n", NULL);
    OK(hf_lock_acquire(lock, NULL, &w->err));
    EXPECT(HF_EAUTH, try_as(w, bob, "t/n"));
    assert_null(strstr(w->err.text, "Geheimnis"));
    says(w, "CREATE below /t/n as user bob");
    EXPECT(HF_EAUTH, try_as(w, none, "t/n"));
    says(w, "CREATE below /t/n without a user");
    EXPECT(HF_EAUTH, try_as(w, bob, "t/m")); /* below ann's node */
    says(w, "CREATE above /t/m as user bob");
    OK(try_as(w, bob, "u"));
    EXPECT(HF_EAUTH, hf_break(bob, "t/n", 3, &w->err));
    says(w, "READ /t/n as user bob");
    EXPECT(HF_EAUTH, hf_inspect(bob, "t/n", 3, &(hf_info *){NULL}, &w->err));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, NULL));
    OK(try_as(w, ann, "t/m"));
}

static bool is_quiet(struct world *w)
{
    uint64_t before = proxy_sent(w->proxy);

    return NEVER_MS(proxy_sent(w->proxy) != before, 300);
}

/* All users may create nodes below the name's node, but only the holder has
 * rights to its own entry. The waiter must wait nevertheless, without repeating
 * its request. */
static void waits_behind_another_user(struct world *w,
                                      enum hf_fairness fairness)
{
    hf_lock *a, *b;
    struct taker *t;

    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    a = world_lock(w, text_of("zk://ann:x@127.0.0.1:%d", w->zk->port), 30000,
                   5000, fairness);
    b = world_lock(w, text_of("zk://bob:y@127.0.0.1:%d", proxy_port(w->proxy)),
                   30000, 5000, fairness);
    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_start(w, b, 20000);
    COMES(proxy_sent(w->proxy) > 200);
    COMES_MS(is_quiet(w), 3000);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 4000);
    COMES(!zk_hand_delete(hand(w), NODE));
}

CASE_IS(test_users_wait_behind_each_other,
        waits_behind_another_user(w, HF_FAIR))
CASE_IS(test_users_wait_behind_each_other_unfair,
        waits_behind_another_user(w, HF_UNFAIR))

static void count_refusals(void *count, const char *text)
{
    if (strstr(text, "cannot be deleted"))
        __atomic_add_fetch((int *)count, 1, __ATOMIC_RELAXED);
}

/* The client is not allowed to delete its entry. The refusal is logged once,
 * and the deletion is retried rarely. It succeeds once the right is granted
 * again. */
CASE(test_rights_to_delete_are_taken_away)
{
    static int refusals; /* static because the client may be closed after the
                            case */
    hf_hooks hooks = {.ctx = &refusals, .log = count_refusals};
    hf_lock *a;

    OK(hf_open(w->far_url, CLIENT(.hooks = &hooks, .op_timeout_ms = 1000),
               &w->clients[0], &w->err));
    w->len = 1;
    a = world_change(w, 0, HF_MUTEX, 0);
    OK(hf_lock_timed(a, 5000, &w->err));
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    EXPECT(HF_EAUTH, hf_lock_release(a, &w->err));
    says(w, "no right to DELETE below " NODE);
    COMES_MS(is_quiet(w), 5000);
    assert_int_equal(__atomic_load_n(&refusals, __ATOMIC_RELAXED), 1);
    set_rights(w, NODE, ZOO_PERM_ALL);
    COMES_MS(!zk_server_children(w->zk, NODE), 12000);
    COMES(hf_lock_timed(a, 1000, &w->err) == 0);
    OK(hf_lock_release(a, &w->err));
    OK(hf_close(w->clients[0])); /* `hooks` is about to go out of scope */
    w->clients[0] = NULL;
}

static void note_result(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

static bool became(hf_client *c, const int *result, int wanted)
{
    hf_client_dispatch(c);
    return *result == wanted;
}

/* A waiter has given up, but its entry cannot be deleted. The next waiter of
 * the same client would have to wait behind that entry. Therefore the wait of
 * the next waiter fails with HF_EAUTH. */
CASE(test_given_up_place_cannot_be_deleted)
{
    hf_lock *x = deaf_lock(w), *a = deaf_lock(w),
            *b = own_handle(w, 1, HF_MUTEX);
    hf_acquire_options fixed = HF_ACQUIRE_OPTIONS_INIT;
    int first = 1, second = 1;

    fixed.lease_ms = 60000; /* makes b's request differ from a's */
    OK(hf_lock_timed(x, 5000, &w->err));
    OK(hf_lock_acquire_async(a, NULL, note_result, &first, NULL));
    world_has_entries(w, 2);
    OK(hf_lock_acquire_async(b, &fixed, note_result, &second, NULL));
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    OK(hf_lock_cancel(a));
    COMES(became(w->clients[1], &first, HF_ECANCELED));
    COMES(became(w->clients[1], &second, HF_EAUTH));
    assert_true(NEVER_MS(second == 0, 300));
    set_rights(w, NODE, ZOO_PERM_ALL);
    OK(hf_lock_acquire_async(b, &fixed, note_result, &second, NULL));
    OK(hf_lock_release(x, &w->err));
    COMES(became(w->clients[1], &second, 0));
    OK(hf_lock_release(b, &w->err));
    COMES(hf_lock_free(b) == 0);
}

/* The client may not create nodes, so its writer cannot become a reader at the
 * server: its entry remains that of a writer, and is removed when the lock is
 * released. */
CASE(test_rights_to_downgrade_are_taken_away)
{
    hf_lock *a, *b;

    world_far(w, 30000, 1000);
    world_near(w);
    a = world_change(w, 0, HF_RWLOCK, 0);
    b = world_change(w, 1, HF_RWLOCK, 0);
    OK(hf_lock_timed(a, 5000, &w->err));
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
    EXPECT(HF_EUNKNOWN, hf_lock_downgrade(a, &w->err));
    OK(hf_lock_check(a));
    set_rights(w, NODE, ZOO_PERM_ALL);
    OK(hf_lock_release(a, &w->err));
    OK(hf_lock_timed(b, 5000, &w->err));
    OK(hf_lock_release(b, &w->err));
}

static bool is_gone(struct world *w, const char *path)
{
    return zk_hand_stat(hand(w), path, NULL) == ZNONODE;
}

/* The nodes of the URL's path remain even when no lock below them is in use,
 * and belong to the URL's user. If the server removed them, the next user could
 * create and own them. */
CASE(test_root_stays)
{
    struct zk_hand *h = hand(w);
    hf_client *ann = open_at(w, "ann:x", "/teams/a"), *bob;

    OK(try_as(w, ann, "d/n"));
    COMES(is_gone(w, "/teams/a/d"));
    /* When the server has deleted this empty container, it has had the time to
     * delete the path's nodes. */
    zk_hand_create(h, "/mark", "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, "/mark/x", "", 0, NULL, 0, NULL);
    zk_hand_delete(h, "/mark/x");
    COMES(is_gone(w, "/mark"));
    assert_false(is_gone(w, "/teams/a"));
    bob = open_at(w, "bob:y", "/teams/a");
    EXPECT(HF_EAUTH, try_as(w, bob, "n"));
    says(w, "CREATE above /teams/a/n as user bob");
    OK(try_as(w, ann, "n"));
    world_ends(w, ann);
    world_ends(w, bob);
    assert_int_equal(
        zoo_add_auth(zk_hand_handle(h), "digest", "ann:x", 5, NULL, NULL), 0);
    COMES(!zk_hand_delete(h, "/teams/a"));
    OK(zk_hand_delete(h, "/teams"));
}

/* The client may not create some nodes, and must not retry forever. */
CASE(test_semaphore_and_latch_may_not_be_made)
{
    hf_lock *a;
    hf_latch *l;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    l = world_latch(w, w->clients[0], "n/l");
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    OK(zk_hand_create(hand(w), NODE "/locks", "", 0, NULL, 0, NULL));
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
    EXPECT(HF_EAUTH, hf_lock_timed(a, 5000, &w->err));
    says(w, "CREATE above " NODE "/leases");
    EXPECT(HF_EAUTH, hf_latch_set(l, 1, &w->err));
    says(w, "CREATE above " NODE "/l");
    world_ends(w, l);
    COMES(!zk_hand_delete(hand(w), NODE "/locks"));
    OK(zk_hand_delete(hand(w), NODE));
}

#define TENANT "/top/team" /* a path whose parent is closed to clients */

/* Opens a client of the tenant, through the proxy, and asserts that the client
 * can use the path although it may not create the path. */
static hf_client *open_tenant(struct world *w)
{
    hf_client *c = NULL;

    zk_hand_create(hand(w), "/top", "", 0, NULL, 0, NULL);
    OK(zk_hand_create(hand(w), TENANT, "", 0, NULL, 0, NULL));
    set_rights(w, "/top", ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
    OK(hf_open(text_of("%s" TENANT, w->far_url), NULL, &c, &w->err));
    w->clients[w->len++] = c;
    if (try_as(w, c, "m"))
        fail_msg("%s", w->err.text);
    return c;
}

static void tenant_is_clean(struct world *w)
{
    COMES(!zk_hand_delete(hand(w), TENANT));
    OK(zk_hand_delete(hand(w), "/top"));
    world_is_clean(w);
}

static void note_set(void *arg, hf_latch *latch, int result)
{
    *(int *)arg = result;
}

/* The name's node exists when the client looks for it. Then the test deletes
 * the node, as a server deletes an empty container. The client creates it
 * again. */
CASE(test_tenants_latch_is_swept)
{
    hf_client *c = open_tenant(w);
    uint64_t answered;
    hf_latch *l;
    int set = 1;

    l = world_latch(w, c, "l");
    OK(zk_hand_create(hand(w), TENANT "/l", "", 0, NULL, 0, NULL));
    proxy_set(w->proxy, PROXY_DELAY, 300);
    answered = proxy_answered(w->proxy);
    OK(hf_latch_set_async(l, 1, note_set, &set, NULL));
    /* The server has sent three replies: to a sync, to a list, and to the
     * request for the latch, which does not exist. */
    COMES(proxy_answered(w->proxy) > answered + 60);
    OK(zk_hand_delete(hand(w), TENANT "/l"));
    proxy_set(w->proxy, PROXY_PASS, 0);
    COMES(became(c, &set, 0) || set < 0);
    assert_int_equal(set, 0);
    OK(hf_latch_down(l, NULL, &w->err));
    world_ends(w, l);
    tenant_is_clean(w);
}

/* The node `leases` of an idle semaphore exists when the client looks for it.
 * Then the test deletes the node, as a server deletes an empty container. The
 * client creates it again. */
CASE(test_tenants_semaphore_is_swept)
{
    hf_client *c = open_tenant(w);
    struct taker *t;

    OK(hf_lock_new(c, "s", 1, KIND(HF_SEMAPHORE, .permits = 2), &w->locks[0],
                   &w->err));
    OK(zk_hand_create(hand(w), TENANT "/s", "", 0, NULL, 0, NULL));
    OK(zk_hand_create(hand(w), TENANT "/s/leases", "", 0, NULL, 0, NULL));
    proxy_set(w->proxy, PROXY_DELAY, 300);
    t = taker_start(w, w->locks[0], 10000);
    COMES(zk_server_children(w->zk, TENANT "/s/locks") == 1);
    OK(zk_hand_delete(hand(w), TENANT "/s/leases"));
    taker_gets_it(t, 6000);
    COMES(!zk_hand_delete(hand(w), TENANT "/s"));
    tenant_is_clean(w);
}

CASE(test_users_need_a_password)
{
    hf_client *c = NULL;
    char url[128];

    snprintf(url, sizeof(url), "zk://ann@127.0.0.1:%d", w->zk->port);
    EXPECT(HF_EINVAL, hf_open(url, NULL, &c, &w->err));
    snprintf(url, sizeof(url), "zk://:x@127.0.0.1:%d", w->zk->port);
    EXPECT(HF_EINVAL, hf_open(url, NULL, &c, &w->err));
}
