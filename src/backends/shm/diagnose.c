/* Who shares the file, where it is, and what may delete it. */
#include "shm.h"

#include <dirent.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOGIND "/etc/systemd/logind.conf"
#define SYSTEM_USER_MAX 999 /* of Debian, Fedora and systemd's default */

#define FIND(level, subject, ...)                                              \
    s->core->find(s->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

static void find_sharing(struct shm *s, struct hf__query *q,
                         const struct stat *st)
{
    if (st->st_mode & 020)
        FIND(OK, "sharing",
             "%s: user %u and the members of group %u share it, and each of "
             "them can break every lock",
             s->path, (unsigned)st->st_uid, (unsigned)st->st_gid);
    else
        FIND(OK, "sharing",
             "%s: processes of user %u share it. For several users: a "
             "directory with mode=0660&group= in the URL",
             s->path, (unsigned)st->st_uid);
}

/* Of RemoveIPC= in the file, if it is there. */
static void read_setting(const char *path, bool *removes)
{
    char line[256];
    FILE *f = fopen(path, "re");

    while (f && fgets(line, sizeof(line), f)) {
        const char *at = line + strspn(line, " \t");

        if (strncmp(at, "RemoveIPC", 9) != 0)
            continue;
        at += 9 + strspn(at + 9, " \t=");
        *removes = !*at || (!strchr("nNfF0", *at) && strncasecmp(at, "off", 3));
    }
    if (f)
        fclose(f);
}

/* The default of systemd is yes. Files of logind.conf.d count after it, in
 * their order. */
bool hf__shm_logind_removes(const char *conf)
{
    struct dirent **list = NULL;
    char path[512];
    bool removes = true;
    int n;

    snprintf(path, sizeof(path), "%s.d", conf);
    n = scandir(path, &list, NULL, alphasort);
    read_setting(conf, &removes);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(list[i]->d_name, '.');

        snprintf(path, sizeof(path), "%s.d/%s", conf, list[i]->d_name);
        if (dot && strcmp(dot, ".conf") == 0)
            read_setting(path, &removes);
        free(list[i]);
    }
    free(list);
    return removes;
}

static void find_logind(struct shm *s, struct hf__query *q,
                        const struct stat *st)
{
    if (strncmp(s->path, "/dev/shm/", 9) != 0)
        FIND(OK, "RemoveIPC", "the file is not in /dev/shm: logind leaves it");
    else if (st->st_uid <= SYSTEM_USER_MAX)
        FIND(OK, "RemoveIPC", "logind leaves files of system users alone");
    else if (access("/run/systemd/system", F_OK))
        FIND(OK, "RemoveIPC", "systemd does not run here");
    else if (hf__shm_logind_removes(LOGIND))
        FIND(WARNING, "RemoveIPC",
             "logind deletes the file when the last session of user %u ends, "
             "and all holds are lost. Set RemoveIPC=no in logind.conf, run "
             "loginctl enable-linger, or use another directory",
             (unsigned)st->st_uid);
    else
        FIND(OK, "RemoveIPC", "RemoveIPC=no: logind leaves the file");
}

static void find_place(struct shm *s, struct hf__query *q)
{
    struct statfs fs;

    if (fstatfs(s->fd, &fs))
        return;
    if (fs.f_type == NFS_SUPER_MAGIC || fs.f_type == SMB_SUPER_MAGIC ||
        fs.f_type == (long)0xff534d42 /* CIFS */)
        FIND(ERROR, "place",
             "%s is on a network file system: other machines do not see these "
             "locks. Use a local directory, or a server",
             s->path);
    else
        FIND(OK, "place",
             "processes of this machine share the locks; all are free after a "
             "restart of it");
}

static void find_waiting(struct shm *s, struct hf__query *q)
{
    if (atomic_load(&s->no_waitv))
        FIND(WARNING, "waiting",
             "futex_waitv(2) is not used (waitv=no, Linux before 5.16, or a "
             "seccomp filter): the death of a holder is seen later");
    else
        FIND(OK, "waiting", "waiters see the death of a holder at once");
}

int hf__shm_diagnose(struct shm *s, struct hf__query *q)
{
    struct stat st;

    if (fstat(s->fd, &st))
        return s->core->why(s->client, HF_EBACKEND, "%s: cannot be read",
                            s->path);
    find_sharing(s, q, &st);
    find_place(s, q);
    find_logind(s, q, &st);
    find_waiting(s, q);
    return HF__DONE;
}
