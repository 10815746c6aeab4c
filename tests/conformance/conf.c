/* The functions that the cases share; see conf.h. */
#include "conf.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

struct conf conf;

static hf_error error;
static bool error_given;

hf_error *conf_error(void)
{
    error = (hf_error)HF_ERROR_INIT;
    error_given = true;
    return &error;
}

void conf_no_error(void)
{
    error_given = false;
}

static const char *bad_error(int rc)
{
    if (error.code != rc)
        return "the error's code is another";
    if (!error.text[0])
        return "the error has no text";
    if (strlen(error.text) >= sizeof(error.text))
        return "the error's text has no end";
    if (conf.secret && strstr(error.text, conf.secret))
        return "the error's text has the password in it";
    return NULL;
}

void conf_expect(int code, int rc, const char *call, const char *file, int line)
{
    bool given = error_given;
    const char *bad = given && rc < 0 ? bad_error(rc) : NULL;

    if (rc == code && !bad)
        return;
    print_error("%s: got %s (%d), wanted %s%s%s%s%s\n", call, hf_error_name(rc),
                rc, hf_error_name(code), given ? "; text: " : "",
                given ? error.text : "", bad ? "; " : "", bad ? bad : "");
    _fail(file, line);
}

/* Returns whether a hold of `ms` requested at `since` may have ended. A lease
 * counts from the moment when the request was sent, and the holder's deadline
 * is earlier by a margin. */
bool conf_may_be_over(int64_t since, int64_t ms)
{
    return wait_ms_since(since) >= ms * 9 / 10;
}

void conf_held(int64_t since, int64_t ms, int rc, const char *call,
               const char *file, int line)
{
    bool over = rc == HF_ELOST && conf_may_be_over(since, ms);

    conf_expect(over ? HF_ELOST : 0, rc, call, file, line);
}

void conf_comes(bool met, const char *cond, const char *file, int line)
{
    if (met)
        return;
    print_error("never became true: %s\n", cond);
    _fail(file, line);
}

static struct deferred {
    void (*end)(void *what);
    void *what;
} * deferred;
static size_t deferred_len, deferred_room;

void conf_defer(void (*end)(void *what), void *what)
{
    if (deferred_len == deferred_room) {
        deferred_room = 2 * deferred_room + 16;
        deferred = realloc(deferred, deferred_room * sizeof(*deferred));
        assert_non_null(deferred);
    }
    deferred[deferred_len++] = (struct deferred){end, what};
}

void conf_forget(const void *what)
{
    for (size_t i = deferred_len; i-- > 0;)
        if (deferred[i].what == what) {
            memmove(&deferred[i], &deferred[i + 1],
                    (--deferred_len - i) * sizeof(*deferred));
            return;
        }
}

void conf_begin(void)
{
    deferred_len = 0;
}

void conf_end(void)
{
    while (deferred_len > 0) {
        struct deferred last = deferred[--deferred_len];

        last.end(last.what);
    }
}

static void close_client(void *client)
{
    OK(hf_close(client));
}

static void free_lock(void *lock)
{
    OK(hf_lock_free(lock));
}

static void free_latch(void *latch)
{
    OK(hf_latch_free(latch));
}

void conf_close(hf_client *c)
{
    conf_forget(c);
    close_client(c);
}

void conf_free(hf_lock *lock)
{
    conf_forget(lock);
    free_lock(lock);
}

void conf_free_latch(hf_latch *latch)
{
    conf_forget(latch);
    free_latch(latch);
}

hf_client *conf_keep(hf_client *c)
{
    assert_non_null(c);
    conf_defer(close_client, c);
    return c;
}

hf_lock *conf_keep_lock(hf_lock *lock)
{
    assert_non_null(lock);
    conf_defer(free_lock, lock);
    return lock;
}

static void end_proxy(void *proxy)
{
    proxy_end(proxy);
}

struct proxy *conf_proxy(void)
{
    struct proxy *proxy = proxy_start(conf.port);

    assert_non_null(proxy);
    conf_defer(end_proxy, proxy);
    return proxy;
}

const char *conf_name(void)
{
    static char names[16][64];
    static unsigned serial;
    char *name = names[++serial % 16];

    snprintf(name, sizeof(names[0]), "conf-%d-%llx-%u", (int)getpid(),
             (unsigned long long)wait_now(), serial);
    return name;
}

