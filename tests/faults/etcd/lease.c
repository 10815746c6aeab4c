/* An administrator revokes leases and deletes keys; the process that holds the
 * lock is killed or stopped. */
#include "etcd_faults.h"

#include "../../lib/diagnosis.h"
#include "../../lib/proc.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

GROUP("lease");

enum { SOON_MS = 2000, WAIT_MS = 30000 };

/* Copies the key that identifies the i-th client of the case. The case's keys
 * are the newest ones, because keys of earlier cases may remain. Returns false
 * if there are fewer keys than clients. */
static bool has_guard(const struct world *w, size_t i, char *key, size_t size)
{
    static char keys[65536];
    const char *found[64] = {0};
    size_t n = 0;

    if (etcd_server_ctl(&etcd_one,
                        "get holdfast:client/ --prefix --keys-only "
                        "--sort-by=CREATE",
                        keys, sizeof(keys)))
        return false;
    for (char *at = strtok(keys, "\n"); at && n < 64; at = strtok(NULL, "\n"))
        found[n++] = at;
    if (n >= w->len)
        snprintf(key, size, "%s", found[n - w->len + i]);
    return n >= w->len;
}

static void revoke_lease(const struct world *w, size_t i)
{
    char key[64];

    assert_true(has_guard(w, i, key, sizeof(key)));
    ctl("lease revoke %s", strchr(key, '/') + 1);
}

/* A kind of lock, and how it is held while another client waits for it. */
struct manner {
    enum hf_kind kind;
    enum hf_fairness fairness;
    enum hf_mode mode;
    uint32_t size;
    unsigned entries; /* number of entries of a holder and a waiter together */
};

static const struct manner manners[] = {
    {HF_MUTEX, HF_FAIR, HF_WRITE, 0, 2},
    {HF_MUTEX, HF_UNFAIR, HF_WRITE, 0, 1},
    {HF_RWLOCK, HF_FAIR, HF_WRITE, 0, 2},
    {HF_RWLOCK, HF_FAIR, HF_READ, 0, 2},
    {HF_SEMAPHORE, HF_FAIR, HF_WRITE, 1, 2},
};

#define MANNERS (sizeof(manners) / sizeof(*manners))

static hf_lock *lock_in(struct world *w, const struct manner *m)
{
    size_t i = w->len;

    world_lock(w, w->near_url, 30000, 5000, m->fairness);
    return m->kind == HF_MUTEX ? w->locks[i]
                               : world_change(w, i, m->kind, m->size);
}

/* Closes both clients. */
static void close_all(struct world *w)
{
    world_is_clean(w);
    for (size_t i = 0; i < w->len; i++) {
        OK(hf_lock_free(w->locks[i]));
        OK(hf_close(w->clients[i]));
        w->ears[i].lost = 0;
    }
    w->len = 0;
}

/* A waiter's lease is revoked, which deletes its entry. The lock of etcd 3.4's
 * own client library would report to this waiter that it holds the lock as soon
 * as no older entry is left, without a check of the waiter's own entry. Our
 * waiter queues again and gets the lock in its turn. */
static void revoked_while_waiting(struct world *w, const struct manner *m)
{
    hf_lock *a = lock_in(w, m), *b = lock_in(w, m);
    uint64_t token;
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    token = token_of(a);
    t = taker_start_as(w, b, m->mode, 0, WAIT_MS);
    has_entries(m->entries);
    revoke_lease(w, 1);
    has_entries(m->entries);
    assert_true(NEVER_MS(taker_back(t), 300));
    OK(hf_lock_check(a));
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, SOON_MS);
    assert_true(t->token > token || !t->token);
    assert_int_equal(w->server->left(w), 1);
    taker_gives(t);
    close_all(w);
}

CASE(test_lease_revoked_while_waiting)
{
    for (size_t i = 0; i < MANNERS; i++)
        revoked_while_waiting(w, &manners[i]);
}

/* An administrator deletes the waiter's entry. The waiter notices that, at the
 * latest by a poll after the holder's release, and creates the entry again. */
CASE(test_entry_deleted_while_waiting)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    char key[300], again[300];
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_start(w, b, WAIT_MS);
    for (int i = 0; i < 3; i++) {
        has_entries(2);
        assert_true(entry(1, key, sizeof(key)));
        ctl("del %s", key);
    }
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, 2000 + SOON_MS);
    assert_true(entry(0, again, sizeof(again)));
    assert_string_equal(again, key); /* the waiter has an entry */
    taker_gives(t);
}

/* An entry between the holder's and the waiter's is deleted: the waiter must
 * not get the lock. */
CASE(test_entry_deleted_before_a_waiter)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    ctl("put n/1f ''"); /* as Go's client creates an entry */
    t = taker_start(w, b, WAIT_MS);
    has_entries(3);
    ctl("del n/1f");
    assert_true(NEVER_MS(taker_back(t), 500));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
}

/* A program with an event callback is notified of the loss long before the
 * deadline. */
static void revoked_while_holding(struct world *w, const struct manner *m)
{
    hf_lock *a = lock_in(w, m), *b = lock_in(w, m);
    struct taker *t;

    OK(hf_lock_acquire(a, HOW(HF_FOREVER, .mode = m->mode), &w->err));
    t = taker_start(w, b, WAIT_MS);
    has_entries(m->entries);
    revoke_lease(w, 0);
    COMES_MS(world_heard_loss(w, 0), SOON_MS);
    EXPECT(HF_ELOST, hf_lock_check(a));
    EXPECT(HF_ELOST, hf_lock_put(a, "v", 1, "x", 1, NULL));
    COMES_MS(taker_back(t), SOON_MS);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    EXPECT(HF_ENOTOWNER, hf_lock_release(a, &w->err));
    assert_int_equal(w->server->left(w), 1);
    taker_gives(t);
    world_free_for_all(w, a); /* b has another lease */
    close_all(w);
}

