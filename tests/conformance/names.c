/* Names are arbitrary bytes, and two different names are never one lock. */
#include "conf.h"

struct name {
    size_t len;
    char bytes[HF_NAME_MAX];
};

static struct name names[128];
static size_t names_len;

static void add(const char *bytes, size_t len)
{
    struct name *n = &names[names_len++];

    assert_true(names_len <= sizeof(names) / sizeof(*names));
    n->len = len;
    memcpy(n->bytes, bytes, len);
}

/* Adds the name base + text. Such names share their beginning and differ only
 * in a few bytes. */
static void add_after(const char *base, const char *text)
{
    char whole[HF_NAME_MAX + 1];

    snprintf(whole, sizeof(whole), "%s%s", base, text);
    add(whole, strlen(whole));
}

static void add_long(const char *base, char last)
{
    char whole[HF_NAME_MAX];

    memset(whole, 'x', sizeof(whole));
    memcpy(whole, base, strlen(base));
    whole[HF_NAME_MAX - 1] = last;
    add(whole, HF_NAME_MAX);
    if (last == 'a')
        add(whole, HF_NAME_MAX - 1);
}

static void hostile_names(void)
{
    static const char *const ends[] = {
        "",
        "a",
        "A",
        "aa",
        "/",
        "//",
        "/a",
        "a/",
        "/a/",
        "/../",
        "/..",
        "..",
        ".",
        "/.",
        "/./a",
        "%",
        "%2f",
        "%2F",
        "%2fa",
        "%00",
        "%25",
        "%252f",
        "{",
        "{}",
        "{a}",
        "{a",
        "a}",
        "}{",
        ":",
        ":a",
        "::",
        ":1",
        " ",
        "  ",
        "a ",
        " a",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\n1",
        "'",
        "\"",
        "''",
        "\\",
        "\\\\",
        "\\n",
        "\\x00",
        "`",
        "$",
        "$1",
        "${a}",
        "$(a)",
        ";",
        "; DROP TABLE locks",
        "' OR '1'='1",
        "--",
        "/*",
        "*/",
        "*",
        "?",
        "[a]",
        "[^a]",
        "a*",
        "KEYS[1]",
        "\")return 1",
        "]]",
        "\x01",
        "\x7f",
        "\x80",
        "\xff",
        "\xff\xff",
        "\xfe\xff",
        "\xc3\xa9",
        "e\xcc\x81",
        "\xc3",
        "\xe2\x82\xac",
        "\xf0\x9f\x94\x92",
        "\xed\xa0\x80",
        "_",
        "-",
        "+",
        "=",
        "&",
        "#",
        "@",
        "!",
        "~",
        "|",
        "<a>",
        "(",
        ")",
        ",",
        "0",
    };
    const char *base = conf_name();
    char braced[80];

    names_len = 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        add_after(base, ends[i]);
    snprintf(braced, sizeof(braced), "{%s}", base);
    add(braced, strlen(braced));
    add(braced, strlen(braced) - 1);
    add(braced + 1, strlen(braced) - 1);
    add_long(base, 'a');
    add_long(base, 'b');
    add_long(base, '/');
    add_long(base, '\xff');
}

static hf_lock *lock_of(hf_client *c, const struct name *n)
{
    hf_lock_options opt = LOCK_OPTIONS(.fairness = conf.fairness);
    hf_lock *lock = NULL;

    OK(hf_lock_new(c, n->bytes, n->len, &opt, &lock, E));
    return conf_keep_lock(lock);
}

/* One client can hold locks of all names, so no two names are the same lock.
 * Another client finds each lock held, so each name is always the same lock. */
CONF_CASE(test_names_never_meet, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    static hf_lock *mine[128], *other[128];

    hostile_names();
    for (size_t i = 0; i < names_len; i++) {
        mine[i] = lock_of(a, &names[i]);
        other[i] = lock_of(b, &names[i]);
        OK(hf_lock_try(other[i], E)); /* although all earlier names are held */
        OK(hf_lock_release(other[i], E));
        OK(hf_lock_try(mine[i], E));
    }
    for (size_t i = 0; i < names_len; i++) {
        unsigned count = 0;

        EXPECT(HF_EBUSY, hf_lock_try(other[i], E));
        OK(hf_lock_count(mine[i], &count));
        assert_int_equal(count, 1);
    }
    for (size_t i = 0; i < names_len; i++) {
        OK(hf_lock_release(mine[i], E));
        OK(hf_lock_try(other[i], E));
        OK(hf_lock_release(other[i], E));
    }
}

/* Waits, notifications and renewals work for hostile names, too: their keys and
 * channels are not those of acquires. */
