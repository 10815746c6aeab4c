#include "world.h"

#include "proc.h"

#include <dirent.h>

/* The group whose cases are running. Its server and its functions are those
 * that the groups of this name, in all files, have set. */
static struct world_group running;

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

void world_url(const struct world *w, const char *host, char *url, size_t size)
{
    snprintf(url, size, "%s://%s%s%s", w->server->scheme,
             w->user ? w->user : "", host, w->path ? w->path : "");
}

static int begin(struct world *w)
{
    char host[32];

    w->entries = entries();
    if (w->server->begin(w))
        return -1;
    w->proxy = proxy_start(w->port);
    if (!w->proxy)
        return -1;
    snprintf(host, sizeof(host), "127.0.0.1:%d", proxy_port(w->proxy));
    world_url(w, host, w->far_url, sizeof(w->far_url));
    return running.begin ? running.begin(w) : 0;
}

void world_close(struct world *w)
{
    __atomic_store_n(&w->taker.done, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < w->len; i++) {
        hf_close(w->clients[i]);
        w->clients[i] = NULL;
    }
}

static void note_line(void *ctx, const char *text)
{
    struct world_ear *ear = ctx;

    __atomic_add_fetch(&ear->lines, 1, __ATOMIC_RELAXED);
    if (strstr(text, ": lost the lock \""))
        snprintf(ear->lost_line, sizeof(ear->lost_line), "%s", text);
    if (getenv("FAULTS_LOG"))
        fprintf(stderr, "%lld: %s\n", (long long)(wait_now() / 1000), text);
}

static void note_event(void *arg, const hf_event *event)
{
    struct world_ear *ear = arg;

    if (event->type != HF_EVENT_LOST) {
        assert_string_equal(event->reason, "");
        if (event->type == HF_EVENT_WANTED)
            __atomic_add_fetch(&ear->wanted, 1, __ATOMIC_RELAXED);
        return;
    }
    snprintf(ear->reason, sizeof(ear->reason), "%s", event->reason);
    __atomic_add_fetch(&ear->lost, 1, __ATOMIC_RELAXED);
}

uint32_t world_lines(const struct world *w, size_t i)
{
    return __atomic_load_n(&w->ears[i].lines, __ATOMIC_RELAXED);
}

bool world_heard_loss(struct world *w, size_t i)
{
    hf_client_dispatch(w->clients[i]);
    return __atomic_load_n(&w->ears[i].lost, __ATOMIC_RELAXED) > 0;
}

bool world_heard_wish(struct world *w, size_t i)
{
    hf_client_dispatch(w->clients[i]);
    return __atomic_load_n(&w->ears[i].wanted, __ATOMIC_RELAXED) > 0;
}

/* Asserts that the error's message ends with the reason. The end of the reason
 * may be cut off, because the message has less room than an event. */
static void gives(const hf_error *err, const char *reason)
{
    const char *lost = strstr(err->text, "lost the lock \"");
    const char *given = lost ? strstr(lost, ": ") : NULL;

    if (!given || strncmp(given + 2, reason, strlen(given + 2)) != 0 ||
        (strlen(given + 2) < strlen(reason) &&
         strlen(err->text) + 1 < sizeof(err->text)))
        fail_msg("\"%s\" does not say \"%s\"", err->text, reason);
}

const char *world_loses(struct world *w, size_t i, const char *word)
{
    hf_lock *lock = w->locks[i];
    const char *reason = w->ears[i].reason;
    hf_error err = HF_ERROR_INIT;

    COMES(hf_lock_check(lock) == HF_ELOST);
    COMES(world_heard_loss(w, i));
    expect_words(reason, word);
    assert_int_equal(hf_lock_explain(lock, &err), HF_ELOST);
    gives(&err, reason);
    assert_int_equal(hf_lock_renew(lock, 0, &err), HF_ELOST);
    gives(&err, reason);
    assert_int_equal(hf_lock_try(lock, &err), HF_ELOST);
    gives(&err, reason);
    assert_int_equal(hf_lock_release(lock, &err), HF_ELOST);
    gives(&err, reason);
    expect_words(w->ears[i].lost_line, reason);
    return reason;
}

static void make_lock(struct world *w, size_t i, const hf_lock_options *opt)
{
    if (hf_lock_new(w->clients[i], "n", 1, opt, &w->locks[i], &w->err))
        fail_msg("hf_lock_new: %s", w->err.text);
}

hf_lock *world_lock(struct world *w, const char *url, int64_t ttl_ms,
                    int64_t op_timeout_ms, enum hf_fairness fairness)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_lock_options lopt = HF_LOCK_OPTIONS_INIT;
    size_t i = w->len;
    hf_hooks hooks = {.ctx = &w->ears[i], .log = note_line};

    assert_true(i < WORLD_CLIENTS);
    opt.hooks = &hooks;
    opt.ttl_ms = ttl_ms;
    opt.op_timeout_ms = op_timeout_ms;
    opt.on_event = w->is_quiet ? NULL : note_event;
    opt.event_arg = &w->ears[i];
    lopt.fairness = fairness;
    if (proc_open(url, &opt, &w->clients[i], &w->err))
        fail_msg("hf_open: %s", w->err.text);
    w->len++;
    make_lock(w, i, &lopt);
    return w->locks[i];
}

