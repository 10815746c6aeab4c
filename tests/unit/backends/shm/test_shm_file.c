/*
 * The file of shared memory: which files are refused, who may open one, and
 * when a client begins a new one.
 */
#include "shm_fixture.h"

#include <sys/file.h>
#include <sys/stat.h>

CASE_HERE(test_file_is_private_by_default)
{
    struct stat st;

    rmdir(p->dir);
    make_file(p);
    OK(stat(p->file, &st));
    assert_int_equal(mode_of(p->dir), 0700);
    assert_int_equal(mode_of(p->file), 0600);
    assert_int_equal(st.st_size, sizeof(struct shm_file));
}

CASE_HERE(test_file_is_a_groups_if_asked)
{
    const char *url = group_url(p);
    mode_t old = umask(077);

    rmdir(p->dir);
    close_client(open_client(url));
    umask(old);
    assert_int_equal(mode_of(p->dir), 01770); /* sticky: see directory.c */
    assert_int_equal(mode_of(p->file), 0660);
    close_client(open_client(url));
    assert_refused(p->url, HF_EBACKEND, "its group may write");
}

/* The client that created the directory was killed before it gave the directory
 * to the group. The next client gives the directory to the group, but only if
 * the directory is empty. */
CASE_HERE(test_a_half_made_directory_is_given_to_the_group)
{
    const char *url = group_url(p), *private = text_of("%s/private", p->dir);

    OK(chmod(p->dir, 0700));
    OK(mkdir(private, 0700));
    assert_refused(url, HF_EBACKEND, "keeps out the group");
    assert_int_equal(mode_of(p->dir), 0700); /* left unchanged */
    OK(rmdir(private));
    close_client(open_client(url));
    assert_int_equal(mode_of(p->dir), 01770);
    OK(chmod(p->dir, 0700)); /* the mode seems intended: a file is there */
    assert_refused(url, HF_EBACKEND, "keeps out the group");
    assert_int_equal(mode_of(p->dir), 0700);
}

enum { USER = 4242, GROUP = 4343 }; /* unused ids, for root to give files to */

/* Opens a client in another process while the directory is being given to the
 * group; returns the wait status of that process. If the test runs as root, who
 * may open everything, the process runs as another user. */
static int opened_while_it_is_given(const struct locks_place *p)
{
    gid_t group = getuid() == 0 ? GROUP : getegid();
    int status;
    pid_t pid;

    OK(chown(p->dir, (uid_t)-1, getegid()));
    OK(chmod(p->dir, 0));
    pid = fork();
    if (!pid) {
        hf_client *client;

        if (getuid() == 0 && (setgid(group) || setuid(USER)))
            _exit(1);
        _exit(hf_open(text_of("%s?mode=0660&group=%u", p->url, (unsigned)group),
                      NULL, &client, NULL)
                  ? 2
                  : 0);
    }
    nap_ms(30);
    OK(chown(p->dir, (uid_t)-1, group));
    OK(chmod(p->dir, 01770));
    waitpid(pid, &status, 0);
    unlink(p->file);
    return status;
}

/* A client waits for a directory that is about to be given to the group, here
 * by the case itself. On a busy machine the case may act too late, so it tries
 * three times. */
CASE_HERE(test_a_directory_that_is_being_given_is_waited_for)
{
    int status = -1;

    for (int i = 0; i < 3 && status; i++)
        status = opened_while_it_is_given(p);
    assert_int_equal(status, 0);
}

static int open_existing(const struct locks_place *p)
{
    hf_client *client = NULL;
    hf_error err = HF_ERROR_INIT;
    int rc = hf_open(p->url, CLIENT(.flags = HF_OPEN_EXISTING), &client, &err);

    if (rc)
        expect_words(err.text, p->dir);
    close_client(client);
    return rc;
}

CASE_HERE(test_existing_makes_nothing)
{
    EXPECT(HF_ENOTOWNER, open_existing(p));
    assert_int_equal(access(p->file, F_OK), -1);
    OK(rmdir(p->dir));
    EXPECT(HF_ENOTOWNER, open_existing(p));
    assert_int_equal(access(p->dir, F_OK), -1);
    make_file(p);
    OK(open_existing(p));
}

/* HF_OPEN_EXISTING does not replace a file of an earlier boot, a file of
 * another version, or an empty file. */
