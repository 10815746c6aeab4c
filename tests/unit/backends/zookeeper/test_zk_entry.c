/* Entries of ZooKeeper's locks: their forms, their order, and which one to
 * watch. */
#include "../../cases.h"
#include "backends/zookeeper/entry.h"

#define UUID "0f1e2d3c-4b5a-4697-8877-665544332211"
#define BARE "0f1e2d3c4b5a46978877665544332211"
#define LEN(a) (sizeof(a) / sizeof(*(a)))

static void assert_form(const char *child, enum zk_form form, int64_t seq,
                        const char *uuid)
{
    struct zk_entry e;

    assert_true(hf__zk_entry_parse(child, &e));
    assert_int_equal(e.form, form);
    assert_true(e.seq == seq);
    assert_ptr_equal(e.name, child);
    assert_int_equal(e.uuid_len, strlen(uuid));
    assert_memory_equal(e.uuid, uuid, strlen(uuid));
}

CASE(test_entry_forms)
{
    assert_form("_c_" UUID "-lock-0000000007", ZK_FORM_LOCK, 7, UUID);
    assert_form("lock-0000000007", ZK_FORM_LOCK, 7, "");
    assert_form("_c_" BARE "-lock-0000000007", ZK_FORM_LOCK, 7, BARE);
    assert_form("_c_" UUID "-__READ__0000000010", ZK_FORM_READ, 10, UUID);
    assert_form("__READ__0000000010", ZK_FORM_READ, 10, "");
    assert_form("_c_" UUID "-__WRIT__2147483647", ZK_FORM_WRITE, 2147483647,
                UUID);
    assert_form("__WRIT__0000000000", ZK_FORM_WRITE, 0, "");
    assert_form("_c_" UUID "-lease-0000000001", ZK_FORM_LEASE, 1, UUID);
    assert_form("_c_" UUID "-latch-0000000001", ZK_FORM_LEADER, 1, UUID);
    assert_form(BARE "__lock__0000000003", ZK_FORM_KAZOO_LOCK, 3, BARE);
    assert_form(BARE "__rlock__0000000003", ZK_FORM_KAZOO_READ, 3, BARE);
    assert_form("lock", ZK_FORM_UNFAIR, 0, "");
    assert_form("_h_" UUID, ZK_FORM_HOLDER, 0, UUID);
    assert_form("locks", ZK_FORM_SEMAPHORE, 0, "");
    assert_form("leases", ZK_FORM_SEMAPHORE, 0, "");
    assert_form("latch", ZK_FORM_LATCH, 0, "");
    assert_form("_d_" UUID "-12", ZK_FORM_MARK, 0, UUID);
    assert_form("lock--000000001", ZK_FORM_LOCK, INT32_MAX, "");
    assert_form("lock--2147483648", ZK_FORM_LOCK, INT32_MAX, "");
    assert_form("lock-2147483648", ZK_FORM_LOCK, INT32_MAX, "");
}

CASE(test_entry_strangers)
{
    static const char *const strangers[] = {
        "",
        "b",
        "lock-",
        "lock-1",
        "lock-000000000x",
        "lock-00000000001",
        "lock--00000000001",
        "xlock-0000000001",
        "lock-0000000001x",
        ("_c_" UUID),
        "_c_" UUID "-",
        "_c_" UUID "-x-0000000001",
        "_c_0f1e2d3c-4b5a-4697-8877-66554433221-lock-0000000001",
        "_c_" UUID "lock-0000000001",
        "__lock__0000000001",
        "__lock__",
        BARE,
        BARE "__READ__0000000001",
        "x-00000000deadbeef-0000000001",
        "_d_" UUID "-",
        "_d_" UUID "-1x",
        "_h_" UUID "-1",
        "_h_" BARE,
        "Lock",
    };
    struct zk_entry e;

    for (size_t i = 0; i < LEN(strangers); i++) {
        assert_false(hf__zk_entry_parse(strangers[i], &e));
        assert_int_equal(e.form, ZK_FORM_NONE);
        assert_ptr_equal(e.name, strangers[i]);
    }
}