CONF_CASE(test_names_hostile_ones_can_be_waited_for, CONF_EACH)
{
    hf_client *a = conf_open_ttl(CONF_KEPT_TTL_MS), *b = conf_open();

    hostile_names();
    for (size_t i = 0; i < names_len; i += 7) {
        hf_lock *mine = lock_of(a, &names[i]), *other = lock_of(b, &names[i]);
        struct conf_taker t;

        OK(hf_lock_acquire(mine, NULL, E));
        conf_taker_wait(&t, other, HF_WRITE, 0);
        OK(hf_lock_renew(mine, 0, E));
        OK(hf_lock_release(mine, E));
        COMES(conf_taker_has(&t));
        conf_taker_ends(&t, 0);
    }
}

static bool listed(hf_client *c, const struct name *n)
{
    hf_names *list = NULL;
    bool found = false;

    OK(hf_list(c, NULL, &list, E));
    for (size_t i = 0; i < list->len; i++)
        found = found || (list->names[i].len == n->len &&
                          !memcmp(list->names[i].bytes, n->bytes, n->len));
    hf_names_free(list);
    return found;
}

CONF_CASE(test_names_hostile_ones_can_be_inspected, CONF_EACH | CONF_INSPECT)
{
    hf_client *c = conf_open();

    hostile_names();
    for (size_t i = 0; i < names_len; i++) {
        hf_lock *lock = lock_of(c, &names[i]);
        hf_info *info = NULL;

        OK(hf_lock_acquire(lock, NULL, E));
        OK(hf_inspect(c, names[i].bytes, names[i].len, &info, E));
        assert_int_equal(info->holders_len, 1);
        assert_true(info->token == conf_token(lock));
        hf_info_free(info);
        assert_true(listed(c, &names[i]));
        OK(hf_break(c, names[i].bytes, names[i].len, E));
        EXPECT(HF_ELOST, hf_lock_release(lock, E));
    }
}

static hf_client *open_prefix(const char *prefix)
{
    char option[128];
    hf_client *c = NULL;

    snprintf(option, sizeof(option), "prefix=%s", prefix);
    OK(hf_open(conf_url_with(option), NULL, &c, E));
    return conf_keep(c);
}

CONF_CASE(test_names_prefix_sets_clients_apart, CONF_EACH)
{
    char prefix[80], whole[160];
    const char *name = conf_name();
    hf_client *a, *b = conf_open();
    hf_lock *lock, *plain, *full;

    snprintf(prefix, sizeof(prefix), "%s.", conf_name());
    snprintf(whole, sizeof(whole), "%s%s", prefix, name);
    a = open_prefix(prefix);
    lock = conf_lock(a, name);
    plain = conf_lock(b, name);
    full = conf_lock(b, whole);
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_try(plain, E));
    EXPECT(HF_EBUSY, hf_lock_try(full, E)); /* same key as prefix + name */
    OK(hf_lock_release(plain, E));
    OK(hf_lock_release(lock, E));
    OK(hf_lock_try(full, E));
    EXPECT(HF_EBUSY, hf_lock_try(lock, E));
    OK(hf_lock_release(full, E));
}

CONF_CASE(test_names_prefix_leaves_less_room, 0)
{
    hf_client *c = open_prefix("0123456789");
    char name[HF_NAME_MAX];
    hf_lock *lock = NULL;

    memset(name, 'p', sizeof(name));
    EXPECT(HF_EINVAL, hf_lock_new(c, name, HF_NAME_MAX - 9, NULL, &lock, E));
    assert_null(lock);
    OK(hf_lock_new(c, name, HF_NAME_MAX - 10, NULL, &lock, E));
    conf_keep_lock(lock);
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_release(lock, E));
}

/* A client's lists contain its names without the prefix, and hf_inspect() and
 * hf_break() take names without the prefix, too. */
CONF_CASE(test_names_prefix_does_not_show, CONF_EACH | CONF_INSPECT)
{
    char prefix[80];
    const char *name = conf_name();
    struct name n;
    hf_client *a, *b = conf_open();
    hf_lock *lock, *foreign = conf_lock(b, name);
    hf_info *info = NULL;

    snprintf(prefix, sizeof(prefix), "%s.", conf_name());
    a = open_prefix(prefix);
    lock = conf_lock(a, name);
    n.len = strlen(name);
    memcpy(n.bytes, name, n.len);
    OK(hf_lock_acquire(foreign, NULL, E));
    assert_false(listed(a, &n)); /* `foreign` has no prefix */
    OK(hf_lock_release(foreign, E));
    OK(hf_lock_acquire(lock, NULL, E));
    assert_true(listed(a, &n));
    assert_false(listed(b, &n));
    info = conf_inspect(a, name);
    assert_int_equal(info->holders_len, 1);
    OK(hf_break(a, name, HF_CSTRING, E));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
}
