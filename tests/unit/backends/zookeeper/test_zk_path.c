/* Paths of ZooKeeper's nodes: which names stay readable, what is encoded, what
 * is refused, and that no two names share a path. */
#include "../../cases.h"
#include "backends/zookeeper/path.h"

static void assert_path(const char *name, const char *root, const char *path)
{
    char out[ZK_PATH_MAX + 16], back[HF_NAME_MAX + 1];

    assert_int_equal(hf__zk_path(name, strlen(name), root, out, sizeof(out)),
                     strlen(path));
    assert_string_equal(out, path);
    assert_int_equal(hf__zk_name(path, root, back, sizeof(back)), strlen(name));
    assert_string_equal(back, name);
}

CASE(test_path_of_plain_names_is_readable)
{
    assert_path("nightly", "", "/nightly");
    assert_path("a/b/c", "/app/x", "/app/x/a/b/c");
    assert_path("Gr\xc3\xbc\xc3\x9f"
                "e \xe6\x97\xa5",
                "",
                "/Gr\xc3\xbc\xc3\x9f"
                "e \xe6\x97\xa5");
    assert_path("50%", "", "/50%");
    assert_path("a%zz%4/%g0", "", "/a%zz%4/%g0");
    assert_path("...", "", "/...");
    assert_path("{a}:b*?", "", "/{a}:b*?");
}

CASE(test_path_encodes_what_cannot_be_carried)
{
    assert_path(".", "", "/%2E");
    assert_path("a/../b", "", "/a/%2E%2E/b");
    assert_path("/a", "", "/%00/a");
    assert_path("a//b/", "/r", "/r/a/%00/b/%00");
    assert_path("a\nb\x7f", "", "/a%0Ab%7F");
    assert_path("%41", "", "/%2541");
    assert_path("%00", "", "/%2500");
    assert_path("\xff\xfe", "", "/%FF%FE");
    assert_path("\xc3", "", "/%C3");                      /* cut short */
    assert_path("\xc0\xaf", "", "/%C0%AF");               /* overlong */
    assert_path("\xe0\x80\xaf", "", "/%E0%80%AF");        /* overlong */
    assert_path("\xc2\x85", "", "/%C2%85");               /* control */
    assert_path("\xed\xa0\x80", "", "/%ED%A0%80");        /* surrogate */
    assert_path("\xee\x80\x80", "", "/%EE%80%80");        /* private use */
    assert_path("\xef\xbf\xbd", "", "/%EF%BF%BD");        /* U+FFFD */
    assert_path("\xf0\x9f\x94\x92", "", "/%F0%9F%94%92"); /* two in Java */
}

static void assert_refused(const char *name, const char *root)
{
    char out[ZK_PATH_MAX + 16];

    assert_int_equal(hf__zk_path(name, strlen(name), root, out, sizeof(out)),
                     HF_EINVAL);
}

CASE(test_path_refuses_entries_of_locks)
{
    assert_refused("a/lock", "");
    assert_refused("a/locks", "");
    assert_refused("a/leases/b", "/x");
    assert_refused("a/lock-0000000001", "");
    assert_refused("a/__WRIT__0000000001/b", "");
    assert_refused("a/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000001",
                   "");
    assert_refused("a/0123456789abcdef0123456789abcdef__lock__0000000001", "");
    assert_refused("a/_d_01234567-89ab-cdef-0123-456789abcdef-7", "");
    assert_refused("zookeeper", "");
    assert_refused("zookeeper/quota", "");
}

CASE(test_path_takes_what_only_looks_like_entries)
{
    assert_path("locks/nightly", "", "/locks/nightly");
    assert_path("lock", "/x", "/x/lock");
    assert_path("zookeeper", "/x", "/x/zookeeper");
    assert_path("a/zookeeper", "", "/a/zookeeper");
    assert_path("a/lock-1", "", "/a/lock-1");
    assert_path("a/lock-00000000001", "", "/a/lock-00000000001");
    assert_path("a/0123456789abcdef0123456789abcdef", "",
                "/a/0123456789abcdef0123456789abcdef");
}

CASE(test_path_needs_room)
{
    char name[HF_NAME_MAX + 1], out[ZK_PATH_MAX];

    memset(name, '/', sizeof(name));
    assert_int_equal(hf__zk_path(name, HF_NAME_MAX, "", out, sizeof(out)),
                     ZK_PATH_MAX - 1);
    assert_int_equal(hf__zk_path(name, HF_NAME_MAX, "", out, sizeof(out) - 1),
                     HF_EINVAL);
    assert_int_equal(hf__zk_path(name, HF_NAME_MAX, "/x", out, sizeof(out)),
                     HF_EINVAL);
    assert_int_equal(hf__zk_path(name, HF_NAME_MAX + 1, "", out, sizeof(out)),
                     HF_EINVAL);
}

CASE(test_path_of_no_name)
{
    static const char *const paths[] = {
        "",          "/",       "/a/",     "//a",         "/a/%61",
        "/a%2f%2F",  "/%2E%2e", "/a%00",   "/zookeeper",  "/a/lock",
        "/a/%0A%00", "/\n",     "/%C3%BC", "/a/leases/x",
    };
    char out[HF_NAME_MAX + 1];

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        assert_int_equal(hf__zk_name(paths[i], "", out, sizeof(out)),
                         HF_EINVAL);
    assert_int_equal(hf__zk_name("/b/x", "/a", out, sizeof(out)), HF_EINVAL);
    assert_int_equal(hf__zk_name("/ab/x", "/a", out, sizeof(out)), HF_EINVAL);
    assert_int_equal(hf__zk_name("/a", "/a", out, sizeof(out)), HF_EINVAL);
    assert_int_equal(hf__zk_name("/abc", "", out, 3), HF_EINVAL);
}

/* Converts names made of special bytes to paths and back. Each path leads back
 * to its own name, so no two names share a path. */
CASE(test_paths_never_meet)
{
    static const char bytes[] = "%/.04\x01\xc3\xbc\xed";
    uint32_t seed = 1;

    for (int turn = 0; turn < 200000; turn++) {
        char name[9], path[ZK_PATH_MAX], back[HF_NAME_MAX + 1];
        size_t len = 1 + (size_t)turn % 8;

        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            name[i] = bytes[(seed >> 16) % (sizeof(bytes) - 1)];
        }
        name[len] = '\0';
        assert_true(hf__zk_path(name, len, "", path, sizeof(path)) > 0);
        assert_null(strstr(path, "//"));
        assert_int_equal(hf__zk_name(path, "", back, sizeof(back)), len);
        assert_string_equal(back, name);
    }
}

CASES_MAIN(NULL, NULL);
