/*
 * Opens the file <directory>/locks. A directory or a file with a wrong owner,
 * mode, size or header is refused with a message that names it and the reason,
 * and is not changed: another user may be using it, or may have planted it.
 * There are two exceptions: a file or directory that a killed process left
 * incomplete is completed; and a file from another version of holdfast, from an
 * earlier boot or from other namespaces is initialised again if no client uses
 * it.
 *
 * Every client holds a shared flock(2) on the file while the client is open. A
 * client that gets the exclusive flock is therefore the only client. It
 * initialises the file if the file is new, or if the file is from an earlier
 * boot or from other namespaces. (It empties a file from another version, which
 * is then like a new one.) The magic (of a new file) and the boot id (of an old
 * file) are written last: if a client is killed while it initialises the file,
 * the next client starts again.
 *
 * The file is allocated in full, so that a full disk is an error here and not a
 * SIGBUS later. A client does not survive the truncation of the file.
 */
#include "file.h"

#include "access.h"
#include "directory.h"
#include "location.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void file_unmap(struct shm *s)
{
    if (s->file)
        munmap(s->file, sizeof(struct shm_file));
    s->file = NULL;
    if (s->fd >= 0) {
        flock(s->fd, LOCK_UN); /* needed if a child process has the descriptor
                                  open */
        close(s->fd);
    }
    s->fd = -1;
}

/* Finds the boot id, and the pid and time namespaces, to which the process ids
 * and times in the file belong. */
static int file_find_world(struct shm *s, struct shm_location *p)
{
    static const char boot[] = "/proc/sys/kernel/random/boot_id";
    static const char ns[] = "/proc/self/ns/pid";
    struct stat st;
    ssize_t n;
    int fd = open(boot, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return hf__shm_refuse_errno(s, boot, "open it");
    n = read(fd, p->boot, sizeof(p->boot) - 1);
    close(fd);
    if (n < 36)
        return hf__shm_refuse(s, boot, "is not a boot id");
    p->boot[36] = '\0';
    if (stat(ns, &st))
        return hf__shm_refuse_errno(s, ns, "look at it");
    p->world = (uint32_t)st.st_ino;
    if (!stat("/proc/self/ns/time", &st)) /* since Linux 5.6 */
        p->world |= (uint64_t)st.st_ino << 32;
    return 0;
}

static int check_file(struct shm *s, const struct shm_location *p,
                      struct stat *st)
{
    int rc;

    if (fstat(s->fd, st))
        return hf__shm_refuse_errno(s, s->path, "look at it");
    if (!S_ISREG(st->st_mode))
        return hf__shm_refuse(s, s->path, "is not a regular file");
    if ((rc = hf__shm_check_owner(s, p, s->path, st)))
        return rc;
    if (st->st_mode & 07777 & ~p->mode)
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: has mode %04o, more than the %04o of mode= in "
                            "the URL (default 0600)",
                            s->path, (unsigned)st->st_mode & 07777,
                            (unsigned)p->mode);
    if (st->st_nlink > 1)
        return hf__shm_refuse(s, s->path, "has a second name (hard link)");
    if ((rc = hf__shm_check_group(s, p, s->path, st)))
        return rc;
    /* A new file is given its rights before its size. A file without a size may
     * therefore still lack the rights. */
    if (p->group_given && st->st_size &&
        (st->st_gid != p->group || (st->st_mode & 060) != 060))
        return hf__shm_keeps_out(s, p, s->path, st, "660");
    return 0;
}

static int file_check_size(struct shm *s, const struct stat *st)
{
    if (st->st_size != 0 && st->st_size != (off_t)sizeof(struct shm_file))
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: has %lld bytes instead of %zu: truncated, or "
                            "not ours",
                            s->path, (long long)st->st_size,
                            sizeof(struct shm_file));
    return 0;
}

/* Deletes a new file whose rights cannot be set, because the file would lock
 * the group out. Deletes it only if this client gets the exclusive flock. A
 * process that has opened the file in the meantime sees that it is deleted, and
 * creates another file. */
