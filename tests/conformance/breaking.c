/* hf_break() ends only the holds that were chosen, by token or by owner. */
#include "conf.h"

#include <sched.h>

#define SIZE 4

static int break_token(hf_client *c, const char *name, uint64_t token)
{
    return hf_break_hold(c, name, HF_CSTRING, token, NULL, E);
}

static hf_info *look(hf_client *c, const char *name, size_t holders)
{
    hf_info *info = conf_inspect(c, name);

    assert_int_equal(info->holders_len, holders);
    return info;
}

static bool says(const char *text, uint64_t token)
{
    char number[24];

    snprintf(number, sizeof(number), "%llu", (unsigned long long)token);
    return strstr(text, number);
}

/* A break with a wrong token ends no hold, and its error message gives the
 * right token. */
CONF_CASE(test_breaking_wants_the_token, CONF_EACH | CONF_INSPECT)
{
    hf_error err = HF_ERROR_INIT;
    uint64_t first, token;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    EXPECT(HF_ENOTOWNER, break_token(g.c[1], g.name, 1));
    OK(hf_lock_acquire(g.l[0], NULL, E));
    first = conf_token(g.l[0]);
    OK(hf_lock_release(g.l[0], E));
    EXPECT(HF_ENOTOWNER, break_token(g.c[1], g.name, first));
    OK(hf_lock_acquire(g.l[0], NULL, E));
    token = conf_token(g.l[0]);
    EXPECT(HF_ENOTOWNER,
           hf_break_hold(g.c[1], g.name, HF_CSTRING, first, NULL, &err));
    assert_true(says(err.text, token));
    assert_true(says(err.text, first));
    OK(hf_lock_renew(g.l[0], 0, E));
    OK(break_token(g.c[1], g.name, token));
    EXPECT(HF_ELOST, hf_lock_renew(g.l[0], 0, E));
    OK(conf_take(g.l[1], HF_WRITE, 0, WAIT_LONG_MS));
    EXPECT(HF_ENOTOWNER, break_token(g.c[2], g.name, token));
    OK(hf_lock_renew(g.l[1], 0, E));
    EXPECT(HF_ELOST, hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[1], E));
}

CONF_CASE(test_breaking_wants_the_owner, CONF_EACH | CONF_INSPECT)
{
    char owner[80];
    struct conf_group g;
    hf_info *info;

    memset(owner, 'x', sizeof(owner) - 1);
    owner[sizeof(owner) - 1] = '\0';
    g = conf_group(HF_MUTEX, 0, 0);
    OK(hf_lock_acquire(g.l[0], NULL, E));
    info = look(g.c[1], g.name, 1);
    EXPECT(HF_EINVAL, hf_break_hold(g.c[1], g.name, HF_CSTRING, 0, owner, E));
    EXPECT(HF_EINVAL, hf_break_hold(g.c[1], g.name, HF_CSTRING, 0, NULL, E));
    EXPECT(HF_EINVAL, hf_break_hold(g.c[1], g.name, HF_CSTRING,
                                    info->holders[0].token, "", E));
    EXPECT(HF_ENOTOWNER,
           hf_break_hold(g.c[1], g.name, HF_CSTRING, 0, "stranger", E));
    EXPECT(HF_ENOTOWNER,
           hf_break_hold(g.c[1], g.name, HF_CSTRING, info->holders[0].token + 1,
                         info->holders[0].owner, E));
    OK(hf_lock_renew(g.l[0], 0, E));
    OK(hf_break_hold(g.c[1], g.name, HF_CSTRING, info->holders[0].token,
                     info->holders[0].owner, E));
    EXPECT(HF_ELOST, hf_lock_release(g.l[0], E));
}

static void wakes_a_waiter(bool all)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);
    struct conf_taker t;

    OK(hf_lock_acquire(lock, NULL, E));
    conf_taker_wait(&t, other, HF_WRITE, 0);
    OK(all ? hf_break(a, name, HF_CSTRING, E)
           : break_token(a, name, conf_token(lock)));
    COMES(conf_taker_has(&t));
    conf_taker_ends(&t, 0);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
}

CONF_ROW(test_breaking_wakes_a_waiter, CONF_EACH | CONF_INSPECT,
         wakes_a_waiter(false));
CONF_ROW(test_breaking_all_wakes_a_waiter, CONF_EACH | CONF_INSPECT,
         wakes_a_waiter(true));

