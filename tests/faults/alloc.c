/*
 * Every allocation of ours fails in turn: the n-th after the point where a
 * scene is set (that one alone, or all from there on), for n = 1, 2, 3 … until
 * the verb comes through without one failing. Each time the verb says so by its
 * code, nobody is half in or out, all works once memory is there again, and
 * nothing is left allocated.
 *
 *     alloc NAME|URL [PATTERN]
 *
 * as the conformance suite takes them.
 */
#include "../conformance/conf.h"
#include "../conformance/servers.h"

#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>

#define TTL_MS 900
#define MOST 500 /* no verb needs that many */

/* ---- memory ------------------------------------------------------------ */

static long blocks;    /* atomic: given and not taken back */
static long countdown; /* atomic: the allocation that fails; 0: none */
static long failed;    /* atomic: how many did */
static bool for_good;  /* and all after it, until it is disarmed */

static bool fails(void)
{
    long now = __atomic_load_n(&countdown, __ATOMIC_SEQ_CST);

    if (now == 1 && for_good)
        return true;
    return now > 0 && __atomic_sub_fetch(&countdown, 1, __ATOMIC_SEQ_CST) == 0;
}

static void *give(void *ctx, size_t size)
{
    void *p;

    (void)ctx;
    if (fails()) {
        __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
        return NULL;
    }
    p = malloc(size);
    if (p) {
        memset(p, 0xa5, size); /* it need not be zeroed */
        __atomic_add_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
    }
    return p;
}

static void take_back(void *ctx, void *p)
{
    (void)ctx;
    __atomic_sub_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
    free(p);
}

static const hf_hooks hooks = {.alloc = give, .free = take_back};

static void arm(long n)
{
    __atomic_store_n(&failed, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&countdown, n, __ATOMIC_SEQ_CST);
}

static bool disarm(void)
{
    __atomic_store_n(&countdown, 0, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&failed, __ATOMIC_SEQ_CST) > 0;
}

/* ---- the stage --------------------------------------------------------- */

struct stage {
    hf_client *c, *other; /* whose memory fails; whose does not */
    hf_lock *lock, *theirs;
    const char *name;
    int lost; /* events */
};

static void hear(void *arg, const hf_event *e)
{
    struct stage *s = arg;

    s->lost += e->type == HF_EVENT_LOST;
}

static int open_client(struct stage *s, hf_client **c)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;

    opt.hooks = &hooks;
    opt.ttl_ms = TTL_MS;
    opt.label = "alloc";
    opt.on_event = hear;
    opt.event_arg = s;
    return hf_open(conf.url, &opt, c, E);
}

static void set(struct stage *s)
{
    *s = (struct stage){.name = conf_name()};
    s->other = conf_open();
    s->theirs = conf_lock(s->other, s->name);
    OK(open_client(s, &s->c));
    s->lock = conf_lock_flags(s->c, s->name, HF_OWNER_HANDLE);
}

/* Somebody else can have it: nothing is half-held. */
static void theirs_again(struct stage *s)
{
    OK(hf_lock_timed(s->theirs, WAIT_LONG_MS, E));
    OK(hf_lock_release(s->theirs, E));
}

static void ours_again(struct stage *s)
{
    OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    OK(hf_lock_check(s->lock));
    conf_token(s->lock);
    OK(hf_lock_release(s->lock, E));
}

static void strike(struct stage *s)
{
    OK(hf_close(s->c));
    conf_free(s->lock);
    conf_free(s->theirs);
    OK(hf_close(s->other));
}

/* Out of memory, or it did without. */
static void check_code(int rc, const char *verb, long n)
{
    if (rc == 0 || rc == HF_ENOMEM)
        return;
    print_error("%s: with allocation %ld failed it says %s\n", verb, n,
                hf_error_name(rc));
    fail();
}

static bool readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) == 1;
}

/* ---- scenes: n is the allocation that fails; false when none did -------- */

static bool open_and_close(struct stage *s, long n)
{
    hf_client *c = NULL;
    bool hit;
    int rc;

    arm(n);
    rc = open_client(s, &c);
    hit = disarm();
    check_code(rc, "hf_open", n);
    assert_int_equal(c == NULL, rc != 0);
    OK(hf_close(c));
    return hit;
}

