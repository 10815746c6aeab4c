/*
 * Where the file is: the URL's directory, or the user's own in /dev/shm. Whose
 * the directory and the file may be, and who may write to them.
 *
 * Everybody who may write to the file is trusted with the locks in it. So a
 * directory or a file that another user has put there for us is refused; one
 * for a group must be of a member of it.
 */
#include "location.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKUP_MAX                                                             \
    (1u << 20) /* bytes of a group: one may have many members                  \
                */

int hf__shm_refuse(struct shm *s, const char *what, const char *why)
{
    return s->core->why(s->client, HF_EBACKEND, "%s: %s", what, why);
}

int hf__shm_refuse_errno(struct shm *s, const char *what, const char *verb)
{
    return s->core->why(s->client, HF_EBACKEND, "%s: cannot %s: %s", what, verb,
                        strerror(errno));
}

int hf__shm_absent(struct shm *s)
{
    return s->core->why(s->client, HF_ENOTOWNER, "%s: nobody uses locks there",
                        s->path);
}

int hf__shm_no_parent(struct shm *s, const struct shm_location *p)
{
    if (p->existing)
        return hf__shm_absent(s);
    return hf__shm_refuse(s, p->dir,
                          "its parent does not exist; make that first");
}

/* ---- groups -------------------------------------------------------------- */

/* 0; ENOENT: there is none; or why it cannot be looked up. */
static int look_up_group(struct shm *s, const char *name, gid_t *gid)
{
    struct group group, *found = NULL;
    int rc = ERANGE;

    for (size_t len = 4096; rc == ERANGE && len <= LOOKUP_MAX; len *= 4) {
        char *buf = s->core->alloc(s->client, len);

        rc = buf ? getgrnam_r(name, &group, buf, len, &found) : ENOMEM;
        if (!rc && found)
            *gid = group.gr_gid;
        s->core->free(s->client, buf);
    }
    return rc || found ? rc : ENOENT;
}

static int refuse_group(struct shm *s, const char *name, int error)
{
    if (error == ENOMEM)
        return s->core->why(s->client, HF_ENOMEM, "out of memory");
    if (error == ENOENT || error == ESRCH)
        return s->core->why(s->client, HF_EINVAL,
                            "group=%s: no such group; it must be a name of "
                            "getent group, or a number",
                            name);
    return s->core->why(s->client, HF_EBACKEND,
                        "group=%s: cannot look it up: %s", name,
                        strerror(error));
}

static int find_group(struct shm *s, struct shm_location *p, const char *name)
{
    char *end;
    unsigned long gid = strtoul(name, &end, 10);
    int error;

    p->group_given = true;
    if (*name && !*end && gid < UINT_MAX) {
        p->group = (gid_t)gid;
        return 0;
    }
    error = look_up_group(s, name, &p->group);
    return error ? refuse_group(s, name, error) : 0;
}

static bool is_in(gid_t group, const gid_t *list, int len)
{
    for (int i = 0; i < len; i++)
        if (list[i] == group)
            return true;
    return false;
}

/* As the user database has it: as primary group or as another. */
static bool is_member(struct shm *s, uid_t user, gid_t group)
{
    struct passwd entry, *found = NULL;
    int groups = NGROUPS_MAX, rc = ERANGE;
    gid_t *list = s->core->alloc(s->client, (size_t)groups * sizeof(*list));
    bool yes = false;

    for (size_t len = 4096; list && rc == ERANGE && len <= LOOKUP_MAX;
         len *= 4) {
        char *buf = s->core->alloc(s->client, len);

        rc = buf ? getpwuid_r(user, &entry, buf, len, &found) : ENOMEM;
        if (!rc && found &&
            getgrouplist(found->pw_name, found->pw_gid, list, &groups) >= 0)
            yes = is_in(group, list, groups);
        s->core->free(s->client, buf);
    }
    s->core->free(s->client, list);
    return yes;
}

