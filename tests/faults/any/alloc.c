/*
 * Every allocation fails in turn. For n = 1, 2, 3 ... the n-th allocation of a
 * scene fails, until the scene passes without a failed allocation. Then all of
 * this is repeated, but all allocations after the n-th fail, too. Each time the
 * call must return a code that a failed allocation explains, leave no lock half
 * held, work again once there is memory, and leave nothing allocated.
 *
 *     alloc NAME|URL [PATTERN]
 *
 * NAME and URL are as for the conformance suite. With WHOLE_PROCESS malloc()
 * itself fails instead of the test's allocator. This includes the allocations
 * of libc, hiredis and thread structures, and leaks are not counted.
 */
#include "alloc.h"

#include "../../conformance/servers.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#define MOST 500 /* no call allocates this often */

static long blocks;    /* atomic: number of blocks that are not freed */
static long countdown; /* atomic: the countdown-th allocation from now on fails;
                          none if 0 */
static long failed;    /* atomic: how many allocations have failed */
static bool for_good;  /* all later allocations fail too, until disarm() */

static bool fails(void)
{
    long now = __atomic_load_n(&countdown, __ATOMIC_SEQ_CST);

    if (now == 1 && for_good)
        return true;
    return now > 0 && __atomic_sub_fetch(&countdown, 1, __ATOMIC_SEQ_CST) == 0;
}

#ifdef WHOLE_PROCESS

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool refused(void)
{
    if (!fails())
        return false;
    __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
    errno = ENOMEM;
    return true;
}

HF_API void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}

HF_API void *calloc(size_t n, size_t size)
{
    return refused() ? NULL : __libc_calloc(n, size);
}

HF_API void *realloc(void *p, size_t size)
{
    return refused() ? NULL : __libc_realloc(p, size);
}

static const hf_hooks *const hooks = NULL;

#else

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
        memset(p, 0xa5, size); /* the allocator need not return zeroed memory */
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

static const hf_hooks counting = {.alloc = give, .free = take_back};
static const hf_hooks *const hooks = &counting;

#endif

void arm(long n)
{
    __atomic_store_n(&failed, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&countdown, n, __ATOMIC_SEQ_CST);
}

bool any_failed(void)
{
    return __atomic_load_n(&failed, __ATOMIC_SEQ_CST) > 0;
}

void disarm(void)
{
    __atomic_store_n(&countdown, 0, __ATOMIC_SEQ_CST);
}

static void hear(void *arg, const hf_event *e)
{
    struct stage *s = arg;

    s->lost += e->type == HF_EVENT_LOST;
}

int open_client(struct stage *s, hf_client **c)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;

    opt.hooks = hooks;
    opt.ttl_ms = s->ttl_ms;
    /* If malloc() itself fails, a call often waits for the whole timeout, which
     * is therefore short. */
    opt.op_timeout_ms = opt.connect_timeout_ms = hooks ? 20000 : 2000;
    opt.label = "alloc";
    opt.on_event = hear;
    opt.event_arg = s;
    return hf_open(conf.url, &opt, c, E);
}

/* Returns the TTL for the client of the scene. A session may have as little as
 * a third of its time left when it is renewed. If the machine stalls for longer
 * than that, the session ends, which cancels all requests in flight. Therefore
 * a session lasts as long as the longest wait, unless the scene waits for
 * renewals. */
static int64_t ttl_of(const struct scene *scene)
{
    if (!(scene->flags & SCENE_RENEWS))
        return conf.session ? WAIT_LONG_MS : 5000;
    return conf.session ? 3000 : 2500;
}

static void set(struct stage *s, const struct scene *scene)
{
    *s = (struct stage){.name = conf_name(), .ttl_ms = ttl_of(scene)};
    s->other = conf_open();
    s->theirs = conf_lock(s->other, s->name);
    /* A busy machine may need more than the short connect_timeout. */
    COMES(open_client(s, &s->c) == 0);
    s->lock = conf_lock_flags(s->c, s->name, HF_OWNER_HANDLE);
}

/* Asserts that another client can acquire the lock, which shows that no part of
 * a hold is left. */
static void theirs_again(struct stage *s)
{
    OK(hf_lock_timed(s->theirs, WAIT_LONG_MS, E));
    OK(hf_lock_release(s->theirs, E));
}

static void ours_again(struct stage *s)
{
    if (hooks)
        OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    else /* a lost connection is replaced, but not at once */
        COMES(hf_lock_timed(s->lock, WAIT_LONG_MS, NULL) == 0);
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

/* Asserts that the call succeeded or that its error reports missing memory. If
 * malloc() itself fails, the connection may be lost too. */
void check_code(int rc, const char *verb, long n)
{
    if (rc == 0 || rc == HF_ENOMEM)
        return;
    if (!hooks && (rc == HF_EBACKEND || rc == HF_EUNKNOWN))
        return;
    print_error("%s: after allocation %ld failed it returned %s\n", verb, n,
                hf_error_name(rc));
    fail();
}

void they_let_go(struct stage *s, long n)
{
    int rc = hf_lock_release(s->theirs, E);

    if (hooks)
        OK(rc);
    else
        check_code(rc, "their hf_lock_release", n);
}

/* Plays the scene until no allocation fails; returns the number of attempts in
 * which one failed. */
static long play_until_it_comes_through(const struct scene *scene)
{
    long before = __atomic_load_n(&blocks, __ATOMIC_SEQ_CST), n = 0, hits = 0;
    bool hit;

    do {
        struct stage s;

        assert_true(++n < MOST);
        set(&s, scene);
        arm(0);
        scene->play(&s, n);
        hit = any_failed();
        hits += hit;
        theirs_again(&s);
        ours_again(&s);
        strike(&s);
        assert_int_equal(__atomic_load_n(&blocks, __ATOMIC_SEQ_CST), before);
    } while (hit || (n == 1 && (scene->flags & SCENE_TWICE)));
    return hits;
}

static void play(void **state)
{
    const struct scene *scene = *state;
    long once, ever = 0;

    for_good = false;
    once = play_until_it_comes_through(scene);
    if (scene->flags & SCENE_SURELY)
        assert_true(once > 0);
    for_good = true;
    if (!(scene->flags & SCENE_ONCE))
        ever = play_until_it_comes_through(scene);
    fprintf(stderr, "%s: failed at %ld and from %ld places\n", scene->name,
            once, ever);
}

static size_t choose(const char *pattern, struct CMUnitTest *tests)
{
    size_t len = 0;

    for (const struct scene *s = scenes; s->name; s++)
        if ((!pattern || !fnmatch(pattern, s->name, 0)) &&
            (!(s->flags & SCENE_INSPECTS) || (conf.caps & HF_CAP_INSPECT)) &&
            (!(s->flags & SCENE_KINDS) || conf.kind_caps[HF_LATCH]))
            tests[len++] = (struct CMUnitTest){
                .name = s->name,
                .test_func = play,
                .initial_state = (void *)(uintptr_t)s,
            };
    return len;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[32];
    size_t len = 0;
    hf_client *c;
    int rc = 1;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: alloc NAME|URL [PATTERN]\n");
        return 64;
    }
    if (!servers_start(argv[1]) && !hf_open(conf.url, NULL, &c, NULL)) {
        conf.caps = hf_client_caps(c, HF_MUTEX);
        conf.kind_caps[HF_LATCH] = hf_client_caps(c, HF_LATCH);
        hf_close(c);
        len = choose(argv[2], tests);
    }
    if (len)
        rc = _cmocka_run_group_tests("alloc", tests, len, NULL, NULL);
    servers_stop();
    return rc != 0;
}
