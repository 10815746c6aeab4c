/* hf_inspect() shows holders and waiters, hf_list() lists names, and hf_break()
 * ends holds. */
#include "conf.h"

static size_t holders(hf_client *c, const char *name)
{
    return conf_inspect(c, name)->holders_len;
}

static size_t waiters(hf_client *c, const char *name)
{
    return conf_inspect(c, name)->waiters_len;
}

CONF_CASE(test_inspect_of_an_unused_name_is_empty, CONF_INSPECT)
{
    hf_client *c = conf_open();
    hf_info *info = conf_inspect(c, conf_name());

    assert_int_equal(info->kind, 0);
    assert_int_equal(info->holders_len, 0);
    assert_int_equal(info->waiters_len, 0);
}

CONF_CASE(test_inspect_what_it_found_outlives_the_client,
          CONF_EACH | CONF_INSPECT)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(c, name);
    hf_names *names = NULL;
    hf_info *info;

    OK(hf_lock_acquire(lock, NULL, E));
    info = conf_inspect(c, name);
    OK(hf_list(c, name, &names, E));
    OK(hf_lock_release(lock, E));
    conf_free(lock);
    conf_close(c);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->holders[0].pid, getpid());
    assert_int_equal(names->len, 1);
    assert_string_equal(names->names[0].bytes, name);
    hf_names_free(names);
}

static int64_t unix_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

CONF_CASE(test_inspect_shows_the_holder, CONF_EACH | CONF_INSPECT)
{
    hf_client *a = conf_open();
    const char *name = conf_name();
    struct proc p;
    struct proc_reply r;
    hf_info *info;
    char host[64] = "";
    int64_t before = unix_ms();
    pid_t pid;

    gethostname(host, sizeof(host) - 1);
    p = conf_puppet(name, 20000);
    pid = p.pid;
    OK(conf_puppet_take(&p, HF_FOREVER, 0, &r));
    info = conf_inspect(a, name);
    assert_int_equal(info->kind, HF_MUTEX);
    assert_int_equal(info->fairness, conf.fairness);
    assert_true(info->token == r.token);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 0);
    assert_true(info->holders[0].token == r.token);
    assert_int_equal(info->holders[0].pid, pid);
    assert_string_equal(info->holders[0].host, host);
    assert_string_equal(info->holders[0].label, "puppet");
    assert_true(info->holders[0].owner[0] != '\0');
    assert_true(info->holders[0].since_unix_ms >= before - 2000);
    assert_true(info->holders[0].since_unix_ms <= unix_ms() + 2000);
    assert_true(
        info->holders[0].left_ms == -1 ||
        (info->holders[0].left_ms > 0 && info->holders[0].left_ms <= 20000));
    OK(conf_puppet_do(&p, PROC_GIVE, NULL));
    assert_int_equal(holders(a, name), 0);
    assert_int_equal(proc_end(&p), 0);
}

CONF_CASE(test_inspect_shows_a_fixed_lease_and_a_label,
          CONF_EACH | CONF_INSPECT | CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock_options opt = LOCK_OPTIONS(.label = "nightly \"job\"\n\xff");
    hf_lock *lock;
    hf_info *info;

    lock = conf_lock_with(c, name, &opt);
    OK(conf_take_lease(lock, HF_FOREVER, 50000));
    info = conf_inspect(c, name);
    assert_int_equal(info->holders_len, 1);
    assert_true(info->holders[0].left_ms > 40000);
    assert_true(info->holders[0].left_ms <= 50000);
    assert_int_equal(info->holders[0].pid, getpid());
    /* Bytes of the label that cannot be printed are escaped. */
    assert_string_equal(info->holders[0].label, "nightly \"job\"\\x0a\\xff");
    OK(hf_lock_release(lock, E));
}

/* Returns whether one waiter is shown. For an unfair lock in ZooKeeper only the
 * server knows which clients watch the node, so the result says that the
 * waiters are unknown instead of showing none. */
static bool shows_one_waiter(hf_client *c, const char *name)
{
    bool unknown = conf.session && conf.fairness == HF_UNFAIR;
    hf_info *info = conf_inspect(c, name);
    size_t n = info->waiters_len;

    assert_int_equal(info->waiters_unknown, unknown);
    return n == (unknown ? 0 : 1);
}

/* A hundred threads of one client that wait for one mutex are one waiter at the
 * server. */