static void assert_guess(const char *child, enum zk_rule rule, int64_t mine,
                         enum zk_form form, int64_t seq)
{
    struct zk_entry e;

    assert_false(hf__zk_entry_parse(child, &e));
    assert_int_equal(hf__zk_entry_guess(child, rule, mine, &e),
                     form != ZK_FORM_NONE);
    if (e.form != form || e.seq != seq)
        fail_msg("%s: form %d, sequence %d", child, (int)e.form, (int)e.seq);
    assert_ptr_equal(e.name, child);
}

/* Curator and kazoo look only at the end of a name. */
CASE(test_guess_by_the_end)
{
    static const enum zk_rule rules[] = {ZK_RULE_MUTEX, ZK_RULE_WRITE,
                                         ZK_RULE_READ, ZK_RULE_UNFAIR};

    for (size_t i = 0; i < LEN(rules); i++) {
        assert_guess("xlock-0000000009", rules[i], 5, ZK_FORM_LOCK, 9);
        assert_guess("_c_x-lock-0000000001", rules[i], 5, ZK_FORM_LOCK, 1);
        assert_guess("xlock--2147483648", rules[i], 5, ZK_FORM_LOCK, INT32_MAX);
        assert_guess("xlock--000000001", rules[i], 5, ZK_FORM_LOCK, INT32_MAX);
        assert_guess("__lock__0000000001", rules[i], 5, ZK_FORM_KAZOO_LOCK, 1);
        assert_guess("a__rlock__0000000001", rules[i], 5, ZK_FORM_KAZOO_READ,
                     1);
        assert_guess(BARE "__READ__0000000001", rules[i], 5, ZK_FORM_READ, 1);
        assert_guess("x-00000000deadbeef-0000000004", rules[i], 5, ZK_FORM_LOCK,
                     4);
        assert_guess("x--42-0000000004", rules[i], 5, ZK_FORM_LOCK, 4);
        assert_guess(BARE, rules[i], 5, ZK_FORM_KAZOO_LEASE, 0);
    }
}

/* Curator waits for an entry that precedes its own in Curator's order. */
CASE(test_guess_by_curators_order)
{
    static const char *const first[] = {"", "-x", "%FF", "000", "000000000"};
    static const char *const behind[] = {"aaa",
                                         "x",
                                         "00000000051",
                                         "0000000005",
                                         "05",
                                         "1",
                                         "Lock",
                                         "job-0000000001",
                                         "x-y-0000000001",
                                         ("_c_" UUID),
                                         "lock-1",
                                         "locks-",
                                         "~",
                                         "0000000006",
                                         ("_h_" UUID "-1")};

    for (size_t i = 0; i < LEN(first); i++) {
        assert_guess(first[i], ZK_RULE_MUTEX, 5, ZK_FORM_SORTED, -1);
        assert_guess(first[i], ZK_RULE_WRITE, 5, ZK_FORM_SORTED, -1);
        assert_guess(first[i], ZK_RULE_READ, 5, ZK_FORM_NONE, 0);
        assert_guess(first[i], ZK_RULE_UNFAIR, 5, ZK_FORM_NONE, 0);
    }
    for (size_t i = 0; i < LEN(behind); i++) {
        assert_guess(behind[i], ZK_RULE_MUTEX, 5, ZK_FORM_NONE, 0);
        assert_guess(behind[i], ZK_RULE_WRITE, 5, ZK_FORM_NONE, 0);
    }
    assert_guess("0000000004", ZK_RULE_MUTEX, 5, ZK_FORM_SORTED, 4);
    assert_guess("lock-", ZK_RULE_MUTEX, 5, ZK_FORM_SORTED, -1);
    assert_guess("lock-", ZK_RULE_WRITE, 5, ZK_FORM_NONE, 0);
    assert_guess("x__WRIT__", ZK_RULE_WRITE, 5, ZK_FORM_SORTED, -1);
    assert_guess("x__WRIT__", ZK_RULE_READ, 5, ZK_FORM_SORTED, -1);
    assert_guess("x__READ__", ZK_RULE_READ, 5, ZK_FORM_NONE, 0);
    assert_guess("x__WRIT__", ZK_RULE_MUTEX, 5, ZK_FORM_NONE, 0);
}

