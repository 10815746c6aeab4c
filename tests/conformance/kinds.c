/* Several kinds: an unsupported kind is refused, a name that is held as one
 * kind is not granted as another, and one hf_lock_acquire_all() may acquire
 * several kinds. */
#include "conf.h"

#define SIZE 2

static const enum hf_kind kinds[] = {HF_MUTEX, HF_RWLOCK, HF_SEMAPHORE};

#define KINDS 3

static uint32_t size_of(enum hf_kind kind)
{
    return kind == HF_SEMAPHORE ? SIZE : 0;
}

static int new_of(hf_client *c, const char *name, const hf_lock_options *opt,
                  hf_lock **lock)
{
    int rc = hf_lock_new(c, name, HF_CSTRING, opt, lock, E);

    if (!rc)
        conf_keep_lock(*lock);
    return rc;
}

/* Creates a lock with the backend's default fairness, because kinds differ in
 * the fairness that they support. */
static int make(hf_client *c, const char *name, enum hf_kind kind,
                hf_lock **lock)
{
    hf_lock_options opt = LOCK_OPTIONS(.kind = kind, .permits = size_of(kind));

    return new_of(c, name, &opt, lock);
}

CONF_CASE(test_kinds_that_are_not_there_say_so, 0)
{
    hf_client *c = conf_open();

    for (int i = 0; i < KINDS; i++) {
        hf_lock *lock = (hf_lock *)c;

        if (conf.kind_caps[kinds[i]])
            continue;
        EXPECT(HF_ENOTSUP, make(c, conf_name(), kinds[i], &lock));
        assert_null(lock);
    }
    if (!conf.kind_caps[HF_LATCH]) {
        hf_latch *latch = (hf_latch *)c;

        EXPECT(HF_ENOTSUP, hf_latch_new(c, conf_name(), HF_CSTRING, &latch, E));
        assert_null(latch);
    }
}

/* Asserts that a lock of another kind is not granted while the name is held. */
static void not_granted(hf_lock *wanted, enum hf_kind kind)
{
    int rc = conf_take(wanted, HF_WRITE, 0, 0);

    assert_true(rc == HF_EBUSY || rc == HF_EMISMATCH);
    if (kind == HF_RWLOCK) {
        rc = conf_take(wanted, HF_READ, 0, 0);
        assert_true(rc == HF_EBUSY || rc == HF_EMISMATCH);
    }
    rc = conf_take(wanted, HF_WRITE, 0, 100);
    assert_true(rc == HF_ETIMEDOUT || rc == HF_EMISMATCH);
}

/* One client holds the name as one kind and another wants it as another kind,
 * which must not be granted. The server may refuse the other kind when the
 * handle is created. */
static void never_granted(hf_client *holder, hf_client *other,
                          enum hf_kind held_as, enum hf_kind wanted_as,
                          enum hf_mode mode)
{
    const char *name = conf_name();
    hf_lock *held, *wanted;
    int rc;

    OK(make(holder, name, held_as, &held));
    /* Acquire once before, so that the server's counter for the name is not
     * 0. */
    OK(conf_take(held, mode, 0, WAIT_LONG_MS));
    OK(hf_lock_release(held, E));
    OK(conf_take(held, mode, 0, WAIT_LONG_MS));
    EXPECT(HF_EMISMATCH, make(holder, name, wanted_as, &wanted));
    rc = make(other, name, wanted_as, &wanted);
    EXPECT(rc ? HF_EMISMATCH : 0, rc);
    if (wanted)
        not_granted(wanted, wanted_as);
    OK(hf_lock_check(held));
    OK(hf_lock_release(held, E));
    conf_free(held);
    if (!wanted)
        OK(make(other, name, wanted_as, &wanted));
    /* A name that is not held can have any kind. */
    COMES(conf_take(wanted, HF_WRITE, 0, 1000) == 0);
    OK(hf_lock_release(wanted, E));
}

CONF_CASE(test_kinds_do_not_mix, 0)
{
    hf_client *a = conf_open(), *b = conf_open();

    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < KINDS; k++) {
            if (i == k || !conf.kind_caps[kinds[i]] ||
                !conf.kind_caps[kinds[k]])
                continue;
            never_granted(a, b, kinds[i], kinds[k], HF_WRITE);
            if (kinds[i] == HF_RWLOCK)
                never_granted(a, b, kinds[i], kinds[k], HF_READ);
        }
}