hf_lock *world_far(struct world *w, int64_t ttl_ms, int64_t op_timeout_ms)
{
    return world_lock(w, w->far_url, ttl_ms, op_timeout_ms, HF_FAIR_DEFAULT);
}

hf_lock *world_near(struct world *w)
{
    return world_lock(w, w->near_url, 30000, 5000, HF_FAIR_DEFAULT);
}

hf_lock *world_change(struct world *w, size_t i, enum hf_kind kind,
                      uint32_t size)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    opt.kind = kind;
    opt.permits = size;
    assert_int_equal(hf_lock_free(w->locks[i]), 0);
    w->locks[i] = NULL;
    make_lock(w, i, &opt);
    return w->locks[i];
}

void *world_own(struct world *w, void *it, int (*end_it)(void *))
{
    assert_true(w->things_len < WORLD_THINGS);
    w->things[w->things_len++] = (struct world_thing){it, end_it};
    return it;
}

static int close_client(void *c)
{
    return hf_close(c);
}

static int free_lock(void *lock)
{
    return hf_lock_free(lock);
}

static int free_latch(void *latch)
{
    return hf_latch_free(latch);
}

hf_client *world_open(struct world *w, const char *url,
                      const hf_client_options *opt)
{
    hf_client *c = NULL;

    OK(proc_open(url, opt, &c, &w->err));
    return world_own(w, c, close_client);
}

hf_lock *world_handle(struct world *w, hf_client *c, const char *name,
                      const hf_lock_options *opt)
{
    hf_lock *lock = NULL;

    OK(hf_lock_new(c, name, HF_CSTRING, opt, &lock, &w->err));
    return world_own(w, lock, free_lock);
}

hf_latch *world_latch(struct world *w, hf_client *c, const char *name)
{
    hf_latch *latch = NULL;

    OK(hf_latch_new(c, name, HF_CSTRING, &latch, &w->err));
    return world_own(w, latch, free_latch);
}

static int free_info(void *info)
{
    hf_info_free(info);
    return 0;
}

hf_info *world_inspect(struct world *w, hf_client *c)
{
    hf_info *info = NULL;

    OK(hf_inspect(c, "n", 1, &info, &w->err));
    return world_own(w, info, free_info);
}

void world_ends(struct world *w, void *it)
{
    size_t i = w->things_len;
    struct world_thing thing;

    while (i && w->things[i - 1].it != it)
        i--;
    assert_true(i > 0);
    thing = w->things[i - 1];
    memmove(&w->things[i - 1], &w->things[i],
            (w->things_len-- - i) * sizeof(thing));
    OK(thing.end(it));
}

/* Ends all entries of w->things, the last one first. Returns the first code
 * that is not 0. */
static int end_things(struct world *w)
{
    int rc = 0, last;

    while (w->things_len) {
        struct world_thing *t = &w->things[--w->things_len];

        last = t->end(t->it);
        rc = rc ? rc : last;
    }
    return rc;
}

void world_end_things(struct world *w)
{
    OK(end_things(w));
}

void world_heal(struct world *w)
{
    proxy_set(w->proxy, PROXY_PASS, 0);
    proxy_cut(w->proxy);
}

void world_takes(struct world *w, hf_lock *lock, int64_t within_ms)
{
    int64_t began = wait_fair();

    if (!hf_lock_timed(lock, WAIT_LONG_MS, &w->err) &&
        wait_within(began, within_ms))
        return;
    print_error("not acquired in %d ms: %s\n", (int)within_ms, w->err.text);
    w->server->print_left(w);
    fail();
}