int64_t conf_op_ms(void)
{
    return conf.session || conf.in_turn ? 20000 : 5000;
}

hf_client *conf_open_with(const hf_client_options *opt)
{
    hf_client_options all = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;

    if (opt)
        all = *opt;
    if (!all.op_timeout_ms)
        all.op_timeout_ms = conf_op_ms();
    OK(proc_open(conf.url, &all, &c, E));
    return conf_keep(c);
}

hf_client *conf_open_through(struct proxy *proxy, const hf_client_options *opt)
{
    hf_client *c = NULL;

    COMES(hf_open(conf.url_at(proxy_port(proxy)), opt, &c, NULL) == 0);
    return conf_keep(c);
}

hf_client *conf_open(void)
{
    return conf_open_with(NULL);
}

hf_client *conf_open_ttl(int64_t ttl_ms)
{
    hf_client_options opt = CLIENT_OPTIONS(.ttl_ms = ttl_ms);

    return conf_open_with(&opt);
}

int64_t conf_long_ms(void)
{
    return conf.session ? 200000 : 0;
}

hf_client *conf_open_long(void)
{
    return conf_open_ttl(conf_long_ms());
}

const char *conf_url_with(const char *option)
{
    static char url[1024];

    snprintf(url, sizeof(url), "%s%c%s", conf.url,
             strchr(conf.url, '?') ? '&' : '?', option);
    return url;
}

static const hf_lock *last_lock; /* set by conf_lock_with() */
static const char *last_name;

hf_lock *conf_lock_with(hf_client *c, const char *name, hf_lock_options *opt)
{
    hf_lock *lock = NULL;

    opt->fairness = conf.fairness;
    OK(hf_lock_new(c, name, HF_CSTRING, opt, &lock, E));
    last_lock = conf_keep_lock(lock);
    last_name = name;
    return lock;
}

hf_lock *conf_rival(hf_lock *other, unsigned flags)
{
    assert_ptr_equal(other, last_lock);
    return conf_lock_flags(conf_open(), last_name, flags);
}

hf_lock *conf_lock_flags(hf_client *c, const char *name, unsigned flags)
{
    hf_lock_options opt = LOCK_OPTIONS(.flags = flags);

    return conf_lock_with(c, name, &opt);
}

hf_lock *conf_lock(hf_client *c, const char *name)
{
    return conf_lock_flags(c, name, 0);
}

hf_lock *conf_lock_of(hf_client *c, const char *name, enum hf_kind kind,
                      uint32_t size, unsigned flags)
{
    hf_lock_options opt =
        LOCK_OPTIONS(.kind = kind, .permits = size, .flags = flags);

    return conf_lock_with(c, name, &opt);
}

hf_latch *conf_latch(hf_client *c, const char *name)
{
    hf_latch *latch = NULL;

    OK(hf_latch_new(c, name, HF_CSTRING, &latch, E));
    assert_non_null(latch);
    conf_defer(free_latch, latch);
    return latch;
}

uint64_t conf_token(hf_lock *lock)
{
    uint64_t token = 0;

    OK(hf_lock_token(lock, &token));
    assert_true(token > 0);
    return token;
}

int64_t conf_deadline(hf_lock *lock)
{
    int64_t deadline = 0;

    OK(hf_lock_deadline(lock, &deadline));
    return deadline;
}

int conf_take_lease(hf_lock *lock, int64_t wait_ms, int64_t lease_ms)
{
    hf_acquire_options opt =
        ACQUIRE_OPTIONS(.wait_ms = wait_ms, .lease_ms = lease_ms);

    return hf_lock_acquire(lock, &opt, E);
}

static bool take_and_extend(hf_lock *lock, int64_t lease_ms, int64_t *first)
{
    int64_t since = wait_now();

    OK(conf_take_lease(lock, WAIT_LONG_MS, lease_ms));
    if (!hf_lock_deadline(lock, first) && !hf_lock_renew(lock, 60000, NULL))
        return true;
    assert_true(conf_may_be_over(since, lease_ms));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    return false;
}

int64_t conf_take_and_extend(hf_lock *lock, int64_t lease_ms)
{
    int64_t first;

    COMES(take_and_extend(lock, lease_ms, &first));
    return first;
}

