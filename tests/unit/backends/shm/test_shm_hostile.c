/*
 * The file of shared memory contains values that no correct client writes:
 * several wrong values at once, which the single-bit flips of shm_flips do not
 * cover. Every call returns in time.
 */
#include "shm_fixture.h"

#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* The op_timeout of clients in cases that wait until it has passed. */
enum { OP_MS = 500 };
enum { BEYOND_MS = 1000, CROWD_MS = 1000 };

static struct shm_file *spoilt; /* the file that flock() makes invalid */
static atomic_bool spoils = true;

__attribute__((visibility("default"))) int flock(int fd, int operation)
{
    if (spoilt && spoils && (operation & LOCK_SH))
        atomic_store(&spoilt->header.magic, 0);
    return (int)syscall(SYS_flock, fd, operation);
}

/* Forks a process that stays alive and does not use the file. */
static pid_t stranger(void)
{
    pid_t pid = fork();

    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        wait_for_ever();
    }
    return pid;
}

static hf_client *open_with(const struct locks_place *p, int op_timeout_ms)
{
    return open_client(text_of("%s?op_timeout=%dms", p->url, op_timeout_ms));
}

static void nothing_hangs_by(const struct locks_place *p, hf_client *client,
                             hf_lock *there, pid_t pid)
{
    const char *url = text_of("%s?connect_timeout=300ms", p->url);
    hf_client *other;
    hf_lock *lock;
    int64_t began;

    WITHIN(OP_MS + CROWD_MS + BEYOND_MS,
           FAILS_SAYING(HF_EBACKEND,
                        text_of("process %d holds its tables", (int)pid),
                        hf_lock_new(client, "new", 3, NULL, &lock, &err)));
    WITHIN(300 + BEYOND_MS,
           EXPECT(HF_EBACKEND, hf_open(url, NULL, &other, NULL)));
    began = wait_fair();
    OK(hf_lock_timed(there, 100, NULL));
    OK(hf_lock_release(there, NULL));
    assert_true(wait_within(began, 100 + BEYOND_MS));
}

CASE_HERE(test_a_stranger_in_the_tables_is_not_waited_for)
{
    hf_client *client = open_with(p, OP_MS);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    pid_t pid = stranger();

    atomic_store(&f->header.tables, (uint32_t)pid);
    nothing_hangs_by(p, client, lock, pid);
    atomic_store(&f->header.tables,
                 (uint32_t)pid | FUTEX_WAITERS | FUTEX_OWNER_DIED);
    nothing_hangs_by(p, client, lock, pid);
    end_child(pid);
    free_lock(make_lock(client, "new", true));
}

/* A thread that writes to the lock of the tables. */
struct writer {
    pthread_t thread;
    struct shm_file *file;
    pid_t pid[2];
    atomic_bool ends;
};

static void *alternate(void *arg)
{
    struct writer *w = arg;

    for (unsigned i = 0; !atomic_load(&w->ends); i++) {
        atomic_store(&w->file->header.tables, (uint32_t)w->pid[i % 2]);
        usleep(200000); /* long enough to be noticed, but shorter than the
                           client waits */
    }
    return NULL;
}

static void *count_unlocks(void *arg)
{
    struct writer *w = arg;

    while (!atomic_load(&w->ends)) {
        atomic_fetch_add(&w->file->header.unlocks, 1);
        usleep(1000);
    }
    return NULL;
}

static void writer_begin(struct writer *w, const struct locks_place *p,
                         void *(*write)(void *))
{
    *w = (struct writer){.file = map(p), .pid = {stranger(), stranger()}};
    atomic_store(&w->file->header.tables, (uint32_t)w->pid[0]);
    OK(pthread_create(&w->thread, NULL, write, w));
}

static void writer_end(struct writer *w)
{
    atomic_store(&w->ends, true);
    OK(pthread_join(w->thread, NULL));
    for (int i = 0; i < 2; i++)
        end_child(w->pid[i]);
}

/* Calls hf_lock_new() until the error says that too many want the tables. If
 * the writer gets no processor while the client waits, the error is a different
 * one. */
static void many_are_in_the_tables(hf_client *client)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;

    for (int i = 0; i < 10 && !strstr(err.text, "too many want"); i++)
        WITHIN(OP_MS + CROWD_MS + BEYOND_MS,
               EXPECT(HF_EBACKEND,
                      hf_lock_new(client, "new", 3, NULL, &lock, &err)));
    expect_words(err.text, "too many want");
}