static void file_remove_new(struct shm *s)
{
    struct stat ours, there;

    if (!flock(s->fd, LOCK_EX | LOCK_NB) && !fstat(s->fd, &ours) &&
        !ours.st_size &&
        !fstatat(s->dir_fd, SHM_FILE_NAME, &there, AT_SYMLINK_NOFOLLOW) &&
        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
        unlinkat(s->dir_fd, SHM_FILE_NAME, 0);
}

/* Gives a file that has no size yet its group and its mode. */
static int file_give_rights(struct shm *s, const struct shm_location *p)
{
    int rc = 0;

    if (p->group_given && fchown(s->fd, (uid_t)-1, p->group))
        rc = hf__shm_refuse_errno(s, s->path, "give it to the group");
    else if (fchmod(s->fd, p->mode))
        rc = hf__shm_refuse_errno(s, s->path, "set its mode");
    if (rc)
        file_remove_new(s);
    return rc;
}

static int open_file(struct shm *s, const struct shm_location *p)
{
    int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

    s->fd = hf__shm_open_soon(s->dir_fd, SHM_FILE_NAME, flags, p);
    if (s->fd < 0 && errno == ENOENT && p->existing)
        return hf__shm_absent(s);
    if (s->fd < 0 && errno == ENOENT) {
        s->fd =
            openat(s->dir_fd, SHM_FILE_NAME, flags | O_CREAT | O_EXCL, 0600);
        if (s->fd >= 0)
            return file_give_rights(s, p);
        if (errno == EEXIST)
            s->fd = hf__shm_open_soon(s->dir_fd, SHM_FILE_NAME, flags, p);
    }
    if (s->fd < 0 && errno == ELOOP)
        return hf__shm_refuse(s, s->path, "is a symbolic link");
    return s->fd < 0 ? hf__shm_refuse_errno(s, s->path, "open it") : 0;
}

static int map_file(struct shm *s)
{
    void *at = mmap(NULL, sizeof(struct shm_file), PROT_READ | PROT_WRITE,
                    MAP_SHARED, s->fd, 0);

    if (at == MAP_FAILED) {
        hf__shm_refuse_errno(s, s->path, "map it");
        return HF_EBACKEND;
    }
    s->file = at;
    return 0;
}

/* Returns the version of the file if another version of holdfast created it, or
 * 0. The header begins with the same fields in all versions. */
static uint32_t file_other_version(const struct shm *s)
{
    struct {
        uint64_t magic;
        uint32_t version;
    } begin = {0, 0};

    return pread(s->fd, &begin, sizeof(begin), 0) == sizeof(begin) &&
                   begin.magic == SHM_MAGIC && begin.version != SHM_VERSION
               ? begin.version
               : 0;
}

/* Empties a file of another version if no client uses it, so that the next try
 * initialises the file. Its tokens then start from the wall clock, as in a new
 * file. With HF_OPEN_EXISTING refuses the file instead. Returns HF__PENDING if
 * the caller must try again, or a code. */
static int file_reinitialise(struct shm *s, struct shm_location *p)
{
    int rc = HF__PENDING;

    if (!flock(s->fd, LOCK_EX | LOCK_NB)) {
        p->other_version = 0;
        if (p->existing)
            rc = hf__shm_absent(s);
        else if (file_other_version(s) && ftruncate(s->fd, 0))
            rc = hf__shm_refuse_errno(s, s->path, "initialise it again");
    }
    flock(s->fd, LOCK_UN);
    return rc;
}

/* Returns HF__DONE if the file can be used as it is; HF__PENDING if a client
 * with the exclusive flock must initialise it; or EBACKEND. */
static int file_check_header(struct shm *s, const struct shm_location *p)
{
    struct shm_header *h = &s->file->header;
    uint64_t magic = atomic_load(&h->magic);

    if (magic == 0)
        return HF__PENDING;
    if (magic != SHM_MAGIC)
        return hf__shm_refuse(s, s->path, "wrong magic: not a file of ours");
    if (h->size != sizeof(struct shm_file))
        return hf__shm_refuse(s, s->path, "its header states another size");
    if (memcmp(h->boot, p->boot, sizeof(h->boot)) != 0 || h->world != p->world)
        return HF__PENDING;
    return HF__DONE;
}

/* Initialises the file. Needs the exclusive flock. Tokens continue to rise: the
 * highest token of the old contents becomes `floor` in the header. */
static int file_initialise(struct shm *s, const struct shm_location *p)
{
    struct shm_file *f = s->file;
    struct shm_header *h = &f->header;
    uint64_t floor = atomic_load(&h->floor);

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        uint64_t token = shm_entry_token(&f->entry[i]);

        if (atomic_load(&f->hash[i]) && token > floor)
            floor = token;
    }
    memset(h->boot, 0, sizeof(h->boot)); /* invalid until the end */
    atomic_store(&h->floor, floor);
    SHM_POINT();
    memset(f->hash, 0, sizeof(*f) - offsetof(struct shm_file, hash));
    SHM_POINT();
    atomic_store(&h->slots_high, 0);
    atomic_store(&h->names_high, 0);
    atomic_store(&h->cells_high, 0);
    atomic_store(&h->unswept, 0);
    atomic_store(&h->tables, 0);
    atomic_store(&h->unlocks, 0);
    SHM_POINT();
    h->version = SHM_VERSION;
    h->size = sizeof(struct shm_file);
    h->world = p->world;
    SHM_POINT();
    memcpy(h->boot, p->boot, sizeof(h->boot));
    SHM_POINT();
    atomic_store(&h->magic, SHM_MAGIC);
    return HF__DONE;
}

