/*
 * Checks the directories above ours, from / downwards. A user who may rename
 * the entries of one of them can move our directory away while it is in use;
 * the next client would then create another directory, with its own locks.
 * Therefore each of these directories, and each symbolic link on the way, must
 * belong to a user who is trusted with the locks. No other user may have write
 * access, unless the sticky bit prevents renaming what belongs to others (as in
 * /tmp and /dev/shm).
 *
 * The trusted users are root, the user of this process, the owner of / and, if
 * the URL names a group, its members. (In a user namespace without its own
 * root, / belongs to the overflow user (65534), as does everything that belongs
 * to the machine's root.)
 *
 * A group may write to one of these directories if the group is root's group,
 * the group of the URL, or a private group: one that has the name of our user
 * and no other members, as many distributions create for each user.
 */
#include "parent_dirs.h"

#include "access.h"
#include "location.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYMLINKS_MAX 40 /* as many as the kernel follows */
#define LOOKUP ((size_t)64 << 10)

static bool dirs_is_private_group(struct shm *s, gid_t gid)
{
    struct passwd user, *us = NULL;
    struct group group, *found = NULL;
    char *buf = s->core->alloc(s->client, 2 * LOOKUP);
    bool yes = buf && !getpwuid_r(geteuid(), &user, buf, LOOKUP, &us) && us &&
               !getgrgid_r(gid, &group, buf + LOOKUP, LOOKUP, &found) &&
               found && !strcmp(us->pw_name, found->gr_name);

    for (char **m = yes ? found->gr_mem : NULL; m && *m; m++)
        yes = yes && !strcmp(*m, us->pw_name);
    s->core->free(s->client, buf);
    return yes;
}

static int dirs_refuse_writers(struct shm *s, const char *path,
                               const char *whose, const char *mode)
{
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: %s may write to it, and can rename what is below "
                        "it: chmod +t or chmod %s %s, or use another "
                        "directory: shm:///directory",
                        path, whose, mode, path);
}

static int dirs_check_one(struct shm *s, const struct shm_location *p,
                          const char *path, const struct stat *st,
                          uid_t root_owner)
{
    char group[40];

    if (st->st_uid != root_owner && !hf__shm_is_trusted(s, p, st->st_uid))
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: belongs to user %u, not to us (%u) or root: "
                            "that user can rename what is below it; use "
                            "another directory: shm:///directory",
                            path, (unsigned)st->st_uid, (unsigned)geteuid());
    if (!S_ISDIR(st->st_mode) || (st->st_mode & S_ISVTX))
        return 0;
    if (st->st_mode & 02)
        return dirs_refuse_writers(s, path, "others", "o-w");
    if (!(st->st_mode & 020) || !st->st_gid ||
        (p->group_given && st->st_gid == p->group) ||
        dirs_is_private_group(s, st->st_gid))
        return 0;
    snprintf(group, sizeof(group), "its group %u", (unsigned)st->st_gid);
    return dirs_refuse_writers(s, path, group, "g-w");
}

/* Replaces the symbolic link that is the first `len` bytes of the path with its
 * target. Returns HF__PENDING, or a code. */
static int dirs_follow(struct shm *s, char path[PATH_MAX], size_t len)
{
    char symlink_path[PATH_MAX], all[PATH_MAX];
    size_t start = len;
    ssize_t n;

    snprintf(symlink_path, sizeof(symlink_path), "%.*s", (int)len, path);
    n = readlink(symlink_path, all, sizeof(all) - 1);
    if (n < 0)
        return hf__shm_refuse_errno(s, symlink_path, "read the link");
    while (path[start - 1] != '/')
        start--;
    if (all[0] == '/')
        start = 0;
    if (start + (size_t)n + strlen(path + len) >= PATH_MAX)
        return hf__shm_refuse(s, symlink_path,
                              "leads to a path that is too long");
    memmove(path + start + n, path + len, strlen(path + len) + 1);
    memcpy(path + start, all, (size_t)n);
    return HF__PENDING;
}

/* Checks each directory of the path. Returns 0; HF__PENDING if it has replaced
 * a symbolic link in the path, which must then be checked again; or a code. */
static int dirs_check_from_root(struct shm *s, const struct shm_location *p,
                                char path[PATH_MAX])
{
    uid_t root_owner = 0;
    size_t len = 1;
    int rc = 0;

    while (!rc) {
        char after = path[len];
        struct stat st;

        path[len] = '\0';
        if (lstat(path, &st))
            return errno == ENOENT
                       ? hf__shm_no_parent(s, p)
                       : hf__shm_refuse_errno(s, path, "look at it");
        if (len == 1)
            root_owner = st.st_uid;
        rc = dirs_check_one(s, p, path, &st, root_owner);
        path[len] = after;
        if (!rc && S_ISLNK(st.st_mode))
            return dirs_follow(s, path, len);
        len += strspn(path + len, "/");
        if (!path[len])
            break;
        len += strcspn(path + len, "/");
    }
    return rc;
}

int hf__shm_parent_dirs_check(struct shm *s, const struct shm_location *p)
{
    char path[PATH_MAX];
    int rc = HF__PENDING;

    snprintf(path, sizeof(path), "%s", p->dir);
    *(strrchr(path, '/') + 1) = '\0';
    for (int i = 0; rc == HF__PENDING && i <= SYMLINKS_MAX; i++)
        rc = dirs_check_from_root(s, p, path);
    return rc == HF__PENDING
               ? hf__shm_refuse(s, p->dir, "has too many symbolic links above")
               : rc;
}
