/*
 * The shared-memory backend: what is in its file and who may be there, limits,
 * tokens, inspection. What every backend must do is tested by the conformance
 * suite; deaths and waiting, in the files beside this one.
 */
#include "shm_fixture.h"

#include <sys/file.h>
#include <sys/stat.h>

static void assert_refused(const char *url, int code, const char *text)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;

    assert_int_equal(hf_open(url, NULL, &client, &err), code);
    assert_null(client);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

/* Opens it once, so that there is a good file. */
static void make_file(const struct place *p)
{
    hf_close(open_client(p->url));
}

static uint64_t token_once(const char *url, const char *name)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_lock(client, name, true);
    uint64_t token = 0;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    assert_int_equal(hf_lock_token(lock, &token), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(client), 0);
    return token;
}

/* ---- the file ----------------------------------------------------------- */

static void test_file_is_private_by_default(void **state)
{
    struct place *p = *state;
    struct stat st;

    rmdir(p->dir);
    make_file(p);
    assert_int_equal(stat(p->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, sizeof(struct shm_file));
}

static void test_file_is_a_groups_if_asked(void **state)
{
    struct place *p = *state;
    char url[200];
    struct stat st;
    mode_t old = umask(077);

    rmdir(p->dir);
    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    hf_close(open_client(url));
    umask(old);
    assert_int_equal(stat(p->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0770);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    hf_close(open_client(url));
    assert_refused(p->url, HF_EBACKEND, "its group may write");
}

static void test_bad_options_are_refused(void **state)
{
    struct place *p = *state;
    char url[200];

    snprintf(url, sizeof(url), "%s?mode=0666", p->url);
    assert_refused(url, HF_EINVAL, "mode=0666");
    snprintf(url, sizeof(url), "%s?mode=6x", p->url);
    assert_refused(url, HF_EINVAL, "mode=6x");
    snprintf(url, sizeof(url), "%s?group=no-such-group", p->url);
    assert_refused(url, HF_EINVAL, "no-such-group");
    snprintf(url, sizeof(url), "%s?waitv=perhaps", p->url);
    assert_refused(url, HF_EINVAL, "waitv=perhaps");
    snprintf(url, sizeof(url), "%s?dialect=string", p->url);
    assert_refused(url, HF_EINVAL, "dialect");
    assert_refused("shm://host/directory", HF_EINVAL, "no host");
}

static void test_bad_directories_are_refused(void **state)
{
    struct place *p = *state;
    char url[200], path[100];

    chmod(p->dir, 0777);
    assert_refused(p->url, HF_EBACKEND, "others may write");
    chmod(p->dir, 01777);
    assert_refused(p->url, HF_EBACKEND, "others may write");
    chmod(p->dir, 0770);
    assert_refused(p->url, HF_EBACKEND, "its group may write");
    chmod(p->dir, 0700);
    snprintf(path, sizeof(path), "%s.link", p->dir);
    assert_int_equal(symlink(p->dir, path), 0);
    snprintf(url, sizeof(url), "shm://%s", path);
    assert_refused(url, HF_EBACKEND, "symbolic link");
    snprintf(url, sizeof(url), "shm://%s/", path);
    assert_refused(url, HF_EBACKEND, "symbolic link");
    unlink(path);
    close(creat(p->file, 0600));
    snprintf(url, sizeof(url), "shm://%s", p->file);
    assert_refused(url, HF_EBACKEND, "not a directory");
    assert_refused("shm:///no/such/parent", HF_EBACKEND, "/no/such/parent");
}

static void test_a_stranger_s_directory_is_refused(void **state)
{
    struct place *p = *state;

    if (geteuid() != 0)
        skip(); /* only root can make one */
    assert_int_equal(chown(p->dir, 4242, (gid_t)-1), 0);
    assert_refused(p->url, HF_EBACKEND, "belongs to user 4242");
    assert_int_equal(chown(p->dir, 0, (gid_t)-1), 0);
    make_file(p);
    assert_int_equal(chown(p->file, 4242, (gid_t)-1), 0);
    assert_refused(p->url, HF_EBACKEND, "belongs to user 4242");
    assert_refused(p->url, HF_EBACKEND, p->file);
}

static void test_bad_files_are_refused(void **state)
{
    struct place *p = *state;
    char path[100];

    assert_int_equal(symlink("/dev/null", p->file), 0);
    assert_refused(p->url, HF_EBACKEND, "symbolic link");
    unlink(p->file);
    assert_int_equal(mkfifo(p->file, 0600), 0);
    assert_refused(p->url, HF_EBACKEND, "not a regular file");
    unlink(p->file);
    make_file(p);
    chmod(p->file, 0644);
    assert_refused(p->url, HF_EBACKEND, "has mode 0644");
    chmod(p->file, 0600);
    snprintf(path, sizeof(path), "%s.second", p->dir);
    assert_int_equal(link(p->file, path), 0);
    assert_refused(p->url, HF_EBACKEND, "hard link");
    unlink(path);
    assert_int_equal(truncate(p->file, 4096), 0);
    assert_refused(p->url, HF_EBACKEND, "truncated");
    assert_refused(p->url, HF_EBACKEND, p->file);
}

static void test_bad_headers_are_refused(void **state)
{
    struct place *p = *state;
    struct shm_file *f;

    make_file(p);
    f = map(p);
    atomic_store(&f->header.magic, 1234);
    assert_refused(p->url, HF_EBACKEND, "wrong magic");
    atomic_store(&f->header.magic, SHM_MAGIC);
    f->header.size--;
    assert_refused(p->url, HF_EBACKEND, "another size");
    assert_refused(p->url, HF_EBACKEND, p->file);
    munmap(f, sizeof(*f));
}

static void make_another_version(const struct place *p)
{
    int fd = open(p->file, O_RDWR | O_CLOEXEC);
    uint32_t version = 77;

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &version, sizeof(version),
                            offsetof(struct shm_header, version)),
                     sizeof(version));
    assert_int_equal(ftruncate(fd, 8192), 0); /* its layout was another, too */
    close(fd);
}

