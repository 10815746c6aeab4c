/*
 * A process that may write to the file of shared memory changes one word of it
 * all the time. Every call ends in its time all the same, whatever it says.
 *
 * However fast such a process is, on a busy machine it is not there at every
 * moment. Here it is: at each point between two steps (HF__SHM_POINTS) the
 * thread that is there changes the word itself. So no swap of that word ever
 * succeeds.
 */
#include "../unit/shm_fixture.h"

enum { BEYOND_MS = 1000, WAIT_MS = 50, TABLES_MS = 1000 };

/* ---- the hammer ---------------------------------------------------------- */

/* How it changes the word: it adds what a client would, or flips bits, or puts
 * anything there. */
struct hammer {
    const char *name;
    size_t offset;
    uint64_t add, flip;
};

static const struct hammer *hammer;
static struct shm_file *file; /* NULL: it rests */

static uint64_t anything(void)
{
    static shm_u64 seed;
    uint64_t n = atomic_fetch_add(&seed, 1) * 0x9e3779b97f4a7c15ULL;

    return n ^ n >> 32;
}

void hf__shm_point(const char *name, int line); /* called by the backend */

void hf__shm_point(const char *name, int line)
{
    shm_u64 *word;

    (void)name;
    (void)line;
    if (!file)
        return;
    word = (shm_u64 *)(void *)((char *)file + hammer->offset);
    if (hammer->add)
        atomic_fetch_add(word, hammer->add);
    else if (hammer->flip)
        atomic_fetch_xor(word, hammer->flip);
    else
        atomic_store(word, anything());
}

/* ---- those who keep to the rules ----------------------------------------- */

static char late[160]; /* the first call that was; of any thread */

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

#define WITHIN(ms, call)                                                       \
    ({                                                                         \
        int64_t within_began = wait_fair();                                    \
                                                                               \
        within(within_began, ms, #call, call);                                 \
    })

struct party {
    hf_client *client;
    hf_lock *lock;
    hf_latch *latch;
};

static const struct kind {
    enum hf_kind kind;
    enum hf_fairness fairness;
    uint64_t stir, flags; /* of the word */
} kinds[] = {{HF_MUTEX, HF_FAIR, SHM_STIR_ONE, SHM_WAITERS},
             {HF_MUTEX, HF_UNFAIR, SHM_STIR_ONE, SHM_WAITERS | SHM_WAKING},
             {HF_RWLOCK, HF_FAIR_DEFAULT, SHM_CHANGE_ONE, SHM_QUEUE},
             {HF_SEMAPHORE, HF_FAIR_DEFAULT, SHM_CHANGE_ONE, SHM_QUEUE},
             {HF_LATCH, HF_FAIR_DEFAULT, SHM_ROUND_ONE, SHM_LATCH_QUEUE}};

static void party_come(struct party *p, const char *url, const struct kind *k)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    *p = (struct party){open_client(url), NULL, NULL};
    opt.kind = k->kind;
    opt.fairness = k->fairness;
    opt.permits = opt.kind == HF_SEMAPHORE ? 2 : 0;
    if (opt.kind == HF_LATCH)
        OK(hf_latch_new(p->client, "x", 1, &p->latch, NULL));
    else
        p->lock = make_lock_of(p->client, "x", &opt);
}

static void party_go(struct party *p)
{
    if (p->lock && !WITHIN(0, hf_lock_free(p->lock)))
        p->lock = NULL;
    WITHIN(0, hf_close(p->client));
    hf_lock_free(p->lock); /* what is held is freed after its client */
    hf_latch_free(p->latch);
}

