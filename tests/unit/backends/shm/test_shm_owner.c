/*
 * Which users may own the file of shared memory and its directory.
 */
#include "shm_fixture.h"

#include <grp.h>
#include <pwd.h>

enum { USER = 4242, GROUP = 4343 }; /* neither ours */

/* State of the fakes of system calls and user databases. With them the test has
 * other users without being root. */
static ino_t strange;                   /* inode of a file of USER */
static ino_t shared;                    /* inode of a file of GROUP */
static char *group_name, *other_member; /* name and member of GROUP */
static uid_t we;                        /* our user id; 0: the real one */
static bool is_known;                   /* the user database has USER */
static gid_t first_group, second_group; /* groups of USER */
static size_t entry_len;                /* size that an entry of the user
                                           database needs */
static bool is_no_giving;               /* fchown() fails */
static int group_error;                 /* result of getgrnam_r() */

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

static ino_t inode_of(const char *path)
{
    struct stat st;

    OK(lstat(path, &st));
    return st.st_ino;
}

static void assert_refused_if_strange(const struct locks_place *p,
                                      const char *path)
{
    make_file(p);
    strange = inode_of(path);
    assert_refused(p->url, HF_EBACKEND,
                   text_of("%s: belongs to user %d", path, USER));
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

/* Opens a client as if the directory or file of our group had been created by a
 * user with these groups. Expects an error unless `is_good`. */
static void opened_if_a_member_made_it(const struct locks_place *p,
                                       const char *path, gid_t first,
                                       gid_t second, bool is_good)
{
    strange = inode_of(path);
    first_group = first;
    second_group = second;
    if (is_good)
        close_client(open_client(group_url(p)));
    else
        assert_refused(
            group_url(p), HF_EBACKEND,
            text_of("%s: belongs to user %d, not to us (%u) or root, and that "
                    "user is not known as a member of the group %u",
                    path, USER, (unsigned)geteuid(), (unsigned)getegid()));
    strange = 0;
}

/* In a directory of our group with the setgid bit, a user who may write to the
 * directory can create files of our group without being a member: the owner of
 * the file must be a member. */
CASE_HERE(test_a_group_s_file_is_of_a_member)
{
    const char *path[] = {p->dir, p->file};
    gid_t ours = getegid(), other = ours + 1;

    rmdir(p->dir);
    close_client(open_client(group_url(p)));
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
    unsigned group = getegid();
    const char *other = text_of("%s?mode=0660&group=%u", p->url, group + 1);

    rmdir(p->dir);
    close_client(open_client(group_url(p)));
    assert_refused(other, HF_EBACKEND,
                   text_of("%s: its group %u may write", p->dir, group));
    OK(chmod(p->dir, 0755));
    assert_refused(other, HF_EBACKEND,
                   text_of("%s: its group %u may write", p->file, group));
    close_client(open_client(group_url(p)));
}

CASE_HERE(test_a_group_s_directory_has_the_sticky_bit)
{
    OK(chmod(p->dir, 0770));
    assert_refused(group_url(p), HF_EBACKEND, text_of("chmod +t %s", p->dir));
    OK(chmod(p->dir, 01770));
    close_client(open_client(group_url(p)));
}

/* If the group of the URL may not use the directory or the file, hf_open()
 * fails even for the owner, and the error says why. Otherwise the members of
 * the group would just see "permission denied". */
CASE_HERE(test_a_group_s_directory_lets_it_in)
{
    const char *url = group_url(p);
    unsigned group = getegid();

    OK(chmod(p->dir, 0700));
    make_file(p);
    assert_refused(
        url, HF_EBACKEND,
        text_of("%s: has mode 0700 and group %u, which keeps out the group %u",
                p->dir, group, group));
    OK(chmod(p->dir, 0711)); /* not enough: members must be able to open it */
    assert_refused(url, HF_EBACKEND, text_of("%s: has mode 0711 and", p->dir));
    OK(chmod(p->dir, 0750));
    assert_refused(url, HF_EBACKEND, text_of("%s: has mode 0600 and", p->file));
    OK(chmod(p->file, 0660));
    close_client(open_client(url));
}

/* A directory or file that cannot be given to the group is removed: it would
 * keep out the members of the group. */
CASE_HERE(test_what_cannot_be_given_is_not_left)
{
    const char *url = group_url(p);

    is_no_giving = true;
    OK(rmdir(p->dir));
    assert_refused(url, HF_EBACKEND, "give it to the group");
    assert_int_equal(access(p->dir, F_OK), -1);
    OK(mkdir(p->dir, 0700));
    OK(chmod(p->dir, 01770));
    assert_refused(url, HF_EBACKEND, "give it to the group");
    assert_int_equal(access(p->file, F_OK), -1);
    close(creat(p->file, 0600)); /* as left by a killed process of our user */
    assert_refused(url, HF_EBACKEND, "give it to the group");
    assert_int_equal(access(p->file, F_OK), -1);
    is_no_giving = false;
    close_client(open_client(url));
}

CASE_HERE(test_a_group_that_cannot_be_looked_up)
{
    const char *url = text_of("%s?mode=0660&group=app", p->url);

    group_error = 0;
    assert_refused(url, HF_EINVAL, "no such group");
    group_error = ENOENT;
    assert_refused(url, HF_EINVAL, "no such group");
    group_error = ENOMEM;
    assert_refused(url, HF_ENOMEM, "out of memory");
    group_error = EIO;
    assert_refused(url, HF_EBACKEND, strerror(EIO));
    group_error = ERANGE; /* the error stays, whatever the buffer's size */
    assert_refused(url, HF_EBACKEND, strerror(ERANGE));
}

/* Any user may have created our default directory before us: the error says
 * whose it is, and what to do. */
CASE_HERE(test_a_taken_default_directory_is_told)
{
    const char *path, *text;

    we = 1000000000 + (uid_t)getpid(); /* an id that is not in use */
    path = text_of("/dev/shm/holdfast-%u", (unsigned)we);
    text = text_of("%s: belongs to user %d, not to us (%u)", path, USER,
                   (unsigned)we);
    OK(mkdir(path, 0700));
    strange = inode_of(path);
    assert_refused("shm:", HF_EBACKEND, text);
    assert_refused("shm:", HF_EBACKEND, "ask root to remove it");
    assert_refused("shm:", HF_EBACKEND, "shm:///directory");
    OK(rmdir(path));
    OK(symlink("/tmp", path));
    strange = inode_of(path);
    assert_refused("shm:", HF_EBACKEND, text);
    OK(unlink(path));
    we = 0;
    strange = 0;
}

/* Opens a client in a directory below ours, with these URL options, and removes
 * that directory. */
static void below_is_opened(const struct locks_place *p, const char *options)
{
    const char *dir = text_of("%s/below", p->dir);

    close_client(open_client(text_of("shm://%s%s", dir, options)));
    OK(unlink(text_of("%s/locks", dir)));
    OK(rmdir(dir));
}

/* Expects that a directory below ours is refused because of ours, and is not
 * created. */
static void below_is_refused(const struct locks_place *p, const char *text)
{
    const char *dir = text_of("%s/below", p->dir);

    assert_refused(text_of("shm://%s", dir), HF_EBACKEND,
                   text_of("%s: %s", p->dir, text));
    assert_int_equal(access(dir, F_OK), -1);
}

CASE_HERE(test_a_parent_that_others_may_write_is_sticky)
{
    OK(chmod(p->dir, 0777));
    below_is_refused(p, "others may write to it");
    OK(chmod(p->dir, 01777));
    below_is_opened(p, "");
    OK(chmod(p->dir, 0755));
    below_is_opened(p, "");
}

CASE_HERE(test_a_parent_that_its_group_may_write)
{
    OK(chmod(p->dir, 0770));
    shared = inode_of(p->dir);
    group_name = NULL;
    below_is_refused(p, "its group 4343 may write to it");
    group_name = "staff";
    below_is_refused(p, "its group 4343 may write to it");
    group_name = "us"; /* a private group */
    below_is_opened(p, "");
    other_member = "us";
    below_is_opened(p, "");
    other_member = "user";
    below_is_refused(p, "its group 4343 may write to it");
    OK(chmod(p->dir, 01770));
    below_is_opened(p, "");
    shared = 0;
    group_name = other_member = NULL;
}

/* The group of the URL may write to the parent directory. That is allowed,
 * because the members of the group may write to the locks too. */
CASE_HERE(test_a_parent_of_the_group_of_the_url)
{
    OK(chmod(p->dir, 02770));
    below_is_opened(p, text_of("?mode=0660&group=%u", (unsigned)getegid()));
}

CASE_HERE(test_a_parent_of_a_stranger_is_refused)
{
    strange = inode_of(p->dir);
    OK(chmod(p->dir, 01777)); /* the directory's owner may still rename files */
    below_is_refused(p, "belongs to user 4242");
    strange = 0;
    below_is_opened(p, "");
}

/* In a user namespace that maps only our own user, all files of the machine's
 * user root, also the directory /, seem to belong to an unknown user. */
CASE_HERE(test_the_owner_of_the_root_directory_is_trusted)
{
    strange = inode_of("/");
    below_is_opened(p, "");
    strange = 0;
}

/* The directories that contain the symbolic links of the path are checked too,
 * as are the directories above the links' targets. */
CASE_HERE(test_links_above_are_followed)
{
    const char *open = text_of("%s/open", p->dir);
    const char *target = text_of("%s/target", open);
    const char *link = text_of("%s/link", p->dir);
    const char *again = text_of("%s/again", p->dir);
    const char *url = text_of("shm://%s/below", again);

    OK(mkdir(open, 0700));
    OK(mkdir(target, 0700));
    OK(symlink("open/target", link));
    OK(symlink(link, again));
    close_client(open_client(url));
    OK(chmod(open, 0777));
    assert_refused(url, HF_EBACKEND, open);
    OK(chmod(open, 0700));
    strange = inode_of(link);
    assert_refused(url, HF_EBACKEND, link);
    strange = 0;
    OK(unlink(link));
    OK(symlink("again", link));
    assert_refused(url, HF_EBACKEND, "too many symbolic links");
    OK(unlink(link));
    OK(unlink(again));
    OK(unlink(text_of("%s/below/locks", target)));
    OK(rmdir(text_of("%s/below", target)));
    OK(rmdir(target));
    OK(rmdir(open));
}

CASES_MAIN(NULL, NULL);
