/*
 * The shared-memory backend: limits, tokens, inspection. What every backend
 * must do is tested by the conformance suite; its file, deaths and waiting, in
 * the files beside this one.
 */
#include "shm_fixture.h"

/* ---- limits ------------------------------------------------------------- */

CASE_HERE(test_4096_names_and_no_more)
{
    hf_client *client = open_client(p->url);
    hf_lock **locks = calloc(SHM_NAMES, sizeof(*locks)), *more;
    hf_error err = HF_ERROR_INIT;
    char name[32];

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        snprintf(name, sizeof(name), "name-%u", i);
        locks[i] = make_lock(client, name, i % 2);
        assert_int_equal(hf_lock_acquire(locks[i], NULL, NULL), 0);
    }
    assert_int_equal(hf_lock_new(client, "more", 4, NULL, &more, &err),
                     HF_EBACKEND);
    assert_non_null(strstr(err.text, "all 4096 names are in use"));
    assert_non_null(strstr(err.text, "its last handle is freed"));
    assert_non_null(strstr(err.text, "shm:///directory"));
    assert_int_equal(hf_lock_release(locks[1000], NULL), 0);
    free_lock(locks[1000]);
    assert_int_equal(hf_lock_new(client, "more", 4, NULL, &more, &err), 0);
    free_lock(more);
    for (unsigned i = 0; i < SHM_NAMES; i++)
        if (i != 1000) {
            hf_lock_release(locks[i], NULL);
            free_lock(locks[i]);
        }
    free(locks);
    close_client(client);
}

static void take_all_names(const char *url)
{
    hf_client *client = open_client(url);
    char name[32];

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        snprintf(name, sizeof(name), "theirs-%u", i);
        if (hf_lock_acquire(make_lock(client, name, true), NULL, NULL))
            _exit(1);
    }
}

CASE_HERE(test_names_of_the_dead_are_taken_back)
{
    hf_client *client;
    hf_lock *lock;
    int status;
    pid_t pid;

    client = open_client(p->url); /* before, so that it does not bury them */
    pid = fork();
    if (!pid) {
        take_all_names(p->url);
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    lock = make_lock(client, "mine", false);
    assert_int_equal(hf_lock_try(lock, NULL), 0);
    hf_lock_release(lock, NULL);
}

CASE_HERE(test_4095_clients_and_no_more)
{
    struct shm_file *f;

    make_file(p);
    f = map(p);
    /* As if they were there: ours and alive, as far as one can tell. */
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
    hf_error err = HF_ERROR_INIT;

    assert_int_equal(hf_lock_acquire(held, NULL, NULL), 0);
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 1 | 1 << 12);
    assert_int_equal(hf_lock_timed(wanted, 100, &err), HF_EBACKEND);
    assert_non_null(strstr(err.text, "4096 waits"));
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 0);
    assert_int_equal(hf_lock_timed(wanted, 10, &err), HF_ETIMEDOUT);
    hf_lock_release(held, NULL);
}

/* ---- tokens ------------------------------------------------------------- */

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

        /* Just before the end of this half of the count's range. */
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

/* ---- kinds, inspection, breaking ---------------------------------------- */

CASE_HERE(test_fair_and_unfair_do_not_mix)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *wrong;
    hf_lock_options opt = LOCK_OPTIONS(.fairness = HF_UNFAIR);
    hf_error err = HF_ERROR_INIT;

    assert_int_equal(hf_lock_new(other, "x", 1, &opt, &wrong, &err),
                     HF_EMISMATCH);
    assert_non_null(strstr(err.text, "a fair mutex"));
    free_lock(lock);
    assert_int_equal(hf_lock_new(other, "x", 1, &opt, &wrong, &err), 0);
    free_lock(wrong);
    close_client(client);
    close_client(other);
}

CASE_HERE(test_inspect_list_break)
{
    hf_client_options opt = CLIENT_OPTIONS(.label = "the tester");
    hf_client *client, *other = open_client(p->url);
    hf_lock *lock, *second = make_lock(other, "dir/x", true);
    hf_names *names;
    hf_info *info;
    uint64_t token = 0;

    assert_int_equal(hf_open(p->url, &opt, &client, NULL), 0);
    lock = make_lock(client, "dir/x", true);
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    hf_lock_token(lock, &token);
    assert_int_equal(hf_inspect(other, "dir/x", 5, &info, NULL), 0);
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
    assert_int_equal(hf_list(other, "dir/", &names, NULL), 0);
    assert_int_equal(names->len, 1);
    hf_names_free(names);
    assert_int_equal(hf_list(other, "rid", &names, NULL), 0);
    assert_int_equal(names->len, 0);
    hf_names_free(names);
    assert_int_equal(hf_break(other, "dir/x", 5, NULL), 0);
    assert_int_equal(hf_break(other, "dir/x", 5, NULL), HF_ENOTOWNER);
    assert_int_equal(hf_lock_try(second, NULL), 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_ELOST);
    assert_int_equal(hf_lock_try(lock, NULL), HF_EBUSY);
    assert_int_equal(hf_lock_release(second, NULL), 0);
    assert_int_equal(hf_lock_try(lock, NULL), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    free_lock(lock);
    free_lock(second);
    close_client(client);
    close_client(other);
}

/* Whatever is in the tables: an error or a grant, not a crash or a hang. */
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
