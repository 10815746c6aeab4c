/*
 * The file of shared memory has values that nobody who keeps to the rules
 * writes: several at once, which the flips of single bits (shm_flips) do not
 * come to. Every call ends, in its time.
 */
#include "shm_fixture.h"

#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* What handles are made with, where it takes too long. */
enum { OP_MS = 500 };
enum { BEYOND_MS = 1000, CROWD_MS = 1000 };

static struct shm_file *spoilt; /* in the moment before it is locked */
static atomic_bool spoils = true;

__attribute__((visibility("default"))) int flock(int fd, int operation)
{
    if (spoilt && spoils && (operation & LOCK_SH))
        atomic_store(&spoilt->header.magic, 0);
    return (int)syscall(SYS_flock, fd, operation);
}

/* A process that lives and has nothing to do with us. */
static pid_t stranger(void)
{
    pid_t pid = fork();

    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        wait_for_ever();
    }
    return pid;
}

static void assert_names(const hf_error *err, pid_t pid)
{
    char text[64];

    snprintf(text, sizeof(text), "process %d holds its tables", (int)pid);
    if (!strstr(err->text, text))
        fail_msg("\"%s\" does not say \"%s\"", err->text, text);
}

static hf_client *open_with(const struct place *p, int op_timeout_ms)
{
    char url[200];

    snprintf(url, sizeof(url), "%s?op_timeout=%dms", p->url, op_timeout_ms);
    return open_client(url);
}

static void nothing_hangs_by(const struct place *p, hf_client *client,
                             hf_lock *there, pid_t pid)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *other;
    char url[200];
    hf_lock *lock;
    int64_t began = wait_fair();

    assert_int_equal(hf_lock_new(client, "new", 3, NULL, &lock, &err),
                     HF_EBACKEND);
    assert_true(wait_within(began, OP_MS + CROWD_MS + BEYOND_MS));
    assert_names(&err, pid);
    snprintf(url, sizeof(url), "%s?connect_timeout=300ms", p->url);
    began = wait_fair();
    assert_int_equal(hf_open(url, NULL, &other, &err), HF_EBACKEND);
    assert_true(wait_within(began, 300 + BEYOND_MS));
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
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    free_lock(make_lock(client, "new", true));
}

/* Writes to the tables' lock all the time. */
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
        usleep(200000); /* seen, and shorter than the patience */
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

static void writer_begin(struct writer *w, void *(*write)(void *))
{
    atomic_init(&w->ends, false);
    OK(pthread_create(&w->thread, NULL, write, w));
}

static void writer_end(struct writer *w)
{
    atomic_store(&w->ends, true);
    OK(pthread_join(w->thread, NULL));
}

static void strangers_end(const struct writer *w)
{
    for (int i = 0; i < 2; i++) {
        kill(w->pid[i], SIGKILL);
        waitpid(w->pid[i], NULL, 0);
    }
}

/* Until the text says that many want the tables: a writer that stands still for
 * as long as our patience is one that does not let go. */
static void many_are_in_the_tables(hf_client *client)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;
    int64_t began;

    for (int i = 0; i < 10 && !strstr(err.text, "too many want"); i++) {
        began = wait_fair();
        assert_int_equal(hf_lock_new(client, "new", 3, NULL, &lock, &err),
                         HF_EBACKEND);
        assert_true(wait_within(began, OP_MS + CROWD_MS + BEYOND_MS));
    }
    assert_non_null(strstr(err.text, "too many want"));
}

CASE_HERE(test_tables_that_change_hands_are_waited_for_a_second)
{
    hf_client *client = open_with(p, OP_MS);
    struct writer w = {.file = map(p), .pid = {stranger(), stranger()}};
    hf_info *info;
    int64_t began;

    atomic_store(&w.file->header.tables, (uint32_t)w.pid[0]);
    writer_begin(&w, alternate);
    many_are_in_the_tables(client);
    began = wait_fair();
    assert_int_equal(hf_inspect(client, "x", 1, &info, NULL), HF_EBACKEND);
    assert_true(wait_within(began, CROWD_MS + BEYOND_MS));
    writer_end(&w);
    strangers_end(&w);
    close_client(client);
    munmap(w.file, sizeof(*w.file));
}

/* On a busy machine a process may not run for a second while it has them. */
static void *lock_for_long(void *arg)
{
    struct writer *w = arg;
    int64_t began = wait_now();

    assert_true(WAIT_FOR(wait_ms_since(began) > 2 * CROWD_MS));
    atomic_store(&w->file->header.tables, 0);
    return NULL;
}

CASE_HERE(test_a_first_handle_waits_for_the_tables)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;
    hf_client *client = open_with(p, 3 * WAIT_LONG_MS);
    struct writer w = {.file = map(p), .pid = {stranger(), stranger()}};

    atomic_store(&w.file->header.tables, (uint32_t)w.pid[0]);
    writer_begin(&w, lock_for_long);
    err.code = 1;
    OK(hf_lock_new(client, "new", 3, NULL, &lock, &err));
    assert_int_equal(err.code, 1); /* as it was */
    free_lock(lock);
    writer_end(&w);
    strangers_end(&w);
    close_client(client);
    munmap(w.file, sizeof(*w.file));
}

static void *make_first(void *client)
{
    hf_lock *lock;

    return (void *)(intptr_t)hf_lock_new(client, "new", 3, NULL, &lock, NULL);
}

