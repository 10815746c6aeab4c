/*
 * Holders in shared memory that listen: each notification belongs to one hold,
 * and holders that do not listen are not woken.
 */
#include "shm_fixture.h"

#include <linux/futex.h>
#include <sys/syscall.h>

struct ears {
    unsigned wanted, lost;
    uint64_t token;
};

static void hear(void *arg, const hf_event *e)
{
    struct ears *ears = arg;

    ears->wanted += e->type == HF_EVENT_WANTED;
    ears->lost += e->type == HF_EVENT_LOST;
    ears->token = e->token;
}

/* Opens a client that listens. Its ttl is so long that it checks its holds only
 * every 200 s, so that it learns of a loss only from a notification. */
static hf_client *open_listening(const char *url, struct ears *ears)
{
    hf_client *client;

    OK(hf_open(url,
               CLIENT(.ttl_ms = 600000, .on_event = hear, .event_arg = ears),
               &client, NULL));
    return client;
}

static bool heard(hf_client *client, const unsigned *what)
{
    assert_true(hf_client_dispatch(client) >= 0);
    return *what;
}

/* A lock, and how to acquire it. */
struct way {
    hf_lock_options lock;
    hf_acquire_options take;
};

enum { WAYS = 5 };

static struct way way_of(int n)
{
    struct way w = {HF_LOCK_OPTIONS_INIT, HF_ACQUIRE_OPTIONS_INIT};

    w.lock.kind = n < 2 ? HF_MUTEX : n < 4 ? HF_RWLOCK : HF_SEMAPHORE;
    w.lock.fairness = n == 1 ? HF_UNFAIR : HF_FAIR_DEFAULT;
    w.lock.permits = n == 4 ? 2 : 0;
    w.take.mode = n == 3 ? HF_READ : HF_WRITE;
    w.take.permits = n == 4 ? 2 : 0;
    return w;
}

static uint64_t token_of(hf_lock *lock)
{
    uint64_t token;

    OK(hf_lock_token(lock, &token));
    return token;
}

static struct shm_entry *entry_of(struct shm_file *f, const char *name)
{
    unsigned i = 0;

    while (!atomic_load(&f->hash[i]) || strcmp(f->entry[i].name, name) != 0)
        i++;
    return &f->entry[i];
}

/* Returns the only cell of the entry. */
static struct shm_cell *cell_of(struct shm_file *f, struct shm_entry *e)
{
    unsigned i = 0;

    while (!(atomic_load(&e->cells[i / 64]) >> i % 64 & 1))
        i++;
    return &f->cell[i];
}

/* Returns the slot of the client that listens, which was opened first. */
static struct shm_slot *slot_of(struct shm_file *f)
{
    return &f->slot[1];
}