CASE(test_entry_order_is_by_number_then_czxid)
{
    struct zk_entry a = {.seq = 9}, b = {.seq = 10};

    assert_true(hf__zk_entry_order(&a, &b) < 0);
    assert_true(hf__zk_entry_order(&b, &a) > 0);
    a.seq = b.seq = 2147483647;
    assert_int_equal(hf__zk_entry_order(&a, &b), 0);
    a.czxid = 5;
    assert_int_equal(hf__zk_entry_order(&a, &b), 0);
    b.czxid = 4;
    assert_true(hf__zk_entry_order(&a, &b) > 0);
    b.czxid = 6;
    assert_true(hf__zk_entry_order(&a, &b) < 0);
}

CASE(test_entry_names_of_ours_are_read_back)
{
    static const enum zk_form forms[] = {
        ZK_FORM_LOCK,   ZK_FORM_READ,       ZK_FORM_WRITE,     ZK_FORM_LEASE,
        ZK_FORM_LEADER, ZK_FORM_KAZOO_LOCK, ZK_FORM_KAZOO_READ};
    uint8_t random[16];
    char uuid[ZK_UUID_MAX], name[ZK_PREFIX_MAX + 16];

    memset(random, 0xff, sizeof(random));
    hf__uuid(random, uuid);
    assert_string_equal(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    for (size_t i = 0; i < LEN(forms); i++) {
        struct zk_entry e;

        hf__zk_entry_prefix(forms[i], uuid, name);
        strcat(name, "0000000042");
        assert_true(hf__zk_entry_parse(name, &e));
        assert_int_equal(e.form, forms[i]);
        assert_true(e.seq == 42);
        if (e.uuid_len == 36)
            assert_memory_equal(e.uuid, uuid, 36);
        else
            assert_memory_equal(e.uuid, "ffffffffffff4fffbfffffffffffffff", 32);
    }
}

struct known {
    char *const *child;
    const int64_t *czxid;
};

/* Returns the czxid of the child, which must exist. */
static int64_t known_czxid(const void *arg, const char *child)
{
    const struct known *k = arg;
    size_t i = 0;

    while (strcmp(k->child[i], child) != 0)
        i++;
    return k->czxid[i];
}

static struct zk_place place_with(char *const *child, const int64_t *czxid,
                                  size_t len, const char *mine,
                                  enum zk_rule rule)
{
    struct zk_entry e = {0};
    struct zk_place p;

    if (mine)
        assert_true(hf__zk_entry_parse(mine, &e));
    for (size_t i = 0; mine && czxid && i < len; i++)
        if (strcmp(child[i], mine) == 0)
            e.czxid = czxid[i];
    hf__zk_place(child, len, &e, rule, czxid ? known_czxid : NULL,
                 &(struct known){child, czxid}, &p);
    return p;
}

#define PLACE(child, mine, rule) place_with(child, NULL, LEN(child), mine, rule)

CASE(test_place_of_a_mutex)
{
    char *child[] = {
        "_c_" UUID "-lock-0000000012", "lock-0000000009", "b",
        BARE "__lock__0000000011",     "lock-0000000013", "c",
    };
    struct zk_place p = PLACE(child, child[0], ZK_RULE_MUTEX);

    assert_true(p.here);
    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.watch, 3);
    assert_int_equal(p.mismatch, ZK_NOBODY);
    assert_int_equal(p.tied, ZK_NOBODY);
    assert_int_equal(p.stranger, ZK_NOBODY);
    p = PLACE(child, "lock-0000000009", ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 0);
    assert_int_equal(p.watch, ZK_NOBODY);
    p = PLACE(child, "lock-0000000010", ZK_RULE_MUTEX);
    assert_false(p.here);
    assert_int_equal(p.ahead, 1);
    assert_int_equal(p.watch, 1);
    p = PLACE(child, NULL, ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 4);
    assert_int_equal(p.watch, 4);
}