CASE(test_lease_revoked_while_holding)
{
    for (size_t i = 0; i < MANNERS; i++)
        revoked_while_holding(w, &manners[i]);
}

/* In a program without an event callback the release is the first call to find
 * out that the lease was revoked. */
static void revoked_unheard(struct world *w, const struct manner *m)
{
    hf_lock *a, *b;
    struct taker *t;

    w->is_quiet = true;
    a = lock_in(w, m);
    b = lock_in(w, m);
    OK(hf_lock_acquire(a, HOW(HF_FOREVER, .mode = m->mode), &w->err));
    t = taker_start(w, b, WAIT_MS);
    has_entries(m->entries);
    revoke_lease(w, 0);
    COMES_MS(taker_back(t), SOON_MS);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    EXPECT(HF_ENOTOWNER, hf_lock_release(a, &w->err));
    assert_int_equal(w->server->left(w), 1);
    taker_gives(t);
    world_free_for_all(w, a);
    close_all(w);
}

CASE(test_lease_revoked_before_a_quiet_release)
{
    for (size_t i = 0; i < MANNERS; i++)
        revoked_unheard(w, &manners[i]);
}

/* In a program without an event callback the next renewal finds out that the
 * lease was revoked. */
CASE(test_lease_revoked_while_a_quiet_one_holds)
{
    enum { TTL_MS = 6000 };
    struct pollfd lost = {.events = POLLIN};
    hf_lock *a;

    w->is_quiet = true;
    a = world_lock(w, w->near_url, TTL_MS, 5000, HF_FAIR);
    lost.fd = hf_lock_fd(a);
    OK(hf_lock_timed(a, 5000, &w->err));
    revoke_lease(w, 0);
    COMES_MS(hf_lock_check(a) == HF_ELOST, TTL_MS / 3 + 1000);
    assert_int_equal(poll(&lost, 1, 0), 1);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
}

/* The holder's entry is deleted. Whether the client knows of the loss or not,
 * it no longer writes a value or releases anything for that hold. */
CASE(test_entry_deleted_while_holding)
{
    hf_lock *a = world_lock(w, w->near_url, 6000, 5000, HF_FAIR);
    hf_lock *b = world_near(w);
    char key[300];
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    OK(hf_lock_put(a, "v", 1, "mine", 4, &w->err));
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    assert_true(entry(0, key, sizeof(key)));
    ctl("del %s", key);
    EXPECT(HF_ELOST, hf_lock_put(a, "v", 1, "late", 4, &w->err));
    taker_has_it(t, SOON_MS);
    COMES_MS(hf_lock_check(a) == HF_ELOST, 2000 + SOON_MS);
    COMES(world_heard_loss(w, 0));
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    assert_true(any_faults.takes_value(w, "v", "mine"));
    taker_gives(t);
}

/* Dispatches the first client, which no thread drives, and looks for its
 * key. */
static bool has_guard_again(struct world *w, char *key, size_t size)
{
    hf_client_dispatch(w->clients[0]);
    return has_guard(w, 0, key, size);
}

/* The key that identifies the client is deleted, but its lease and the other
 * keys of the lease remain: the client creates the key again. */
CASE(test_guard_deleted)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);
    char key[64];
    uint64_t token = token_of(a);

    for (int i = 0; i < 4; i++) {
        COMES(has_guard_again(w, key, sizeof(key)));
        ctl("del %s", key);
    }
    world_renews(a);
    assert_int_equal(token_of(a), token);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    assert_false(world_heard_loss(w, 0));
}

enum { SHORT_MS = 2000 };

CASE(test_holder_killed)
{
    hf_lock *b = world_near(w);
    struct taker *t;
    struct proc p;

    any_puppet(w, &p, SHORT_MS);
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    proc_kill(&p);
    taker_gets_it(t, SHORT_MS + ETCD_TICK_MS + 1000);
}

CASE_IS(test_holder_stopped,
        any_holder_stopped(w, SHORT_MS, SHORT_MS + ETCD_TICK_MS + 1000))

/* The shortest lease that the server grants is longer than the TTL. */
CASE(test_diagnose_lease)
{
    struct etcd_server slow = {
        .args = {"--election-timeout=2000", "--heartbeat-interval=100"}};
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;

    opt.ttl_ms = 1000;
    OK(etcd_server_start(&slow));
    OK(proc_open(slow.url, &opt, &c, &w->err));
    diagnosis_says(c, HF_LEVEL_WARNING, "lease", "no lease of less than 3 s");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "within 4 s");
    OK(hf_close(c));
    etcd_server_end(&slow);
    opt.ttl_ms = 30000;
    OK(proc_open(etcd_one.url, &opt, &c, &w->err));
    diagnosis_says(c, HF_LEVEL_OK, "lease", "as long as the ttl");
    diagnosis_says(c, HF_LEVEL_WARNING, "cluster", "only one member");
    diagnosis_says(c, HF_LEVEL_OK, "version", "etcd 3.");
    diagnosis_says(c, HF_LEVEL_OK, "rights", "no user");
    OK(hf_close(c));
}