CASE_HERE(test_existing_begins_nothing_anew)
{
    struct shm_file *f;
    struct shm_header h;

    make_file(p);
    f = map(p);
    f->header.boot[0] ^= 1;
    h = f->header;
    EXPECT(HF_ENOTOWNER, open_existing(p));
    assert_memory_equal(&h, &f->header, sizeof(h));
    f->header.boot[0] ^= 1;
    f->header.version++;
    EXPECT(HF_ENOTOWNER, open_existing(p));
    assert_int_equal(f->header.version, SHM_VERSION + 1);
    f->header.version--;
    OK(open_existing(p));
    OK(truncate(p->file, 0));
    EXPECT(HF_ENOTOWNER, open_existing(p));
}

CASE_HERE(test_unknown_flags_are_refused)
{
    hf_client *client;

    FAILS_SAYING(HF_EINVAL, "flags",
                 hf_open(p->url, CLIENT(.flags = 1u << 31), &client, &err));
    assert_null(client);
}

CASE_HERE(test_bad_options_are_refused)
{
    static const struct {
        const char *option, *words;
    } bad[] = {{"mode=0666", "mode=0666"},
               {"mode=6x", "mode=6x"},
               {"group=no-such-group", "no-such-group"},
               {"waitv=perhaps", "waitv=perhaps"},
               {"dialect=string", "dialect"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_refused(text_of("%s?%s", p->url, bad[i].option), HF_EINVAL,
                       bad[i].words);
    assert_refused("shm://host/directory", HF_EINVAL, "no host");
}

/* With a group, but without a mode for it, only the owner could use the
 * directory. */
CASE_HERE(test_group_without_its_mode_is_refused)
{
    unsigned group = getegid();

    OK(rmdir(p->dir));
    assert_refused(text_of("%s?group=%u", p->url, group), HF_EINVAL,
                   "add mode=0660");
    assert_refused(text_of("%s?mode=0600&group=%u", p->url, group), HF_EINVAL,
                   "add mode=0660");
    assert_int_equal(access(p->dir, F_OK), -1); /* not created */
}

CASE_HERE(test_bad_directories_are_refused)
{
    static const struct locks_place below = {.dir = "/no/such/parent",
                                             .url = "shm:///no/such/parent"};
    const char *path = text_of("%s.link", p->dir);

    chmod(p->dir, 0777);
    assert_refused(p->url, HF_EBACKEND, "others may write");
    chmod(p->dir, 01777);
    assert_refused(p->url, HF_EBACKEND, "others may write");
    chmod(p->dir, 0770);
    assert_refused(p->url, HF_EBACKEND, "its group may write");
    chmod(p->dir, 0700);
    OK(symlink(p->dir, path));
    assert_refused(text_of("shm://%s", path), HF_EBACKEND, "symbolic link");
    assert_refused(text_of("shm://%s/", path), HF_EBACKEND, "symbolic link");
    unlink(path);
    close(creat(p->file, 0600));
    assert_refused(text_of("shm://%s", p->file), HF_EBACKEND,
                   "not a directory");
    assert_refused("shm:///no/such/parent", HF_EBACKEND, "/no/such/parent");
    assert_int_equal(open_existing(&below), HF_EBACKEND);
}

CASE_HERE(test_bad_files_are_refused)
{
    const char *path = text_of("%s.second", p->dir);

    OK(symlink("/dev/null", p->file));
    assert_refused(p->url, HF_EBACKEND, "symbolic link");
    unlink(p->file);
    OK(mkfifo(p->file, 0600));
    assert_refused(p->url, HF_EBACKEND, "not a regular file");
    unlink(p->file);
    make_file(p);
    chmod(p->file, 0644);
    assert_refused(p->url, HF_EBACKEND, "has mode 0644");
    chmod(p->file, 0600);
    OK(link(p->file, path));
    assert_refused(p->url, HF_EBACKEND, "hard link");
    unlink(path);
    OK(truncate(p->file, 4096));
    assert_refused(p->url, HF_EBACKEND, "truncated");
    assert_refused(p->url, HF_EBACKEND, p->file);
}

CASE_HERE(test_bad_headers_are_refused)
{
    struct shm_file *f;

    make_file(p);
    f = map(p);
    atomic_store(&f->header.magic, 1234);
    assert_refused(p->url, HF_EBACKEND, "wrong magic");
    atomic_store(&f->header.magic, SHM_MAGIC);
    f->header.size--;
    assert_refused(p->url, HF_EBACKEND, "another size");
    assert_refused(p->url, HF_EBACKEND, p->file);
}

static void make_another_version(const struct locks_place *p)
{
    int fd = open(p->file, O_RDWR | O_CLOEXEC);
    uint32_t version = 77;

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &version, sizeof(version),
                            offsetof(struct shm_header, version)),
                     sizeof(version));
    OK(ftruncate(fd, 8192)); /* the size of another layout */
    close(fd);
}