/* Returns whether fair and unfair locks of one name are separate. In other
 * backends they exclude and wake each other; see hf_lock_new(3) and
 * docs/guarantees/common.md. */
static bool tells_fair_from_unfair(void)
{
    return strncmp(conf.url, "shm:", 4) == 0 ||
           strncmp(conf.url, "zk:", 3) == 0;
}

static int make_so(hf_client *c, const char *name, enum hf_kind kind, bool fair,
                   hf_lock **lock)
{
    hf_lock_options opt = LOCK_OPTIONS(.kind = kind, .permits = size_of(kind),
                                       .fairness = fair ? HF_FAIR : HF_UNFAIR);

    return new_of(c, name, &opt, lock);
}

static void is_told(hf_client *c, const char *name, enum hf_kind kind,
                    bool fair)
{
    hf_lock *wanted = NULL;
    int rc = make_so(c, name, kind, fair, &wanted);

    EXPECT(rc ? HF_EMISMATCH : 0, rc);
    if (rc)
        return;
    EXPECT(HF_EMISMATCH, conf_take(wanted, HF_WRITE, size_of(kind), 0));
    EXPECT(HF_EMISMATCH,
           conf_take(wanted, HF_WRITE, size_of(kind), HF_FOREVER));
}

static void waits_for(hf_client *c, const char *name, enum hf_kind kind,
                      bool fair, hf_lock *held)
{
    hf_lock *wanted;
    struct conf_taker t;

    OK(make_so(c, name, kind, fair, &wanted));
    EXPECT(HF_EBUSY, conf_take(wanted, HF_WRITE, size_of(kind), 0));
    EXPECT(HF_ETIMEDOUT, conf_take(wanted, HF_WRITE, size_of(kind), 100));
    conf_taker_wait(&t, wanted, HF_WRITE, size_of(kind));
    OK(hf_lock_check(held));
    assert_false(conf_taker_has(&t));
    OK(hf_lock_release(held, E));
    COMES_MS(conf_taker_has(&t), 4000);
    conf_taker_ends(&t, 0);
}

static void fair_beside_unfair(enum hf_kind kind, bool fair)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held;

    OK(make_so(a, name, kind, fair, &held));
    OK(conf_take(held, HF_WRITE, size_of(kind), WAIT_LONG_MS));
    if (tells_fair_from_unfair()) {
        is_told(b, name, kind, !fair);
        OK(hf_lock_check(held));
        OK(hf_lock_release(held, E));
    } else {
        waits_for(b, name, kind, !fair, held);
    }
}

CONF_CASE(test_kinds_fair_beside_unfair, 0)
{
    const int both = HF_CAP_FAIR | HF_CAP_UNFAIR;

    for (int i = 0; i < KINDS; i++)
        if ((conf.kind_caps[kinds[i]] & both) == both) {
            fair_beside_unfair(kinds[i], true);
            fair_beside_unfair(kinds[i], false);
        }
}

/* A latch with the name of a held lock is either refused or separate from the
 * lock. */
CONF_CASE(test_kinds_latch_is_not_a_lock, CONF_LATCH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_latch *latch;
    hf_lock *lock;
    int rc;

    OK(make(a, name, HF_MUTEX, &lock));
    OK(hf_lock_acquire(lock, NULL, E));
    rc = hf_latch_new(b, name, HF_CSTRING, &latch, E);
    if (!rc)
        rc = hf_latch_set(latch, 1, E);
    if (rc) /* refused; otherwise they are separate */
        EXPECT(HF_EMISMATCH, rc);
    else
        OK(hf_latch_down(latch, NULL, E));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
    OK(hf_latch_free(latch));
}

struct mixed {
    hf_client *c;
    hf_part part[KINDS];
    enum hf_kind kind[KINDS];
    size_t len; /* number of supported kinds */
};

static void open_mixed(struct mixed *m, const char *const *names)
{
    *m = (struct mixed){.c = conf_open()};
    for (int i = 0; i < KINDS; i++)
        if (conf.kind_caps[kinds[i]]) {
            m->kind[m->len] = kinds[i];
            OK(make(m->c, names[i], kinds[i], &m->part[m->len++].lock));
        }
}

static int take_all(struct mixed *m, int64_t wait_ms)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.wait_ms = wait_ms);

    return hf_lock_acquire_all(m->part, m->len, &opt, E);
}

