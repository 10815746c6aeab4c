/*
 * A process with write access to the shared-memory file changes one word of the
 * file continually. Every call must return in time nevertheless, with an error
 * if it failed, and a client must retry a release that failed.
 *
 * On a busy machine, a second process would not change the word at every
 * possible moment. Therefore the calling thread itself changes the word at each
 * point between two steps (HF__SHM_POINTS), so that no compare-and-swap of that
 * word ever succeeds.
 */
#include "../../unit/backends/shm/shm_fixture.h"

enum { BEYOND_MS = 1000, WAIT_MS = 50, TABLES_MS = 1000 };

/* How the word is changed: the hammer adds what a client would add, flips bits,
 * or stores random bits. */
struct hammer {
    const char *name;
    size_t offset;
    uint64_t add, flip;
    uint64_t kept; /* bits that do not change when `add` is added */
};

static const struct hammer *hammer;
static struct shm_file *_Atomic file; /* NULL while the hammer rests */
static atomic_int blows = -1;         /* blows left; no limit if negative */

static uint64_t anything(void)
{
    static shm_u64 seed;
    uint64_t n = atomic_fetch_add(&seed, 1) * 0x9e3779b97f4a7c15ULL;

    return n ^ n >> 32;
}

static void add(shm_u64 *word)
{
    uint64_t old = atomic_load(word), kept = hammer->kept;

    while (!atomic_compare_exchange_weak(
        word, &old, (old & kept) | ((old + hammer->add) & ~kept)))
        ;
}

void hf__shm_point(const char *name, int line); /* called by the backend */

void hf__shm_point(const char *name, int line)
{
    struct shm_file *f = file;
    shm_u64 *word;

    (void)name;
    (void)line;
    if (!f || !blows)
        return;
    if (blows > 0)
        blows--;
    word = (shm_u64 *)(void *)((char *)f + hammer->offset);
    if (hammer->add)
        add(word);
    else if (hammer->flip)
        atomic_fetch_xor(word, hammer->flip);
    else
        atomic_store(word, anything());
}

static char late[160]; /* describes the first late call of any thread */

static int within(int64_t began, int ms, const char *call, int rc)
{
    static atomic_bool is_taken;

    if (!wait_within(began, ms + BEYOND_MS) &&
        !atomic_exchange(&is_taken, true))
        snprintf(late, sizeof(late), "%s hammered: %s took %lld ms (%d)",
                 hammer->name, call, (long long)(wait_fair() - began) / 1000000,
                 rc);
    return rc;
}

