/* What hf_diagnose() says of shared memory. */
#include "../../../lib/diagnosis.h"
#include "shm_fixture.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>

bool hf__shm_logind_removes(const char *conf); /* diagnose.h */
bool hf__shm_lingers(const char *dir, uid_t);

/* "members of group NAME (GID" */
static const char *group_text(void)
{
    static char text[128];
    const struct group *g = getgrgid(getegid());

    assert_non_null(g);
    snprintf(text, sizeof(text), "group %s (%u", g->gr_name,
             (unsigned)getegid());
    return text;
}

CASE_HERE(test_diagnose_says_who_shares_it)
{
    char url[200];
    hf_client *c = open_client(p->url);

    diagnosis_says(c, HF_LEVEL_OK, "sharing", "processes of user");
    diagnosis_says(c, HF_LEVEL_OK, "place", "this machine");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "released");
    diagnosis_says(c, HF_LEVEL_OK, "latency", "ms");
    close_client(c);
    OK(unlink(p->file));
    OK(rmdir(p->dir));
    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    c = open_client(url);
    diagnosis_says(c, HF_LEVEL_OK, "sharing", "members of group");
    diagnosis_says(c, HF_LEVEL_OK, "sharing", group_text());
}

/* In memory, and on a disk, if this machine has both. */
CASE_HERE(test_diagnose_says_where_it_is)
{
    hf_client *c = open_client(p->url);
    struct statfs fs;

    OK(statfs(p->file, &fs));
    diagnosis_says(c, HF_LEVEL_OK, "place",
                   fs.f_type == TMPFS_MAGIC ? "tmpfs" : "on a disk");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "within 100 ms");
}

CASE_HERE(test_diagnose_sees_who_lingers)
{
    const struct passwd *me = getpwuid(getuid());
    char path[200];

    assert_non_null(me);
    assert_false(hf__shm_lingers(p->dir, getuid()));
    assert_false(hf__shm_lingers(p->dir, (uid_t)-2)); /* there is no such */
    snprintf(path, sizeof(path), "%s/%s", p->dir, me->pw_name);
    OK(close(open(path, O_CREAT | O_WRONLY, 0600)));
    assert_true(hf__shm_lingers(p->dir, getuid()));
    OK(unlink(path));
}

CASE_HERE(test_diagnose_says_how_waiters_sleep)
{
    char url[200];
    hf_client *c;

    snprintf(url, sizeof(url), "%s?waitv=no", p->url);
    c = open_client(url);
    diagnosis_says(c, HF_LEVEL_WARNING, "waiting", "futex_waitv");
}

static bool removes(const char *dir, const char *file, const char *text)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    snprintf(path, sizeof(path), "%s/logind.conf", dir);
    return hf__shm_logind_removes(path);
}

CASE_HERE(test_diagnose_reads_the_setting_of_logind)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/logind.conf", p->dir);
    assert_true(hf__shm_logind_removes(path)); /* systemd's default */
    assert_true(removes(p->dir, "logind.conf", "[Login]\n#RemoveIPC=no\n"));
    assert_false(removes(p->dir, "logind.conf", "[Login]\nRemoveIPC=no\n"));
    assert_false(removes(p->dir, "logind.conf", "RemoveIPC = off\n"));
    assert_true(removes(p->dir, "logind.conf", "RemoveIPC=yes\n"));
    snprintf(path, sizeof(path), "%s/logind.conf.d", p->dir);
    OK(mkdir(path, 0700));
    assert_true(removes(p->dir, "logind.conf.d/a.txt", "RemoveIPC=no\n"));
    assert_false(removes(p->dir, "logind.conf.d/a.conf", "RemoveIPC=no\n"));
    assert_true(removes(p->dir, "logind.conf.d/b.conf", "RemoveIPC=on\n"));
    for (int i = 0; i < 4; i++) {
        static const char *const files[] = {
            "logind.conf.d/a.txt", "logind.conf.d/a.conf",
            "logind.conf.d/b.conf", "logind.conf"};

        snprintf(path, sizeof(path), "%s/%s", p->dir, files[i]);
        OK(unlink(path));
    }
    snprintf(path, sizeof(path), "%s/logind.conf.d", p->dir);
    OK(rmdir(path));
}

CASES_MAIN(NULL, NULL);
