/*
 * A server answers but refuses requests. Every acquire must fail at once with
 * the server's own error message, each time; nothing may stay pending; and an
 * acquire must work as soon as the server stops refusing. The cases run for
 * each refusal of the server (any_refusals) and each kind of lock, or only some
 * kinds if `few` is set.
 */
#include "any_faults.h"

#include <string.h>

#define SOON_MS 700 /* far less than any timeout */
#define OP_MS 5000
#define THREADS 4

static const struct subject {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
    enum hf_mode mode;
    bool is_one_of_few;
} subjects[] = {
    {"unfair mutex", HF_MUTEX, HF_UNFAIR, HF_WRITE, true},
    {"fair mutex", HF_MUTEX, HF_FAIR, HF_WRITE, false},
    {"writer", HF_RWLOCK, HF_FAIR_DEFAULT, HF_WRITE, false},
    {"reader", HF_RWLOCK, HF_FAIR_DEFAULT, HF_READ, true},
    {"semaphore", HF_SEMAPHORE, HF_FAIR_DEFAULT, HF_WRITE, false},
};
#define SUBJECTS (sizeof(subjects) / sizeof(*subjects))

static const struct pick {
    const struct any_refusal *refusal;
    const struct subject *subject;
} * picked;

static hf_lock *new_lock(struct world *w, hf_client *c, unsigned flags)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    opt.kind = picked->subject->kind;
    opt.fairness = picked->subject->fairness;
    opt.permits = opt.kind == HF_SEMAPHORE ? 2 : 0;
    opt.flags = flags;
    return world_handle(w, c, "n", &opt);
}

static hf_client *new_client(struct world *w)
{
    return world_open(
        w, w->near_url,
        CLIENT(.op_timeout_ms = OP_MS, .ttl_ms = any_refused_ttl_ms));
}

static hf_acquire_options wish(int64_t wait_ms)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.mode = picked->subject->mode;
    opt.wait_ms = wait_ms;
    return opt;
}

/* Returns what is wrong with the result, or NULL if it is right. */
static const char *judge(int rc, const hf_error *err, int64_t began)
{
    static _Thread_local char text[1000];

    if (rc == picked->refusal->code &&
        strstr(err->text, picked->refusal->says) && wait_within(began, SOON_MS))
        return NULL;
    snprintf(text, sizeof(text), "%s, \"%s\", after %d ms", hf_error_name(rc),
             err->text, (int)((wait_fair() - began) / 1000000));
    return text;
}

static const char *hears_it(hf_lock *lock, int64_t wait_ms)
{
    hf_acquire_options opt = wish(wait_ms);
    hf_error err = {0};
    int64_t began = wait_fair();

    return judge(hf_lock_acquire(lock, &opt, &err), &err, began);
}

static void all_ways_hear_it(hf_lock *lock)
{
    static const int64_t waits[] = {0, 0, 3000, 0, HF_FOREVER, 300, 0};

    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
        const char *wrong = hears_it(lock, waits[i]);

        if (wrong)
            fail_msg("acquire %zu, waiting %lld: %s", i, (long long)waits[i],
                     wrong);
    }
}

struct threads {
    pthread_t thread[THREADS];
    hf_lock *lock;
    uint32_t wrong;  /* atomic */
    char text[1000]; /* the description of the first wrong result */
};

static void *hear_it(void *arg)
{
    struct threads *t = arg;

    for (int i = 0; i < 10; i++) {
        const char *wrong = hears_it(t->lock, i % 2 ? 0 : 3000);

        if (wrong && !__atomic_fetch_add(&t->wrong, 1, __ATOMIC_SEQ_CST))
            snprintf(t->text, sizeof(t->text), "%s", wrong);
    }
    return NULL;
}

static void threads_hear_it(hf_lock *lock)
{
    struct threads t = {.lock = lock};

    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&t.thread[i], NULL, hear_it, &t));
    for (int i = 0; i < THREADS; i++)
        pthread_join(t.thread[i], NULL);
    if (t.wrong)
        fail_msg("%u of %d concurrent acquires: %s", t.wrong, THREADS * 10,
                 t.text);
}

