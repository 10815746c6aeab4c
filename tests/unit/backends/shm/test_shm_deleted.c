/*
 * The file of shared memory is deleted while it is in use, as logind does when
 * a user's last session ends; or the file or its directory is renamed. A client
 * that opens the path then uses a new file. The locks of the old file are lost
 * as soon as the clients that have it open notice, whatever they are doing.
 */
#include "shm_fixture.h"

#define CASE_DELETING(fn)                                                      \
    CASE_WITH(fn, place_make, remove_all, struct locks_place *p)

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

static void deleted(const struct locks_place *p)
{
    OK(unlink(p->file));
}

static void renamed(const struct locks_place *p)
{
    OK(rename(p->file, text_of("%s.old", p->file)));
}

static void replaced(const struct locks_place *p)
{
    renamed(p);
    make_file(p);
}

static void moved_with_its_directory(const struct locks_place *p)
{
    OK(rename(p->dir, text_of("%s.old", p->dir)));
}

static void replaced_with_its_directory(const struct locks_place *p)
{
    moved_with_its_directory(p);
    make_file(p);
}

static int remove_all(void **state)
{
    const struct locks_place *p = *state;

    unlink(text_of("%s.old", p->file));
    unlink(text_of("%s.old/locks", p->dir));
    rmdir(text_of("%s.old", p->dir));
    return place_remove(state);
}

static void on_event(void *arg, const hf_event *event)
{
    struct told *told = arg;

    if (event->type != HF_EVENT_LOST)
        return;
    says_deleted(event->reason); /* one event for the client, and one for each
                                    hold */
    told->lost++;
}

enum { KINDS = 3 };

/* Creates a mutex, a read-write lock and a semaphore. */
static void make_each(hf_client *client, hf_lock *lock[KINDS])
{
    lock[0] = make_lock_of(client, "mutex", KIND(HF_MUTEX));
    lock[1] = make_lock_of(client, "rwlock", KIND(HF_RWLOCK));
    lock[2] =
        make_lock_of(client, "semaphore", KIND(HF_SEMAPHORE, .permits = 4));
}

/* Creates a lock with a new name. This makes the client check the file, and
 * notice that the file was deleted. */
static void find_out(hf_client *client)
{
    hf_lock *lock;

    FAILS_SAYING(HF_EBACKEND, "deleted",
                 hf_lock_new(client, "new", 3, NULL, &lock, &err));
}

static void holders_are_told(const struct locks_place *p,
                             void (*happens)(const struct locks_place *))
{
    struct told told = {0};
    hf_client *client = open_client_of(
        p->url, CLIENT(.on_event = on_event, .event_arg = &told));
    hf_lock *held[KINDS];

    make_each(client, held);
    for (int i = 0; i < KINDS; i++)
        OK(hf_lock_acquire(
            held[i], i == 1 ? HOW(HF_FOREVER, .mode = HF_READ) : NULL, NULL));
    happens(p);
    for (int i = 0; i < KINDS; i++)
        COMES_MS(hf_lock_check(held[i]) == HF_ELOST, NOTICED_MS);
    COMES_MS((hf_client_dispatch(client), told.lost), NOTICED_MS);
    for (int i = 0; i < KINDS; i++) {
        hf_error err = HF_ERROR_INIT;

        EXPECT(HF_ELOST, hf_lock_explain(held[i], &err));
        says_deleted(err.text);
        EXPECT(HF_ELOST, hf_lock_release(held[i], &err));
        says_deleted(err.text);
        free_lock(held[i]);
    }
    close_client(client);
}

/* Defines a case in which holders are notified of what happens to the file. */
#define CASE_TOLD(fn, happens)                                                 \
    CASE_DELETING(fn)                                                          \
    {                                                                          \
        holders_are_told(p, happens);                                          \
    }                                                                          \
    struct CMUnitTest

CASE_TOLD(test_who_only_holds_is_told, deleted);
CASE_TOLD(test_who_holds_is_told_of_a_renamed_file, renamed);
CASE_TOLD(test_who_holds_is_told_of_a_replaced_file, replaced);
CASE_TOLD(test_who_holds_is_told_of_a_renamed_directory,
          moved_with_its_directory);