static void test_file_of_another_version_starts_anew_if_unused(void **state)
{
    struct place *p = *state;
    uint64_t token = token_once(p->url, "x");
    int fd;

    make_another_version(p);
    fd = open(p->file, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_refused(p->url, HF_EBACKEND, "layout 77");
    close(fd);
    assert_true(token_once(p->url, "x") > token);
}

static void test_file_of_an_earlier_boot_starts_anew(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p), *copy = malloc(sizeof(*f));
    uint64_t token;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    memcpy(copy, f, sizeof(*f)); /* as it would be after a crash: held */
    hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
    memcpy(copy->header.boot, "another", 7);
    atomic_store(&copy->entry[0].epoch, 1ULL << 30); /* ahead of the clock */
    memcpy(f, copy, sizeof(*f));
    token = token_once(p->url, "x");
    assert_true(token >> SHM_EPOCH_SHIFT >= 1ULL << 30);
    munmap(f, sizeof(*f));
    free(copy);
}

/* Process ids are of the one, the ends of leases of the other. */
static void another_namespace(const struct place *p, const char *path,
                              unsigned shift)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);
    struct stat st;

    OK(stat(path, &st));
    assert_int_equal((uint32_t)(f->header.world >> shift), st.st_ino);
    f->header.world ^= 1ULL << shift;
    assert_refused(p->url, HF_EBACKEND, "another pid or time namespace");
    hf_close(client);
    assert_true(token_once(p->url, "x") > 0);
    munmap(f, sizeof(*f));
}

static void test_another_namespace_is_refused_while_in_use(void **state)
{
    another_namespace(*state, "/proc/self/ns/pid", 0);
    another_namespace(*state, "/proc/self/ns/time", 32);
}

/* How many of them cannot. */
static int open_many_at_once(const struct place *p)
{
    int status, bad = 0, go[2];

    OK(pipe(go));
    for (int i = 0; i < 16; i++)
        if (!fork()) {
            hf_client *client;
            char end;

            close(go[1]);
            if (read(go[0], &end, 1)) /* until all are there */
                _exit(2);
            _exit(hf_open(p->url, NULL, &client, NULL) ? 1 : hf_close(client));
        }
    close(go[0]);
    close(go[1]);
    while (wait(&status) > 0)
        bad += status != 0;
    return bad;
}

static void test_many_open_a_new_file_at_once(void **state)
{
    struct place *p = *state;

    for (int round = 0; round < 5; round++) {
        unlink(p->file);
        assert_int_equal(open_many_at_once(p), 0);
    }
}

static void test_many_open_a_file_of_another_version_at_once(void **state)
{
    struct place *p = *state;

    for (int round = 0; round < 5; round++) {
        make_file(p);
        make_another_version(p);
        assert_int_equal(open_many_at_once(p), 0);
    }
}

/* Who comes at the same time has the shared lock for a moment, too. */
static void test_file_of_another_version_is_waited_for(void **state)
{
    struct place *p = *state;
    int fds[2];
    char byte;

    make_file(p);
    make_another_version(p);
    OK(pipe(fds));
    if (!fork()) {
        int fd = open(p->file, O_RDWR | O_CLOEXEC);

        if (flock(fd, LOCK_SH) || write(fds[1], "", 1) != 1)
            _exit(1);
        nap_ms(100);
        _exit(0);
    }
    assert_int_equal(read(fds[0], &byte, 1), 1);
    OK(hf_close(open_client(p->url)));
    wait(NULL);
    close(fds[0]);
    close(fds[1]);
}

static void test_deleted_file_is_noticed(void **state)
{
    struct place *p = *state;
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
    hf_lock_free(lock);
    hf_close(client);
}

/* ---- limits ------------------------------------------------------------- */

