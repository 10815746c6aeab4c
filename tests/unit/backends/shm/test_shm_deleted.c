/*
 * The file of shared memory is deleted under those who use it, as logind does
 * when a user's last session ends; or it or its directory is renamed. Who opens
 * it then is in another world: the old one ends as soon as its own clients have
 * seen it, whatever they do.
 */
#include "shm_fixture.h"

#define CASE_DELETING(fn) CASE_WITH(fn, place_make, remove_all, struct place *p)

enum { NOTICED_MS = 6000 };

struct told {
    int lost;
};

static void says_deleted(const char *text)
{
    if (!strstr(text, "the file ") ||
        (!strstr(text, " was deleted") &&
         !strstr(text, " was renamed or replaced")))
        fail_msg("%s", text);
}

/* ---- what becomes of the file -------------------------------------------- */

static void deleted(const struct place *p)
{
    OK(unlink(p->file));
}

static void renamed(const struct place *p)
{
    char to[100];

    snprintf(to, sizeof(to), "%s.old", p->file);
    OK(rename(p->file, to));
}

static void replaced(const struct place *p)
{
    renamed(p);
    make_file(p);
}

static void moved_with_its_directory(const struct place *p)
{
    char to[100];

    snprintf(to, sizeof(to), "%s.old", p->dir);
    OK(rename(p->dir, to));
}

static void replaced_with_its_directory(const struct place *p)
{
    moved_with_its_directory(p);
    make_file(p);
}

static int remove_all(void **state)
{
    const struct place *p = *state;
    char old[100];

    snprintf(old, sizeof(old), "%s.old", p->file);
    unlink(old);
    snprintf(old, sizeof(old), "%s.old/locks", p->dir);
    unlink(old);
    snprintf(old, sizeof(old), "%s.old", p->dir);
    rmdir(old);
    return place_remove(state);
}

static void on_event(void *arg, const hf_event *event)
{
    struct told *told = arg;

    if (event->type != HF_EVENT_LOST)
        return;
    says_deleted(event->reason); /* of all, and of each */
    told->lost++;
}

static hf_lock *make_kind(hf_client *client, const char *name, int kind)
{
    hf_lock_options opt = LOCK_OPTIONS(.kind = (enum hf_kind)kind,
                                       .permits = kind == HF_SEMAPHORE ? 4 : 0);

    return make_lock_of(client, name, &opt);
}

/* A new name asks the kernel, so that it is known from then on. */
static void find_out(hf_client *client)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;

    assert_int_equal(hf_lock_new(client, "new", 3, NULL, &lock, &err),
                     HF_EBACKEND);
    assert_non_null(strstr(err.text, "deleted"));
}

static void holders_are_told(const struct place *p,
                             void (*happens)(const struct place *))
{
    hf_acquire_options read = HF_ACQUIRE_OPTIONS_INIT;
    struct told told = {0};
    hf_client *client;
    hf_lock *held[3];
    hf_client_options opt =
        CLIENT_OPTIONS(.on_event = on_event, .event_arg = &told);

    OK(hf_open(p->url, &opt, &client, NULL));
    held[0] = make_kind(client, "mutex", HF_MUTEX);
    held[1] = make_kind(client, "rwlock", HF_RWLOCK);
    held[2] = make_kind(client, "semaphore", HF_SEMAPHORE);
    read.mode = HF_READ;
    for (int i = 0; i < 3; i++)
        OK(hf_lock_acquire(held[i], i == 1 ? &read : NULL, NULL));
    happens(p);
    for (int i = 0; i < 3; i++)
        assert_true(
            WAIT_FOR_MS(hf_lock_check(held[i]) == HF_ELOST, NOTICED_MS));
    assert_true(
        WAIT_FOR_MS((hf_client_dispatch(client), told.lost), NOTICED_MS));
    for (int i = 0; i < 3; i++) {
        hf_error err = HF_ERROR_INIT;

        assert_int_equal(hf_lock_explain(held[i], &err), HF_ELOST);
        says_deleted(err.text);
        assert_int_equal(hf_lock_release(held[i], &err), HF_ELOST);
        says_deleted(err.text);
        free_lock(held[i]);
    }
    close_client(client);
}

CASE_DELETING(test_who_only_holds_is_told)
{
    holders_are_told(p, deleted);
}

CASE_DELETING(test_who_holds_is_told_of_a_renamed_file)
{
    holders_are_told(p, renamed);
}

CASE_DELETING(test_who_holds_is_told_of_a_replaced_file)
{
    holders_are_told(p, replaced);
}

CASE_DELETING(test_who_holds_is_told_of_a_renamed_directory)
{
    holders_are_told(p, moved_with_its_directory);
}

CASE_DELETING(test_who_holds_is_told_of_a_replaced_directory)
{
    holders_are_told(p, replaced_with_its_directory);
}

/* It was renamed and is back: nobody was able to open another one but for that
 * moment, and the old one is the one that others open. */
CASE_DELETING(test_a_file_that_is_back_is_the_same)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *other;
    char to[100];

    OK(hf_lock_acquire(lock, NULL, NULL));
    renamed(p);
    snprintf(to, sizeof(to), "%s.old", p->file);
    OK(rename(to, p->file));
    other = make_lock(client, "y", true); /* asks the kernel */
    OK(hf_lock_check(lock));
    free_lock(other);
    OK(hf_lock_release(lock, NULL));
}