#define TIMED(ms, call)                                                        \
    ({                                                                         \
        int64_t timed_began = wait_fair();                                     \
                                                                               \
        within(timed_began, ms, #call, call);                                  \
    })

struct party {
    hf_client *client;
    hf_lock *lock;
    hf_latch *latch;
};

static const struct kind {
    enum hf_kind kind;
    enum hf_fairness fairness;
    uint64_t stir, flags; /* bits of the word that a client changes */
    uint64_t kept;        /* bits that do not change when `stir` is added */
} kinds[] = {{HF_MUTEX, HF_FAIR, SHM_STIR_ONE, SHM_WAITERS, ~SHM_STIR_MASK},
             {HF_MUTEX, HF_UNFAIR, SHM_STIR_ONE, SHM_WAITERS | SHM_WAKING,
              ~SHM_STIR_MASK},
             {HF_RWLOCK, HF_FAIR_DEFAULT, SHM_CHANGE_ONE, SHM_QUEUE, 0},
             {HF_SEMAPHORE, HF_FAIR_DEFAULT, SHM_CHANGE_ONE, SHM_QUEUE, 0},
             {HF_LATCH, HF_FAIR_DEFAULT, SHM_ROUND_ONE, SHM_LATCH_QUEUE, 0}};

static hf_lock_options lock_options(const struct kind *k)
{
    return *KIND(k->kind, .fairness = k->fairness,
                 .permits = k->kind == HF_SEMAPHORE ? 2 : 0);
}

static void party_come(struct party *p, const char *url, const struct kind *k)
{
    hf_lock_options opt = lock_options(k);

    *p = (struct party){0};
    OK(hf_open(url, NULL, &p->client, NULL));
    if (k->kind == HF_LATCH)
        OK(hf_latch_new(p->client, "x", 1, &p->latch, NULL));
    else
        OK(hf_lock_new(p->client, "x", 1, &opt, &p->lock, NULL));
}

static void party_go(struct party *p)
{
    if (p->lock && !TIMED(0, hf_lock_free(p->lock)))
        p->lock = NULL;
    TIMED(0, hf_close(p->client));
    hf_lock_free(p->lock); /* a held lock can be freed only now */
    hf_latch_free(p->latch);
}

static void party_use(struct party *p, int64_t lease_ms)
{
    if (p->latch) {
        TIMED(TABLES_MS, hf_latch_set(p->latch, 2, NULL));
        TIMED(WAIT_MS, hf_latch_wait(p->latch, WAIT_MS, NULL, NULL));
        TIMED(TABLES_MS, hf_latch_down(p->latch, NULL, NULL));
        return;
    }
    TIMED(WAIT_MS,
          hf_lock_acquire(p->lock, HOW(WAIT_MS, .lease_ms = lease_ms), NULL));
    TIMED(0, hf_lock_renew(p->lock, lease_ms, NULL));
    TIMED(0, hf_lock_release(p->lock, NULL));
    TIMED(0, hf_lock_try(p->lock, NULL)); /* keeps the lock if this succeeds */
}

static void *use_main(void *arg)
{
    party_use(arg, 0);
    party_use(arg, 2000);
    return NULL;
}

/* One client holds the lock (unless it is a latch), and two others use the
 * lock: every call must return in time. */
static void everybody_ends(const struct locks_place *p, const struct kind *k,
                           const struct hammer *h)
{
    struct party holder, first, second;
    hf_info *info = NULL;
    pthread_t thread;

    hammer = h;
    party_come(&holder, p->url, k);
    party_come(&first, p->url, k);
    party_come(&second, p->url, k);
    if (holder.lock)
        OK(hf_lock_try(holder.lock, NULL));
    file = map(p);
    OK(pthread_create(&thread, NULL, use_main, &first));
    party_use(&second, 0);
    TIMED(TABLES_MS, hf_inspect(holder.client, "x", 1, &info, NULL));
    hf_info_free(info);
    TIMED(TABLES_MS, hf_ask(second.client, "x", 1, NULL));
    TIMED(TABLES_MS, hf_break(second.client, "x", 1, NULL));
    if (holder.lock)
        TIMED(0, hf_lock_release(holder.lock, NULL));
    OK(pthread_join(thread, NULL));
    party_use(&second, 2000);
    party_go(&first);
    party_go(&second);
    party_go(&holder);
    file = NULL;
    OK(unlink(p->file));
    if (late[0])
        fail_msg("%s", late);
}

static void word_is_hammered(const struct locks_place *p, unsigned kind)
{
    const struct kind *k = &kinds[kind];
    const size_t word = offsetof(struct shm_file, entry[0].word);
    const struct hammer hammers[] = {
        {"the word, stirred,", word, k->stir, 0, k->kept},
        {"a flag of the word", word, 0, k->flags, 0},
        {"all of the word", word, 0, 0, 0}};

    for (unsigned i = 0; i < sizeof(hammers) / sizeof(*hammers); i++)
        everybody_ends(p, k, &hammers[i]);
}

#define WORD(name, kind)                                                       \
    CASE_HERE(name)                                                            \
    {                                                                          \
        word_is_hammered(p, kind);                                             \
    }                                                                          \
    struct CMUnitTest

WORD(test_a_fair_mutex, 0);
WORD(test_an_unfair_mutex, 1);
WORD(test_a_read_write_lock, 2);
WORD(test_a_semaphore, 3);
WORD(test_a_latch, 4);

/* Hammers all other words that a semaphore or a mutex needs. */
CASE_HERE(test_other_words)
{
#define AT(field) offsetof(struct shm_file, field)
    static const struct hammer hammers[] = {
        {"a cell's hold", AT(cell[0].hold), 0x1000, 0, 0},
        {"a cell's lease", AT(cell[0].lease), 1 << 24, 0, 0},
        {"a cell's ticket", AT(cell[1].ticket), 1, 0, 0},
        {"a cell's owner and bell", AT(cell[1].owner), 0, 0, 0},
        {"an entry's lease", AT(entry[0].lease), 1 << 24, 0, 0},
        {"an entry's map", AT(entry[0].cells[0]), 0, 0, 0},
        {"a slot's life and state", AT(slot[1].alive), 0, 0, 0},
        {"a slot's doorbell", AT(slot[1].doorbell), 1, 0, 0},
        {"the numbers of what is in use", AT(header.slots_high), 0, 0, 0},
        {"cells in use", AT(header.cells_high), 0, 0, 0},
        {"the tables", AT(header.tables), 1ULL << 32, 0, 0},
        {"the lock of the tables", AT(header.tables), 0, 1ULL << 31, 0}};

    for (unsigned i = 0; i < sizeof(hammers) / sizeof(*hammers); i++)
        everybody_ends(p, &kinds[i % 4], &hammers[i]);
}

struct scene {
    struct party one, other;
    struct hammer stirs; /* changes "x" as a client would */
    struct shm_file *mapped;
};

static void scene_make(struct scene *s, const struct locks_place *p,
                       const struct kind *k)
{
    *s = (struct scene){.stirs = {"the word, stirred,",
                                  offsetof(struct shm_file, entry[0].word),
                                  k->stir, 0, k->kept}};
    party_come(&s->one, p->url, k);
    party_come(&s->other, p->url, k);
    s->mapped = map(p);
    hammer = &s->stirs;
}

static void scene_end(struct scene *s, const struct locks_place *p)
{
    file = NULL;
    party_go(&s->one);
    party_go(&s->other);
    OK(unlink(p->file));
}

/* Asserts that the call fails while the word is hammered, and that its error
 * gives the reason. */
#define GIVES_UP(scene, call)                                                  \
    do {                                                                       \
        hf_error err = HF_ERROR_INIT;                                          \
        int gave_up;                                                           \
                                                                               \
        file = (scene)->mapped;                                                \
        gave_up = call;                                                        \
        file = NULL;                                                           \
        EXPECT(HF_EBACKEND, gave_up);                                          \
        expect_words(err.text, "changes all the time");                        \
    } while (0)

/* A time that is long enough on any machine. */
#define SURELY_MS 60000

static void for_each_lock(const struct locks_place *p,
                          void (*play)(struct scene *, const struct kind *))
{
    struct scene s;

    for (unsigned i = 0; i < 4; i++) {
        scene_make(&s, p, &kinds[i]);
        play(&s, &kinds[i]);
        scene_end(&s, p);
    }
}

/* Defines a case that runs this play for each kind of lock. */
#define EACH_LOCK(name, play)                                                  \
    CASE_HERE(name)                                                            \
    {                                                                          \
        for_each_lock(p, play);                                                \
    }                                                                          \
    struct CMUnitTest

/* Acquires the whole lock; for a semaphore, all permits. */
static int take_all(hf_lock *lock, const struct kind *k, int64_t wait_ms,
                    int64_t lease_ms)
{
    return hf_lock_acquire(lock,
                           HOW(wait_ms, .lease_ms = lease_ms,
                               .permits = k->kind == HF_SEMAPHORE ? 2 : 0),
                           NULL);
}

/* The owner's release has failed, so no other client can acquire until the
 * hammer stops. After that any client can acquire, whatever the owner does with
 * its handle and client. */
static void play_release(struct scene *s, const struct kind *k, int64_t lease)
{
    OK(take_all(s->one.lock, k, 0, lease));
    GIVES_UP(s, hf_lock_release(s->one.lock, &err));
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->one.lock));
    EXPECT(HF_ENOTOWNER, hf_lock_release(s->one.lock, NULL));
    OK(take_all(s->other.lock, k, SURELY_MS, 0));
    OK(hf_lock_release(s->other.lock, NULL));

    OK(take_all(s->one.lock, k, 0, lease));
    GIVES_UP(s, hf_lock_release(s->one.lock, &err));
    GIVES_UP(s, hf_lock_try(s->one.lock, &err));
    OK(take_all(s->one.lock, k, SURELY_MS, 0)); /* at once, without help */
    GIVES_UP(s, hf_lock_release(s->one.lock, &err));
    OK(hf_lock_free(s->one.lock));
    s->one.lock = NULL;
    OK(take_all(s->other.lock, k, SURELY_MS, 0));
}

