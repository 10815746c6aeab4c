/*
 * Which users may own the file of shared memory and its directory.
 */
#include "shm_fixture.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

enum { USER = 4242, GROUP = 4343 }; /* neither ours */

/* Fakes of system calls and databases, so that the test can have other users
 * without being root: */
static ino_t strange; /* a file of USER */
static ino_t
    shared; /* a file of GROUP, the group with this name and this member: */
static char *group_name, *other_member;
static uid_t we;      /* our user id; 0: the real one */
static bool is_known; /* the user database has USER, with these groups: */
static gid_t first_group, second_group;
static size_t entry_len;  /* bytes that USER's entry needs */
static bool is_no_giving; /* we are not in the group */
static int group_error;   /* what the group database returns */

#define OVERRIDE __attribute__((visibility("default")))

OVERRIDE int fstat(int fd, struct stat *st)
{
    int rc = fstatat(fd, "", st, AT_EMPTY_PATH);

    if (!rc && st->st_ino == strange)
        st->st_uid = USER;
    return rc;
}

OVERRIDE int lstat(const char *path, struct stat *st)
{
    int rc = fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);

    if (!rc && st->st_ino == strange)
        st->st_uid = USER;
    if (!rc && st->st_ino == shared)
        st->st_gid = GROUP;
    return rc;
}

OVERRIDE uid_t geteuid(void)
{
    return we ? we : getuid();
}

OVERRIDE int getpwuid_r(uid_t uid, struct passwd *entry, char *buf, size_t len,
                        struct passwd **found)
{
    *found = NULL;
    if (len < entry_len)
        return ERANGE;
    *entry =
        (struct passwd){.pw_name = "us", .pw_uid = uid, .pw_gid = first_group};
    if (uid == USER)
        entry->pw_name = "user";
    *found = is_known || uid != USER ? entry : NULL;
    return 0;
}

OVERRIDE int getgrgid_r(gid_t gid, struct group *entry, char *buf, size_t len,
                        struct group **found)
{
    static char *members[2];

    members[0] = other_member;
    *entry =
        (struct group){.gr_name = group_name, .gr_gid = gid, .gr_mem = members};
    *found = gid == GROUP && group_name ? entry : NULL;
    return 0;
}

OVERRIDE int getgrouplist(const char *user, gid_t first, gid_t *list, int *len)
{
    assert_string_equal(user, "user");
    assert_true(*len >= 2);
    list[0] = first;
    list[1] = second_group;
    return *len = 2;
}

OVERRIDE int getgrnam_r(const char *name, struct group *entry, char *buf,
                        size_t len, struct group **found)
{
    *found = NULL;
    return group_error;
}

OVERRIDE int fchown(int fd, uid_t user, gid_t group)
{
    if (!is_no_giving)
        return fchownat(fd, "", user, group, AT_EMPTY_PATH);
    errno = EPERM;
    return -1;
}

static void assert_refused_if_strange(const struct place *p, const char *path)
{
    char text[200];
    struct stat st;

    make_file(p);
    OK(stat(path, &st));
    strange = st.st_ino;
    snprintf(text, sizeof(text), "%s: belongs to user %d", path, USER);
    assert_refused(p->url, HF_EBACKEND, text);
    strange = 0;
    make_file(p);
}

CASE_HERE(test_a_stranger_s_directory_is_refused)
{
    assert_refused_if_strange(p, p->dir);
}

CASE_HERE(test_a_stranger_s_file_is_refused)
{
    assert_refused_if_strange(p, p->file);
}

/* The directory or the file belongs to our group, and was made by a user with
 * these groups. */
static void opened_if_a_member_made_it(const struct place *p, const char *path,
                                       gid_t first, gid_t second, bool is_good)
{
    char url[200], text[200];
    struct stat st;

    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    OK(stat(path, &st));
    strange = st.st_ino;
    first_group = first;
    second_group = second;
    if (is_good) {
        close_client(open_client(url));
    } else {
        snprintf(text, sizeof(text),
                 "%s: belongs to user %d, not to us (%u) or root, and that "
                 "user is not known as a member of the group %u",
                 path, USER, (unsigned)geteuid(), (unsigned)getegid());
        assert_refused(url, HF_EBACKEND, text);
    }
    strange = 0;
}

/* In a directory with the setgid bit any user can make files of our group. */
CASE_HERE(test_a_group_s_file_is_of_a_member)
{
    const char *path[] = {p->dir, p->file};
    gid_t ours = getegid(), other = ours + 1;
    char url[200];

    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url, (unsigned)ours);
    rmdir(p->dir);
    close_client(open_client(url));
    for (int i = 0; i < 2; i++) {
        is_known = true;
        opened_if_a_member_made_it(p, path[i], other, other, false);
        opened_if_a_member_made_it(p, path[i], ours, other, true);
        opened_if_a_member_made_it(p, path[i], other, ours, true);
        entry_len = 5000;
        opened_if_a_member_made_it(p, path[i], ours, other, true);
        entry_len = 0;
        is_known = false;
        opened_if_a_member_made_it(p, path[i], ours, ours, false);
    }
}