/* Returns how many of the two holds are lost, and releases both. */
static int let_go(struct conf_group *g)
{
    int lost = 0;

    for (int i = 0; i < 2; i++) {
        int rc = hf_lock_renew(g->l[i], 0, NULL);

        lost += rc == HF_ELOST;
        EXPECT(rc, hf_lock_release(g->l[i], E));
    }
    return lost;
}

/* With two holders, a break by owner ends one hold; a break by token ends all
 * holds that share the token. */
static void break_one_of_two(struct conf_group *g, bool by_owner)
{
    hf_info *info = look(g->c[2], g->name, 2), *after;
    const hf_party *p = info->holders;
    int n = !by_owner && p[0].token == p[1].token ? 2 : 1;

    EXPECT(HF_ENOTOWNER, hf_break_hold(g->c[2], g->name, HF_CSTRING, p[0].token,
                                       "stranger", E));
    EXPECT(HF_ENOTOWNER, break_token(g->c[2], g->name, p[0].token + 1000));
    OK(hf_break_hold(g->c[2], g->name, HF_CSTRING, p[0].token,
                     by_owner ? p[0].owner : NULL, E));
    after = look(g->c[2], g->name, (size_t)(2 - n));
    if (n == 1)
        assert_string_equal(after->holders[0].owner, p[1].owner);
    assert_int_equal(let_go(g), n);
}

CONF_CASE(test_breaking_one_reader, CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    for (int by_owner = 0; by_owner < 2; by_owner++) {
        OK(conf_take(g.l[0], HF_READ, 0, 0));
        OK(conf_take(g.l[1], HF_READ, 0, 0));
        break_one_of_two(&g, by_owner);
        OK(conf_take(g.l[2], HF_WRITE, 0, WAIT_LONG_MS));
        OK(hf_lock_release(g.l[2], E));
    }
}

/* When the last reader's hold is broken, the waiting writer is granted the
 * lock. */
CONF_CASE(test_breaking_readers_lets_the_writer_in,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    struct conf_taker t = {0};
    hf_info *info;
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    OK(conf_take(g.l[0], HF_READ, 0, 0));
    OK(conf_take(g.l[1], HF_READ, 0, 0));
    info = look(g.c[0], g.name, 2);
    conf_taker_wait(&t, g.l[2], HF_WRITE, 0);
    OK(hf_break_hold(g.c[0], g.name, HF_CSTRING, info->holders[0].token,
                     info->holders[0].owner, E));
    look(g.c[0], g.name, 1);
    assert_false(conf_taker_has(&t));
    OK(hf_break_hold(g.c[0], g.name, HF_CSTRING, info->holders[1].token,
                     info->holders[1].owner, E));
    COMES(conf_taker_has(&t));
    conf_taker_ends(&t, 0);
    assert_int_equal(let_go(&g), 2);
}

/* A hold keeps its token through a downgrade. */
CONF_CASE(test_breaking_a_writer_that_went_down,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    uint64_t token;
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    OK(hf_lock_acquire(g.l[0], NULL, E));
    token = conf_token(g.l[0]);
    OK(hf_lock_downgrade(g.l[0], E));
    OK(break_token(g.c[1], g.name, token));
    EXPECT(HF_ELOST, hf_lock_renew(g.l[0], 0, E));
    OK(conf_take(g.l[1], HF_WRITE, 0, WAIT_LONG_MS));
    EXPECT(HF_ENOTOWNER, break_token(g.c[2], g.name, token));
    EXPECT(HF_ELOST, hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[1], E));
    /* The lost hold must not prevent the next downgrade. */
    OK(hf_lock_acquire(g.l[0], NULL, E));
    OK(hf_lock_downgrade(g.l[0], E));
    OK(conf_take(g.l[1], HF_READ, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[1], E));
    OK(hf_lock_release(g.l[0], E));
}

