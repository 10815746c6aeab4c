/* Clients contend for a lock while its servers fail. */
#include "any_faults.h"

struct worker {
    hf_lock *lock;
    uint32_t over; /* atomic */
    uint32_t *inside;
    uint64_t grants, doubles, last;
    int bad; /* a code that no fault of the server explains */
};

static void enter(struct worker *k)
{
    uint64_t token;

    if (__atomic_add_fetch(k->inside, 1, __ATOMIC_SEQ_CST) != 1)
        k->doubles++;
    if (!hf_lock_token(k->lock, &token)) {
        k->doubles += token <= k->last;
        k->last = token;
    }
    wait_tick();
    /* A client that lost its hold in the meantime does not count as a
     * holder. */
    k->grants += hf_lock_check(k->lock) == 0;
    __atomic_sub_fetch(k->inside, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *arg)
{
    struct worker *k = arg;
    int rc;

    while (!__atomic_load_n(&k->over, __ATOMIC_ACQUIRE)) {
        rc = hf_lock_timed(k->lock, 3000, NULL);
        if (!rc) {
            enter(k);
            rc = hf_lock_release(k->lock, NULL);
        }
        if (rc && rc != HF_ETIMEDOUT && rc != HF_EUNKNOWN &&
            rc != HF_EBACKEND && rc != HF_ELOST)
            k->bad = rc;
    }
    return NULL;
}

static bool goes_on(const struct worker *k, bool (*hurt)(void))
{
    uint64_t before;

    if (!hurt())
        return false;
    before = __atomic_load_n(&k->grants, __ATOMIC_RELAXED);
    return WAIT_FOR(__atomic_load_n(&k->grants, __ATOMIC_RELAXED) > before + 3);
}

/* While the threads run, nothing is asserted: a failed assertion would leave
 * this function, on whose stack the threads' data lies. */
void any_load(struct world *w, const char *const url[ANY_LOAD],
              bool (*hurt)(void))
{
    struct worker k[ANY_LOAD];
    pthread_t thread[ANY_LOAD];
    uint32_t inside = 0;
    int deaths = 0;

    for (int i = 0; i < ANY_LOAD; i++)
        k[i] = (struct worker){
            .inside = &inside,
            .lock = world_lock(w, url[i], 60000, 5000, HF_FAIR_DEFAULT)};
    for (int i = 0; i < ANY_LOAD; i++)
        if (pthread_create(&thread[i], NULL, work, &k[i]))
            abort();
    while (deaths < 3 && goes_on(&k[0], hurt))
        deaths++;
    for (int i = 0; i < ANY_LOAD; i++)
        __atomic_store_n(&k[i].over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < ANY_LOAD; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(deaths, 3);
    for (int i = 0; i < ANY_LOAD; i++) {
        assert_int_equal(k[i].doubles, 0);
        assert_int_equal(k[i].bad, 0);
        assert_true(k[i].grants > 3);
    }
    world_is_clean(w);
}