CASE_TOLD(test_who_holds_is_told_of_a_replaced_directory,
          replaced_with_its_directory);
/* The file was renamed and renamed back. Clients could open a different file
 * only in between. Now they open the old file again, so its holds stay
 * valid. */
CASE_DELETING(test_a_file_that_is_back_is_the_same)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);

    OK(hf_lock_acquire(lock, NULL, NULL));
    renamed(p);
    OK(rename(text_of("%s.old", p->file), p->file));
    make_lock(client, "y", true); /* makes the client check the file */
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, NULL));
}

/* Acquires a lock as a daemon that then changes its root directory, or gives up
 * the right to follow the path. Only root may do either. Returns 0 if the hold
 * stays valid. */
static int after_it_cannot_look(const struct locks_place *p,
                                bool has_another_root)
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
    uint64_t before = 0, after;

    OK(hf_lock_acquire(lock, NULL, NULL));
    hf_lock_token(lock, &before);
    OK(unlink(p->file));
    after = token_once(p->url, "x");
    assert_true(after > before);
    FAILS_SAYING(HF_EBACKEND, "deleted",
                 hf_lock_new(client, "y", 1, NULL, &other, &err));
    COMES_MS(hf_lock_check(lock) == HF_ELOST, 2000);
    hf_lock_release(lock, NULL);
}

/* Deletes the file, takes a token from the new file, then one from the old
 * file. Returns the old file's token, or 0 if the client of the old file has
 * noticed the deletion first. */
static uint64_t old_token_after(const struct locks_place *p, uint64_t *fresh)
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

/* A grant in the old file may come after one in the new file. The token of the
 * late grant is lower, so that the resource refuses the holders of the old
 * file, not those of the new file. */
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
    hf_client *client = open_client(p->url);
    hf_lock *lock[KINDS];

    make_each(client, lock);
    for (int i = 0; i < KINDS; i++) {
        OK(hf_lock_acquire(lock[i], NULL, NULL));
        OK(hf_lock_release(lock[i], NULL));
    }
    OK(unlink(p->file));
    find_out(client);
    for (int i = 0; i < KINDS; i++) {
        FAILS_SAYING(HF_EBACKEND, "deleted",
                     hf_lock_acquire(lock[i], NULL, &err));
        EXPECT(HF_EBACKEND, hf_lock_try(lock[i], NULL));
        EXPECT(
            HF_EBACKEND,
            hf_lock_acquire(lock[i], HOW(HF_FOREVER, .lease_ms = 5000), NULL));
    }
}

CASE_DELETING(test_no_latch_is_there_once_it_is_known)
{
    hf_client *client = open_client(p->url);
    hf_latch *latch;
    uint64_t left;
    hf_info *info;

    OK(hf_latch_new(client, "latch", 5, &latch, NULL));
    OK(hf_latch_set(latch, 2, NULL));
    OK(unlink(p->file));
    find_out(client);
    FAILS_SAYING(HF_EBACKEND, "deleted", hf_latch_down(latch, &left, &err));
    EXPECT(HF_EBACKEND, hf_latch_wait(latch, 0, NULL, NULL));
    EXPECT(HF_EBACKEND, hf_inspect(client, "latch", 5, &info, NULL));
    hf_latch_free(latch);
}

/* A client waits in the queue of the old file, where no holder will release the
 * lock: its call fails. */
CASE_DELETING(test_who_waits_is_told)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct waiter w;

    OK(hf_lock_acquire(lock, NULL, NULL));
    waiter_start(&w, make_lock(other, "x", true));
    COMES_MS(waiters(client) == 1, 2000);
    OK(unlink(p->file));
    find_out(other);
    COMES_MS(waiter_has_it(&w), NOTICED_MS);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, HF_EBACKEND);
    free_lock(w.lock);
    hf_lock_release(lock, NULL);
}

CASES_MAIN(NULL, NULL);