/* Only the permits of the broken hold become free. */
CONF_CASE(test_breaking_one_hold_of_permits,
          CONF_EACH | CONF_SEMAPHORE | CONF_INSPECT)
{
    uint32_t kept;
    hf_info *info;
    struct conf_group g = conf_group(HF_SEMAPHORE, SIZE, 0);

    for (int by_owner = 0; by_owner < 2; by_owner++) {
        OK(conf_take(g.l[0], HF_WRITE, 2, 0));
        OK(conf_take(g.l[1], HF_WRITE, 1, 0));
        break_one_of_two(&g, by_owner);
        OK(conf_take(g.l[2], HF_WRITE, SIZE, WAIT_LONG_MS));
        OK(hf_lock_release(g.l[2], E));
    }
    OK(conf_take(g.l[0], HF_WRITE, 2, 0));
    OK(conf_take(g.l[1], HF_WRITE, 1, 0));
    info = look(g.c[2], g.name, 2);
    kept = info->holders[1].permits;
    OK(hf_break_hold(g.c[2], g.name, HF_CSTRING, info->holders[0].token,
                     info->holders[0].owner, E));
    EXPECT(HF_EBUSY, conf_take(g.l[2], HF_WRITE, SIZE - kept + 1, 0));
    OK(conf_take(g.l[2], HF_WRITE, SIZE - kept, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[2], E));
    assert_int_equal(let_go(&g), 1);
}

/* A latch has no holds. */
CONF_CASE(test_breaking_does_not_open_a_latch, CONF_LATCH | CONF_INSPECT)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_latch *latch = conf_latch(c, name);
    uint64_t left = 0;

    OK(hf_latch_set(latch, 2, E));
    EXPECT(HF_ENOTOWNER, break_token(c, name, 1));
    EXPECT(HF_ENOTOWNER, hf_break_hold(c, name, HF_CSTRING, 0, "stranger", E));
    OK(hf_latch_get(latch, &left, E));
    assert_int_equal(left, 2);
    OK(hf_break(c, name, HF_CSTRING, E));
}

enum { ROUNDS = 150 };

struct racer {
    struct conf_thread t;
    hf_lock *lock;
    uint64_t *last; /* atomic: the token of a recent hold */
    uint32_t *stop; /* atomic */
    uint64_t lost[ROUNDS];
    int lost_len, rc;
};

static void race(void *arg)
{
    struct racer *r = arg;
    unsigned n = 0;

    while (!r->rc && !__atomic_load_n(r->stop, __ATOMIC_ACQUIRE)) {
        uint64_t token = 0;

        r->rc = hf_lock_acquire(r->lock, NULL, NULL);
        if (r->rc)
            break;
        hf_lock_token(r->lock, &token);
        __atomic_store_n(r->last, token, __ATOMIC_RELEASE);
        if (++n % 4 == 0)
            sched_yield(); /* lets a break arrive while the lock is held */
        r->rc = hf_lock_release(r->lock, NULL);
        if (r->rc != HF_ELOST)
            continue;
        if (token && r->lost_len < ROUNDS) {
            r->lost[r->lost_len++] = token;
            r->rc = 0;
        }
    }
}

static bool is_among(const struct racer *r, uint64_t token)
{
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < r[n].lost_len; i++)
            if (r[n].lost[i] == token)
                return true;
    return false;
}

/* Two threads acquire and release while the main thread breaks holds by token.
 * Each hold that was lost must have been broken, and each successful break must
 * have ended a hold. */
static void race_as(enum hf_kind kind)
{
    struct racer r[2] = {0};
    uint64_t last = 0, broken[ROUNDS];
    uint32_t stop = 0;
    int broken_len = 0, refused = 0;
    struct conf_group g = conf_group(kind, 0, 0);

    for (int i = 0; i < 2; i++) {
        r[i].lock = g.l[i];
        r[i].last = &last;
        r[i].stop = &stop;
        conf_thread_start(&r[i].t, race, &r[i]);
    }
    COMES(__atomic_load_n(&last, __ATOMIC_ACQUIRE));
    while (broken_len < ROUNDS &&
           (broken_len == 0 || refused == 0 || broken_len + refused < ROUNDS)) {
        uint64_t token = __atomic_load_n(&last, __ATOMIC_ACQUIRE);
        int rc = hf_break_hold(g.c[2], g.name, HF_CSTRING, token, NULL, NULL);

        if (!rc) {
            broken[broken_len++] = token;
        } else {
            assert_int_equal(rc, HF_ENOTOWNER);
            refused++;
        }
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) {
        conf_thread_join(&r[i].t);
        assert_int_equal(r[i].rc, 0);
    }
    assert_int_equal(r[0].lost_len + r[1].lost_len, broken_len);
    for (int i = 0; i < broken_len; i++)
        assert_true(is_among(r, broken[i]));
}

CONF_ROW(test_breaking_beside_a_changing_mutex, CONF_EACH | CONF_INSPECT,
         race_as(HF_MUTEX));
CONF_ROW(test_breaking_beside_changing_writers,
         CONF_EACH | CONF_RWLOCK | CONF_INSPECT, race_as(HF_RWLOCK));