CASE_HERE(test_a_group_that_may_write_is_that_of_the_url)
{
    char ours[200], other[200], text[200];

    snprintf(ours, sizeof(ours), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    snprintf(other, sizeof(other), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid() + 1);
    rmdir(p->dir);
    close_client(open_client(ours));
    snprintf(text, sizeof(text), "%s: its group %u may write", p->dir,
             (unsigned)getegid());
    assert_refused(other, HF_EBACKEND, text);
    OK(chmod(p->dir, 0755));
    snprintf(text, sizeof(text), "%s: its group %u may write", p->file,
             (unsigned)getegid());
    assert_refused(other, HF_EBACKEND, text);
    close_client(open_client(ours));
}

CASE_HERE(test_a_group_s_directory_has_the_sticky_bit)
{
    char url[200], text[200];

    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    snprintf(text, sizeof(text), "chmod +t %s", p->dir);
    OK(chmod(p->dir, 0770));
    assert_refused(url, HF_EBACKEND, text);
    OK(chmod(p->dir, 01770));
    close_client(open_client(url));
}

/* Otherwise only the owner could use it, and members of the group would just
 * see "permission denied". */
CASE_HERE(test_a_group_s_directory_lets_it_in)
{
    char url[200], text[200];

    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    snprintf(text, sizeof(text),
             "%s: has mode 0700 and group %u, which keeps out the group %u",
             p->dir, (unsigned)getegid(), (unsigned)getegid());
    OK(chmod(p->dir, 0700));
    close_client(open_client(p->url)); /* from here on it has a file */
    assert_refused(url, HF_EBACKEND, text);
    OK(chmod(p->dir, 0711)); /* members must be able to open it */
    snprintf(text, sizeof(text), "%s: has mode 0711 and", p->dir);
    assert_refused(url, HF_EBACKEND, text);
    OK(chmod(p->dir, 0750));
    snprintf(text, sizeof(text), "%s: has mode 0600 and", p->file);
    assert_refused(url, HF_EBACKEND, text);
    OK(chmod(p->file, 0660));
    close_client(open_client(url));
}

/* A file that stayed ours would keep the members of the group out. */
CASE_HERE(test_what_cannot_be_given_is_not_left)
{
    char url[200];

    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    is_no_giving = true;
    OK(rmdir(p->dir));
    assert_refused(url, HF_EBACKEND, "give it to the group");
    assert_int_equal(access(p->dir, F_OK), -1);
    OK(mkdir(p->dir, 0700));
    OK(chmod(p->dir, 01770));
    assert_refused(url, HF_EBACKEND, "give it to the group");
    assert_int_equal(access(p->file, F_OK), -1);
    close(creat(p->file, 0600)); /* made by a process of ours that was killed */
    assert_refused(url, HF_EBACKEND, "give it to the group");
    assert_int_equal(access(p->file, F_OK), -1);
    is_no_giving = false;
    close_client(open_client(url));
}

CASE_HERE(test_a_group_that_cannot_be_looked_up)
{
    char url[200];

    snprintf(url, sizeof(url), "%s?mode=0660&group=app", p->url);
    group_error = 0;
    assert_refused(url, HF_EINVAL, "no such group");
    group_error = ENOENT;
    assert_refused(url, HF_EINVAL, "no such group");
    group_error = ENOMEM;
    assert_refused(url, HF_ENOMEM, "out of memory");
    group_error = EIO;
    assert_refused(url, HF_EBACKEND, strerror(EIO));
    group_error = ERANGE; /* for a buffer of any size */
    assert_refused(url, HF_EBACKEND, strerror(ERANGE));
}

/* Any user may have made the default directory before us. */
CASE_HERE(test_a_taken_default_directory_is_told)
{
    char path[64], text[200];
    struct stat st;

    we = 1000000000 + (uid_t)getpid(); /* a user id that is not in use */
    snprintf(path, sizeof(path), "/dev/shm/holdfast-%u", (unsigned)we);
    snprintf(text, sizeof(text), "%s: belongs to user %d, not to us (%u)", path,
             USER, (unsigned)we);
    OK(mkdir(path, 0700));
    OK(stat(path, &st));
    strange = st.st_ino;
    assert_refused("shm:", HF_EBACKEND, text);
    assert_refused("shm:", HF_EBACKEND, "ask root to remove it");
    assert_refused("shm:", HF_EBACKEND, "shm:///directory");
    OK(rmdir(path));
    OK(symlink("/tmp", path));
    OK(lstat(path, &st));
    strange = st.st_ino;
    assert_refused("shm:", HF_EBACKEND, text);
    OK(unlink(path));
    we = 0;
    strange = 0;
}

/* Opens a directory below ours, and expects the text that refuses ours, or
 * success if it is NULL. */
static void below_is_refused(const struct place *p, const char *text)
{
    char dir[100], file[120], url[200], full[200];

    snprintf(dir, sizeof(dir), "%s/below", p->dir);
    snprintf(file, sizeof(file), "%s/locks", dir);
    snprintf(url, sizeof(url), "shm://%s", dir);
    if (text) {
        snprintf(full, sizeof(full), "%s: %s", p->dir, text);
        assert_refused(url, HF_EBACKEND, full);
        assert_int_equal(access(dir, F_OK), -1); /* it was not made */
        return;
    }
    close_client(open_client(url));
    OK(unlink(file));
    OK(rmdir(dir));
}

CASE_HERE(test_a_parent_that_others_may_write_is_sticky)
{
    OK(chmod(p->dir, 0777));
    below_is_refused(p, "others may write to it");
    OK(chmod(p->dir, 01777));
    below_is_refused(p, NULL);
    OK(chmod(p->dir, 0755));
    below_is_refused(p, NULL);
}

CASE_HERE(test_a_parent_that_its_group_may_write)
{
    struct stat st;

    OK(stat(p->dir, &st));
    OK(chmod(p->dir, 0770));
    shared = st.st_ino;
    group_name = NULL;
    below_is_refused(p, "its group 4343 may write to it");
    group_name = "staff";
    below_is_refused(p, "its group 4343 may write to it");
    group_name = "us"; /* a private group */
    below_is_refused(p, NULL);
    other_member = "us";
    below_is_refused(p, NULL);
    other_member = "user";
    below_is_refused(p, "its group 4343 may write to it");
    OK(chmod(p->dir, 01770));
    below_is_refused(p, NULL);
    shared = 0;
    group_name = other_member = NULL;
}

/* The members of that group may write to the locks as well. */
CASE_HERE(test_a_parent_of_the_group_of_the_url)
{
    char dir[100], file[120], url[200];

    snprintf(dir, sizeof(dir), "%s/below", p->dir);
    snprintf(file, sizeof(file), "%s/locks", dir);
    snprintf(url, sizeof(url), "shm://%s?mode=0660&group=%u", dir,
             (unsigned)getegid());
    OK(chmod(p->dir, 02770));
    close_client(open_client(url));
    OK(unlink(file));
    OK(rmdir(dir));
}

CASE_HERE(test_a_parent_of_a_stranger_is_refused)
{
    struct stat st;

    OK(stat(p->dir, &st));
    strange = st.st_ino;
    OK(chmod(p->dir, 01777)); /* its owner may rename files of other users */
    below_is_refused(p, "belongs to user 4242");
    strange = 0;
    below_is_refused(p, NULL);
}

/* Root of a namespace without other users: files of the machine's root, such as
 * /, have an unknown owner there. */
CASE_HERE(test_the_owner_of_the_root_directory_is_trusted)
{
    struct stat st;

    OK(stat("/", &st));
    strange = st.st_ino;
    below_is_refused(p, NULL);
    strange = 0;
}

/* The directories of symbolic links on the path count, and those above their
 * targets. */
CASE_HERE(test_links_above_are_followed)
{
    char open[80], target[90], link[120], again[80], url[200];
    struct stat st;

    snprintf(open, sizeof(open), "%s/open", p->dir);
    snprintf(target, sizeof(target), "%s/target", open);
    snprintf(link, sizeof(link), "%s/link", p->dir);
    snprintf(again, sizeof(again), "%s/again", p->dir);
    snprintf(url, sizeof(url), "shm://%s/below", again);
    OK(mkdir(open, 0700));
    OK(mkdir(target, 0700));
    OK(symlink("open/target", link));
    OK(symlink(link, again));
    close_client(open_client(url));
    OK(chmod(open, 0777));
    assert_refused(url, HF_EBACKEND, open);
    OK(chmod(open, 0700));
    OK(lstat(link, &st));
    strange = st.st_ino;
    assert_refused(url, HF_EBACKEND, link);
    strange = 0;
    OK(unlink(link));
    OK(symlink("again", link));
    assert_refused(url, HF_EBACKEND, "too many symbolic links");
    OK(unlink(link));
    OK(unlink(again));
    snprintf(link, sizeof(link), "%s/below/locks", target);
    OK(unlink(link));
    snprintf(link, sizeof(link), "%s/below", target);
    OK(rmdir(link));
    OK(rmdir(target));
    OK(rmdir(open));
}

CASES_MAIN(NULL, NULL);
