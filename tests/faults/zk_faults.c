/* zk_faults [GROUP [PATTERN]] */
#include "zk_faults.h"

#include "../lib/proc.h"

#include <dirent.h>

struct zk_ensemble zk_three;

static struct zk_server one;
static bool three;

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

int group_one(void **state)
{
    (void)state;
    three = false;
    return zk_server_start(&one);
}

int group_one_end(void **state)
{
    (void)state;
    zk_server_end(&one);
    return 0;
}

int group_three(void **state)
{
    (void)state;
    three = true;
    zk_three.can_be_cut = true;
    return zk_ensemble_start(&zk_three);
}

int group_three_end(void **state)
{
    (void)state;
    zk_ensemble_end(&zk_three);
    return 0;
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    *state = w;
    if (!w || (three && zk_ensemble_elect(&zk_three)))
        return -1;
    w->entries = entries();
    w->server = three ? &zk_three.server[0] : &one;
    w->proxy = proxy_start(w->server->port);
    if (!w->proxy)
        return -1;
    snprintf(w->far_url, sizeof(w->far_url), "zk://127.0.0.1:%d",
             proxy_port(w->proxy));
    return 0;
}

/* What a failed case has left behind must not fail the next. */
static bool mended(void)
{
    struct zk_server *s = three ? zk_three.server : &one;

    for (int i = 0; i < (three ? ZK_ENSEMBLE : 1); i++) {
        if (s[i].pid)
            zk_server_continue(&s[i]);
        else if (zk_server_again(&s[i]))
            return false;
        zk_server_leave(&s[i]);
    }
    return !three ||
           !(zk_ensemble_heal(&zk_three) || zk_ensemble_serves(&zk_three));
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
    clean = mended() && WAIT_FOR(entries() <= w->entries);
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

static void note_event(void *arg, const hf_event *event)
{
    if (event->type == HF_EVENT_LOST)
        __atomic_add_fetch((uint32_t *)arg, 1, __ATOMIC_RELAXED);
}

bool world_heard_loss(struct world *w, size_t i)
{
    hf_client_dispatch(w->clients[i]);
    return __atomic_load_n(&w->lost[i], __ATOMIC_RELAXED) > 0;
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
    opt.on_event = note_event;
    opt.event_arg = &w->lost[i];
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
    return world_lock(w, w->far_url, ttl_ms, op_timeout_ms, HF_FAIR_DEFAULT);
}

hf_lock *world_near(struct world *w)
{
    return world_lock(w, three ? zk_three.url : w->server->url, 30000, 5000,
                      HF_FAIR_DEFAULT);
}

void world_heal(struct world *w)
{
    proxy_set(w->proxy, PROXY_PASS, 0);
    proxy_cut(w->proxy);
}

uint64_t token_of(hf_lock *lock)
{
    uint64_t token = 0;

    assert_int_equal(hf_lock_token(lock, &token), 0);
    return token;
}

int64_t deadline_of(hf_lock *lock)
{
    int64_t deadline = 0;

    assert_int_equal(hf_lock_deadline(lock, &deadline), 0);
    return deadline;
}

void world_free_for_all(struct world *w, hf_lock *lock)
{
    if (hf_lock_timed(lock, 3000, &w->err)) {
        zk_server_print_nodes(w->server);
        fail_msg("somebody has it still: %s", w->err.text);
    }
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

void world_is_clean(struct world *w)
{
    if (WAIT_FOR_MS(zk_server_nodes(w->server) == 0, 12000))
        return;
    zk_server_print_nodes(w->server);
    fail_msg("nodes are left");
}

void world_has_entries(struct world *w, long n)
{
    if (WAIT_FOR(zk_server_children(w->server, NODE) == n))
        return;
    zk_server_print_nodes(w->server);
    fail_msg("%ld entries instead of %ld", zk_server_children(w->server, NODE),
             n);
}

void world_first_entry(struct world *w, char *path, size_t size)
{
    struct String_vector names = {0};
    const char *first = NULL;

    assert_int_equal(zk_hand_children(zk_server_hand(w->server), NODE, &names),
                     0);
    for (int i = 0; i < names.count; i++)
        if (!first ||
            strcmp(strrchr(names.data[i], '-'), strrchr(first, '-')) < 0)
            first = names.data[i];
    assert_non_null(first);
    snprintf(path, size, NODE "/%s", first);
    deallocate_String_vector(&names);
}

static void *taker_main(void *arg)
{
    struct taker *t = arg;

    t->rc = hf_lock_timed(t->lock, t->wait_ms, &t->err);
    hf_lock_token(t->lock, &t->token);
    __atomic_store_n(&t->returned, wait_now(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&t->done, __ATOMIC_ACQUIRE))
        wait_tick();
    if (!t->rc)
        t->release_rc = hf_lock_release(t->lock, NULL);
    return NULL;
}

struct taker *taker_start(struct world *w, hf_lock *lock, int64_t wait_ms)
{
    struct taker *t = &w->taker;

    assert_false(t->started);
    *t = (struct taker){.lock = lock, .wait_ms = wait_ms, .started = true};
    assert_int_equal(pthread_create(&t->thread, NULL, taker_main, t), 0);
    return t;
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

void taker_gets_it(struct taker *t, int64_t within_ms)
{
    if (!WAIT_FOR_MS(taker_back(t), within_ms))
        fail_msg("not back in %d ms", (int)within_ms);
    if (t->rc)
        fail_msg("%s", t->err.text);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
}

static void *nothing(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } groups[] = {
        {"server", run_server_faults},     {"net", run_net_faults},
        {"wait", run_wait_faults},         {"kinds", run_kinds_faults},
        {"ensemble", run_ensemble_faults},
    };
    int failed = 0, ran = 0;
    pthread_t thread;

    if (proc_is_puppet(argc, argv))
        return proc_puppet();
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    /* A sanitizer's own thread comes with the first: it is no leak. */
    if (pthread_create(&thread, NULL, nothing, NULL) ||
        pthread_join(thread, NULL))
        return 1;
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        if (argc < 2 || !strcmp(argv[1], groups[i].name)) {
            failed += groups[i].run();
            ran++;
        }
    return failed || !ran;
}