void world_free_for_all(struct world *w, hf_lock *lock)
{
    world_takes(w, lock, 3000);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

void world_is_clean(struct world *w)
{
    if (WAIT_FOR_MS(w->server->left(w) == 0, 12000))
        return;
    w->server->print_left(w);
    fail_msg("something is left at the server");
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

void world_renews(hf_lock *lock)
{
    int64_t before = deadline_of(lock);

    COMES(deadline_of(lock) > before);
}

static void *taker_main(void *arg)
{
    struct taker *t = arg;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.wait_ms = t->wait_ms;
    opt.lease_ms = t->lease_ms;
    opt.mode = t->mode;
    opt.permits = t->permits;
    t->rc =
        t->as_all
            ? hf_lock_acquire_all(&(hf_part){.lock = t->lock, .mode = t->mode},
                                  1, &opt, &t->err)
            : hf_lock_acquire(t->lock, &opt, &t->err);
    hf_lock_token(t->lock, &t->token);
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

struct taker *taker_start(struct world *w, hf_lock *lock, int64_t wait_ms)
{
    return taker_start_lease(w, lock, wait_ms, 0);
}

struct taker *taker_start_lease(struct world *w, hf_lock *lock, int64_t wait_ms,
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

struct taker *taker_start_all(struct world *w, hf_lock *lock, int64_t wait_ms)
{
    return start_taker(w, (struct taker){.lock = lock,
                                         .mode = HF_WRITE,
                                         .as_all = true,
                                         .wait_ms = wait_ms});
}

struct taker *taker_behind(struct world *w, hf_lock *holder, hf_lock *waiter,
                           int64_t wait_ms)
{
    OK(hf_lock_timed(holder, 5000, &w->err));
    taker_start(w, waiter, wait_ms);
    COMES(w->server->is_waited_for(w));
    return &w->taker;
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

static void is_back(struct taker *t, int code, int64_t within_ms)
{
    if (!WAIT_FOR_MS(taker_back(t), within_ms))
        fail_msg("not returned in %d ms", (int)within_ms);
    if (t->rc != code)
        fail_msg("%s: %s", hf_error_name(t->rc), t->err.text);
}

void taker_has_it(struct taker *t, int64_t within_ms)
{
    is_back(t, 0, within_ms);
}

void taker_fails(struct taker *t, int code, int64_t within_ms)
{
    is_back(t, code, within_ms);
    taker_end(t);
}

void taker_gives(struct taker *t)
{
    taker_end(t);
    OK(t->release_rc);
}

void taker_gets_it(struct taker *t, int64_t within_ms)
{
    taker_has_it(t, within_ms);
    taker_gives(t);
}

static struct world_case *cases; /* in the order in which they run */
static const struct world_server *program_server;

void world_add(struct world_case *c)
{
    struct world_case **at = &cases;

    if (c->group->unless && *c->group->unless)
        return;
    while (*at && ((*at)->group != c->group || (*at)->order < c->order))
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

static int end(struct world *w)
{
    int rc = running.end ? running.end(w) : 0;

    world_close(w);
    end_things(w);
    taker_end(&w->taker);
    for (size_t i = 0; i < w->len; i++)
        hf_lock_free(w->locks[i]);
    proxy_end(w->proxy);
    if (w->server->end(w))
        rc = -1;
    if (rc || WAIT_FOR(entries() <= w->entries))
        return rc;
    fprintf(stderr, "descriptors or threads are left\n");
    return -1;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    if (!w)
        return -1;
    w->at = *state;
    w->server = running.server;
    expect_error = &w->err;
    *state = w;
    return begin(w);
}

static void run(void **state)
{
    struct world *w = *state;

    w->at->run(w);
    world_end_things(w);
    if (!w->may_leave)
        world_is_clean(w);
}

static int tear_down(void **state)
{
    int rc = end(*state);

    expect_error = NULL;
    free(*state);
    return rc;
}

static int start_group(void **state)
{
    (void)state;
    return running.start ? running.start() : 0;
}

static int stop_group(void **state)
{
    (void)state;
    if (running.stop)
        running.stop();
    return 0;
}

static bool is_in(const struct world_case *c, const char *group)
{
    return strcmp(c->group->name, group) == 0;
}

static void find_group(const char *name)
{
    const struct world_server *server = program_server;

    running = (struct world_group){.name = name};
    for (const struct world_case *c = cases; c; c = c->next) {
        const struct world_group *g = c->group;

        if (!is_in(c, name))
            continue;
        server = g->server ? g->server : server;
        running.start = g->start ? g->start : running.start;
        running.stop = g->stop ? g->stop : running.stop;
        running.begin = g->begin ? g->begin : running.begin;
        running.end = g->end ? g->end : running.end;
    }
    running.server = server;
    running.start = running.start ? running.start : server->start;
    running.stop = running.stop ? running.stop : server->stop;
}

/* Returns how many of the group's cases failed, or -1 if the group does not
 * exist. */
static int run_group(const char *name)
{
    struct CMUnitTest *tests = NULL;
    size_t len = 0;
    int failed = -1;

    find_group(name);
    for (struct world_case *c = cases; c; c = c->next) {
        if (!is_in(c, name))
            continue;
        tests = realloc(tests, (len + 1) * sizeof(*tests));
        if (!tests)
            abort();
        tests[len++] = (struct CMUnitTest){c->name, run, set_up, tear_down, c};
    }
    if (len)
        failed =
            _cmocka_run_group_tests(name, tests, len, start_group, stop_group);
    free(tests);
    return failed;
}

static int run_all(void)
{
    int failed = 0;

    for (const struct world_case *c = cases; c; c = c->next) {
        const struct world_case *first = cases;

        while (!is_in(first, c->group->name))
            first = first->next;
        if (first == c)
            failed += run_group(c->group->name);
    }
    return failed;
}

static void *nothing(void *arg)
{
    return arg;
}

int world_main(int argc, char **argv, const struct world_server *server)
{
    pthread_t thread;

    if (proc_is_puppet(argc, argv))
        return proc_puppet();
    program_server = server;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    /* A sanitizer starts its own thread when the program creates its first
     * thread. Create one here, because the sanitizer's thread would otherwise
     * look like one that a case has left behind. */
    if (pthread_create(&thread, NULL, nothing, NULL) ||
        pthread_join(thread, NULL))
        return 1;
    return (argc > 1 ? run_group(argv[1]) : run_all()) != 0;
}
