/* pthread_cancel() of a thread inside a verb takes effect after the verb has
 * returned, so that no verb is left half done. */
#include "conf.h"

#include <sys/syscall.h>

/* A thread that calls verbs while its cancellation is pending. A verb that
 * contained a cancellation point would end the thread there. */
struct caller {
    const char *in; /* the verb that has not returned, or NULL */
    hf_client *c;
    hf_lock *mutex, *handle, *busy, *rwlock, *semaphore;
    hf_latch *latch;
    const char *name;
    hf_cancel *cancel; /* passed to the waits */
    void (*verbs)(struct caller *);
};

#define RETURNS(caller, call)                                                  \
    do {                                                                       \
        (caller)->in = #call;                                                  \
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);                   \
        (void)(call);                                                          \
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);                  \
        (caller)->in = NULL;                                                   \
    } while (0)

static void *call_verbs(void *arg)
{
    struct caller *a = arg;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    a->verbs(a);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

static void try_all(struct caller *a, void (*verbs)(struct caller *))
{
    pthread_t thread;
    void *result;

    a->verbs = verbs;
    assert_int_equal(pthread_create(&thread, NULL, call_verbs, a), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    if (a->in)
        print_error("ended in the middle of %s\n", a->in);
    assert_null(a->in);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

static void make(struct caller *a)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_client_options client = CLIENT_OPTIONS(.op_timeout_ms = conf_op_ms());

    RETURNS(a, hf_open(conf.url, &client, &a->c, NULL));
    opt.fairness = conf.fairness;
    RETURNS(a, hf_lock_new(a->c, a->name, HF_CSTRING, &opt, &a->mutex, NULL));
    opt.flags = HF_OWNER_HANDLE;
    RETURNS(a, hf_lock_new(a->c, a->name, HF_CSTRING, &opt, &a->handle, NULL));
    opt = (hf_lock_options)HF_LOCK_OPTIONS_INIT;
    opt.kind = HF_RWLOCK;
    RETURNS(a,
            hf_lock_new(a->c, conf_name(), HF_CSTRING, &opt, &a->rwlock, NULL));
    opt.kind = HF_SEMAPHORE;
    opt.permits = 2;
    RETURNS(a, hf_lock_new(a->c, conf_name(), HF_CSTRING, &opt, &a->semaphore,
                           NULL));
    RETURNS(a, hf_latch_new(a->c, conf_name(), HF_CSTRING, &a->latch, NULL));
}

static void acquire(struct caller *a)
{
    hf_acquire_options read = ACQUIRE_OPTIONS(.mode = HF_READ);
    hf_part parts[2] = {{.lock = a->mutex}, {.lock = a->handle}};

    /* The first pass creates resources that the second one finds. */
    for (int i = 0; i < 2; i++) {
        RETURNS(a, hf_lock_acquire(a->mutex, NULL, NULL));
        RETURNS(a, hf_lock_try(a->mutex, NULL));
        RETURNS(a, hf_lock_release(a->mutex, NULL));
        RETURNS(a, hf_lock_renew(a->mutex, 0, NULL));
        RETURNS(a, hf_lock_put(a->mutex, "k", 1, "v", 1, NULL));
        RETURNS(a, hf_lock_check(a->mutex));
        RETURNS(a, hf_lock_token(a->mutex, &(uint64_t){0}));
        RETURNS(a, hf_lock_deadline(a->mutex, &(int64_t){0}));
        RETURNS(a, hf_lock_count(a->mutex, &(unsigned){0}));
        RETURNS(a, hf_lock_explain(a->mutex, &(hf_error){0}));
        RETURNS(a, hf_lock_fd(a->mutex));
        RETURNS(a, hf_lock_timed(a->handle, 20, NULL));
        RETURNS(a, hf_lock_release_nowait(a->mutex, NULL));
        RETURNS(a, hf_lock_release(a->mutex, NULL)); /* returns HF_ENOTOWNER */
        RETURNS(a, hf_lock_acquire_all(parts, 1, NULL, NULL));
        RETURNS(a, hf_lock_release_all(parts, 1, NULL));
        if (a->rwlock) {
            RETURNS(a, hf_lock_acquire(a->rwlock, NULL, NULL));
            RETURNS(a, hf_lock_downgrade(a->rwlock, NULL));
            RETURNS(a, hf_lock_upgrade(a->rwlock, NULL));
            RETURNS(a, hf_lock_acquire(a->rwlock, &read, NULL));
            RETURNS(a, hf_lock_release(a->rwlock, NULL));
            RETURNS(a, hf_lock_release(a->rwlock, NULL));
        }
        if (a->semaphore) {
            RETURNS(a, hf_lock_acquire(a->semaphore, NULL, NULL));
            RETURNS(a, hf_lock_acquire(a->semaphore, NULL, NULL));
            RETURNS(a, hf_lock_try(a->semaphore, NULL));
            RETURNS(a, hf_lock_release(a->semaphore, NULL));
            RETURNS(a, hf_lock_release(a->semaphore, NULL));
        }
    }
    /* Another client holds `busy`. */
    RETURNS(a, hf_lock_try(a->busy, NULL));
    RETURNS(a, hf_lock_timed(a->busy, 20, NULL));
    RETURNS(a, hf_cancel_fire(a->cancel));
}

static void count_down(struct caller *a)
{
    RETURNS(a, hf_latch_set(a->latch, 2, NULL));
    RETURNS(a, hf_latch_get(a->latch, &(uint64_t){0}, NULL));
    RETURNS(a, hf_latch_wait(a->latch, 20, NULL, NULL));
    RETURNS(a, hf_latch_down(a->latch, NULL, NULL));
    RETURNS(a, hf_latch_down(a->latch, NULL, NULL));
    RETURNS(a, hf_latch_wait(a->latch, HF_FOREVER, NULL, NULL));
}

static void see(void *arg, hf_watch *watch, const char *name, size_t len)
{
}

static void look(struct caller *a)
{
    hf_metrics metrics = HF_METRICS_INIT;
    hf_diagnosis *diagnosis = NULL;
    hf_names *names = NULL;
    hf_info *info = NULL;
    hf_watch *watch = NULL;

    RETURNS(a, hf_inspect(a->c, a->name, HF_CSTRING, &info, NULL));
    RETURNS(a, hf_list(a->c, NULL, &names, NULL));
    RETURNS(a, hf_ask(a->c, a->name, HF_CSTRING, NULL));
    RETURNS(a, hf_break(a->c, a->name, HF_CSTRING, NULL));
    RETURNS(a, hf_break_hold(a->c, a->name, HF_CSTRING, 1, NULL, NULL));
    RETURNS(a, hf_diagnose(a->c, &diagnosis, NULL));
    RETURNS(a, hf_client_metrics(a->c, &metrics, NULL));
    RETURNS(
        a, hf_watch_new(a->c, a->name, HF_CSTRING, 0, see, NULL, &watch, NULL));
    RETURNS(a, hf_watch_free(watch));
    if (info)
        RETURNS(a, hf_info_free(info));
    if (names)
        RETURNS(a, hf_names_free(names));
    if (diagnosis)
        RETURNS(a, hf_diagnosis_free(diagnosis));
}

static void dispatch_until(struct caller *a, const struct conf_call *call)
{
    while (!call->called) {
        RETURNS(a, hf_client_dispatch(a->c));
        wait_tick();
    }
}

static void call_back(struct caller *a)
{
    struct conf_call call = {0};

    RETURNS(a, hf_client_fd(a->c));
    RETURNS(a, hf_lock_acquire_async(a->handle, NULL, conf_note, &call, NULL));
    dispatch_until(a, &call);
    call.called = 0;
    RETURNS(a, hf_lock_renew_async(a->handle, 0, conf_note, &call, NULL));
    dispatch_until(a, &call);
    call.called = 0;
    RETURNS(a, hf_lock_release_async(a->handle, conf_note, &call, NULL));
    RETURNS(a, hf_lock_cancel(a->handle));
    dispatch_until(a, &call);
}

static void end(struct caller *a)
{
    RETURNS(a, hf_lock_free(a->mutex));
    RETURNS(a, hf_lock_free(a->handle));
    RETURNS(a, hf_lock_free(a->busy));
    RETURNS(a, hf_lock_free(a->rwlock));
    RETURNS(a, hf_lock_free(a->semaphore));
    RETURNS(a, hf_latch_free(a->latch));
    RETURNS(a, hf_close(a->c));
}

CONF_CASE(test_cancellation_waits_for_each_verb, CONF_EACH)
{
    struct caller a = {.name = conf_name()};
    const char *taken = conf_name();
    hf_lock *held = conf_lock(conf_open(), taken);
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};
    hf_cancel cancel = HF_CANCEL_INIT;

    OK(hf_lock_acquire(held, NULL, E));
    try_all(&a, make);
    assert_true(a.c && a.mutex && a.handle);
    a.busy = conf_lock(a.c, taken);
    a.cancel = t.opt.cancel = &cancel;
    conf_taker_start(&t, a.busy);
    conf_thread_asleep(&t.t);
    try_all(&a, acquire);
    conf_taker_ends(&t, HF_ECANCELED);
    if (conf.unput)
        conf.unput("k");
    if (a.latch)
        try_all(&a, count_down);
    try_all(&a, look);
    try_all(&a, call_back);
    conf_forget(a.busy); /* end() frees this handle */
    try_all(&a, end);
    OK(hf_lock_release(held, E));
}

struct worker {
    pthread_t thread;
    pid_t tid;      /* atomic */
    uint32_t ended; /* atomic */
    hf_lock *lock;
    bool holds;
    unsigned grants;
};

/* A cleanup handler as programs write it: when the thread is cancelled, the
 * handler releases the locks. */
static void clean_up(void *arg)
{
    struct worker *w = arg;

    if (w->holds)
        hf_lock_release(w->lock, NULL);
    __atomic_store_n(&w->ended, 1, __ATOMIC_RELEASE);
}

static void *work(void *arg)
{
    struct worker *w = arg;

    pthread_cleanup_push(clean_up, w);
    __atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    for (;;) {
        w->holds = hf_lock_acquire(w->lock, NULL, NULL) == 0;
        w->grants += w->holds;
        pthread_testcancel();
        if (w->holds)
            hf_lock_release(w->lock, NULL);
        w->holds = false;
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void worker_start(struct worker *w, hf_lock *lock)
{
    *w = (struct worker){.lock = lock};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static bool has_ended(struct worker *w)
{
    return __atomic_load_n(&w->ended, __ATOMIC_ACQUIRE);
}

static void worker_end(struct worker *w)
{
    void *result;

    COMES(has_ended(w));
    assert_int_equal(pthread_join(w->thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* A wait continues until the lock is granted although its thread was cancelled,
 * whether that thread or another one reads the client's connection. */
CONF_CASE(test_cancellation_waits_for_a_wait, CONF_EACH)
{
    hf_lock *held = conf_lock(conf_open(), conf_name());
    hf_lock *wanted = conf_rival(held, 0);
    struct worker w[2];

    OK(hf_lock_acquire(held, NULL, E));
    for (int i = 0; i < 2; i++) {
        worker_start(&w[i], wanted);
        COMES(__atomic_load_n(&w[i].tid, __ATOMIC_ACQUIRE) != 0);
        assert_true(wait_asleep(getpid(), w[i].tid));
        assert_int_equal(pthread_cancel(w[i].thread), 0);
        assert_true(wait_asleep(getpid(), w[i].tid));
        assert_false(has_ended(&w[i]));
    }
    OK(hf_lock_release(held, E));
    for (int i = 0; i < 2; i++) {
        worker_end(&w[i]);
        assert_int_equal(w[i].grants, 1);
    }
    conf_comes_free(held);
}

CONF_CASE(test_cancellation_at_any_moment, CONF_EACH)
{
    hf_lock *first = conf_lock(conf_open(), conf_name());
    hf_lock *second = conf_rival(first, 0);
    struct worker w[4];

    for (unsigned round = 0; round < 15; round++) {
        for (unsigned i = 0; i < 4; i++)
            worker_start(&w[i], i % 2 ? first : second);
        for (unsigned i = 0; i < 4; i++) {
            for (volatile unsigned spin = 0; spin < round * i * 5000; spin++)
                ;
            assert_int_equal(pthread_cancel(w[i].thread), 0);
        }
        for (unsigned i = 0; i < 4; i++)
            worker_end(&w[i]);
    }
    conf_comes_free(first);
    conf_comes_free(second);
}