void conf_shorten(hf_lock *lock, int64_t lease_ms)
{
    int64_t since = wait_now();

    HELD(since, lease_ms, hf_lock_renew(lock, lease_ms, E));
}

void conf_release_impatiently(hf_lock *lock)
{
    int rc = hf_lock_release(lock, NULL);

    assert_true(rc == 0 || rc == HF_EUNKNOWN);
}

int conf_take(hf_lock *lock, enum hf_mode mode, uint32_t permits,
              int64_t wait_ms)
{
    hf_acquire_options opt =
        ACQUIRE_OPTIONS(.mode = mode, .permits = permits, .wait_ms = wait_ms);

    return hf_lock_acquire(lock, &opt, E);
}

int conf_take_within(hf_lock *lock, enum hf_mode mode, uint32_t permits,
                     int64_t ms)
{
    int64_t began = wait_fair();
    int rc = conf_take(lock, mode, permits, WAIT_LONG_MS);

    return !rc && !wait_within(began, ms) ? HF_ETIMEDOUT : rc;
}

struct conf_group conf_group(enum hf_kind kind, uint32_t size, unsigned flags)
{
    struct conf_group g = {.name = conf_name()};

    for (int i = 0; i < 3; i++) {
        g.c[i] = conf_open();
        g.l[i] = conf_lock_of(g.c[i], g.name, kind, size, flags);
    }
    return g;
}

void conf_comes_free(hf_lock *lock)
{
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    OK(hf_lock_release(lock, E));
}

int64_t conf_death_ms(int64_t ttl_ms)
{
    return conf.local ? 100 : ttl_ms + conf.tick_ms + 1000;
}

static void *thread_main(void *arg)
{
    struct conf_thread *t = arg;

    __atomic_store_n(&t->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    t->body(t->arg);
    __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

void conf_thread_start(struct conf_thread *t, void (*body)(void *), void *arg)
{
    *t = (struct conf_thread){.body = body, .arg = arg};
    assert_int_equal(pthread_create(&t->thread, NULL, thread_main, t), 0);
}

void conf_thread_join(struct conf_thread *t)
{
    assert_int_equal(pthread_join(t->thread, NULL), 0);
}

bool conf_thread_ended(struct conf_thread *t)
{
    return __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE);
}

static uint32_t stands, goes_on; /* atomic */

/* Returns whether the signal has interrupted a system call in which the thread
 * slept. */
static bool was_asleep(const ucontext_t *at)
{
#if defined(__x86_64__)
    return at->uc_mcontext.gregs[REG_RAX] == -EINTR;
#else
    return (int64_t)at->uc_mcontext.regs[0] == -EINTR;
#endif
}

/* The signal handler. Stops the thread if it was asleep, because it then has no
 * mutex locked. Otherwise the thread continues, and the caller sends another
 * signal. */
static void stand(int signo, siginfo_t *info, void *at)
{
    if (!was_asleep(at))
        return;
    __atomic_store_n(&stands, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&goes_on, __ATOMIC_ACQUIRE))
        wait_tick();
}

static bool stands_by_now(void)
{
    return WAIT_FOR_MS(__atomic_load_n(&stands, __ATOMIC_ACQUIRE), 100);
}

static long times_asleep(pid_t tid)
{
    char path[64], line[128];
    long n = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
    f = fopen(path, "r");
    assert_non_null(f);
    while (n < 0 && fgets(line, sizeof(line), f))
        sscanf(line, "voluntary_ctxt_switches: %ld", &n);
    fclose(f);
    return n;
}

/* Returns whether the thread stays asleep for a while. A wait begins with a few
 * polls of the server, so one check is not enough. */
static bool sleeps_on(pid_t tid)
{
    long before = times_asleep(tid);

    return NEVER_MS(false, 150) && times_asleep(tid) == before;
}

void conf_thread_stand(struct conf_thread *t)
{
    struct sigaction sa = {.sa_sigaction = stand, .sa_flags = SA_SIGINFO};

    COMES(sleeps_on(t->tid));
    stands = goes_on = 0;
    sigaction(SIGUSR1, &sa, NULL);
    /* The signal is repeated because TSan delays one that arrives just before a
     * raw futex call. */
    COMES(!pthread_kill(t->thread, SIGUSR1) && stands_by_now());
}