/* Foreign children count if they are known to be ephemeral. */
CASE(test_place_among_strangers)
{
    char *child[] = {"lock-0000000005", "x-a-0000000003", "000", BARE,
                     "lock-0000000002"};
    const int64_t unknown[] = {9, 0, 0, 0, 0}, last[] = {9, -1, -2, -3, 7},
                  some[] = {9, 8, -2, -3, 7}, all[] = {9, 8, 2, 3, 7};
    struct zk_place p =
        place_with(child, unknown, LEN(child), child[0], ZK_RULE_MUTEX);

    assert_int_equal(p.stranger, 1);
    assert_int_equal(p.ahead, 1);
    p = place_with(child, last, LEN(child), child[0], ZK_RULE_MUTEX);
    assert_int_equal(p.stranger, ZK_NOBODY);
    assert_int_equal(p.ahead, 1);
    p = place_with(child, some, LEN(child), child[0], ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.watch, 1);
    assert_int_equal(p.mismatch, ZK_NOBODY);
    p = place_with(child, all, LEN(child), child[0], ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 3);
    assert_int_equal(p.mismatch, 3);
}

CASE(test_place_of_readers_and_writers)
{
    char *child[] = {
        "__READ__0000000001",       "__WRIT__0000000002",
        "__READ__0000000003",       "__READ__0000000004",
        BARE "__lock__0000000005",  "__READ__0000000006",
        BARE "__rlock__0000000007", "__WRIT__0000000008",
    };
    static const struct {
        size_t mine;
        enum zk_rule rule;
        size_t ahead, watch;
    } want[] = {
        {0, ZK_RULE_READ, 0, ZK_NOBODY}, {1, ZK_RULE_WRITE, 1, 0},
        {2, ZK_RULE_READ, 1, 1},         {3, ZK_RULE_READ, 1, 1},
        {5, ZK_RULE_READ, 2, 4},         {7, ZK_RULE_WRITE, 7, 6},
    };

    for (size_t i = 0; i < LEN(want); i++) {
        struct zk_place p = PLACE(child, child[want[i].mine], want[i].rule);

        assert_int_equal(p.ahead, want[i].ahead);
        assert_int_equal(p.watch, want[i].watch);
        assert_int_equal(p.mismatch, ZK_NOBODY);
    }
}

/* In Curator, a read within a write has the sequence number of the write. */
CASE(test_place_behind_a_read_within_a_write)
{
    char *child[] = {"__READ__0000000003", "__WRIT__0000000003",
                     "__WRIT__0000000004", "__READ__0000000005"};
    struct zk_place p = PLACE(child, child[2], ZK_RULE_WRITE);

    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.watch, 1);
    assert_int_equal(p.tied, ZK_NOBODY);
    p = PLACE(child, child[3], ZK_RULE_READ);
    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.watch, 2);
}

CASE(test_place_sees_other_kinds)
{
    static const struct {
        char *other;
        bool mutex, write, read, unfair; /* rules that conflict with `other` */
    } want[] = {
        {"lock-0000000001", false, true, true, true},
        {"__READ__0000000001", true, false, false, true},
        {"__WRIT__0000000001", true, false, false, true},
        {BARE "__lock__0000000001", false, false, false, true},
        {BARE "__rlock__0000000001", true, false, false, true},
        {"latch-0000000001", true, true, true, true},
        {"lease-0000000001", true, true, true, true},
        {"lock", true, true, true, false},
        {"_h_" UUID, true, true, true, false},
        {"locks", true, true, true, true},
        {"leases", true, true, true, true},
        {"latch", true, true, true, true},
        {"_d_" UUID "-1", false, false, false, false},
        {"other", false, false, false, false},
    };

    for (size_t i = 0; i < LEN(want); i++) {
        char *child[] = {"lock-0000000002", want[i].other};
        char *reads[] = {"__READ__0000000002", want[i].other};
        char *writes[] = {"__WRIT__0000000002", want[i].other};
        char *alone[] = {"lock", want[i].other};
        char *holds[] = {"_h_" UUID, "lock", want[i].other};

        assert_int_equal(PLACE(child, child[0], ZK_RULE_MUTEX).mismatch !=
                             ZK_NOBODY,
                         want[i].mutex);
        assert_int_equal(PLACE(writes, writes[0], ZK_RULE_WRITE).mismatch !=
                             ZK_NOBODY,
                         want[i].write);
        assert_int_equal(PLACE(reads, reads[0], ZK_RULE_READ).mismatch !=
                             ZK_NOBODY,
                         want[i].read);
        assert_int_equal(PLACE(alone, NULL, ZK_RULE_UNFAIR).mismatch !=
                             ZK_NOBODY,
                         want[i].unfair);
        assert_int_equal(PLACE(holds, holds[0], ZK_RULE_UNFAIR).mismatch !=
                             ZK_NOBODY,
                         want[i].unfair);
    }
}

