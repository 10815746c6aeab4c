/* Keys of other programs below the name of a lock, and values that cannot be
 * parsed. */
#include "etcd_faults.h"

#include <stdio.h>
#include <string.h>

GROUP("strangers");

enum { WAIT_MS = 30000, SOON_MS = 2000, MANY = 1000 };

/* Puts len keys, formatted with the numbers from `from` on, in one transaction,
 * so that all have the same revision. */
static void put_some(const char *fmt, unsigned from, unsigned len)
{
    const char *path = text_of("%s/txn", etcd_one.dir);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs("\n", f); /* an empty list of conditions */
    for (unsigned i = from; i < from + len; i++) {
        fputs("put ", f);
        fprintf(f, fmt, i); // NOLINT
        fputs(" x\n", f);
    }
    fputs("\n\n", f);
    fclose(f);
    ctl("txn < %s", path);
}

static void is_shown(struct world *w, size_t holders, size_t waiters)
{
    hf_info *info = world_inspect(w, w->clients[0]);

    assert_int_equal(info->holders_len, holders);
    assert_int_equal(info->waiters_len, waiters);
}

/* Keys below the name that are not entries block no client and are not
 * shown. */
CASE(test_keys_that_are_no_entries)
{
    static const char *const keys[] = {
        "n",       "n/",          "n/x",        "n/0123456789abcdef0",
        "n/1F",    "n/1f/",       "n/1f/2",     "n/read",
        "n/read/", "n/read/1f/x", "n/permit/1", "n/permit/01234567890123456.1",
        "n/ ",     "n/lock/x",    "n/latch/",   "n/write/01234567890123456/x",
        "n0",      "n//1f",
    };
    hf_lock *a = world_near(w);
    hf_names *names;
    hf_info *info;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        ctl("put '%s' garbage", keys[i]);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->kind, 0);
    OK(hf_lock_timed(a, 5000, &w->err));
    is_shown(w, 1, 0);
    OK(hf_lock_release(a, &w->err));
    world_change(w, 0, HF_RWLOCK, 0);
    world_free_for_all(w, w->locks[0]);
    world_change(w, 0, HF_SEMAPHORE, 2);
    world_free_for_all(w, w->locks[0]);
    /* hf_list() lists "n/x" and similar keys as names below "n". */
    OK(hf_list(w->clients[0], "n/", &names, &w->err));
    for (size_t i = 0; i < names->len; i++)
        assert_true(names->names[i].len > 1);
    hf_names_free(names);
    ctl("del n --prefix");
}

/* An entry counts until it is deleted, whatever its value. */
CASE(test_entry_that_says_nonsense)
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
    hf_lock *a = world_near(w);
    struct taker *t;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        hf_info *info;

        ctl("put -- n/1f '%s'", values[i]);
        t = taker_start(w, a, WAIT_MS);
        has_entries(2);
        info = world_inspect(w, w->clients[0]);
        assert_int_equal(info->holders_len, 1);
        assert_int_equal(info->waiters_len, 1);
        assert_true(info->holders[0].token > 0);
        assert_true(info->holders[0].token < info->waiters[0].token);
        assert_false(taker_back(t));
        ctl("del n/1f");
        taker_gets_it(t, SOON_MS);
    }
}

/* A latch whose value our clients never write must not make clients wait
 * forever. */
CASE(test_latch_that_says_nonsense)
{
    hf_latch *latch;
    uint64_t left = 7;
    int rc;

    world_near(w);
    latch = world_latch(w, w->clients[0], "l");
    ctl("put l/latch many");
    rc = hf_latch_get(latch, &left, &w->err);
    if (rc != HF_EMISMATCH && rc != HF_EBACKEND)
        fail_msg("%d, %llu: %s", rc, (unsigned long long)left, w->err.text);
    rc = hf_latch_down(latch, &left, &w->err);
    assert_true(rc == HF_EMISMATCH || rc == HF_EBACKEND);
    ctl("del l/latch");
    OK(hf_latch_get(latch, &left, &w->err));
    assert_int_equal(left, 0);
}

/* Asserts that a client waits behind n/5f, the only entry among this many
 * keys. */
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

/* One entry is among many keys that are not entries. Half of these keys are
 * created before the entry, in one revision, and the other half after the
 * entry, in another. */
