/* Opens the directory of the file, creates it if necessary, and checks who may
 * write to it. */
#include "directory.h"

#include "access.h"
#include "location.h"
#include "parent_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int hf__shm_open_soon(int at, const char *path, int flags,
                      const struct shm_location *p)
{
    struct timespec nap = {0, 10 * HF__MS};
    int fd = openat(at, path, flags);

    for (int i = 0; i < 10 && fd < 0 && errno == EACCES && (p->mode & 020);
         i++) {
        nanosleep(&nap, NULL);
        fd = openat(at, path, flags);
    }
    return fd;
}

static bool directory_is_empty(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    bool empty = dir != NULL;

    while (empty && (e = readdir(dir)))
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return empty;
}

/* Returns whether the directory looks incomplete: it is empty and not yet
 * accessible to the group, although mode= in the URL lets the group write. Its
 * creator was probably killed before it gave the directory to the group. */
static bool directory_is_half_made(const struct shm *s,
                                   const struct shm_location *p,
                                   const struct stat *st)
{
    return (p->mode & 020) && (st->st_mode & 07777) == 0700 &&
           directory_is_empty(s->dir_fd);
}

/* Returns the code for errno, with a message, after the directory could not be
 * opened. */
static int directory_refuse_dir(struct shm *s, const struct shm_location *p)
{
    int error = errno;
    struct stat st;

    if (p->is_default && !lstat(p->dir, &st) && st.st_uid &&
        st.st_uid != geteuid())
        return hf__shm_refuse_stranger(s, p, p->dir, st.st_uid);
    errno = error;
    if (error == ELOOP || error == ENOTDIR)
        return hf__shm_refuse(s, p->dir,
                              "is a symbolic link or not a directory");
    return hf__shm_refuse_errno(s, p->dir, "open the directory");
}

/* Gives the directory to the group and sets its mode. If the group may write,
 * the mode has the sticky bit, so that a member of the group cannot remove the
 * files of another member. */
static int directory_give_rights(struct shm *s, const struct shm_location *p,
                                 struct stat *st)
{
    mode_t mode = p->mode | (p->mode & 0440) >> 2;

    if (p->group_given && fchown(s->dir_fd, (uid_t)-1, p->group))
        return hf__shm_refuse_errno(s, p->dir, "give it to the group");
    if (fchmod(s->dir_fd, mode | (mode & 020 ? S_ISVTX : 0)) ||
        fstat(s->dir_fd, st))
        return hf__shm_refuse_errno(s, p->dir, "set its mode");
    return 0;
}

static bool directory_lets_group_in(const struct shm_location *p,
                                    const struct stat *st)
{
    mode_t needed = st->st_gid == p->group ? 050 : 05;

    return !p->group_given || (st->st_mode & needed) == needed;
}

/* Waits briefly for the rights, because the process that created the directory
 * may be about to give it to the group. */
static int directory_await_rights(struct shm *s, const struct shm_location *p,
                                  struct stat *st)
{
    struct timespec nap = {0, 10 * HF__MS};

    for (int i = 0; i < 10 && !directory_lets_group_in(p, st); i++) {
        nanosleep(&nap, NULL);
        if (fstat(s->dir_fd, st))
            return hf__shm_refuse_errno(s, p->dir, "look at it");
    }
    return 0;
}

/* Refuses a directory in which a user could replace the file of another user,
 * or that keeps the group out. Without the sticky bit, any user who may write
 * to the directory could replace the file. */
static int directory_check_rights(struct shm *s, const struct shm_location *p,
                                  const struct stat *st)
{
    int rc;

    if (st->st_mode & 02)
        return hf__shm_refuse(s, p->dir,
                              "others may write to the directory; it must be "
                              "one that only its users may write to");
    if ((st->st_mode & 020) && !(p->mode & 020))
        return hf__shm_refuse(
            s, p->dir,
            "its group may write to the directory; to share it, "
            "add mode=0660&group=GROUP to the URL");
    if ((st->st_mode & 020) && !(st->st_mode & S_ISVTX))
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: its group may write to the directory, which "
                            "must then have the sticky bit: chmod +t %s",
                            p->dir, p->dir);
    rc = hf__shm_check_group(s, p, p->dir, st);
    if (!rc && !directory_lets_group_in(p, st))
        return hf__shm_keeps_out(s, p, p->dir, st, "1770");
    return rc;
}

int hf__shm_directory_open(struct shm *s, const struct shm_location *p)
{
    bool made = false;
    struct stat st;
    int rc = 0;

    if ((rc = hf__shm_parent_dirs_check(s, p)))
        return rc;
    if (p->existing)
        ;
    else if (!mkdir(p->dir, 0700))
        made = true;
    else if (errno == ENOENT)
        return hf__shm_no_parent(s, p);
    else if (errno != EEXIST)
        return hf__shm_refuse_errno(s, p->dir, "make the directory");
    s->dir_fd = hf__shm_open_soon(
        AT_FDCWD, p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, p);
    if (s->dir_fd < 0 && errno == ENOENT && p->existing)
        return hf__shm_absent(s);
    if (s->dir_fd < 0 || fstat(s->dir_fd, &st))
        return directory_refuse_dir(s, p);
    if (st.st_uid == geteuid() && !p->existing &&
        (made || directory_is_half_made(s, p, &st)))
        rc = directory_give_rights(s, p, &st);
    if (rc && made)
        rmdir(p->dir); /* its mode 0700 would lock the group out */
    if (rc || (rc = directory_await_rights(s, p, &st)) ||
        (rc = hf__shm_check_owner(s, p, p->dir, &st)))
        return rc;
    return directory_check_rights(s, p, &st);
}