CASE_HERE(test_file_of_another_version_starts_anew_if_unused)
{
    uint64_t token = token_once(p->url, "x");
    int fd;

    make_another_version(p);
    fd = open(p->file, O_RDWR | O_CLOEXEC);
    OK(flock(fd, LOCK_SH));
    assert_refused(p->url, HF_EBACKEND, "layout 77");
    close(fd);
    assert_true(token_once(p->url, "x") > token);
}

CASE_HERE(test_file_of_an_earlier_boot_starts_anew)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p), *copy = malloc(sizeof(*f));
    uint64_t token;

    OK(hf_lock_acquire(lock, NULL, NULL));
    memcpy(copy, f, sizeof(*f)); /* a copy that shows x as held, as after a
                                    crash */
    hf_lock_release(lock, NULL);
    free_lock(lock);
    close_client(client);
    memcpy(copy->header.boot, "another", 7);
    atomic_store(&copy->entry[0].epoch, 1ULL << 30); /* ahead of the clock */
    memcpy(f, copy, sizeof(*f));
    token = token_once(p->url, "x");
    assert_true(token >> SHM_EPOCH_SHIFT >= 1ULL << 30);
    free(copy);
}

/* Makes the file look like a file of another namespace, and expects that the
 * file is refused while a client uses it. The reason is that process ids belong
 * to the pid namespace, and lease ends to the time namespace. */
static void another_namespace(const struct locks_place *p, const char *path,
                              unsigned shift)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);
    struct stat st;

    OK(stat(path, &st));
    assert_int_equal((uint32_t)(f->header.world >> shift), st.st_ino);
    f->header.world ^= 1ULL << shift;
    assert_refused(p->url, HF_EBACKEND, "another pid or time namespace");
    close_client(client);
    assert_true(token_once(p->url, "x") > 0);
}

CASE_HERE(test_another_namespace_is_refused_while_in_use)
{
    another_namespace(p, "/proc/self/ns/pid", 0);
    another_namespace(p, "/proc/self/ns/time", 32);
}

/* Opens the place in 16 processes at once; returns how many of them fail. */
static int open_many_at_once(const struct locks_place *p)
{
    int status, bad = 0, go[2];

    OK(pipe(go));
    for (int i = 0; i < 16; i++)
        if (!fork()) {
            hf_client *client;
            char end;

            close(go[1]);
            if (read(go[0], &end, 1)) /* waits until all have started */
                _exit(2);
            _exit(hf_open(p->url, NULL, &client, NULL) ? 1 : hf_close(client));
        }
    close(go[0]);
    close(go[1]);
    while (wait(&status) > 0)
        bad += status != 0;
    return bad;
}

CASE_HERE(test_many_open_a_new_file_at_once)
{
    for (int round = 0; round < 5; round++) {
        unlink(p->file);
        assert_int_equal(open_many_at_once(p), 0);
    }
}

CASE_HERE(test_many_open_a_file_of_another_version_at_once)
{
    for (int round = 0; round < 5; round++) {
        make_file(p);
        make_another_version(p);
        assert_int_equal(open_many_at_once(p), 0);
    }
}

/* The client that opens a file of another version must wait until no process
 * holds the shared lock on it. A process that is only opening the file holds
 * this lock for a moment. */
CASE_HERE(test_file_of_another_version_is_waited_for)
{
    make_file(p);
    make_another_version(p);
    if (!fork_until_ready()) {
        if (flock(open(p->file, O_RDWR | O_CLOEXEC), LOCK_SH))
            _exit(1);
        say_ready();
        nap_ms(50);
        _exit(0);
    }
    close_client(open_client(p->url));
    wait(NULL);
}

CASES_MAIN(NULL, NULL);