static void play_releases(struct scene *s, const struct kind *k)
{
    play_release(s, k, 0);
}

static void play_releases_of_leases(struct scene *s, const struct kind *k)
{
    play_release(s, k, 10 * SURELY_MS);
}

CASE_HERE(test_a_release_that_gives_up)
{
    for_each_lock(p, play_releases);
    for_each_lock(p, play_releases_of_leases);
}

/* After its release has failed, the owner closes its client: the lock is
 * free. */
static void play_close(struct scene *s, const struct kind *k)
{
    hf_client *client = s->one.client;
    int rc;

    OK(take_all(s->one.lock, k, 0, 0));
    GIVES_UP(s, hf_lock_release(s->one.lock, &err));
    file = s->mapped;
    rc = TIMED(0, hf_close(client));
    file = NULL;
    OK(rc);
    hf_lock_free(s->one.lock);
    OK(take_all(s->other.lock, k, SURELY_MS, 0));
    s->one = (struct party){0};
}

EACH_LOCK(test_a_close_after_it, play_close);

/* A renewal that fails because of the hammer does not end the hold. */
static void play_renewal(struct scene *s, const struct kind *k)
{
    OK(take_all(s->one.lock, k, 0, SURELY_MS));
    GIVES_UP(s, hf_lock_renew(s->one.lock, SURELY_MS, &err));
    OK(hf_lock_check(s->one.lock));
    OK(hf_lock_renew(s->one.lock, SURELY_MS, NULL));
    EXPECT(HF_EBUSY, take_all(s->other.lock, k, 0, 0));
    OK(hf_lock_release(s->one.lock, NULL));
}