void conf_thread_go_on(void)
{
    __atomic_store_n(&goes_on, 1, __ATOMIC_RELEASE);
}

bool conf_thread_sleeps(struct conf_thread *t)
{
    COMES(__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE) != 0);
    return wait_asleep(getpid(), t->tid) && !conf_thread_ended(t);
}

void conf_thread_asleep(struct conf_thread *t)
{
    assert_true(conf_thread_sleeps(t));
}

static void taker_body(void *arg)
{
    struct conf_taker *t = arg;

    t->rc = hf_lock_acquire(t->lock, &t->opt, NULL);
    if (t->rc)
        return;
    hf_lock_token(t->lock, &t->token);
    __atomic_store_n(&t->granted, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&t->let_go, __ATOMIC_ACQUIRE))
        wait_tick();
    if (!t->keep)
        t->release_rc = hf_lock_release(t->lock, NULL);
}

/* Sets all fields except opt and keep, which the caller may have set. */
void conf_taker_start(struct conf_taker *t, hf_lock *lock)
{
    t->lock = lock;
    if (!t->opt.size)
        t->opt = (hf_acquire_options)HF_ACQUIRE_OPTIONS_INIT;
    t->rc = t->release_rc = 0;
    t->granted = t->let_go = 0;
    conf_thread_start(&t->t, taker_body, t);
}

void conf_taker_wait(struct conf_taker *t, hf_lock *lock, enum hf_mode mode,
                     uint32_t permits)
{
    *t = (struct conf_taker){.opt = HF_ACQUIRE_OPTIONS_INIT};
    t->opt.mode = mode;
    t->opt.permits = permits;
    conf_taker_start(t, lock);
    conf_thread_asleep(&t->t);
}

bool conf_taker_has(struct conf_taker *t)
{
    return __atomic_load_n(&t->granted, __ATOMIC_ACQUIRE);
}

void conf_taker_end(struct conf_taker *t)
{
    __atomic_store_n(&t->let_go, 1, __ATOMIC_RELEASE);
    conf_thread_join(&t->t);
}

void conf_taker_ends(struct conf_taker *t, int rc)
{
    conf_taker_end(t);
    EXPECT(rc, t->rc);
    OK(t->release_rc);
}

static void puppet_ok(struct proc *p, const struct proc_cmd *cmd)
{
    struct proc_reply reply;

    assert_int_equal(proc_do(p, cmd, &reply), 0);
    if (reply.rc)
        print_error("puppet: %s\n", reply.err.text);
    assert_int_equal(reply.rc, 0);
}

struct proc conf_puppet_of(const char *name, int64_t ttl_ms, enum hf_kind kind,
                           uint32_t size)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = ttl_ms};
    struct proc p;

    assert_int_equal(proc_start(&p), 0);
    snprintf(cmd.text, sizeof(cmd.text), "%s", conf.url);
    snprintf(cmd.label, sizeof(cmd.label), "puppet");
    puppet_ok(&p, &cmd);
    cmd.op = kind == HF_LATCH ? PROC_LATCH : PROC_NEW;
    cmd.kind = kind;
    cmd.permits = size;
    cmd.fairness = conf.fairness;
    cmd.name_len = strlen(name);
    memcpy(cmd.name, name, cmd.name_len);
    puppet_ok(&p, &cmd);
    return p;
}

struct proc conf_puppet(const char *name, int64_t ttl_ms)
{
    return conf_puppet_of(name, ttl_ms, HF_MUTEX, 0);
}

int conf_puppet_take_as(struct proc *p, enum hf_mode mode, uint32_t permits,
                        int64_t wait_ms)
{
    struct proc_cmd cmd = {
        .op = PROC_TAKE, .mode = mode, .permits = permits, .wait_ms = wait_ms};
    struct proc_reply reply = {0};

    assert_int_equal(proc_do(p, &cmd, &reply), 0);
    return reply.rc;
}

int conf_puppet_take(struct proc *p, int64_t wait_ms, int64_t lease_ms,
                     struct proc_reply *reply)
{
    struct proc_cmd cmd = {
        .op = PROC_TAKE, .wait_ms = wait_ms, .lease_ms = lease_ms};