/* Gives a new file its size. If the file belongs to this user, first sets its
 * rights again, in case the process that created the file was killed before it
 * set them. */
static int file_allocate(struct shm *s, const struct shm_location *p,
                         const struct stat *st)
{
    int rc;

    if (st->st_uid == geteuid() && (rc = file_give_rights(s, p)))
        return rc;
    SHM_POINT();
    do
        rc = posix_fallocate(s->fd, 0, sizeof(struct shm_file));
    while (rc == EINTR);
    errno = rc;
    return rc ? hf__shm_refuse_errno(s, s->path, "allocate it") : 0;
}

/* Checks the file, and initialises it if necessary. Needs the exclusive flock,
 * so that no other client uses the file. */
static int file_prepare_exclusive(struct shm *s, const struct shm_location *p)
{
    struct stat st;
    int rc = check_file(s, p, &st);

    if (!rc)
        rc = file_check_size(s, &st);
    if (!rc && !st.st_size)
        rc = file_allocate(s, p, &st);
    SHM_POINT();
    if (!rc && !s->file)
        rc = map_file(s);
    if (!rc)
        rc = file_check_header(s, p);
    if (rc == HF__PENDING)
        rc = file_initialise(s, p);
    SHM_POINT();
    return rc;
}

/* Returns whether the file is valid, but belongs to another pid or time
 * namespace. */
static bool file_is_of_another_world(const struct shm *s,
                                     const struct shm_location *p)
{
    const struct shm_header *h = &s->file->header;

    return atomic_load(&h->magic) == SHM_MAGIC &&
           !memcmp(h->boot, p->boot, sizeof(p->boot)) && h->world != p->world;
}

/* Tries once to get a valid file with a shared flock on it. Returns HF__DONE, a
 * code, or HF__PENDING if the caller must try again. The reasons to try again
 * are: another process is initialising the file; the file was deleted after it
 * was opened; it is in use by another version or in another namespace; or this
 * call has just initialised or emptied it. */
static int file_prepare(struct shm *s, struct shm_location *p)
{
    struct stat st;
    int rc;

    p->other_version = 0;
    p->other_world = false;
    if (flock(s->fd, LOCK_SH | LOCK_NB))
        return errno == EWOULDBLOCK || errno == EINTR
                   ? HF__PENDING
                   : hf__shm_refuse_errno(s, s->path, "lock it");
    rc = check_file(s, p, &st);
    if (rc)
        return rc;
    if ((p->other_version = file_other_version(s)))
        return file_reinitialise(s, p);
    rc = file_check_size(s, &st);
    if (rc)
        return rc;
    if (!st.st_nlink) {
        file_unmap(s);
        return HF__PENDING;
    }
    if (st.st_size && !s->file && (rc = map_file(s)))
        return rc;
    rc = st.st_size ? file_check_header(s, p) : HF__PENDING;
    if (rc != HF__PENDING)
        return rc;
    p->other_world = st.st_size && file_is_of_another_world(s, p);
    /* To exchange the shared flock for the exclusive one, or back, the kernel
     * first releases the old one, and another process may get the file in
     * between. Therefore everything is checked again. */
    if (flock(s->fd, LOCK_EX | LOCK_NB)) {
        flock(s->fd, LOCK_UN);
        return HF__PENDING;
    }
    rc = p->existing ? hf__shm_absent(s) : file_prepare_exclusive(s, p);
    flock(s->fd, LOCK_UN);
    return rc == HF__DONE ? HF__PENDING : rc;
}

