#include "diagnose.h"

#include <dirent.h>
#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOGIND "/etc/systemd/logind.conf"
#define LINGER "/var/lib/systemd/linger"
/* size limit in bytes for an entry of the user or group database */
#define LOOKUP ((size_t)64 << 10)
/* the highest user id that counts as a system user; the default of Debian,
 * Fedora and systemd */
#define SYSTEM_USER_MAX 999

#define FIND(level, subject, ...)                                              \
    s->core->find(s->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

/* Writes "ann (1000)", or only the number if the user has no name. */
static void diagnose_name_user(struct shm *s, uid_t uid, char *to, size_t size)
{
    struct passwd entry, *found = NULL;
    char *buf = s->core->alloc(s->client, LOOKUP);

    snprintf(to, size, "%u", (unsigned)uid);
    if (buf && !getpwuid_r(uid, &entry, buf, LOOKUP, &found) && found)
        snprintf(to, size, "%s (%u)", found->pw_name, (unsigned)uid);
    s->core->free(s->client, buf);
}

/* Writes "locks (1001: ann, bob)". Users who have the group only as their
 * primary group are not listed. */
static void diagnose_name_group(struct shm *s, gid_t gid, char *to, size_t size)
{
    struct group entry, *found = NULL;
    char *buf = s->core->alloc(s->client, LOOKUP);
    const char *between = ": ";
    size_t len;

    snprintf(to, size, "%u", (unsigned)gid);
    if (!buf || getgrgid_r(gid, &entry, buf, LOOKUP, &found) || !found) {
        s->core->free(s->client, buf);
        return;
    }
    len =
        (size_t)snprintf(to, size, "%.64s (%u", found->gr_name, (unsigned)gid);
    for (char **m = found->gr_mem; *m && len + 80 < size; m++) {
        len += (size_t)snprintf(to + len, size - len, "%s%.64s", between, *m);
        between = ", ";
    }
    snprintf(to + len, size - len, ")");
    s->core->free(s->client, buf);
}

static void diagnose_find_sharing(struct shm *s, struct hf__query *q,
                                  const struct stat *st)
{
    char user[96], group[360];

    diagnose_name_user(s, st->st_uid, user, sizeof(user));
    diagnose_name_group(s, st->st_gid, group, sizeof(group));
    if (st->st_mode & 020)
        FIND(OK, "sharing",
             "%s: user %s and the members of group %s share it, and each of "
             "them can break every lock",
             s->path, user, group);
    else
        FIND(OK, "sharing",
             "%s: processes of user %s share it, and no others. For several "
             "users, use a directory with mode=0660&group= in the URL",
             s->path, user);
}

/* Reads the RemoveIPC= setting from the file, if the file exists. */
static void diagnose_read_setting(const char *path, bool *removes)
{
    char text[256];
    FILE *f = fopen(path, "re");

    while (f && fgets(text, sizeof(text), f)) {
        const char *at = text + strspn(text, " \t");

        if (strncmp(at, "RemoveIPC", 9) != 0)
            continue;
        at += 9 + strspn(at + 9, " \t=");
        *removes = !*at || (!strchr("nNfF0", *at) && strncasecmp(at, "off", 3));
    }
    if (f)
        fclose(f);
}

/* If no RemoveIPC= setting is found, logind's default applies: it deletes the
 * files of users who log out. The configuration files in the directory
 * logind.conf.d are read after logind.conf, in alphabetical order of their
 * names, and the last setting counts. */
bool hf__shm_logind_removes(const char *conf)
{
    struct dirent **list = NULL;
    char path[512];
    bool removes = true;
    int n;

    snprintf(path, sizeof(path), "%s.d", conf);
    n = scandir(path, &list, NULL, alphasort);
    diagnose_read_setting(conf, &removes);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(list[i]->d_name, '.');

        snprintf(path, sizeof(path), "%s.d/%s", conf, list[i]->d_name);
        if (dot && strcmp(dot, ".conf") == 0)
            diagnose_read_setting(path, &removes);
        free(list[i]);
    }
    free(list);
    return removes;
}