EACH_LOCK(test_a_renewal_that_gives_up, play_renewal);

static void play_break(struct scene *s, const struct kind *k)
{
    OK(take_all(s->one.lock, k, 0, 0));
    GIVES_UP(s, hf_break(s->other.client, "x", 1, &err));
    OK(hf_lock_check(s->one.lock));
    OK(hf_lock_release(s->one.lock, NULL));
}

EACH_LOCK(test_a_break_that_gives_up, play_break);

static int break_under(struct scene *s, int n)
{
    int rc;

    blows = n;
    file = s->mapped;
    rc = hf_break(s->other.client, "x", 1, NULL);
    file = NULL;
    blows = -1;
    return rc;
}

/* The word changes n times while hf_break() breaks two holds. If n is -1, the
 * changes do not end, so hf_break() gives up. hf_break() must return 0 only if
 * it broke both holds, and otherwise report that it gave up. (For a while after
 * the first run (n = -1), hf_break() gives up after only 64 tries; see
 * retry.c.) */
CASE_HERE(test_a_break_of_several)
{
    struct scene s;
    hf_info *info;
    int rc;

    scene_make(&s, p, &kinds[3]);
    for (int n = -1; n < 300; n++) {
        OK(take_all(s.one.lock, &kinds[0], SURELY_MS, 0)); /* one permit */
        OK(take_all(s.other.lock, &kinds[0], SURELY_MS, 0));
        rc = break_under(&s, n);
        OK(hf_inspect(s.one.client, "x", 1, &info, NULL));
        assert_int_equal(rc, n < 0 || info->holders_len ? HF_EBACKEND : 0);
        hf_info_free(info);
        hf_lock_release(s.one.lock, NULL);
        hf_lock_release(s.other.lock, NULL);
    }
    scene_end(&s, p);
}