bool hf__shm_is_trusted(struct shm *s, const struct shm_location *p, uid_t user)
{
    return user == geteuid() || !user ||
           (p->group_given && is_member(s, user, p->group));
}

int hf__shm_location_find(struct shm *s, const struct hf__config *config,
                          struct shm_location *p)
{
    const struct hf__core *core = s->core;
    const char *mode = core->option(config->url, "mode");
    const char *group = core->option(config->url, "group");
    const char *waitv = core->option(config->url, "waitv");
    const char *path = config->url->path;
    size_t len = strlen(path);
    char *end;
    long bits;
    int rc;

    if (config->url->hosts_len && config->url->hosts[0].name[0])
        return core->why(s->client, HF_EINVAL,
                         "a directory is written shm:///directory, with three "
                         "slashes; there is no host");
    p->existing = config->existing;
    p->mode = 0600;
    if (mode) {
        bits = strtol(mode, &end, 8);
        if (!*mode || *end || (bits != 0600 && bits != 0660))
            return core->why(s->client, HF_EINVAL,
                             "mode=%s: must be 0600 or 0660", mode);
        p->mode = (mode_t)bits;
    }
    if (group && (rc = find_group(s, p, group)))
        return rc;
    if (group && !(p->mode & 020))
        return core->why(s->client, HF_EINVAL,
                         "group=%s: add mode=0660, without which the group may "
                         "not use the file",
                         group);
    if (waitv && strcmp(waitv, "yes") && strcmp(waitv, "no"))
        return core->why(s->client, HF_EINVAL, "waitv=%s: must be yes or no",
                         waitv);
    atomic_init(&s->no_waitv, waitv && waitv[0] == 'n');
    while (len > 1 && path[len - 1] == '/') /* else O_NOFOLLOW would follow */
        len--;
    p->is_default = !len;
    if (!len)
        snprintf(p->dir, sizeof(p->dir), "/dev/shm/holdfast-%u",
                 (unsigned)geteuid());
    else if (path[0] != '/' || len >= sizeof(p->dir))
        return core->why(s->client, HF_EINVAL,
                         "%s: must be shm:///directory, an absolute path of "
                         "less than %zu bytes",
                         path, sizeof(p->dir));
    else
        snprintf(p->dir, sizeof(p->dir), "%.*s", (int)len, path);
    snprintf(s->path, sizeof(s->path), "%s/" SHM_FILE_NAME, p->dir);
    return 0;
}

/* ---- owners -------------------------------------------------------------- */

static int refuse_stranger(struct shm *s, const struct shm_location *p,
                           const char *path, uid_t owner)
{
    if (p->is_default)
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: belongs to user %u, not to us (%u) or root: "
                            "that user has taken the place of our default "
                            "directory; ask root to remove it, or use another "
                            "one: shm:///directory",
                            path, (unsigned)owner, (unsigned)geteuid());
    if (p->group_given)
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: belongs to user %u, not to us (%u) or root, "
                            "and that user is not known as a member of the "
                            "group %u (getent passwd): remove it, or let root "
                            "or a member make it",
                            path, (unsigned)owner, (unsigned)geteuid(),
                            (unsigned)p->group);
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: belongs to user %u, not to us (%u) or root; "
                        "mode=0660&group= in the URL is for sharing it",
                        path, (unsigned)owner, (unsigned)geteuid());
}

/* Ours or root's; or, if the URL asks for a group, that of a member, given to
 * the group. The group alone says nothing: in a directory with the setgid bit
 * anybody's files have it. */
int hf__shm_check_owner(struct shm *s, const struct shm_location *p,
                        const char *path, const struct stat *st)
{
    if (st->st_uid == geteuid() || st->st_uid == 0 ||
        (st->st_gid == p->group && hf__shm_is_trusted(s, p, st->st_uid)))
        return 0;
    return refuse_stranger(s, p, path, st->st_uid);
}