static void entry_among(struct world *w, const char *strangers)
{
    put_some(strangers, 0, 120);
    put_some("n/%x", 0x5f, 1);
    put_some(strangers, 120, 120);
    waits_for_5f(w, 241);
}

CASE(test_entry_among_strangers)
{
    world_near(w);
    entry_among(w, "n/%04u/below");
    entry_among(w, "n/zz%04u");
}

CASE(test_entry_made_with_strangers)
{
    world_near(w);
    put_some("n/%u/below", 1, 9);
    ctl("del n/ --prefix");
    put_some("n/%1$xzz x\nput n/%1$x x\nput n/%1$xa/b", 0x5f, 1);
    waits_for_5f(w, 3);
}

CASE(test_long_queue)
{
    hf_lock *a = world_near(w);
    struct taker *t;

    for (unsigned i = 0; i < MANY; i += 125)
        put_some("n/0%05x", i, 125);
    t = taker_start(w, a, WAIT_MS);
    has_entries(MANY + 1);
    is_shown(w, 1, MANY);
    assert_false(taker_back(t));
    OK(hf_break(w->clients[0], "n", 1, &w->err));
    is_shown(w, 1, MANY - 1);
    assert_false(taker_back(t));
    ctl("del n/0 --prefix"); /* spares our entry: no lease id begins with 0 */
    taker_gets_it(t, SOON_MS);
}

/* The lock's entry is listed after the entries of thousands of names below the
 * lock's name. */
CASE(test_latch_beside_a_lock_with_many_names)
{
    hf_lock *a;
    hf_latch *latch = NULL;

    world_near(w);
    world_near(w);
    a = world_change(w, 0, HF_RWLOCK, 0);
    OK(hf_lock_free(w->locks[1]));
    w->locks[1] = NULL;
    for (unsigned i = 0; i < 2 * MANY + 125; i += 125)
        put_some("n/0%05x/1f", i, 125);
    OK(hf_latch_new(w->clients[1], "n", 1, &latch, &w->err));
    world_takes(w, a, WAIT_MS);
    EXPECT(HF_EMISMATCH, hf_latch_set(latch, 2, &w->err));
    OK(hf_lock_release(a, &w->err));
    OK(hf_latch_set(latch, 2, &w->err));
    EXPECT(HF_EMISMATCH, hf_lock_try(a, &w->err));
    OK(hf_latch_free(latch));
    ctl("del n/ --prefix");
}

/* The holder is another program that does not listen: its entry is left
 * unchanged. */
CASE(test_ask_of_a_stranger)
{
    static const char look[] = "get n/1f -w fields";
    char before[600], after[600], *of_one, *of_other;

    world_near(w);
    ctl("put n/1f theirs");
    OK(etcd_server_ctl(&etcd_one, look, before, sizeof(before)));
    OK(hf_ask(w->clients[0], "n", 1, &w->err));
    OK(etcd_server_ctl(&etcd_one, look, after, sizeof(after)));
    of_one = strstr(before, "\"Key\"");
    of_other = strstr(after, "\"Key\"");
    assert_true(of_one && of_other);
    assert_string_equal(of_one, of_other);
    ctl("del n/1f");
    EXPECT(HF_ENOTOWNER, hf_ask(w->clients[0], "n", 1, &w->err));
}

/* etcdctl writes the key of hf_ask(). Malformed values are ignored. A value
 * that names a waiter's token notifies this waiter as soon as it holds the
 * lock. */
CASE(test_wishes_that_say_nonsense)
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
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;
    hf_info *info;

    world_takes(w, a, WAIT_MS);
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->waiters_len, 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        ctl("put holdfast:ask -- '%s'", texts[i]);
    ctl("put holdfast:ask \"$(head -c 100000 /dev/zero | tr '\\0' 1)\"");
    ctl("put holdfast:ask '1 %llu  %llu 2'",
        (unsigned long long)info->waiters[0].token,
        (unsigned long long)token_of(a));
    COMES(world_heard_wish(w, 0));
    assert_int_equal(w->ears[0].wanted, 1);
    assert_false(world_heard_wish(w, 1));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    COMES(world_heard_wish(w, 1));
    ctl("del holdfast:ask");
}