/* The node `lock` and the entry of its holder count as one holder. The entry of
 * another client counts as a second holder. */
CASE(test_place_beside_a_holder_of_an_unfair_mutex)
{
    char *child[] = {"lock", "_h_00000000-4b5a-4697-8877-665544332211",
                     "_h_" UUID};
    struct zk_place p = place_with(child, NULL, 2, child[1], ZK_RULE_UNFAIR);

    assert_true(p.here);
    assert_int_equal(p.ahead, 0);
    p = PLACE(child, child[1], ZK_RULE_UNFAIR);
    assert_int_equal(p.ahead, 1);
    assert_int_equal(p.watch, 2);
    assert_int_equal(p.mismatch, ZK_NOBODY);
}

/* Entries of other kinds after ours are ignored: their clients see our entry,
 * and leave. */
CASE(test_place_does_not_mind_other_kinds_behind)
{
    char *child[] = {"lock-0000000002", "__WRIT__0000000003",
                     "latch-0000000004"};
    struct zk_place p = PLACE(child, child[0], ZK_RULE_MUTEX);

    assert_int_equal(p.mismatch, ZK_NOBODY);
    assert_int_equal(p.ahead, 0);
}

CASE(test_place_where_the_sequence_sticks)
{
    char *child[] = {"_c_" UUID "-lock-2147483647", "lock-2147483647",
                     BARE "__lock__2147483647"};
    const int64_t first[] = {5, 6, 7}, second[] = {6, 5, 7}, some[] = {6, 5, 0};
    struct zk_place p = PLACE(child, child[0], ZK_RULE_MUTEX);

    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.tied, 1);
    p = place_with(child, first, LEN(child), child[0], ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 0);
    assert_int_equal(p.tied, ZK_NOBODY);
    p = place_with(child, second, LEN(child), child[0], ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 1);
    assert_int_equal(p.watch, 1);
    p = place_with(child, second, LEN(child), child[2], ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.watch, 0);
    p = place_with(child, some, LEN(child), child[0], ZK_RULE_MUTEX);
    assert_int_equal(p.ahead, 2);
    assert_int_equal(p.tied, 2);
}

/* The sequence wraps around within the queue: the czxids keep the entries in
 * order. */
CASE(test_place_where_the_sequence_goes_round)
{
    char kazoos[] = BARE "__lock__2147483647";
    char *child[] = {"lock-2147483646", "lock-2147483647", "lock--2147483648",
                     "lock--2147483647", kazoos};
    const int64_t czxid[] = {4, 5, 6, 7, 8};
    struct zk_place p = PLACE(child, child[2], ZK_RULE_MUTEX);

    assert_int_equal(p.ahead, 4);
    assert_int_equal(p.tied, 1);
    for (size_t i = 0; i < LEN(child); i++) {
        p = place_with(child, czxid, LEN(child), child[i], ZK_RULE_MUTEX);
        assert_int_equal(p.ahead, i);
        assert_int_equal(p.watch, i ? i - 1 : ZK_NOBODY);
        assert_int_equal(p.tied, ZK_NOBODY);
    }
}

CASES_MAIN(NULL, NULL);