int hf__shm_check_group(struct shm *s, const struct shm_location *p,
                        const char *path, const struct stat *st)
{
    if (!(st->st_mode & 020) || !p->group_given || st->st_gid == p->group)
        return 0;
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: its group %u may write to it; that must be the "
                        "group %u of group= in the URL",
                        path, (unsigned)st->st_gid, (unsigned)p->group);
}

int hf__shm_keeps_out(struct shm *s, const struct shm_location *p,
                      const char *path, const struct stat *st, const char *mode)
{
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: has mode %04o and group %u, which keeps out the "
                        "group %u of group= in the URL; chgrp %u and chmod %s "
                        "let it in",
                        path, (unsigned)st->st_mode & 07777,
                        (unsigned)st->st_gid, (unsigned)p->group,
                        (unsigned)p->group, mode);
}

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

static bool is_empty(int dir_fd)
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

/* The process that made it was killed before it gave it to the group. */
static bool is_half_made(const struct shm *s, const struct shm_location *p,
                         const struct stat *st)
{
    return (p->mode & 020) && (st->st_mode & 07777) == 0700 &&
           is_empty(s->dir_fd);
}

/* It is there, and cannot be opened. */
static int refuse_dir(struct shm *s, const struct shm_location *p)
{
    int error = errno;
    struct stat st;

    if (p->is_default && !lstat(p->dir, &st) && st.st_uid &&
        st.st_uid != geteuid())
        return refuse_stranger(s, p, p->dir, st.st_uid);
    errno = error;
    if (error == ELOOP || error == ENOTDIR)
        return hf__shm_refuse(s, p->dir,
                              "is a symbolic link or not a directory");
    return hf__shm_refuse_errno(s, p->dir, "open the directory");
}

/* With the sticky bit: members of the group may not remove what is not
 * theirs. */
static int give_rights(struct shm *s, const struct shm_location *p,
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

static bool lets_group_in(const struct shm_location *p, const struct stat *st)
{
    mode_t needed = st->st_gid == p->group ? 050 : 05;

    return !p->group_given || (st->st_mode & needed) == needed;
}

/* The process that made the directory may be about to give it to the group. */
static int await_rights(struct shm *s, const struct shm_location *p,
                        struct stat *st)
{
    struct timespec nap = {0, 10 * HF__MS};

    for (int i = 0; i < 10 && !lets_group_in(p, st); i++) {
        nanosleep(&nap, NULL);
        if (fstat(s->dir_fd, st))
            return hf__shm_refuse_errno(s, p->dir, "look at it");
    }
    return 0;
}

/* In a directory without the sticky bit each user who may write to it can
 * replace the file. */
static int check_rights(struct shm *s, const struct shm_location *p,
                        const struct stat *st)
{
    int rc;

    if (st->st_mode & 02)
        return hf__shm_refuse(s, p->dir,
                              "others may write to the directory; it must be "
                              "one that only its users may write to");
    if ((st->st_mode & 020) && !(p->mode & 020))
        return hf__shm_refuse(s, p->dir,
                              "its group may write to the directory "
                              "(mode=0660 in the URL allows that)");
    if ((st->st_mode & 020) && !(st->st_mode & S_ISVTX))
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: its group may write to the directory, which "
                            "must then have the sticky bit: chmod +t %s",
                            p->dir, p->dir);
    rc = hf__shm_check_group(s, p, p->dir, st);
    if (!rc && !lets_group_in(p, st))
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
        return refuse_dir(s, p);
    if (st.st_uid == geteuid() && !p->existing &&
        (made || is_half_made(s, p, &st)))
        rc = give_rights(s, p, &st);
    if (rc && made)
        rmdir(p->dir); /* with mode 0700 it would lock the group out */
    if (rc || (rc = await_rights(s, p, &st)) ||
        (rc = hf__shm_check_owner(s, p, p->dir, &st)))
        return rc;
    return check_rights(s, p, &st);
}