static void party_use(struct party *p, int64_t lease_ms)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    if (p->latch) {
        WITHIN(TABLES_MS, hf_latch_set(p->latch, 2, NULL));
        WITHIN(WAIT_MS, hf_latch_wait(p->latch, WAIT_MS, NULL, NULL));
        WITHIN(TABLES_MS, hf_latch_down(p->latch, NULL, NULL));
        return;
    }
    opt.wait_ms = WAIT_MS;
    opt.lease_ms = lease_ms;
    WITHIN(WAIT_MS, hf_lock_acquire(p->lock, &opt, NULL));
    WITHIN(0, hf_lock_renew(p->lock, lease_ms, NULL));
    WITHIN(0, hf_lock_release(p->lock, NULL));
    WITHIN(0, hf_lock_try(p->lock, NULL)); /* and keeps it, if it has it */
}

static void *use_main(void *arg)
{
    party_use(arg, 0);
    party_use(arg, 2000);
    return NULL;
}

/* One holds it, as far as it can, and two others come. */
static void everybody_ends(const struct place *p, const struct kind *k,
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
    WITHIN(TABLES_MS, hf_inspect(holder.client, "x", 1, &info, NULL));
    hf_info_free(info);
    WITHIN(TABLES_MS, hf_ask(second.client, "x", 1, NULL));
    WITHIN(TABLES_MS, hf_break(second.client, "x", 1, NULL));
    if (holder.lock)
        WITHIN(0, hf_lock_release(holder.lock, NULL));
    OK(pthread_join(thread, NULL));
    party_use(&second, 2000);
    party_go(&first);
    party_go(&second);
    party_go(&holder);
    munmap(file, sizeof(*file));
    file = NULL;
    if (late[0])
        fail_msg("%s", late);
}

static void word_is_hammered(void **state, unsigned kind)
{
    const struct kind *k = &kinds[kind];
    const size_t word = offsetof(struct shm_file, entry[0].word);
    const struct hammer hammers[] = {{"the word, stirred,", word, k->stir, 0},
                                     {"a flag of the word", word, 0, k->flags},
                                     {"all of the word", word, 0, 0}};
    struct place *p = *state;

    for (unsigned i = 0; i < sizeof(hammers) / sizeof(hammers[0]); i++) {
        everybody_ends(p, k, &hammers[i]);
        OK(unlink(p->file));
    }
}

static void test_a_fair_mutex(void **state)
{
    word_is_hammered(state, 0);
}

static void test_an_unfair_mutex(void **state)
{
    word_is_hammered(state, 1);
}

static void test_a_read_write_lock(void **state)
{
    word_is_hammered(state, 2);
}

static void test_a_semaphore(void **state)
{
    word_is_hammered(state, 3);
}

static void test_a_latch(void **state)
{
    word_is_hammered(state, 4);
}

/* What a semaphore or a mutex needs besides its word. */
static void test_other_words(void **state)
{
#define AT(field) offsetof(struct shm_file, field)
    static const struct hammer hammers[] = {
        {"a cell's hold", AT(cell[0].hold), 0x1000, 0},
        {"a cell's lease", AT(cell[0].lease), 1 << 24, 0},
        {"a cell's ticket", AT(cell[1].ticket), 1, 0},
        {"a cell's owner and bell", AT(cell[1].owner), 0, 0},
        {"an entry's lease", AT(entry[0].lease), 1 << 24, 0},
        {"an entry's map", AT(entry[0].cells[0]), 0, 0},
        {"a slot's life and state", AT(slot[1].alive), 0, 0},
        {"a slot's doorbell", AT(slot[1].doorbell), 1, 0},
        {"the numbers of what is in use", AT(header.slots_high), 0, 0},
        {"cells in use", AT(header.cells_high), 0, 0},
        {"the tables", AT(header.tables), 1ULL << 32, 0},
        {"the lock of the tables", AT(header.tables), 0, 1ULL << 31}};
    struct place *p = *state;

    for (unsigned i = 0; i < sizeof(hammers) / sizeof(hammers[0]); i++) {
        everybody_ends(p, &kinds[i % 4], &hammers[i]);
        OK(unlink(p->file));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_fair_mutex),      TEST(test_an_unfair_mutex),
        TEST(test_a_read_write_lock), TEST(test_a_semaphore),
        TEST(test_a_latch),           TEST(test_other_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