/* The owner's hold has ended, but its release failed: what is left of the hold
 * in the file must not grant the owner's next request. */
static void play_remains(struct scene *s, const struct kind *k)
{
    int64_t begun;
    int rc;

    OK(take_all(s->one.lock, k, 0, 50));
    file = s->mapped;
    rc = hf_lock_release(s->one.lock, NULL);
    assert_true(rc == HF_EBACKEND || rc == HF_ELOST);
    begun = wait_now();
    /* Wait until the release has been retried. */
    COMES(wait_ms_since(begun) > 600);
    rc = hf_lock_try(s->one.lock, NULL);
    file = NULL;
    assert_int_equal(rc, HF_EBACKEND);
    OK(take_all(s->other.lock, k, SURELY_MS, 0));
}

EACH_LOCK(test_remains_grant_nothing, play_remains);

static void play_acquire(struct scene *s, const struct kind *k)
{
    GIVES_UP(s, hf_lock_try(s->one.lock, &err));
    OK(take_all(s->other.lock, k, SURELY_MS, 0));
}

EACH_LOCK(test_an_acquire_that_gives_up, play_acquire);

/* A client has changed the word of the lock but cannot write its lease. The
 * acquire must fail and leave no hold. */
CASE_HERE(test_a_lease_that_cannot_be_written)
{
    struct scene s;

    for (unsigned i = 0; i < 2; i++) {
        scene_make(&s, p, &kinds[i]);
        s.stirs.offset = offsetof(struct shm_file, entry[0].lease);
        s.stirs.add = 1 << 24;
        s.stirs.kept = 0;
        GIVES_UP(&s,
                 hf_lock_acquire(s.one.lock,
                                 HOW(HF_FOREVER, .lease_ms = SURELY_MS), &err));
        OK(take_all(s.other.lock, &kinds[i], SURELY_MS, 0));
        scene_end(&s, p);
    }
}

CASE_HERE(test_a_count_that_gives_up)
{
    uint64_t left = 0;
    struct scene s;

    scene_make(&s, p, &kinds[4]);
    OK(hf_latch_set(s.one.latch, 2, NULL));
    GIVES_UP(&s, hf_latch_down(s.one.latch, NULL, &err));
    GIVES_UP(&s, hf_break(s.other.client, "x", 1, &err));
    OK(hf_latch_get(s.other.latch, &left, NULL));
    assert_int_equal(left, 2);
    OK(hf_latch_down(s.other.latch, &left, NULL));
    assert_int_equal(left, 1);
    OK(hf_break(s.other.client, "x", 1, NULL));
    GIVES_UP(&s, hf_latch_set(s.one.latch, 2, &err));
    scene_end(&s, p);
}

/* After a client has given up the release of one name, it still makes all its
 * attempts to release another name. */
static void play_neighbour(struct scene *s, const struct kind *k)
{
    int rc, left;
    hf_lock_options opt = lock_options(k);
    hf_lock *neighbour = make_lock_of(s->one.client, "y", &opt);

    OK(take_all(s->one.lock, k, 0, 0));
    OK(take_all(neighbour, k, 0, 0));
    GIVES_UP(s, hf_lock_release(s->one.lock, &err));
    OK(take_all(s->other.lock, k, SURELY_MS, 0)); /* x has been released */
    s->stirs.offset = offsetof(struct shm_file, entry[1].word);
    blows = 1000;
    file = s->mapped;
    rc = hf_lock_release(neighbour, NULL);
    file = NULL;
    left = atomic_exchange(&blows, -1);
    OK(rc);
    assert_int_equal(left, 0);
    free_lock(neighbour);
}

EACH_LOCK(test_another_name, play_neighbour);

CASES_MAIN(NULL, NULL);
