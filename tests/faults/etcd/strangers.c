/* Keys of strangers below the name of a lock, and values that make no sense. */
#include "etcd_faults.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 30000, SOON_MS = 2000, MANY = 1000 };

/* "put KEY VALUE" from the from-th on; the key is of the number, in one
 * transaction: all have the same revision. */
static void put_some(const char *fmt, unsigned from, unsigned len)
{
    char path[96], key[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/txn", etcd_one.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("\n", f); /* no condition */
    for (unsigned i = from; i < from + len; i++) {
        snprintf(key, sizeof(key), fmt, i); // NOLINT
        fprintf(f, "put %s x\n", key);
    }
    fputs("\n\n", f);
    fclose(f);
    ctl("txn < %s", path);
}

static hf_info *info_of(struct world *w)
{
    hf_info *info = NULL;

    if (hf_inspect(w->clients[0], "n", 1, &info, &w->err))
        fail_msg("%s", w->err.text);
    return info;
}

static void is_shown(struct world *w, size_t holders, size_t waiters)
{
    hf_info *info = info_of(w);

    assert_int_equal(info->holders_len, holders);
    assert_int_equal(info->waiters_len, waiters);
    hf_info_free(info);
}

/* Not entries: they are in nobody's way, and nobody sees them. */
static void test_keys_that_are_no_entries(void **state)
{
    static const char *const keys[] = {
        "n",       "n/",          "n/x",        "n/0123456789abcdef0",
        "n/1F",    "n/1f/",       "n/1f/2",     "n/read",
        "n/read/", "n/read/1f/x", "n/permit/1", "n/permit/01234567890123456.1",
        "n/ ",     "n/lock/x",    "n/latch/",   "n/write/01234567890123456/x",
        "n0",      "n//1f",
    };
    struct world *w = *state;
    hf_lock *a = world_near(w);
    hf_names *names;
    hf_info *info;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        ctl("put '%s' garbage", keys[i]);
    info = info_of(w);
    assert_int_equal(info->kind, 0);
    hf_info_free(info);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    is_shown(w, 1, 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_change(w, 0, HF_RWLOCK, 0);
    world_free_for_all(w, w->locks[0]);
    world_change(w, 0, HF_SEMAPHORE, 2);
    world_free_for_all(w, w->locks[0]);
    /* Names below this one, as they are read: "n/", "n/1f", "n/lock" ... */
    assert_int_equal(hf_list(w->clients[0], "n/", &names, &w->err), 0);
    for (size_t i = 0; i < names->len; i++)
        assert_true(names->names[i].len > 1);
    hf_names_free(names);
    ctl("del n --prefix");
    world_is_clean(w);
}

/* An entry is one, whatever it says of itself: it counts until it is gone. */
static void test_entry_that_says_nonsense(void **state)
{
    static const char *const values[] = {
        "",
        "x",
        "holdfast",
        "holdfast ",
        "holdfast 99999999999999999999999 -99999999999999999999999",
        "holdfast -1 1\n-5",
        "holdfast 1000 0\n\n\n\n\n\n",
        "holdfast latch 7",
    };
    struct world *w = *state;
    hf_lock *a = world_near(w);
    struct taker *t;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        hf_info *info;

        ctl("put -- n/1f '%s'", values[i]);
        t = taker_start(w, a, WAIT_MS);
        has_entries(2);
        info = info_of(w);
        assert_int_equal(info->holders_len, 1);
        assert_int_equal(info->waiters_len, 1);
        assert_true(info->holders[0].token > 0);
        assert_true(info->holders[0].token < info->waiters[0].token);
        hf_info_free(info);
        assert_false(taker_back(t));
        ctl("del n/1f");
        taker_gets_it(t, SOON_MS);
    }
    world_is_clean(w);
}

/* A latch that nobody has set so is no reason to wait for ever. */
static void test_latch_that_says_nonsense(void **state)
{
    struct world *w = *state;
    hf_latch *latch = NULL;
    uint64_t left = 7;
    int rc;

    world_near(w);
    assert_int_equal(hf_latch_new(w->clients[0], "l", 1, &latch, &w->err), 0);
    ctl("put l/latch many");
    rc = hf_latch_get(latch, &left, &w->err);
    if (rc != HF_EMISMATCH && rc != HF_EBACKEND)
        fail_msg("%d, %llu: %s", rc, (unsigned long long)left, w->err.text);
    rc = hf_latch_down(latch, &left, &w->err);
    assert_true(rc == HF_EMISMATCH || rc == HF_EBACKEND);
    ctl("del l/latch");
    assert_int_equal(hf_latch_get(latch, &left, &w->err), 0);
    assert_int_equal(left, 0);
    assert_int_equal(hf_latch_free(latch), 0);
}

/* It is the only entry of so many keys, and is waited for. */
static void waits_for_5f(struct world *w, unsigned keys)
{
    struct taker *t = taker_start(w, w->locks[0], WAIT_MS);

    has_entries(keys + 1);
    assert_true(NEVER_MS(taker_back(t), 300));
    is_shown(w, 1, 1);
    ctl("del n/5f");
    taker_gets_it(t, SOON_MS);
    ctl("del n/ --prefix");
    world_is_clean(w);
}

/* Keys of one revision: an entry, among what is none. */
static void entry_among(struct world *w, const char *strangers)
{
    put_some(strangers, 0, 120);
    put_some("n/%x", 0x5f, 1);
    put_some(strangers, 120, 120);
    waits_for_5f(w, 241);
}

static void test_entry_among_strangers(void **state)
{
    world_near(*state);
    entry_among(*state, "n/%04u/below");
    entry_among(*state, "n/zz%04u");
}

/* In one transaction with them. */
static void test_entry_made_with_strangers(void **state)
{
    world_near(*state);
    put_some("n/%u/below", 1, 9);
    ctl("del n/ --prefix");
    put_some("n/%1$xzz x\nput n/%1$x x\nput n/%1$xa/b", 0x5f, 1);
    waits_for_5f(*state, 3);
}

/* ---- many ------------------------------------------------------------------
 */

static void test_long_queue(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    struct taker *t;

    for (unsigned i = 0; i < MANY; i += 125)
        put_some("n/0%05x", i, 125);
    t = taker_start(w, a, WAIT_MS);
    has_entries(MANY + 1);
    is_shown(w, 1, MANY);
    assert_false(taker_back(t));
    assert_int_equal(hf_break(w->clients[0], "n", 1, &w->err), 0);
    is_shown(w, 1, MANY - 1);
    assert_false(taker_back(t));
    ctl("del n/0 --prefix"); /* a lease's number does not begin so */
    taker_gets_it(t, SOON_MS);
    world_is_clean(w);
}

/* The entry of a lock is behind those of a thousand names below it. */
static void test_latch_beside_a_lock_with_many_names(void **state)
{
    struct world *w = *state;
    hf_lock *a;
    hf_latch *latch = NULL;

    world_near(w);
    world_near(w);
    a = world_change(w, 0, HF_RWLOCK, 0);
    assert_int_equal(hf_lock_free(w->locks[1]), 0);
    w->locks[1] = NULL;
    for (unsigned i = 0; i < 2 * MANY + 125; i += 125)
        put_some("n/0%05x/1f", i, 125);
    assert_int_equal(hf_latch_new(w->clients[1], "n", 1, &latch, &w->err), 0);
    world_takes(w, a, WAIT_MS);
    assert_int_equal(hf_latch_set(latch, 2, &w->err), HF_EMISMATCH);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(hf_latch_set(latch, 2, &w->err), 0);
    assert_int_equal(hf_lock_try(a, &w->err), HF_EMISMATCH);
    assert_int_equal(hf_latch_free(latch), 0);
    ctl("del n/ --prefix");
    world_is_clean(w);
}

/* A holder that does not listen: it is not touched. */
static void test_ask_of_a_stranger(void **state)
{
    static const char look[] = "get n/1f -w fields";
    struct world *w = *state;
    char before[600], after[600], *of_one, *of_other;

    world_near(w);
    ctl("put n/1f theirs");
    assert_int_equal(etcd_server_ctl(&etcd_one, look, before, sizeof(before)),
                     0);
    assert_int_equal(hf_ask(w->clients[0], "n", 1, &w->err), 0);
    assert_int_equal(etcd_server_ctl(&etcd_one, look, after, sizeof(after)), 0);
    of_one = strstr(before, "\"Key\"");
    of_other = strstr(after, "\"Key\"");
    assert_true(of_one && of_other);
    assert_string_equal(of_one, of_other);
    ctl("del n/1f");
    assert_int_equal(hf_ask(w->clients[0], "n", 1, &w->err), HF_ENOTOWNER);
    world_is_clean(w);
}

/* The wish is written by hand, by etcdctl. A waiter hears it as soon as it
 * holds the lock. */
static void test_wishes_that_say_nonsense(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "x",
        "0",
        "-1 18446744073709551615",
        "1 2",
        "\\n",
        "1x",
        "99999999999999999999999999999999",
    };
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;
    hf_info *info;

    world_takes(w, a, WAIT_MS);
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    info = info_of(w);
    assert_int_equal(info->waiters_len, 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        ctl("put holdfast:ask -- '%s'", texts[i]);
    ctl("put holdfast:ask \"$(head -c 100000 /dev/zero | tr '\\0' 1)\"");
    ctl("put holdfast:ask '1 %llu  %llu 2'",
        (unsigned long long)info->waiters[0].token,
        (unsigned long long)token_of(a));
    hf_info_free(info);
    assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    assert_int_equal(w->ears[0].wanted, 1);
    assert_false(world_heard_wish(w, 1));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, SOON_MS);
    assert_true(WAIT_FOR(world_heard_wish(w, 1)));
    ctl("del holdfast:ask");
    world_is_clean(w);
}

int run_stranger_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, etcd_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_keys_that_are_no_entries),
        T(test_entry_that_says_nonsense),
        T(test_latch_that_says_nonsense),
        T(test_entry_among_strangers),
        T(test_entry_made_with_strangers),
        T(test_long_queue),
        T(test_latch_beside_a_lock_with_many_names),
        T(test_ask_of_a_stranger),
        T(test_wishes_that_say_nonsense),
    };

    return cmocka_run_group_tests_name("etcd: strangers", tests, etcd_group,
                                       etcd_group_end);
}