    assert_int_equal(proc_do(p, &cmd, reply), 0);
    return reply->rc;
}

int conf_puppet_do(struct proc *p, enum proc_op op, struct proc_reply *reply)
{
    struct proc_reply own = {0};
    struct proc_cmd cmd = {.op = op};

    reply = reply ? reply : &own;
    assert_int_equal(proc_do(p, &cmd, reply), 0);
    return reply->rc;
}

bool conf_puppet_waits(struct proc *p, enum hf_mode mode, uint32_t permits)
{
    struct proc_cmd cmd = {.op = PROC_TAKE,
                           .mode = mode,
                           .permits = permits,
                           .wait_ms = HF_FOREVER,
                           .announce = true};
    struct proc_reply reply;

    assert_int_equal(proc_do(p, &cmd, &reply), 0);
    assert_true(wait_asleep(p->pid, p->pid));
    return !proc_ready(p, 0);
}

void conf_puppet_wait_as(struct proc *p, enum hf_mode mode, uint32_t permits)
{
    assert_true(conf_puppet_waits(p, mode, permits));
}

void conf_puppet_wait(struct proc *p)
{
    conf_puppet_wait_as(p, HF_WRITE, 0);
}

void conf_puppet_answer(struct proc *p, struct proc_reply *reply)
{
    /* The limit is long because the puppet may have other work to do first. */
    assert_int_equal(proc_recv(p, reply, 3 * WAIT_LONG_MS), 0);
}

static void free_info(void *info)
{
    hf_info_free(info);
}

hf_info *conf_inspect(hf_client *c, const char *name)
{
    hf_info *info = NULL;

    OK(hf_inspect(c, name, HF_CSTRING, &info, E));
    assert_non_null(info);
    conf_defer(free_info, info);
    return info;
}

static bool queue_is(hf_client *c, const char *name, size_t len)
{
    const hf_info *info = conf_inspect(c, name);

    return info->waiters_unknown || info->waiters_len == len;
}

void conf_await_queue(hf_client *c, const char *name, size_t len)
{
    if (conf.caps & HF_CAP_INSPECT)
        COMES(queue_is(c, name, len));
}

long conf_left(void)
{
    long left = 0;

    if (!conf.fresh || !conf.left ||
        WAIT_FOR((left = conf.left() - conf.failed_left) <= 0))
        return 0;
    conf.print_left();
    return left;
}

/* Adds the number of entries left at the server to the history. Must be called
 * after all processes have ended. */
static void add_left(struct history *h)
{
    struct history_event e = {.kind = HISTORY_LEFT};

    if (!conf.fresh || !conf.left)
        return;
    e.value = (uint64_t)conf_left();
    e.at = wait_now();
    history_add(h, &e);
}

void conf_check_record(struct record *r, struct history *h, int64_t ttl_ms)
{
    const int64_t ms = 1000000;
    const struct history_rules rules = {
        .ttl_ns = (conf.local ? 100 : ttl_ms) * ms,
        .tick_ns = (conf.tick_ms ? conf.tick_ms : 100) * ms,
        .wake_ns = 2000 * ms,
        .grace_ns = 2000 * ms, /* for a loaded machine */
        .mingled = conf.session,
        .stop_keeps = conf.local,
    };
    struct history_verdict v = {0};
    char line[256];

    record_gather(r, h);
    add_left(h);
    assert_true(h->len > 2);
    if (history_check(h, &rules, &v))
        return;
    for (size_t i = v.index > 20 ? v.index - 20 : 0; i <= v.index && i < h->len;
         i++) {
        history_print(&h->event[i], line, sizeof(line));
        print_error("%s\n", line);
    }
    print_error("%s %s\n", v.check, v.text);
    fail();
}

size_t conf_count_entries(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

void conf_note(void *arg, hf_lock *lock, int result)
{
    struct conf_call *call = arg;

    call->called++;
    call->result = result;
}

bool conf_called(hf_client *c, const struct conf_call *call)
{
    assert_true(hf_client_dispatch(c) >= 0);
    return call->called;
}

void conf_calls_back(hf_client *c, const struct conf_call *call, int result)
{
    COMES(conf_called(c, call));
    EXPECT(result, call->result);
}