/* A daemon that holds a lock takes another root directory, or gives up the
 * right to follow the path. Nobody but root may. */
static int after_it_cannot_look(const struct place *p, bool has_another_root)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *other;

    if (hf_lock_acquire(lock, NULL, NULL))
        return 1;
    if (getuid() == 0 && (has_another_root ? chroot("/proc") : seteuid(4242)))
        return 2;
    if (hf_lock_new(client, "y", 1, NULL, &other, NULL) || hf_lock_check(lock))
        return 3;
    return 0;
}

CASE_DELETING(test_who_cannot_look_keeps_its_hold)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        int status;

        if (!pid)
            _exit(after_it_cannot_look(p, i));
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
}

CASE_DELETING(test_deleted_file_is_noticed)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *other;
    hf_error err = HF_ERROR_INIT;
    uint64_t before = 0, after;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    hf_lock_token(lock, &before);
    assert_int_equal(unlink(p->file), 0);
    after = token_once(p->url, "x");
    assert_true(after > before);
    assert_int_equal(hf_lock_new(client, "y", 1, NULL, &other, &err),
                     HF_EBACKEND);
    assert_non_null(strstr(err.text, "deleted"));
    assert_true(WAIT_FOR_MS(hf_lock_check(lock) == HF_ELOST, 2000));
    hf_lock_release(lock, NULL);
    free_lock(lock);
    close_client(client);
}

/* Deletes the file, takes a token in the new world, then one in the old: 0 if
 * the old one's client has noticed before. */
static uint64_t old_token_after(const struct place *p, uint64_t *fresh)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    uint64_t old = 0;
    int rc;

    OK(unlink(p->file));
    *fresh = token_once(p->url, "x");
    rc = hf_lock_try(lock, NULL);
    assert_true(rc == 0 || rc == HF_EBACKEND);
    if (!rc) {
        OK(hf_lock_token(lock, &old));
        hf_lock_release(lock, NULL);
    }
    free_lock(lock);
    close_client(client);
    return old;
}

/* So that the resource refuses the old world and not the new one. */
CASE_DELETING(test_a_late_grant_of_the_old_world_has_a_lower_token)
{
    uint64_t old = 0, fresh = 0;

    for (int i = 0; i < 50 && !old; i++)
        old = old_token_after(p, &fresh);
    assert_int_not_equal(old, 0);
    assert_true(old < fresh);
}

CASE_DELETING(test_nothing_is_granted_once_it_is_known)
{
    static const int kinds[] = {HF_MUTEX, HF_RWLOCK, HF_SEMAPHORE};
    static const char *const names[] = {"mutex", "rwlock", "semaphore"};
    hf_client *client = open_client(p->url);
    hf_acquire_options leased = ACQUIRE_OPTIONS(.lease_ms = 5000);
    hf_lock *lock[3];

    for (int i = 0; i < 3; i++) {
        lock[i] = make_kind(client, names[i], kinds[i]);
        OK(hf_lock_acquire(lock[i], NULL, NULL));
        OK(hf_lock_release(lock[i], NULL));
    }
    OK(unlink(p->file));
    find_out(client);
    for (int i = 0; i < 3; i++) {
        hf_error err = HF_ERROR_INIT;

        assert_int_equal(hf_lock_acquire(lock[i], NULL, &err), HF_EBACKEND);
        assert_non_null(strstr(err.text, "deleted"));
        assert_int_equal(hf_lock_try(lock[i], NULL), HF_EBACKEND);
        assert_int_equal(hf_lock_acquire(lock[i], &leased, NULL), HF_EBACKEND);
        free_lock(lock[i]);
    }
}

CASE_DELETING(test_no_latch_is_there_once_it_is_known)
{
    hf_client *client = open_client(p->url);
    hf_error err = HF_ERROR_INIT;
    hf_latch *latch;
    uint64_t left;
    hf_info *info;

    OK(hf_latch_new(client, "latch", 5, &latch, NULL));
    OK(hf_latch_set(latch, 2, NULL));
    OK(unlink(p->file));
    find_out(client);
    assert_int_equal(hf_latch_down(latch, &left, &err), HF_EBACKEND);
    assert_non_null(strstr(err.text, "deleted"));
    assert_int_equal(hf_latch_wait(latch, 0, NULL, NULL), HF_EBACKEND);
    assert_int_equal(hf_inspect(client, "latch", 5, &info, NULL), HF_EBACKEND);
    hf_latch_free(latch);
}

/* It stands in the queue of the old world, where nobody lets go any more. */
CASE_DELETING(test_who_waits_is_told)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct waiter w;

    OK(hf_lock_acquire(lock, NULL, NULL));
    waiter_start(&w, make_lock(other, "x", true));
    assert_true(WAIT_FOR_MS(waiters(client) == 1, 2000));
    OK(unlink(p->file));
    find_out(other);
    assert_true(WAIT_FOR_MS(waiter_has_it(&w), NOTICED_MS));
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, HF_EBACKEND);
    free_lock(w.lock);
    hf_lock_release(lock, NULL);
}

CASES_MAIN(NULL, NULL);