CASE_HERE(test_tables_that_change_hands_are_waited_for_a_second)
{
    hf_client *client = open_with(p, OP_MS);
    struct writer w;
    hf_info *info;

    writer_begin(&w, p, alternate);
    many_are_in_the_tables(client);
    WITHIN(CROWD_MS + BEYOND_MS,
           EXPECT(HF_EBACKEND, hf_inspect(client, "x", 1, &info, NULL)));
    writer_end(&w);
}

/* Releases the lock of the tables after more than two seconds: on a busy
 * machine, a process that holds this lock may get no processor for that
 * long. */
static void *lock_for_long(void *arg)
{
    struct writer *w = arg;
    int64_t began = wait_now();

    COMES(wait_ms_since(began) > 2 * CROWD_MS);
    atomic_store(&w->file->header.tables, 0);
    return NULL;
}

CASE_HERE(test_a_first_handle_waits_for_the_tables)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;
    hf_client *client = open_with(p, 3 * WAIT_LONG_MS);
    struct writer w;

    writer_begin(&w, p, lock_for_long);
    err.code = 1;
    OK(hf_lock_new(client, "new", 3, NULL, &lock, &err));
    assert_int_equal(err.code, 1); /* no error was stored */
    free_lock(lock);
    writer_end(&w);
}

static void *make_first(void *client)
{
    hf_lock *lock;

    return (void *)(intptr_t)hf_lock_new(client, "new", 3, NULL, &lock, NULL);
}

/* A thread waits in hf_lock_new() for the lock of the tables while its client
 * is closed: the call returns HF_ECLOSED within a second. ASan would report a
 * client that is freed before the call has returned. */
CASE_HERE(test_a_close_ends_the_wait_for_the_tables)
{
    hf_client *client = open_with(p, 3 * WAIT_LONG_MS);
    struct shm_file *f = map(p);
    pid_t pid = stranger();
    pthread_t thread;
    int64_t began;
    void *rc;

    atomic_store(&f->header.tables, (uint32_t)pid);
    OK(pthread_create(&thread, NULL, make_first, client));
    COMES(atomic_load(&f->header.tables) & FUTEX_WAITERS);
    began = wait_fair();
    close_client(client);
    OK(pthread_join(thread, &rc));
    assert_int_equal((intptr_t)rc, HF_ECLOSED);
    assert_true(wait_within(began, CROWD_MS + BEYOND_MS));
    end_child(pid);
}

/* The writer acts like a thread that lists thousands of names in a loop: it
 * holds the lock of the tables whenever the client polls. The count of unlocks
 * shows that the writer runs, so the error must not say that it is stopped. */
CASE_HERE(test_a_thread_that_unlocks_is_not_said_to_be_stopped)
{
    hf_client *client = open_with(p, OP_MS);
    struct writer w;

    writer_begin(&w, p, count_unlocks);
    many_are_in_the_tables(client);
    writer_end(&w);
}

/* Another process seems to make the file uninitialised whenever a client has
 * initialised it: hf_open() gives up. If the machine stalls, the error may be
 * that of the time limit, which is why the case tries again. */
CASE_HERE(test_a_file_that_is_never_in_order_is_given_up)
{
    hf_error err = HF_ERROR_INIT;
    const char *url = text_of("%s?connect_timeout=500ms", p->url);
    hf_client *client;

    make_file(p);
    spoilt = map(p);
    forget(spoilt); /* never unmapped: a late helper thread may still use it */
    for (int i = 0; i < 10 && !strstr(err.text, "does not finish"); i++)
        WITHIN(500 + BEYOND_MS,
               EXPECT(HF_EBACKEND, hf_open(url, NULL, &client, &err)));
    expect_words(err.text, "does not finish");
    spoils = false;
    make_file(p);
}

/* The lock of the tables contains the id of the calling thread: an earlier
 * thread had the same id, or a program other than holdfast wrote it. The caller
 * must not wait for itself. */
CASE_HERE(test_our_own_number_in_the_tables_is_no_deadlock)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);

    atomic_store(&f->header.tables, (uint32_t)syscall(SYS_gettid));
    free_lock(make_lock(client, "x", true));
    assert_int_equal(atomic_load(&f->header.tables), 0);
}

/* Without a thread id, the other bits of the word do not lock the tables. */
CASE_HERE(test_bits_without_a_number_do_not_lock_the_tables)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);

    for (uint32_t i = 1; i < 4; i++) {
        atomic_store(&f->header.tables, i << 30);
        free_lock(make_lock(client, "x", true));
        atomic_store(&f->header.tables, i << 30);
        close_client(open_client(p->url));
    }
}

/* Makes the cell look like a wait of this process for `want` permits of the
 * first name. */