static void note_result(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

static bool came_back(hf_client *c, const int *result)
{
    hf_client_dispatch(c);
    return *result != 1;
}

static void callback_hears_it(hf_client *c, hf_lock *own, int64_t wait_ms)
{
    hf_acquire_options opt = wish(wait_ms);
    int result = 1;

    OK(hf_lock_acquire_async(own, &opt, note_result, &result, NULL));
    COMES_MS(came_back(c, &result), SOON_MS);
    assert_int_equal(result, picked->refusal->code);
}

static void takes_at_once(struct world *w, hf_lock *lock)
{
    hf_acquire_options opt = wish(0);

    OK(hf_lock_acquire(lock, &opt, &w->err));
}

/* Frees the handles and closes the clients, which fails if a release is still
 * pending, and only then runs the refusal's own tidy(). */
static void tidy(struct world *w)
{
    world_end_things(w);
    if (picked->refusal->tidy)
        picked->refusal->tidy(w);
}

static void test_refused_acquires(struct world *w)
{
    hf_client *c = new_client(w);
    hf_lock *lock = new_lock(w, c, 0), *own = new_lock(w, c, HF_OWNER_HANDLE);

    takes_at_once(w, lock);
    OK(hf_lock_release(lock, &w->err));
    for (int round = 0; round < 2; round++) {
        picked->refusal->begin(w);
        all_ways_hear_it(lock);
        threads_hear_it(lock);
        callback_hears_it(c, own, 0);
        callback_hears_it(c, own, HF_FOREVER);
        picked->refusal->end(w);
        takes_at_once(w, lock);
        OK(hf_lock_release(lock, &w->err));
    }
    tidy(w);
}

/* A refused acquire leaves nothing pending for which hf_close() would wait. */
static void test_refused_acquire_then_close(struct world *w)
{
    hf_client *c = new_client(w);
    hf_lock *lock = new_lock(w, c, 0);
    const char *wrong;
    int64_t began;

    picked->refusal->begin(w);
    wrong = hears_it(lock, 0);
    if (wrong)
        fail_msg("%s", wrong);
    began = wait_fair();
    world_end_things(w);
    assert_true(wait_within(began, SOON_MS));
    picked->refusal->end(w);
    tidy(w);
}

/* A refused release returns the refusal and is retried until the server allows
 * it. */
static void test_refused_release(struct world *w)
{
    hf_client *c = new_client(w), *d = new_client(w);
    hf_lock *lock = new_lock(w, c, 0), *other = new_lock(w, d, 0);
    hf_acquire_options opt = wish(5000);
    hf_error err = {0};
    const char *wrong;
    int64_t began;

    takes_at_once(w, lock);
    picked->refusal->begin(w);
    began = wait_fair();
    wrong = judge(hf_lock_release(lock, &err), &err, began);
    if (wrong)
        fail_msg("release: %s", wrong);
    wrong = hears_it(lock, 0);
    if (wrong)
        fail_msg("acquire after it: %s", wrong);
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    picked->refusal->end(w);
    OK(hf_lock_acquire(other, &opt, &w->err));
    OK(hf_lock_release(other, &w->err));
    takes_at_once(w, lock);
    OK(hf_lock_release(lock, &w->err));
    tidy(w);
}

/* The client keeps trying to renew while the server refuses. */
static void test_refused_renewal(struct world *w)
{
    hf_client *c = new_client(w);
    hf_lock *lock = new_lock(w, c, 0);
    hf_error err = {0};

    takes_at_once(w, lock);
    picked->refusal->begin(w);
    /* Renews repeatedly until a renewal fails, because a hold that was renewed
     * less than a millisecond ago needs no write. */
    COMES(hf_lock_renew(lock, 0, &err) != 0);
    assert_int_equal(err.code, picked->refusal->code);
    expect_words(err.text, picked->refusal->says);
    OK(hf_lock_check(lock));
    picked->refusal->end(w);
    world_renews(lock);
    OK(hf_lock_release(lock, &w->err));
    tidy(w);
}

static int prepare(struct world *w)
{
    picked = w->at->row;
    if (picked->refusal->prepare)
        picked->refusal->prepare(w);
    return 0;
}

GROUP("refusals", .begin = prepare);

#define VERBS 4
#define MOST (16 * SUBJECTS * VERBS)

static void add(const struct any_refusal *r, const struct subject *s,
                const char *what, void (*run)(struct world *))
{
    static struct world_case all[MOST];
    static struct pick picks[MOST];
    static char names[MOST][80];
    static int len;

    if (len == MOST)
        abort();
    picks[len] = (struct pick){r, s};
    snprintf(names[len], sizeof(names[len]), "%s, %s: %s", s->name, r->name,
             what);
    all[len] = (struct world_case){.name = names[len],
                                   .run = run,
                                   .group = &group,
                                   .order = len,
                                   .row = &picks[len]};
    world_add(&all[len++]);
}

__attribute__((constructor)) static void add_all(void)
{
    for (const struct any_refusal *r = any_refusals; r->name; r++)
        for (size_t i = 0; i < SUBJECTS; i++) {
            const struct subject *s = &subjects[i];

            if (r->few && !s->is_one_of_few)
                continue;
            if (r->acquires)
                add(r, s, "acquire", test_refused_acquires);
            if (r->acquires && !r->leaves_some)
                add(r, s, "close", test_refused_acquire_then_close);
            if (r->releases)
                add(r, s, "release", test_refused_release);
            if (r->renewals)
                add(r, s, "renew", test_refused_renewal);
        }
}