static void ring(struct shm_slot *slot)
{
    atomic_fetch_add(&slot->marks, 1);
    atomic_fetch_add(&slot->doorbell, 1);
    syscall(SYS_futex, &slot->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void broken_is_heard(const char *url, int way)
{
    struct way w = way_of(way);
    struct ears ears = {0};
    hf_client *a = open_listening(url, &ears), *b = open_client(url);
    hf_lock *lock = make_lock_of(a, "x", &w.lock);
    uint64_t token;

    OK(hf_lock_acquire(lock, &w.take, NULL));
    token = token_of(lock);
    OK(hf_ask(b, "x", 1, NULL));
    COMES(heard(a, &ears.wanted));
    OK(hf_lock_check(lock));
    OK(hf_break(b, "x", 1, NULL));
    COMES(heard(a, &ears.lost));
    assert_true(ears.token == token);
    EXPECT(HF_ELOST, hf_lock_check(lock));
    EXPECT(HF_ELOST, hf_lock_release(lock, NULL));
    EXPECT(HF_ENOTOWNER, hf_ask(b, "x", 1, NULL));
    ears = (struct ears){0};
    OK(hf_lock_acquire(lock, &w.take, NULL));
    OK(hf_ask(b, "x", 1, NULL));
    COMES(heard(a, &ears.wanted));
    assert_true(ears.token == token_of(lock));
    assert_int_equal(ears.lost, 0);
    OK(hf_lock_release(lock, NULL));
    free_lock(lock);
    close_client(a);
    close_client(b);
}

CASE_HERE(test_who_listens_hears_at_once)
{
    for (int i = 0; i < WAYS; i++)
        broken_is_heard(p->url, i);
}

CASE_HERE(test_who_listens_hears_without_waitv)
{
    const char *url = text_of("%s?waitv=no", p->url);

    broken_is_heard(url, 0);
    broken_is_heard(url, 3);
}

CASE_HERE(test_who_does_not_listen_is_not_woken)
{
    hf_client *a = open_client(p->url), *b = open_client(p->url);
    struct shm_file *f = map(p);

    for (int i = 0; i < WAYS; i++) {
        struct way w = way_of(i);
        hf_lock *lock = make_lock_of(a, "x", &w.lock);
        uint32_t rung = atomic_load(&slot_of(f)->doorbell);

        OK(hf_lock_acquire(lock, &w.take, NULL));
        OK(hf_ask(b, "x", 1, NULL));
        OK(hf_break(b, "x", 1, NULL));
        assert_int_equal(atomic_load(&slot_of(f)->doorbell), rung);
        assert_int_equal(atomic_load(&slot_of(f)->marks), 0);
        assert_true(!atomic_load(&entry_of(f, "x")->asked));
        EXPECT(HF_ELOST, hf_lock_release(lock, NULL));
        free_lock(lock);
    }
}

/* A client that asks may mark a hold that has already ended, and may die before
 * it can remove the mark. The mark must not count as a mark on the next
 * hold. */
CASE_HERE(test_a_late_mark_is_not_for_the_next_hold)
{
    struct ears ears = {0};
    hf_client *a = open_listening(p->url, &ears), *b = open_client(p->url);
    struct shm_file *f = map(p);

    for (int i = 0; i < WAYS; i++) {
        struct way w = way_of(i);
        hf_lock *lock = make_lock_of(a, "x", &w.lock);
        struct shm_entry *e = entry_of(f, "x");
        uint64_t word;

        OK(hf_lock_acquire(lock, &w.take, NULL));
        word = atomic_load(&e->word);
        OK(hf_lock_release(lock, NULL));
        if (w.lock.kind != HF_MUTEX)
            atomic_fetch_or(&cell_of(f, e)->minted, SHM_ASKED);
        OK(hf_lock_acquire(lock, &w.take, NULL));
        if (w.lock.kind == HF_MUTEX)
            atomic_store(&e->asked, word & SHM_GRANT_MASK);
        else
            assert_int_equal(atomic_load(&cell_of(f, e)->minted), SHM_MINTED);
        ring(slot_of(f));
        COMES(!atomic_load(&e->asked));
        OK(hf_lock_check(lock));
        OK(hf_ask(b, "x", 1, NULL));
        COMES(heard(a, &ears.wanted));
        assert_true(ears.token == token_of(lock));
        assert_int_equal(ears.wanted, 1);
        assert_int_equal(ears.lost, 0);
        OK(hf_lock_release(lock, NULL));
        free_lock(lock);
        ears = (struct ears){0};
    }
}

/* A hold is broken while the mark already belongs to the next hold. The holder
 * of the broken hold nevertheless learns of its loss. */
CASE_HERE(test_broken_and_the_mark_is_anothers)
{
    struct ears ears = {0};
    hf_client *a = open_listening(p->url, &ears), *b = open_client(p->url);
    struct shm_file *f = map(p);
    struct way w = way_of(0);
    hf_lock *lock = make_lock_of(a, "x", &w.lock);
    struct shm_entry *e = entry_of(f, "x");
    uint64_t word;

    OK(hf_lock_acquire(lock, &w.take, NULL));
    word = atomic_load(&e->word);
    atomic_store(&e->asked, (word + 1) & SHM_GRANT_MASK);
    OK(hf_break(b, "x", 1, NULL));
    COMES(heard(a, &ears.lost));
    EXPECT(HF_ELOST, hf_lock_release(lock, NULL));
}

/* Forks a process that acquires the lock, and exits when it is notified that
 * its hold is wanted. */
static pid_t child_that_waits(const char *url, const struct way *w)
{
    pid_t pid = fork();
    struct ears ears = {0};
    hf_client *client;
    hf_lock *lock;

    if (pid)
        return pid;
    client = open_listening(url, &ears);
    lock = make_lock_of(client, "x", &w->lock);
    OK(hf_lock_acquire(lock, &w->take, NULL));
    WAIT_FOR(heard(client, &ears.wanted));
    _exit(ears.wanted == 1 && ears.token == token_of(lock) ? 0 : 1);
}

/* A stopped waiter has been granted the lock. Another client asks for that hold
 * before the waiter has noticed the grant. */
CASE_HERE(test_asked_before_it_is_seen)
{
    static const int ways[] = {0, 2, 3, 4}; /* not 1, which is unfair */
    hf_client *a = open_client(p->url);
    int status;

    for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        struct way w = way_of(ways[i]), all = w;
        hf_lock *lock = make_lock_of(a, "x", &w.lock);
        pid_t pid;

        all.take.mode = HF_WRITE;
        OK(hf_lock_acquire(lock, &all.take, NULL));
        pid = child_that_waits(p->url, &w);
        COMES(waiters(a) == 1);
        assert_true(wait_asleep(pid, pid));
        kill(pid, SIGSTOP);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        OK(hf_lock_release(lock, NULL));
        assert_int_equal(waiters(a), 0);
        OK(hf_ask(a, "x", 1, NULL));
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        free_lock(lock);
    }
}

CASE_HERE(test_ask_of_what_nobody_holds)
{
    hf_client *a = open_client(p->url);
    hf_latch *latch;
    pid_t pid;

    EXPECT(HF_ENOTOWNER, hf_ask(a, "none", 4, NULL));
    OK(hf_latch_new(a, "latch", 5, &latch, NULL));
    OK(hf_latch_set(latch, 1, NULL));
    EXPECT(HF_ENOTOWNER, hf_ask(a, "latch", 5, NULL));
    hf_latch_free(latch);
    pid = child_with_lock(p->url, true, 0, wait_for_ever);
    OK(hf_ask(a, "x", 1, NULL));
    end_child(pid);
    EXPECT(HF_ENOTOWNER, hf_ask(a, "x", 1, NULL));
}

CASES_MAIN(NULL, NULL);
