/*
 * Checks who owns the directory and the file, and who may write to them.
 *
 * Every user who may write to the file is trusted with the locks in it.
 * Therefore a directory or a file is refused if another user has put it in the
 * place of ours. If a group shares it, a member of that group may own it.
 */
#include "access.h"

#include "location.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool access_is_in(gid_t group, const gid_t *list, int len)
{
    for (int i = 0; i < len; i++)
        if (list[i] == group)
            return true;
    return false;
}

/* Returns whether the user is a member of the group, primary or supplementary,
 * according to the user database. */
static bool access_is_member(struct shm *s, uid_t user, gid_t group)
{
    struct passwd entry, *found = NULL;
    int groups = NGROUPS_MAX, rc = ERANGE;
    gid_t *list = s->core->alloc(s->client, (size_t)groups * sizeof(*list));
    bool yes = false;

    for (size_t len = 4096; list && rc == ERANGE && len <= SHM_LOOKUP_MAX;
         len *= 4) {
        char *buf = s->core->alloc(s->client, len);

        rc = buf ? getpwuid_r(user, &entry, buf, len, &found) : ENOMEM;
        if (!rc && found &&
            getgrouplist(found->pw_name, found->pw_gid, list, &groups) >= 0)
            yes = access_is_in(group, list, groups);
        s->core->free(s->client, buf);
    }
    s->core->free(s->client, list);
    return yes;
}

bool hf__shm_is_trusted(struct shm *s, const struct shm_location *p, uid_t user)
{
    return user == geteuid() || !user ||
           (p->group_given && access_is_member(s, user, p->group));
}

int hf__shm_refuse_stranger(struct shm *s, const struct shm_location *p,
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

/* The owner must be our own user or root; or, if the URL names a group, a
 * member of that group who has given the file to the group. It is not enough
 * that the file has the right group: in a directory with the setgid bit, every
 * new file has the group of the directory, no matter which user creates it. */
int hf__shm_check_owner(struct shm *s, const struct shm_location *p,
                        const char *path, const struct stat *st)
{
    if (st->st_uid == geteuid() || st->st_uid == 0 ||
        (st->st_gid == p->group && hf__shm_is_trusted(s, p, st->st_uid)))
        return 0;
    return hf__shm_refuse_stranger(s, p, path, st->st_uid);
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
