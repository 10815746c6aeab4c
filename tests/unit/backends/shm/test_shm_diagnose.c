/* What hf_diagnose() reports about shared memory. */
#include "../../../lib/diagnosis.h"
#include "shm_fixture.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/vfs.h>

bool hf__shm_logind_removes(const char *conf); /* diagnose.h */
bool hf__shm_lingers(const char *dir, uid_t);

/* Returns "group NAME (GID", without the closing parenthesis. */
static const char *group_text(void)
{
    const struct group *g = getgrgid(getegid());

    assert_non_null(g);
    return text_of("group %s (%u", g->gr_name, (unsigned)getegid());
}

CASE_HERE(test_diagnose_says_who_shares_it)
{
    hf_client *c = open_client(p->url);

    diagnosis_says(c, HF_LEVEL_OK, "sharing", "processes of user");
    diagnosis_says(c, HF_LEVEL_OK, "place", "this machine");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "released");
    diagnosis_says(c, HF_LEVEL_OK, "latency", "ms");
    close_client(c);
    OK(unlink(p->file));
    OK(rmdir(p->dir));
    c = open_client(group_url(p));
    diagnosis_says(c, HF_LEVEL_OK, "sharing", "members of group");
    diagnosis_says(c, HF_LEVEL_OK, "sharing", group_text());
}

/* The finding says whether the file is in memory or on a disk. */
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
    const char *path;

    assert_non_null(me);
    assert_false(hf__shm_lingers(p->dir, getuid()));
    assert_false(hf__shm_lingers(p->dir, (uid_t)-2)); /* no such user */
    path = text_of("%s/%s", p->dir, me->pw_name);
    OK(close(open(path, O_CREAT | O_WRONLY, 0600)));
    assert_true(hf__shm_lingers(p->dir, getuid()));
    OK(unlink(path));
}

CASE_HERE(test_diagnose_says_how_waiters_sleep)
{
    diagnosis_says(open_client(text_of("%s?waitv=no", p->url)),
                   HF_LEVEL_WARNING, "waiting", "futex_waitv");
}

static bool removes(const char *dir, const char *file, const char *text)
{
    FILE *f = fopen(text_of("%s/%s", dir, file), "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return hf__shm_logind_removes(text_of("%s/logind.conf", dir));
}

CASE_HERE(test_diagnose_reads_the_setting_of_logind)
{
    static const char *const files[] = {"logind.conf.d/a.txt",
                                        "logind.conf.d/a.conf",
                                        "logind.conf.d/b.conf", "logind.conf"};
    const char *drop_ins = text_of("%s/logind.conf.d", p->dir);

    /* Without a configuration file systemd's default applies: logind removes
     * the file. */
    assert_true(hf__shm_logind_removes(text_of("%s/logind.conf", p->dir)));
    assert_true(removes(p->dir, "logind.conf", "[Login]\n#RemoveIPC=no\n"));
    assert_false(removes(p->dir, "logind.conf", "[Login]\nRemoveIPC=no\n"));
    assert_false(removes(p->dir, "logind.conf", "RemoveIPC = off\n"));
    assert_true(removes(p->dir, "logind.conf", "RemoveIPC=yes\n"));
    OK(mkdir(drop_ins, 0700));
    assert_true(removes(p->dir, "logind.conf.d/a.txt", "RemoveIPC=no\n"));
    assert_false(removes(p->dir, "logind.conf.d/a.conf", "RemoveIPC=no\n"));
    assert_true(removes(p->dir, "logind.conf.d/b.conf", "RemoveIPC=on\n"));
    for (int i = 0; i < 4; i++)
        OK(unlink(text_of("%s/%s", p->dir, files[i])));
    OK(rmdir(drop_ins));
}

CASES_MAIN(NULL, NULL);