CONF_CASE(test_inspect_a_client_is_one_waiter, CONF_EACH | CONF_INSPECT)
{
    enum { THREADS = 100 };
    static struct conf_taker t[THREADS];
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name), *lock = conf_lock(b, name);

    OK(hf_lock_acquire(held, NULL, E));
    for (int i = 0; i < THREADS; i++) {
        t[i] = (struct conf_taker){0};
        __atomic_store_n(&t[i].let_go, 0, __ATOMIC_RELEASE);
        conf_taker_start(&t[i], lock);
    }
    for (int i = 0; i < THREADS; i += 33)
        conf_thread_asleep(&t[i].t);
    COMES(shows_one_waiter(a, name));
    for (int i = 0; i < THREADS; i++)
        __atomic_store_n(&t[i].let_go, 1, __ATOMIC_RELEASE);
    OK(hf_lock_release(held, E));
    for (int i = 0; i < 20; i++)
        assert_true(waiters(a, name) <= 1);
    for (int i = 0; i < THREADS; i++) {
        conf_taker_ends(&t[i], 0);
    }
    COMES(waiters(a, name) == 0 && holders(a, name) == 0);
}

CONF_CASE(test_inspect_shows_waiters_in_their_order, CONF_FAIR | CONF_INSPECT)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(c, name);
    struct proc p[4];
    pid_t pid[4];
    hf_info *info;

    OK(hf_lock_acquire(lock, NULL, E));
    for (size_t i = 0; i < 4; i++) {
        p[i] = conf_puppet(name, 0);
        pid[i] = p[i].pid;
        conf_puppet_wait(&p[i]);
        COMES(waiters(c, name) == i + 1);
    }
    info = conf_inspect(c, name);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(info->waiters[i].owner[0] != '\0');
        if (info->waiters[i].pid)
            assert_int_equal(info->waiters[i].pid, pid[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        struct proc_reply r;

        OK(i ? conf_puppet_do(&p[i - 1], PROC_GIVE, NULL)
             : hf_lock_release(lock, E));
        conf_puppet_answer(&p[i], &r);
        OK(r.rc);
        info = conf_inspect(c, name);
        assert_int_equal(info->waiters_len, 3 - i);
        assert_int_equal(info->holders_len, 1);
        assert_int_equal(info->holders[0].pid, pid[i]);
        assert_true(info->holders[0].token == r.token);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(proc_end(&p[i]), 0);
}

static int64_t left_ms(hf_client *c, const char *name)
{
    hf_info *info = conf_inspect(c, name);
    int64_t left;

    assert_int_equal(info->holders_len, 1);
    left = info->holders[0].left_ms;
    return left;
}

CONF_CASE(test_inspect_shows_a_renewed_lease,
          CONF_EACH | CONF_INSPECT | CONF_LEASE)
{
    hf_client *a = conf_open_long(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name);
    int64_t since;
    hf_info *info;

    OK(conf_take_lease(lock, HF_FOREVER, 20000));
    info = conf_inspect(b, name);
    since = info->holders[0].since_unix_ms;
    OK(hf_lock_renew(lock, 90000, E));
    COMES(left_ms(b, name) > 80000);
    assert_true(left_ms(b, name) <= 90000);
    info = conf_inspect(b, name);
    assert_true(info->holders[0].token == conf_token(lock));
    assert_true(llabs(info->holders[0].since_unix_ms - since) < 2000);
    OK(hf_lock_release(lock, E));
}

/* Asserts that a write hold that was downgraded is shown as the same hold. */
static void is_shown_as_before(hf_client *c, const char *name,
                               const hf_info *before, uint64_t token)
{
    const hf_party *was = before->holders, *is;
    hf_info *info = conf_inspect(c, name);

    assert_int_equal(info->kind, HF_RWLOCK);
    assert_true(info->token == token);
    assert_int_equal(info->holders_len, 1);
    is = info->holders;
    assert_int_equal(is->mode, HF_READ);
    assert_true(is->token == token);
    assert_int_equal(is->pid, was->pid);
    assert_string_equal(is->host, was->host);
    assert_string_equal(is->label, was->label);
    assert_string_equal(is->owner, was->owner);
    assert_true(llabs(is->since_unix_ms - was->since_unix_ms) < 2000);
    /* left_ms is greater if the hold was renewed in between */
    assert_true(is->left_ms <= was->left_ms + 20000);
    assert_int_equal(is->left_ms < 0, was->left_ms < 0);
}

CONF_CASE(test_inspect_downgrade_changes_the_mode_alone,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT | CONF_LEASE)
{
    hf_client *a = conf_open(), *b = conf_open();
    const int64_t leases[] = {0, 50000};
    hf_lock_options opt = LOCK_OPTIONS(.kind = HF_RWLOCK, .label = "nightly");

    for (int i = 0; i < 2; i++) {
        const char *name = conf_name();
        hf_lock *lock = conf_lock_with(a, name, &opt);
        uint64_t token;
        hf_info *info;

        OK(conf_take_lease(lock, HF_FOREVER, leases[i]));
        token = conf_token(lock);
        info = conf_inspect(b, name);
        assert_int_equal(info->holders_len, 1);
        assert_int_equal(info->holders[0].mode, HF_WRITE);
        assert_string_equal(info->holders[0].label, opt.label);
        OK(hf_lock_downgrade(lock, E));
        is_shown_as_before(b, name, info, token);
        OK(hf_lock_release(lock, E));
        conf_free(lock);
    }
}

static bool listed(hf_client *c, const char *prefix, const char *name)
{
    hf_names *names = NULL;
    bool found = false;

    OK(hf_list(c, prefix, &names, E));
    assert_non_null(names);
    for (size_t i = 0; i < names->len; i++) {
        const struct hf_name *n = &names->names[i];

        assert_int_equal(n->bytes[n->len], 0);
        if (prefix)
            assert_int_equal(strncmp(n->bytes, prefix, strlen(prefix)), 0);
        found = found ||
                (n->len == strlen(name) && memcmp(n->bytes, name, n->len) == 0);
    }
    hf_names_free(names);
    return found;
}

CONF_CASE(test_inspect_list_shows_what_is_in_use, CONF_EACH | CONF_INSPECT)
{
    hf_client *a = conf_open(), *b = conf_open();
    char one[128], two[128], odd[128];
    const char *base = conf_name();
    hf_lock *lock[3];

    snprintf(one, sizeof(one), "%s/one", base);
    snprintf(two, sizeof(two), "%s/two", base);
    snprintf(odd, sizeof(odd), "%s*?[a]\\{x} \xff", base);
    lock[0] = conf_lock(a, one);
    lock[1] = conf_lock(a, two);
    lock[2] = conf_lock(a, odd);
    assert_false(listed(b, NULL, one));
    for (int i = 0; i < 3; i++)
        OK(hf_lock_acquire(lock[i], NULL, E));
    assert_true(listed(b, NULL, one));
    assert_true(listed(b, base, one));
    assert_true(listed(b, base, two));
    assert_true(listed(b, base, odd));
    assert_true(listed(b, odd, odd));
    assert_true(listed(b, one, one));
    assert_false(listed(b, one, two));
    OK(hf_lock_release(lock[0], E));
    assert_false(listed(b, base, one));
    assert_true(listed(b, base, two));
    OK(hf_lock_release(lock[1], E));
    OK(hf_lock_release(lock[2], E));
    for (int i = 0; i < 3; i++)
        conf_free(lock[i]);
    assert_false(listed(a, base, two));
}

CONF_CASE(test_inspect_list_of_many, CONF_EACH | CONF_INSPECT)
{
    enum { MANY = 300 };
    static hf_lock *lock[MANY];
    hf_client *c = conf_open();
    const char *base = conf_name();
    hf_names *names = NULL;
    char name[128];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%s-%d", base, i);
        lock[i] = conf_lock(c, name);
        OK(hf_lock_acquire(lock[i], NULL, E));
    }
    OK(hf_list(c, base, &names, E));
    assert_int_equal(names->len, MANY);
    hf_names_free(names);
    for (int i = 0; i < MANY; i++) {
        OK(hf_lock_release_nowait(lock[i], E));
        conf_free(lock[i]);
    }
}