/* Takes one of the locks, so that hf_lock_acquire_all() has to wait for it. */
static int take_one(struct mixed *m, size_t i, int64_t wait_ms)
{
    return conf_take(m->part[i].lock, HF_WRITE, size_of(m->kind[i]), wait_ms);
}

/* hf_lock_acquire_all() acquires all locks or none, whichever of them is not
 * free. */
CONF_CASE(test_kinds_several_at_once, 0)
{
    const char *names[KINDS] = {conf_name(), conf_name(), conf_name()};
    struct mixed mine, theirs;

    open_mixed(&mine, names);
    open_mixed(&theirs, names);
    OK(take_all(&mine, WAIT_LONG_MS));
    for (size_t i = 0; i < mine.len; i++) {
        OK(hf_lock_check(mine.part[i].lock));
        EXPECT(HF_EBUSY, take_one(&theirs, i, 0));
    }
    OK(hf_lock_release_all(mine.part, mine.len, E));
    for (size_t busy = 0; busy < mine.len; busy++) {
        OK(take_one(&theirs, busy, WAIT_LONG_MS));
        EXPECT(HF_EBUSY, take_all(&mine, 0));
        EXPECT(HF_ETIMEDOUT, take_all(&mine, 50));
        for (size_t i = 0; i < mine.len; i++) {
            EXPECT(HF_ENOTOWNER, hf_lock_check(mine.part[i].lock));
            if (i == busy)
                continue;
            OK(take_one(&theirs, i, WAIT_LONG_MS));
            OK(hf_lock_release(theirs.part[i].lock, E));
        }
        OK(hf_lock_release(theirs.part[busy].lock, E));
    }
    OK(take_all(&theirs, WAIT_LONG_MS));
    OK(hf_lock_release_all(theirs.part, theirs.len, E));
}

/* Each part has its own mode, so two clients can share the part that both of
 * them only read. */
CONF_CASE(test_kinds_several_with_modes_of_their_own, CONF_RWLOCK)
{
    const char *names[2] = {conf_name(), conf_name()};
    hf_client *c[2] = {conf_open(), conf_open()};
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_part part[2][2];

    for (int i = 0; i < 2; i++)
        /* The second client lists the names in reverse order. */
        for (int k = 0; k < 2; k++) {
            part[i][k] = (hf_part){.mode = HF_READ};
            OK(make(c[i], names[k ^ i], HF_RWLOCK, &part[i][k].lock));
        }
    opt.wait_ms = WAIT_LONG_MS;
    OK(hf_lock_acquire_all(part[0], 2, &opt, E));
    OK(hf_lock_acquire_all(part[1], 2, &opt, E));
    OK(hf_lock_release_all(part[1], 2, E));
    opt.wait_ms = 50;
    part[1][0].mode = HF_WRITE;
    EXPECT(HF_ETIMEDOUT, hf_lock_acquire_all(part[1], 2, &opt, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(part[1][1].lock));
    OK(hf_lock_release_all(part[0], 2, E));
    opt.wait_ms = WAIT_LONG_MS;
    OK(hf_lock_acquire_all(part[1], 2, &opt, E));
    EXPECT(HF_EBUSY, conf_take(part[0][1].lock, HF_READ, 0, 0));
    OK(conf_take(part[0][0].lock, HF_READ, 0, 0));
    OK(hf_lock_release(part[0][0].lock, E));
    OK(hf_lock_release_all(part[1], 2, E));
}

/* Each part has its own number of permits. */
CONF_CASE(test_kinds_several_with_permits_of_their_own, CONF_SEMAPHORE)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_part part = {.permits = SIZE};
    hf_lock *other;

    OK(make(a, name, HF_SEMAPHORE, &part.lock));
    OK(make(b, name, HF_SEMAPHORE, &other));
    OK(hf_lock_acquire_all(&part, 1, NULL, E));
    EXPECT(HF_EBUSY, conf_take(other, HF_WRITE, 1, 0));
    OK(hf_lock_release_all(&part, 1, E));
    part.permits = SIZE + 1;
    EXPECT(HF_EINVAL, hf_lock_acquire_all(&part, 1, NULL, E));
    OK(conf_take(other, HF_WRITE, SIZE, WAIT_LONG_MS));
    OK(hf_lock_release(other, E));
}