static void test_4096_names_and_no_more(void **state)
{
    struct place *p = *state;
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
    assert_non_null(strstr(err.text, "4096 names"));
    assert_int_equal(hf_lock_release(locks[1000], NULL), 0);
    assert_int_equal(hf_lock_free(locks[1000]), 0);
    assert_int_equal(hf_lock_new(client, "more", 4, NULL, &more, &err), 0);
    hf_lock_free(more);
    for (unsigned i = 0; i < SHM_NAMES; i++)
        if (i != 1000) {
            hf_lock_release(locks[i], NULL);
            hf_lock_free(locks[i]);
        }
    free(locks);
    hf_close(client);
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

static void test_names_of_the_dead_are_taken_back(void **state)
{
    struct place *p = *state;
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
    hf_lock_free(lock);
    hf_close(client);
}

static void test_4095_clients_and_no_more(void **state)
{
    struct place *p = *state;
    struct shm_file *f;
    hf_client *client;

    make_file(p);
    f = map(p);
    /* As if they were there: ours and alive, as far as one can tell. */
    client = open_client(p->url);
    for (unsigned i = 2; i < SHM_SLOTS; i++) {
        memcpy(&f->slot[i].alive, &f->slot[1].alive, sizeof(f->slot[1].alive));
        atomic_store(&f->slot[i].pid, (uint32_t)getpid());
        atomic_store(&f->slot[i].state, SHM_SLOT_USED);
    }
    assert_refused(p->url, HF_EBACKEND, "4095 clients");
    for (unsigned i = 2; i < SHM_SLOTS; i++)
        atomic_store(&f->slot[i].state, SHM_SLOT_FREE);
    hf_close(client);
    munmap(f, sizeof(*f));
}

static void test_4096_waits_and_no_more(void **state)
{
    struct place *p = *state;
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
    hf_lock_free(held);
    hf_lock_free(wanted);
    hf_close(client);
    hf_close(other);
    munmap(f, sizeof(*f));
}

/* ---- tokens ------------------------------------------------------------- */

static void test_tokens_rise_when_the_name_is_made_again(void **state)
{
    struct place *p = *state;
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
        hf_lock_free(lock);
    }
    hf_close(client);
    unlink(p->file);
    assert_true(token_once(p->url, "x") > last);
}

static void test_tokens_rise_when_the_count_wraps(void **state)
{
    struct place *p = *state;
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
    hf_lock_free(lock);
    hf_close(client);
    munmap(f, sizeof(*f));
}

/* ---- kinds, inspection, breaking ---------------------------------------- */

static void test_fair_and_unfair_do_not_mix(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *wrong;
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;

    opt.fairness = HF_UNFAIR;
    assert_int_equal(hf_lock_new(other, "x", 1, &opt, &wrong, &err),
                     HF_EMISMATCH);
    assert_non_null(strstr(err.text, "a fair mutex"));
    hf_lock_free(lock);
    assert_int_equal(hf_lock_new(other, "x", 1, &opt, &wrong, &err), 0);
    hf_lock_free(wrong);
    hf_close(client);
    hf_close(other);
}

static void test_inspect_list_break(void **state)
{
    struct place *p = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *client, *other = open_client(p->url);
    hf_lock *lock, *second = make_lock(other, "dir/x", true);
    hf_names *names;
    hf_info *info;
    uint64_t token = 0;

    opt.label = "the tester";
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
    hf_lock_free(lock);
    hf_lock_free(second);
    hf_close(client);
    hf_close(other);
}

/* Whatever is in the tables: an error or a grant, not a crash or a hang. */
static void test_garbage_in_the_tables_does_no_harm(void **state)
{
    struct place *p = *state;
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
    hf_lock_free(lock);
    hf_lock_free(theirs);
    hf_close(client);
    hf_close(other);
    munmap(f, sizeof(*f));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_is_private_by_default),
        TEST(test_file_is_a_groups_if_asked),
        TEST(test_bad_options_are_refused),
        TEST(test_bad_directories_are_refused),
        TEST(test_a_stranger_s_directory_is_refused),
        TEST(test_bad_files_are_refused),
        TEST(test_bad_headers_are_refused),
        TEST(test_file_of_another_version_starts_anew_if_unused),
        TEST(test_file_of_an_earlier_boot_starts_anew),
        TEST(test_another_namespace_is_refused_while_in_use),
        TEST(test_many_open_a_new_file_at_once),
        TEST(test_many_open_a_file_of_another_version_at_once),
        TEST(test_file_of_another_version_is_waited_for),
        TEST(test_deleted_file_is_noticed),
        TEST(test_4096_names_and_no_more),
        TEST(test_names_of_the_dead_are_taken_back),
        TEST(test_4095_clients_and_no_more),
        TEST(test_4096_waits_and_no_more),
        TEST(test_tokens_rise_when_the_name_is_made_again),
        TEST(test_tokens_rise_when_the_count_wraps),
        TEST(test_fair_and_unfair_do_not_mix),
        TEST(test_inspect_list_break),
        TEST(test_garbage_in_the_tables_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
