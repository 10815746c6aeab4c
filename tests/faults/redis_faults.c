#include "redis_faults.h"

#include "../lib/proc.h"

#include <dirent.h>

static size_t count_entries(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static size_t entries(void)
{
    return count_entries("/proc/self/fd") + count_entries("/proc/self/task");
}

static int setup(void **state, const char *password)
{
    struct world *w = calloc(1, sizeof(*w));

    *state = w;
    if (!w)
        return -1;
    w->entries = entries();
    if (password) {
        w->server.args[0] = "--requirepass";
        w->server.args[1] = password;
    }
    if (redis_server_start(&w->server))
        return -1;
    if (password)
        redis_server_do(&w->server, "AUTH %s", password);
    w->proxy = proxy_start(w->server.port);
    return w->proxy ? 0 : -1;
}

int world_setup(void **state)
{
    return setup(state, NULL);
}

int world_setup_auth(void **state)
{
    return setup(state, "secret-of-default");
}

int world_teardown(void **state)
{
    struct world *w = *state;
    bool clean;

    __atomic_store_n(&w->taker.done, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < w->len; i++)
        hf_close(w->clients[i]);
    taker_end(&w->taker);
    for (size_t i = 0; i < w->len; i++)
        hf_lock_free(w->locks[i]);
    proxy_end(w->proxy);
    redis_server_end(&w->server);
    clean = WAIT_FOR(entries() <= w->entries);
    free(w);
    if (!clean)
        fprintf(stderr, "descriptors or threads are left\n");
    return clean ? 0 : -1;
}

static void show(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "%lld: %s\n", (long long)(wait_now() / 1000), text);
}

hf_lock *world_lock(struct world *w, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness fairness)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_lock_options lopt = HF_LOCK_OPTIONS_INIT;
    hf_hooks hooks = {.log = getenv("FAULTS_LOG") ? show : NULL};
    size_t i = w->len;

    assert_true(i < CLIENTS);
    opt.hooks = &hooks;
    opt.ttl_ms = ttl_ms;
    opt.op_timeout_ms = op_timeout_ms;
    lopt.fairness = fairness;
    if (hf_open(url, &opt, &w->clients[i], &w->err))
        fail_msg("hf_open: %s", w->err.text);
    if (hf_lock_new(w->clients[i], "n", 1, &lopt, &w->locks[i], &w->err))
        fail_msg("hf_lock_new: %s", w->err.text);
    w->len++;
    return w->locks[i];
}

hf_lock *world_far(struct world *w, int64_t ttl_ms, int64_t op_timeout_ms)
{
    return world_lock(w, proxy_url(w->proxy), ttl_ms, op_timeout_ms,
                      HF_FAIR_DEFAULT);
}

hf_lock *world_near(struct world *w)
{
    return world_lock(w, w->server.url, 30000, 5000, HF_FAIR_DEFAULT);
}

int take_lease(hf_lock *lock, int64_t wait_ms, int64_t lease_ms, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.wait_ms = wait_ms;
    opt.lease_ms = lease_ms;
    return hf_lock_acquire(lock, &opt, err);
}

uint64_t token_of(hf_lock *lock)
{
    uint64_t token = 0;

    assert_int_equal(hf_lock_token(lock, &token), 0);
    return token;
}

void world_free_for_all(struct world *w, hf_lock *lock)
{
    if (hf_lock_timed(lock, 3000, &w->err)) {
        redis_server_print_keys(&w->server);
        fail_msg("somebody has it still: %s", w->err.text);
    }
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

void world_is_clean(struct world *w)
{
    if (WAIT_FOR_MS(redis_server_keys(&w->server) == 0, 12000))
        return;
    redis_server_print_keys(&w->server);
    fail_msg("keys are left");
}

static void *taker_main(void *arg)
{
    struct taker *t = arg;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.wait_ms = t->wait_ms;
    opt.lease_ms = t->lease_ms;
    opt.mode = t->mode;
    opt.permits = t->permits;
    t->rc = hf_lock_acquire(t->lock, &opt, &t->err);
    __atomic_store_n(&t->returned, wait_now(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&t->done, __ATOMIC_ACQUIRE))
        wait_tick();
    if (!t->rc)
        t->release_rc = hf_lock_release(t->lock, NULL);
    return NULL;
}

static struct taker *start_taker(struct world *w, struct taker as)
{
    struct taker *t = &w->taker;

    assert_false(t->started);
    *t = as;
    t->started = true;
    assert_int_equal(pthread_create(&t->thread, NULL, taker_main, t), 0);
    return t;
}

struct taker *taker_start(struct world *w, hf_lock *lock, int64_t wait_ms,
                          int64_t lease_ms)
{
    return start_taker(w, (struct taker){.lock = lock,
                                         .mode = HF_WRITE,
                                         .wait_ms = wait_ms,
                                         .lease_ms = lease_ms});
}

struct taker *taker_start_as(struct world *w, hf_lock *lock, enum hf_mode mode,
                             uint32_t permits, int64_t wait_ms)
{
    return start_taker(w, (struct taker){.lock = lock,
                                         .mode = mode,
                                         .permits = permits,
                                         .wait_ms = wait_ms});
}

bool taker_back(struct taker *t)
{
    return __atomic_load_n(&t->returned, __ATOMIC_ACQUIRE) != 0;
}

void taker_end(struct taker *t)
{
    __atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);
    if (t->started)
        pthread_join(t->thread, NULL);
    t->started = false;
}

void world_has_waiter(struct world *w, const char *key)
{
    assert_true(WAIT_FOR(redis_server_do(&w->server, "EXISTS %s", key) == 1));
}

static void *nothing(void *arg)
{
    return arg;
}

static const struct group {
    const char *name;
    int (*run)(void);
} groups[] = {
    {"server", run_server_faults},   {"net", run_net_faults},
    {"hostile", run_hostile_faults}, {"auth", run_auth_faults},
    {"wait", run_wait_faults},       {"kinds", run_kinds_faults},
    {"hand", run_hand_faults},
};

/* One group, or the cases of all whose names match a pattern, or everything. */
static int run_groups(const char *only)
{
    size_t len = sizeof(groups) / sizeof(groups[0]);
    int failed = 0;

    for (size_t i = 0; only && i < len; i++)
        if (!strcmp(only, groups[i].name))
            return groups[i].run();
    if (only)
        cmocka_set_test_filter(only);
    for (size_t i = 0; i < len; i++)
        failed += groups[i].run();
    return failed;
}

/* redis_faults [GROUP|PATTERN] */
int main(int argc, char **argv)
{
    pthread_t thread;

    if (proc_is_puppet(argc, argv))
        return proc_puppet();
    /* A sanitizer's own thread comes with the first: it is no leak. */
    if (pthread_create(&thread, NULL, nothing, NULL) ||
        pthread_join(thread, NULL))
        return 1;
    return run_groups(argv[1]) ? 1 : 0;
}