static bool make_locks(struct stage *s, long n)
{
    enum { MANY = 40 };
    hf_lock *lock[MANY] = {0};
    bool hit;
    int rc = 0, made = 0;

    arm(n);
    while (!rc && made < MANY) {
        rc = hf_lock_new(s->c, conf_name(), HF_CSTRING, NULL, &lock[made], E);
        if (!rc)
            made++;
        else
            assert_null(lock[made]);
    }
    hit = disarm();
    check_code(rc, "hf_lock_new", n);
    for (int i = 0; i < made; i++) {
        OK(hf_lock_try(lock[i], E));
        OK(hf_lock_release(lock[i], E));
        conf_free(lock[i]);
    }
    return hit;
}

static bool acquire(struct stage *s, long n)
{
    bool hit;
    int rc;

    arm(n);
    rc = hf_lock_timed(s->lock, WAIT_LONG_MS, E);
    hit = disarm();
    check_code(rc, "hf_lock_timed", n);
    if (!rc)
        OK(hf_lock_release(s->lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
    return hit;
}

/* The holder lets go when the waiter sleeps, or when it has given up. */
static bool acquire_contended(struct stage *s, long n)
{
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};
    bool hit;

    t.opt.wait_ms = WAIT_LONG_MS;
    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    conf_taker_start(&t, s->lock);
    COMES(__atomic_load_n(&t.t.tid, __ATOMIC_ACQUIRE));
    COMES(conf_thread_ended(&t.t) || wait_state(getpid(), t.t.tid) == 'S');
    for (int i = 0; i < 10 && !conf_thread_ended(&t.t); i++)
        wait_tick();
    OK(hf_lock_release(s->theirs, E));
    conf_taker_end(&t);
    hit = disarm();
    check_code(t.rc, "a waiting acquire", n);
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
    return hit;
}

static bool try_held(struct stage *s, long n)
{
    bool hit;
    int rc;

    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    rc = hf_lock_try(s->lock, E);
    hit = disarm();
    check_code(rc == HF_EBUSY ? 0 : rc, "hf_lock_try", n);
    OK(hf_lock_release(s->theirs, E));
    return hit;
}

/* ---- asynchronous ------------------------------------------------------ */

struct call {
    int called, result;
};

static void note(void *arg, hf_lock *lock, int result)
{
    struct call *call = arg;

    (void)lock;
    call->called++;
    call->result = result;
}

static bool dispatched(struct stage *s, struct call *call)
{
    int rc = hf_client_dispatch(s->c);

    return rc < 0 || call->called;
}

static bool async(struct stage *s, long n)
{
    struct call call = {0, 0};
    bool hit;
    int rc;

    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    rc = hf_lock_acquire_async(s->lock, NULL, note, &call, E);
    check_code(rc, "hf_lock_acquire_async", n);
    for (int i = 0; i < 10; i++, wait_tick())
        hf_client_dispatch(s->c);
    OK(hf_lock_release(s->theirs, E));
    if (!rc) {
        COMES(dispatched(s, &call));
        assert_int_equal(call.called, 1);
        check_code(call.result, "an asynchronous acquire", n);
    }
    if (!rc && !call.result) {
        call = (struct call){0, 0};
        rc = hf_lock_release_async(s->lock, note, &call, E);
        check_code(rc, "hf_lock_release_async", n);
        if (rc)
            OK(hf_lock_release(s->lock, E));
        else
            COMES(dispatched(s, &call));
        check_code(call.result, "an asynchronous release", n);
    }
    hit = disarm();
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
    return hit;
}

static bool async_cancel(struct stage *s, long n)
{
    struct call call = {0, 0};
    bool hit;
    int rc;

    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    rc = hf_lock_acquire_async(s->lock, NULL, note, &call, E);
    check_code(rc, "hf_lock_acquire_async", n);
    for (int i = 0; i < 5; i++, wait_tick())
        hf_client_dispatch(s->c);
    OK(hf_lock_cancel(s->lock));
    if (!rc)
        COMES(dispatched(s, &call));
    hit = disarm();
    if (call.result != HF_ECANCELED)
        check_code(call.result, "a cancelled acquire", n);
    assert_true(rc || call.result); /* it was never free */
    OK(hf_lock_release(s->theirs, E));
    return hit;
}

/* ---- the others -------------------------------------------------------- */

/* Whatever it says, the hold has ended where it was called. */
static bool release(struct stage *s, long n)
{
    bool hit;
    int rc;

    OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    arm(n);
    rc = n % 2 ? hf_lock_release(s->lock, E)
               : hf_lock_release_nowait(s->lock, E);
    hit = disarm();
    check_code(rc == HF_EUNKNOWN ? 0 : rc, "hf_lock_release", n);
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
    return hit;
}

static bool renew(struct stage *s, long n)
{
    bool hit;
    int rc;

    OK(conf_take_lease(s->lock, WAIT_LONG_MS, 20000));
    arm(n);
    rc = hf_lock_renew(s->lock, 30000, E);
    hit = disarm();
    check_code(rc, "hf_lock_renew", n);
    OK(hf_lock_check(s->lock));
    OK(hf_lock_renew(s->lock, 30000, E));
    OK(hf_lock_release(s->lock, E));
    return hit;
}

/* A renewal that had no memory is made good before the hold ends. */
static bool watchdog(struct stage *s, long n)
{
    int64_t begun;
    bool hit;

    OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    begun = wait_now();
    arm(n);
    COMES(wait_ms_since(begun) > 2 * TTL_MS);
    hit = disarm();
    OK(hf_lock_check(s->lock));
    EXPECT(HF_EBUSY, hf_lock_try(s->theirs, E));
    OK(hf_lock_release(s->lock, E));
    return hit;
}

/* An event may be lost then; the call and the descriptor tell all the same. */
static bool loss(struct stage *s, long n)
{
    int fd = hf_lock_fd(s->lock);
    bool hit;

    assert_true(fd >= 0);
    OK(conf_take_lease(s->lock, WAIT_LONG_MS, 100));
    arm(n);
    COMES(readable(fd));
    EXPECT(HF_ELOST, hf_lock_check(s->lock));
    COMES((hf_client_dispatch(s->c), s->lost || __atomic_load_n(&failed, 0)));
    hit = disarm();
    EXPECT(HF_ELOST, hf_lock_release(s->lock, E));
    return hit;
}

static bool queries(struct stage *s, long n)
{
    hf_info *info = NULL;
    hf_names *names = NULL;
    bool hit;
    int rc;

    OK(hf_lock_timed(s->theirs, WAIT_LONG_MS, E));
    arm(n);
    rc = hf_inspect(s->c, s->name, HF_CSTRING, &info, E);
    check_code(rc, "hf_inspect", n);
    assert_int_equal(info == NULL, rc != 0);
    rc = hf_list(s->c, NULL, &names, E);
    check_code(rc, "hf_list", n);
    assert_int_equal(names == NULL, rc != 0);
    hit = disarm();
    hf_info_free(s->c, info);
    hf_names_free(s->c, names);
    OK(hf_lock_release(s->theirs, E));
    return hit;
}

/* Broken or not: the code says which. */
static bool break_it(struct stage *s, long n)
{
    bool hit;
    int rc;

    OK(hf_lock_timed(s->theirs, WAIT_LONG_MS, E));
    arm(n);
    rc = hf_break(s->c, s->name, HF_CSTRING, E);
    hit = disarm();
    check_code(rc, "hf_break", n);
    EXPECT(rc ? 0 : HF_ELOST, hf_lock_release(s->theirs, E));
    return hit;
}

static bool several(struct stage *s, long n)
{
    hf_lock *lock[3] = {s->lock, NULL, NULL};
    bool hit;
    int rc;

    lock[1] = conf_lock(s->c, conf_name());
    lock[2] = conf_lock(s->c, conf_name());
    arm(n);
    rc = hf_lock_acquire_all(lock, 3, NULL, E);
    hit = disarm();
    check_code(rc, "hf_lock_acquire_all", n);
    for (int i = 0; i < 3; i++)
        EXPECT(rc ? HF_ENOTOWNER : 0, hf_lock_check(lock[i]));
    if (!rc)
        OK(hf_lock_release_all(lock, 3, E));
    conf_free(lock[1]);
    conf_free(lock[2]);
    return hit;
}

/* With a hold, a wait and an asynchronous one under way. */
static bool close_busy(struct stage *s, long n)
{
    hf_lock *busy[3];
    struct call call = {0, 0};
    struct conf_taker t = {0};
    hf_client *c = NULL;
    bool hit;
    int rc;

    OK(open_client(s, &c));
    busy[0] = conf_lock(c, conf_name());
    busy[1] = conf_lock(c, s->name);
    busy[2] = conf_lock_flags(c, s->name, HF_OWNER_HANDLE);
    OK(hf_lock_acquire(s->theirs, NULL, E));
    OK(hf_lock_acquire(busy[0], NULL, E));
    OK(hf_lock_acquire_async(busy[2], NULL, note, &call, E));
    conf_taker_start(&t, busy[1]);
    conf_thread_asleep(&t.t);
    arm(n);
    rc = hf_close(c);
    hit = disarm();
    check_code(rc == HF_EUNKNOWN ? 0 : rc, "hf_close", n);
    conf_taker_end(&t);
    assert_int_equal(t.rc, HF_ECLOSED);
    assert_int_equal(call.called, 1);
    assert_int_equal(call.result, HF_ECLOSED);
    for (int i = 0; i < 3; i++)
        conf_free(busy[i]);
    OK(hf_lock_release(s->theirs, E));
    return hit;
}

/* ---- all of them ------------------------------------------------------- */

struct scene {
    const char *name;
    bool (*play)(struct stage *, long n);
    long least; /* played at least that often: memory may not be asked for */
    bool inspects;
    bool once; /* without memory for good it is lost, and rightly so */
};

static const struct scene scenes[] = {
    {"test_alloc_open_and_close", open_and_close, 1, false, false},
    {"test_alloc_lock_new", make_locks, 1, false, false},
    {"test_alloc_acquire", acquire, 1, false, false},
    {"test_alloc_acquire_contended", acquire_contended, 1, false, false},
    {"test_alloc_try_of_a_held_one", try_held, 1, false, false},
    {"test_alloc_async", async, 1, false, false},
    {"test_alloc_async_cancel", async_cancel, 1, false, false},
    {"test_alloc_release", release, 2, false, false},
    {"test_alloc_renew", renew, 1, false, false},
    {"test_alloc_watchdog", watchdog, 1, false, true},
    {"test_alloc_loss", loss, 1, false, false},
    {"test_alloc_inspect_and_list", queries, 1, true, false},
    {"test_alloc_break", break_it, 1, true, false},
    {"test_alloc_acquire_all", several, 1, false, false},
    {"test_alloc_close_of_a_busy_client", close_busy, 1, false, false},
};

enum { SCENES = sizeof(scenes) / sizeof(*scenes) };

/* How many failed before it came through. */
static long play_until_it_comes_through(const struct scene *scene)
{
    long before = __atomic_load_n(&blocks, __ATOMIC_SEQ_CST), n = 0, hits = 0;
    bool hit;

    do {
        struct stage s;

        assert_true(++n < MOST);
        set(&s);
        hit = scene->play(&s, n);
        hits += hit;
        theirs_again(&s);
        ours_again(&s);
        strike(&s);
        assert_int_equal(__atomic_load_n(&blocks, __ATOMIC_SEQ_CST), before);
    } while (hit || n < scene->least);
    return hits;
}

static void play(void **state)
{
    const struct scene *scene = *state;
    long once, ever = 0;

    for_good = false;
    once = play_until_it_comes_through(scene);
    for_good = true;
    if (!scene->once)
        ever = play_until_it_comes_through(scene);
    fprintf(stderr, "%s: failed at %ld and from %ld places\n", scene->name,
            once, ever);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[SCENES];
    size_t len = 0;
    hf_client *c;
    int rc = 1;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: alloc NAME|URL [PATTERN]\n");
        return 64;
    }
    if (!servers_start(argv[1]) && !hf_open(conf.url, NULL, &c, NULL)) {
        conf.caps = hf_client_caps(c, HF_MUTEX);
        hf_close(c);
        for (size_t i = 0; i < SCENES; i++)
            if ((!argv[2] || !fnmatch(argv[2], scenes[i].name, 0)) &&
                (!scenes[i].inspects || (conf.caps & HF_CAP_INSPECT)))
                tests[len++] = (struct CMUnitTest){
                    .name = scenes[i].name,
                    .test_func = play,
                    .initial_state = (void *)(uintptr_t)&scenes[i]};
        rc = _cmocka_run_group_tests("alloc", tests, len, NULL, NULL);
    }
    servers_stop();
    return rc != 0;
}