static void pretend_wait(struct shm_file *f, unsigned cell, unsigned want)
{
    struct shm_cell *c = &f->cell[cell];

    atomic_store(&c->name, 0);
    atomic_store(&c->ticket, cell + 1);
    atomic_store(&c->want, (uint16_t)want);
    atomic_store(&c->owner, 1 | (atomic_load(&f->slot[1].gen) & 0xff) << 12);
    atomic_fetch_or(&f->entry[0].cells[cell / 64], 1ULL << cell % 64);
    atomic_store(&f->header.cells_high, SHM_CELLS);
}

CASE_HERE(test_a_fair_lock_that_is_said_to_be_unfair)
{
    hf_lock *lock;
    struct shm_file *f;

    open_client(p->url); /* the client that seems to wait */
    lock = make_lock(open_client(p->url), "x", true);
    f = map(p);
    pretend_wait(f, 100, 1);
    atomic_fetch_and(&f->entry[0].kind, (uint16_t)~256u);
    atomic_fetch_or(&f->entry[0].word, SHM_WAITERS);
    WITHIN(100 + BEYOND_MS, hf_lock_timed(lock, 100, NULL));
    hf_lock_release(lock, NULL);
}

/* The file shows waiters that want more permits than a cell can have, in more
 * cells than are read at once. */
CASE_HERE(test_waits_for_more_permits_than_there_can_be)
{
    hf_lock *lock;
    struct shm_file *f;

    open_client(p->url); /* the client that seems to wait */
    lock = make_lock_of(open_client(p->url), "x",
                        KIND(HF_SEMAPHORE, .permits = 4095));
    f = map(p);
    OK(hf_lock_acquire(lock, NULL, NULL));
    for (unsigned i = 100; i < 200; i++)
        pretend_wait(f, i, 0x1000);
    atomic_fetch_or(&f->entry[0].word, SHM_QUEUE);
    WITHIN(BEYOND_MS, hf_lock_release(lock, NULL));
}

CASE_HERE(test_a_kind_that_there_is_not)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    hf_info *info;

    OK(hf_lock_acquire(lock, NULL, NULL));
    for (unsigned kind = 0; kind < 256; kind += 5) {
        atomic_store(&f->entry[0].kind, (uint16_t)kind);
        FAILS_SAYING(HF_EPROTO, "damaged",
                     hf_inspect(client, "x", 1, &info, &err));
    }
    hf_lock_release(lock, NULL);
}

/* No value in the file is used as an address, which is why a client can be
 * closed even after another process has overwritten the `alive` word of its
 * slot. */
CASE_HERE(test_a_client_whose_word_is_another_s_can_be_closed)
{
    struct shm_file *f;
    hf_client *client;

    make_file(p);
    f = map(p);
    for (uint32_t word = 1; word; word <<= 1) {
        client = open_client(p->url);
        atomic_store(&f->slot[1].alive, word);
        close_client(client);
    }
    close_client(open_client(p->url));
}

/* The word of the lock loses the bit that says that waiters exist. A waiter
 * nevertheless acquires the lock at its next poll. */
CASE_HERE(test_a_waiter_that_the_word_has_forgotten)
{
    static const struct {
        enum hf_kind kind;
        enum hf_fairness fairness;
        uint64_t bit;
    } cases[] = {{HF_MUTEX, HF_FAIR, SHM_WAITERS},
                 {HF_MUTEX, HF_UNFAIR, SHM_WAITERS},
                 {HF_RWLOCK, HF_FAIR_DEFAULT, SHM_QUEUE},
                 {HF_SEMAPHORE, HF_FAIR_DEFAULT, SHM_QUEUE}};
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    struct shm_file *f = map(p);

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const hf_lock_options *how =
            KIND(cases[i].kind, .fairness = cases[i].fairness,
                 .permits = cases[i].kind == HF_SEMAPHORE);
        hf_lock *lock = make_lock_of(client, "x", how);
        struct waiter w;
        int64_t since;

        OK(hf_lock_acquire(lock, NULL, NULL));
        waiter_start(&w, make_lock_of(other, "x", how));
        COMES_MS(atomic_load(&f->cell[1].watching[0]) ||
                     atomic_load(&f->cell[2].watching[0]),
                 2000);
        atomic_fetch_and(&f->entry[0].word, ~cases[i].bit);
        since = now_ms();
        OK(hf_lock_release(lock, NULL));
        waiter_end(&w, since, 0, 2000 + BEYOND_MS);
        free_lock(lock);
    }
}

CASES_MAIN(NULL, NULL);
