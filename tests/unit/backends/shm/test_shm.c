/*
 * The shared-memory backend: limits, tokens, inspection. The conformance suite
 * tests what every backend must do; the other files of this directory test the
 * file, deaths and waiting.
 */
#include "shm_fixture.h"

CASE_HERE(test_4096_names_and_no_more)
{
    static hf_lock *locks[SHM_NAMES];
    hf_client *client = open_client(p->url);
    hf_error err = HF_ERROR_INIT;
    hf_lock *more;

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        locks[i] = make_lock(client, text_of("name-%u", i), i % 2);
        OK(hf_lock_acquire(locks[i], NULL, NULL));
    }
    EXPECT(HF_EBACKEND, hf_lock_new(client, "more", 4, NULL, &more, &err));
    expect_words(err.text, "all 4096 names are in use");
    expect_words(err.text, "its last handle is freed");
    expect_words(err.text, "shm:///directory");
    OK(hf_lock_release(locks[1000], NULL));
    free_lock(locks[1000]);
    make_lock(client, "more", true);
    for (unsigned i = 0; i < SHM_NAMES; i++)
        if (i != 1000)
            hf_lock_release(locks[i], NULL);
}

static void take_all_names(const char *url)
{
    hf_client *client = open_client(url);

    for (unsigned i = 0; i < SHM_NAMES; i++)
        if (hf_lock_acquire(make_lock(client, text_of("theirs-%u", i), true),
                            NULL, NULL))
            _exit(1);
}

CASE_HERE(test_names_of_the_dead_are_taken_back)
{
    hf_client *client;
    hf_lock *lock;
    int status;
    pid_t pid;

    /* Opened before the fork: an open after the death would clean up. */
    client = open_client(p->url);
    pid = fork();
    if (!pid) {
        take_all_names(p->url);
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    lock = make_lock(client, "mine", false);
    OK(hf_lock_try(lock, NULL));
    hf_lock_release(lock, NULL);
}

CASE_HERE(test_4095_clients_and_no_more)
{
    struct shm_file *f;

    make_file(p);
    f = map(p);
    /* One client is real. The other slots get what looks like live clients of
     * this process. */
    open_client(p->url);
    for (unsigned i = 2; i < SHM_SLOTS; i++) {
        atomic_store(&f->slot[i].alive, atomic_load(&f->slot[1].alive));
        atomic_store(&f->slot[i].pid, (uint32_t)getpid());
        atomic_store(&f->slot[i].state, SHM_SLOT_USED);
    }
    assert_refused(p->url, HF_EBACKEND, "4095 clients");
    for (unsigned i = 2; i < SHM_SLOTS; i++)
        atomic_store(&f->slot[i].state, SHM_SLOT_FREE);
}

CASE_HERE(test_4096_waits_and_no_more)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *held = make_lock(client, "x", true);
    hf_lock *wanted = make_lock(other, "x", true);
    struct shm_file *f = map(p);

    OK(hf_lock_acquire(held, NULL, NULL));
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 1 | 1 << 12);
    FAILS_SAYING(HF_EBACKEND, "4096 waits", hf_lock_timed(wanted, 100, &err));
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 0);
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(wanted, 10, NULL));
    hf_lock_release(held, NULL);
}

CASE_HERE(test_tokens_rise_when_the_name_is_made_again)
{
    hf_client *client = open_client(p->url);
    uint64_t last = 0, token = 0;

    for (int i = 0; i < 100; i++) {
        hf_lock *lock = make_lock(client, "x", i % 2);

        for (int j = 0; j < 1000; j++) {
            hf_lock_acquire(lock, NULL, NULL);
            hf_lock_token(lock, &token);
            assert_true(token > last);
            last = token;
            hf_lock_release(lock, NULL);
        }
        free_lock(lock);
    }
    close_client(client);
    unlink(p->file);
    assert_true(token_once(p->url, "x") > last);
}

CASE_HERE(test_tokens_rise_when_the_count_wraps)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    uint64_t last = 0, token = 0;

    for (int half = 0; half < 4; half++) {
        uint64_t word = atomic_load(&f->entry[0].word);
        uint64_t epoch = atomic_load(&f->entry[0].epoch);

        /* Sets the count to 16 below the value at which the epoch is
         * incremented. */
        atomic_store(&f->entry[0].word,
                     (word & ~SHM_COUNT_MASK) |
                         (((epoch & 1) << 23 | 0x7ffff0) << 40));
        for (int i = 0; i < 40; i++) {
            hf_lock_acquire(lock, NULL, NULL);
            hf_lock_token(lock, &token);
            if (last && i)
                assert_int_equal(token, last + 1);
            last = token;
            hf_lock_release(lock, NULL);
        }
        assert_int_equal(atomic_load(&f->entry[0].epoch), epoch + 1);
    }
}