static int file_not_in_time(struct shm *s, const struct shm_location *p)
{
    if (p->other_version)
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: is in use by another version of holdfast "
                            "(layout %u, ours is %u)",
                            s->path, p->other_version, SHM_VERSION);
    if (p->other_world)
        return hf__shm_refuse(
            s, s->path,
            "is in use in another pid or time namespace (container): "
            "share the namespace, or give each a directory of its "
            "own");
    return hf__shm_refuse(
        s, s->path, "another process is initialising it and does not finish");
}

int hf__shm_file_open(struct shm *s, const struct hf__config *config)
{
    struct timespec nap = {0, 0};
    struct shm_location p = {0};
    hf__time start = s->core->now(), limit;
    uint8_t chance = 0;
    struct stat root;
    int rc = hf__shm_location_find(s, config, &p);

    if (rc || (rc = file_find_world(s, &p)) ||
        (rc = hf__shm_directory_open(s, &p)))
        return rc;
    if (stat("/", &root))
        return hf__shm_refuse_errno(s, "/", "look at it");
    s->root_dev = root.st_dev;
    s->root_ino = root.st_ino;
    for (;;) {
        if (s->fd < 0 && (rc = open_file(s, &p)))
            return rc;
        rc = file_prepare(s, &p);
        if (rc != HF__PENDING)
            return rc;
        limit = config->open_timeout_ms * HF__MS * 9 / 10;
        if ((p.other_version || p.other_world) && limit > 300 * HF__MS)
            limit = 300 * HF__MS; /* its clients rarely close soon */
        if (s->core->now() - start >= limit)
            return file_not_in_time(s, &p);
        /* The pauses differ in length; otherwise two clients could block each
         * other for ever. */
        s->core->random(&chance, 1);
        nap.tv_nsec = 500000 + chance * 10000;
        nanosleep(&nap, NULL);
    }
}

void hf__shm_file_close(struct shm *s)
{
    file_unmap(s);
    if (s->dir_fd >= 0)
        close(s->dir_fd);
    s->dir_fd = -1;
}

int hf__shm_file_lost(struct shm *s)
{
    return hf__shm_refuse(s, s->path,
                          "was deleted, renamed or replaced while in use; "
                          "close and open again");
}

/* Returns whether our root directory is still the one with which the file was
 * opened. After chroot(2), s->path leads elsewhere. */
static bool file_is_at_our_root(const struct shm *s)
{
    struct stat root;

    return !stat("/", &root) && root.st_dev == s->root_dev &&
           root.st_ino == s->root_ino;
}

/* Returns whether a client that opens the path now would get a file other than
 * ours. Returns false if we no longer have permission to look there (dropped
 * privileges). */
static bool file_is_elsewhere(const struct shm *s, const struct stat *ours)
{
    bool by_path = file_is_at_our_root(s);
    struct stat there;

    if (fstatat(by_path ? AT_FDCWD : s->dir_fd,
                by_path ? s->path : SHM_FILE_NAME, &there, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    return there.st_dev != ours->st_dev || there.st_ino != ours->st_ino;
}

bool hf__shm_file_is_there(struct shm *s)
{
    const char *what = "deleted";
    struct stat st;
    char why[128];

    if (!fstat(s->fd, &st) && st.st_nlink > 0) {
        if (!file_is_elsewhere(s, &st))
            return true;
        what = "renamed or replaced";
    }
    snprintf(why, sizeof(why), "the file %.90s was %s", s->path, what);
    if (!atomic_exchange(&s->lost, true))
        s->core->session(s->client, HF_EVENT_LOST, why);
    hf__shm_file_lost(s);
    return false;
}

/* Checks at most once in each period of 64 ms, because this function is called
 * for each wait, and a wait may take only a microsecond. */
bool hf__shm_file_still_there(struct shm *s)
{
    uint64_t now = shm_wall_ms() / 64;

    if (!shm_is_lost(s) &&
        atomic_load_explicit(&s->there_at, memory_order_relaxed) == now)
        return true;
    atomic_store_explicit(&s->there_at, now, memory_order_relaxed);
    return hf__shm_file_is_there(s);
}
