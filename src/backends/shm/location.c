/*
 * Finds the directory of the file: the one in the URL, or else the user's own
 * below /dev/shm. Also writes the messages with which a location is refused.
 */
#include "location.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return s->core->why(s->client, HF_ENOTOWNER,
                        "%s: no locks are in use there", s->path);
}

int hf__shm_no_parent(struct shm *s, const struct shm_location *p)
{
    return hf__shm_refuse(s, p->dir,
                          "its parent does not exist; make that first");
}

/* Returns 0; ENOENT if the group does not exist; or the reason why the lookup
 * failed. */
static int location_look_up_group(struct shm *s, const char *name, gid_t *gid)
{
    struct group group, *found = NULL;
    int rc = ERANGE;

    for (size_t len = 4096; rc == ERANGE && len <= SHM_LOOKUP_MAX; len *= 4) {
        char *buf = s->core->alloc(s->client, len);

        rc = buf ? getgrnam_r(name, &group, buf, len, &found) : ENOMEM;
        if (!rc && found)
            *gid = group.gr_gid;
        s->core->free(s->client, buf);
    }
    return rc || found ? rc : ENOENT;
}

static int location_refuse_group(struct shm *s, const char *name, int error)
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

static int location_find_group(struct shm *s, struct shm_location *p,
                               const char *name)
{
    char *end;
    unsigned long gid = strtoul(name, &end, 10);
    int error;

    p->group_given = true;
    if (*name && !*end && gid < UINT_MAX) {
        p->group = (gid_t)gid;
        return 0;
    }
    error = location_look_up_group(s, name, &p->group);
    return error ? location_refuse_group(s, name, error) : 0;
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
    if (group && (rc = location_find_group(s, p, group)))
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
    /* If a slash follows the name of a symbolic link, O_NOFOLLOW does not
     * prevent the kernel from following the link. */
    while (len > 1 && path[len - 1] == '/')
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