CASE_HERE(test_fair_and_unfair_do_not_mix)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *wrong;

    FAILS_SAYING(HF_EMISMATCH, "a fair mutex",
                 hf_lock_new(other, "x", 1,
                             KIND(HF_MUTEX, .fairness = HF_UNFAIR), &wrong,
                             &err));
    free_lock(lock);
    make_lock(other, "x", false);
}

CASE_HERE(test_inspect_list_break)
{
    hf_client *client = open_client_of(p->url, CLIENT(.label = "the tester"));
    hf_client *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "dir/x", true);
    hf_lock *second = make_lock(other, "dir/x", true);
    hf_names *names;
    hf_info *info;
    uint64_t token = 0;

    OK(hf_lock_acquire(lock, NULL, NULL));
    hf_lock_token(lock, &token);
    OK(hf_inspect(other, "dir/x", 5, &info, NULL));
    assert_int_equal(info->kind, HF_MUTEX);
    assert_int_equal(info->fairness, HF_FAIR);
    assert_int_equal(info->token, token);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 0);
    assert_string_equal(info->holders[0].label, "the tester");
    assert_int_equal(info->holders[0].pid, getpid());
    assert_int_equal(info->holders[0].token, token);
    assert_int_equal(info->holders[0].left_ms, -1);
    assert_true(llabs(info->holders[0].since_unix_ms - time(NULL) * 1000LL) <
                5000);
    hf_info_free(info);
    OK(hf_list(other, "dir/", &names, NULL));
    assert_int_equal(names->len, 1);
    hf_names_free(names);
    OK(hf_list(other, "rid", &names, NULL));
    assert_int_equal(names->len, 0);
    hf_names_free(names);
    OK(hf_break(other, "dir/x", 5, NULL));
    EXPECT(HF_ENOTOWNER, hf_break(other, "dir/x", 5, NULL));
    OK(hf_lock_try(second, NULL));
    EXPECT(HF_ELOST, hf_lock_release(lock, NULL));
    EXPECT(HF_EBUSY, hf_lock_try(lock, NULL));
    OK(hf_lock_release(second, NULL));
    OK(hf_lock_try(lock, NULL));
    OK(hf_lock_release(lock, NULL));
}

/* Whatever the tables contain, a call fails or is granted: it neither crashes
 * nor hangs. */
CASE_HERE(test_garbage_in_the_tables_does_no_harm)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    hf_lock *theirs = make_lock(other, "x", true);
    struct shm_file *f = map(p);
    unsigned seed = 1;
    hf_names *names;
    hf_info *info;

    for (int round = 0; round < 200; round++) {
        uint64_t *entry = (uint64_t *)(void *)&f->entry[0];
        size_t name = offsetof(struct shm_entry, name) / 8;

        for (size_t i = 0; i < sizeof(f->entry[0]) / 8; i++)
            if ((i < name || i >= name + SHM_NAME_MAX / 8) &&
                i != offsetof(struct shm_entry, label_count) / 8 &&
                i != offsetof(struct shm_entry, label_count) / 8 + 1 &&
                rand_r(&seed) % 4 == 0)
                entry[i] = (uint64_t)rand_r(&seed) << 33 ^
                           (uint64_t)rand_r(&seed) << 10 ^
                           (uint64_t)rand_r(&seed);
        for (unsigned i = 0; i < SHM_CELLS; i++) {
            atomic_store(&f->cell[i].owner, (uint32_t)rand_r(&seed) % 0x400000);
            atomic_store(&f->cell[i].name, (uint16_t)(rand_r(&seed) % 3));
        }
        atomic_store(&f->header.cells_high, (uint32_t)rand_r(&seed));
        atomic_store(&f->header.names_high, (uint32_t)rand_r(&seed));
        if (!hf_lock_timed(lock, 2, NULL))
            hf_lock_release(lock, NULL);
        if (!hf_lock_timed(theirs, 0, NULL))
            hf_lock_release(theirs, NULL);
        if (!hf_inspect(client, "x", 1, &info, NULL))
            hf_info_free(info);
        if (!hf_list(client, "", &names, NULL))
            hf_names_free(names);
        hf_break(client, "x", 1, NULL);
    }
}

CASES_MAIN(NULL, NULL);