bool hf__shm_lingers(const char *dir, uid_t uid)
{
    struct passwd entry, *found = NULL;
    char buf[8192], path[512];

    if (getpwuid_r(uid, &entry, buf, sizeof(buf), &found) || !found)
        return false;
    snprintf(path, sizeof(path), "%s/%s", dir, found->pw_name);
    return access(path, F_OK) == 0;
}

static void diagnose_find_logind(struct shm *s, struct hf__query *q,
                                 const struct stat *st)
{
    if (strncmp(s->path, "/dev/shm/", 9) != 0)
        FIND(OK, "RemoveIPC", "the file is not in /dev/shm: logind leaves it");
    else if (st->st_uid <= SYSTEM_USER_MAX)
        FIND(OK, "RemoveIPC", "logind does not delete files of system users");
    else if (access("/run/systemd/system", F_OK))
        FIND(OK, "RemoveIPC", "systemd does not run here");
    else if (hf__shm_lingers(LINGER, st->st_uid))
        FIND(OK, "RemoveIPC",
             "user %u lingers (loginctl enable-linger): "
             "logind leaves the file",
             (unsigned)st->st_uid);
    else if (hf__shm_logind_removes(LOGIND))
        FIND(WARNING, "RemoveIPC",
             "logind deletes the file when the last session of user %u ends, "
             "and all holds are lost. Set RemoveIPC=no in logind.conf, run "
             "loginctl enable-linger, or use another directory",
             (unsigned)st->st_uid);
    else
        FIND(OK, "RemoveIPC", "RemoveIPC=no: logind leaves the file");
}

static void diagnose_find_place(struct shm *s, struct hf__query *q,
                                const struct stat *st)
{
    long long mb = (long long)st->st_size >> 20;
    struct statfs fs;

    if (fstatfs(s->fd, &fs))
        return;
    if (fs.f_type == NFS_SUPER_MAGIC || fs.f_type == SMB_SUPER_MAGIC ||
        fs.f_type == (long)0xff534d42 /* CIFS */)
        FIND(ERROR, "place",
             "%s is on a network file system: other machines do not see these "
             "locks. Use a local directory, or a server",
             s->path);
    else if (fs.f_type == TMPFS_MAGIC)
        FIND(OK, "place",
             "processes of this machine share the locks: %lld MB in memory "
             "(tmpfs), allocated in full",
             mb);
    else
        FIND(OK, "place",
             "processes of this machine share the locks: %lld MB on a disk, "
             "allocated in full. A lock may wait while the kernel writes them: "
             "a directory on tmpfs is faster",
             mb);
}

static void diagnose_find_waiting(struct shm *s, struct hf__query *q)
{
    if (atomic_load(&s->no_waitv))
        FIND(WARNING, "waiting",
             "futex_waitv(2) is not used (waitv=no, Linux before 5.16, or a "
             "seccomp filter): the death of a holder is seen later");
    else
        FIND(OK, "waiting",
             "the kernel tells waiters of the death of a holder");
}

int hf__shm_diagnose(struct shm *s, struct hf__query *q)
{
    struct stat st;

    if (fstat(s->fd, &st))
        return s->core->why(s->client, HF_EBACKEND, "%s: cannot be read",
                            s->path);
    FIND(OK, HF__PROMISE,
         "a process loses its hold %s after it dies, and keeps it while it is "
         "stopped; a restart of this machine frees all locks",
         atomic_load(&s->no_waitv) ? "some time" : "within 100 ms");
    diagnose_find_sharing(s, q, &st);
    diagnose_find_place(s, q, &st);
    diagnose_find_logind(s, q, &st);
    diagnose_find_waiting(s, q);
    return HF__DONE;
}