CONF_CASE(test_inspect_break_takes_it_away, CONF_EACH | CONF_INSPECT)
{
    hf_client *a = conf_open_ttl(CONF_KEPT_TTL_MS), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);
    uint64_t token;

    EXPECT(HF_ENOTOWNER, hf_break(b, name, HF_CSTRING, E));
    OK(hf_lock_acquire(lock, NULL, E));
    token = conf_token(lock);
    OK(hf_break(b, name, HF_CSTRING, E));
    EXPECT(HF_ENOTOWNER, hf_break(b, name, HF_CSTRING, E));
    OK(hf_lock_timed(other, WAIT_LONG_MS, E));
    assert_true(conf_token(other) > token);
    /* The holder learns of the break at its next renewal at the latest. */
    EXPECT(HF_ELOST, hf_lock_renew(lock, 0, E));
    EXPECT(HF_ELOST, hf_lock_check(lock));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    OK(hf_lock_check(other));
    EXPECT(HF_EBUSY, hf_lock_try(lock, E));
    OK(hf_lock_release(other, E));
}

CONF_CASE(test_inspect_break_is_learned_without_asking,
          CONF_EACH | CONF_INSPECT)
{
    hf_client *a = conf_open_ttl(CONF_KEPT_TTL_MS), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_break(b, name, HF_CSTRING, E));
    COMES_MS(hf_lock_check(lock) == HF_ELOST, CONF_KEPT_TTL_MS + 1000);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    conf_comes_free(other);
}

/* The late release of a broken hold must not release the next owner's hold. */
CONF_CASE(test_inspect_break_then_release_frees_nobody_else,
          CONF_EACH | CONF_INSPECT)
{
    hf_client *a = conf_open(), *b = conf_open(), *d = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);
    hf_lock *third = conf_lock(d, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_break(b, name, HF_CSTRING, E));
    OK(hf_lock_timed(other, WAIT_LONG_MS, E));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    EXPECT(HF_EBUSY, hf_lock_try(third, E));
    OK(hf_lock_check(other));
    OK(hf_lock_release(other, E));
}