/* hf_lock_new returns ECLOSED within a second. Only then the client is freed,
 * which ASan sees. */
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
    assert_true(WAIT_FOR(atomic_load(&f->header.tables) & FUTEX_WAITERS));
    began = wait_fair();
    close_client(client);
    OK(pthread_join(thread, &rc));
    assert_int_equal((intptr_t)rc, HF_ECLOSED);
    assert_true(wait_within(began, CROWD_MS + BEYOND_MS));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A thread that lists thousands of names in a loop has them at each look. */
CASE_HERE(test_a_thread_that_unlocks_is_not_said_to_be_stopped)
{
    hf_client *client = open_with(p, OP_MS);
    struct writer w = {.file = map(p), .pid = {stranger(), stranger()}};

    atomic_store(&w.file->header.tables, (uint32_t)w.pid[0]);
    writer_begin(&w, count_unlocks);
    many_are_in_the_tables(client);
    writer_end(&w);
    strangers_end(&w);
    close_client(client);
    munmap(w.file, sizeof(*w.file));
}

/* Another process makes it one to be initialised, each time that it is. On a
 * machine that stands just then the text may be that of the time limit. */
CASE_HERE(test_a_file_that_is_never_in_order_is_given_up)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    char url[200];

    make_file(p);
    spoilt = map(p); /* for good: a late helper thread may still be there */
    snprintf(url, sizeof(url), "%s?connect_timeout=500ms", p->url);
    for (int i = 0; i < 10 && !strstr(err.text, "does not finish"); i++) {
        int64_t began = wait_fair();

        assert_int_equal(hf_open(url, NULL, &client, &err), HF_EBACKEND);
        assert_true(wait_within(began, 500 + BEYOND_MS));
    }
    assert_non_null(strstr(err.text, "does not finish"));
    spoils = false;
    make_file(p);
}

/* From a thread that had the same number before; or from nowhere. */
CASE_HERE(test_our_own_number_in_the_tables_is_no_deadlock)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);

    atomic_store(&f->header.tables, (uint32_t)syscall(SYS_gettid));
    free_lock(make_lock(client, "x", true));
    assert_int_equal(atomic_load(&f->header.tables), 0);
}

/* The bits beside the number mean nothing where there is none. */
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

/* A client of ours waits in that cell for the first name, as far as the file
 * tells. */
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
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(other, "x", true);
    struct shm_file *f = map(p);
    int64_t began = wait_fair();

    pretend_wait(f, 100, 1);
    atomic_fetch_and(&f->entry[0].kind, (uint16_t)~256u);
    atomic_fetch_or(&f->entry[0].word, SHM_WAITERS);
    hf_lock_timed(lock, 100, NULL);
    assert_true(wait_within(began, 100 + BEYOND_MS));
    hf_lock_release(lock, NULL);
    close_client(client);
}

/* More than a cell can have; and more of them than are looked at together. */
CASE_HERE(test_waits_for_more_permits_than_there_can_be)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock_options opt = LOCK_OPTIONS(.kind = HF_SEMAPHORE, .permits = 4095);
    struct shm_file *f = map(p);
    hf_lock *lock;
    int64_t began;

    lock = make_lock_of(other, "x", &opt);
    OK(hf_lock_acquire(lock, NULL, NULL));
    for (unsigned i = 100; i < 200; i++)
        pretend_wait(f, i, 0x1000);
    atomic_fetch_or(&f->entry[0].word, SHM_QUEUE);
    began = wait_fair();
    hf_lock_release(lock, NULL);
    assert_true(wait_within(began, BEYOND_MS));
    close_client(client);
}

CASE_HERE(test_a_kind_that_there_is_not)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    hf_error err = HF_ERROR_INIT;
    hf_info *info;

    OK(hf_lock_acquire(lock, NULL, NULL));
    for (unsigned kind = 0; kind < 256; kind += 5) {
        atomic_store(&f->entry[0].kind, (uint16_t)kind);
        assert_int_equal(hf_inspect(client, "x", 1, &info, &err), HF_EPROTO);
        assert_non_null(strstr(err.text, "damaged"));
    }
    hf_lock_release(lock, NULL);
}

/* A byte of the file is no address: what a test can see of that is that a
 * client whose word is not its own any more can be closed. */
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

/* One waits, and the bit by which the word tells of the queue is lost: then it
 * has it at its next look. */
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
        hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
        struct waiter w;
        hf_lock *lock;
        int64_t since;

        opt.kind = cases[i].kind;
        opt.fairness = cases[i].fairness;
        opt.permits = opt.kind == HF_SEMAPHORE;
        lock = make_lock_of(client, "x", &opt);
        OK(hf_lock_acquire(lock, NULL, NULL));
        waiter_start(&w, make_lock_of(other, "x", &opt));
        assert_true(WAIT_FOR_MS(atomic_load(&f->cell[1].watching[0]) ||
                                    atomic_load(&f->cell[2].watching[0]),
                                2000));
        atomic_fetch_and(&f->entry[0].word, ~cases[i].bit);
        since = now_ms();
        OK(hf_lock_release(lock, NULL));
        waiter_end(&w, since, 0, 2000 + BEYOND_MS);
        free_lock(lock);
    }
}

CASES_MAIN(NULL, NULL);
