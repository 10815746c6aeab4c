/* What backends share: the table of keys, the arena of a reply, the identity of
 * a client, the holders of a lock, latch requests, and the findings of
 * hf_diagnose(). */
#include "../../cases.h"
#include "backends/common/about.h"
#include "backends/common/arena.h"
#include "backends/common/finding.h"
#include "backends/common/latch_requests.h"
#include "backends/common/order.h"
#include "backends/common/table.h"

static size_t blocks, allowed = SIZE_MAX; /* number allocated, and the limit */

static void *test_take(hf_client *client, size_t size)
{
    if (!allowed)
        return NULL;
    allowed--;
    blocks++;
    return calloc(1, size);
}

static void test_give(hf_client *client, void *p)
{
    blocks -= p != NULL;
    free(p);
}

static const struct hf__core core = {.alloc = test_take, .free = test_give};

struct item {
    struct hf__keyed key;
    int seen;
};

static struct item *add(struct hf__table *t, uint16_t number, int i)
{
    char text[20];
    int len = snprintf(text, sizeof(text), "key %d", i);

    return hf__table_add(t, sizeof(struct item), number, text, (size_t)len);
}

static struct item *find(const struct hf__table *t, uint16_t number, int i)
{
    char text[20];
    int len = snprintf(text, sizeof(text), "key %d", i);

    return hf__table_find(t, number, text, (size_t)len);
}

CASE(test_table_finds_what_is_in_it)
{
    struct hf__table t = {.core = &core};

    assert_null(find(&t, 1, 0));
    for (int i = 0; i < 1000; i++) {
        assert_non_null(add(&t, 1, i));
        assert_non_null(add(&t, 2, i));
    }
    for (int i = 0; i < 1000; i += 2)
        hf__table_remove(&t, find(&t, 1, i));
    for (int i = 0; i < 1000; i++) {
        assert_true(!find(&t, 1, i) == !(i % 2));
        assert_int_equal(atoi(find(&t, 2, i)->key.text + 4), i);
        assert_null(find(&t, 3, i));
    }
    assert_int_equal(t.len, 1500);
    hf__table_fini(&t);
    assert_int_equal(blocks, 0);
}

CASE(test_table_goes_through_all_once)
{
    struct hf__table t = {.core = &core};
    struct item *item = NULL, *next;
    int len = 0;

    assert_null(hf__table_next(&t, NULL));
    for (int i = 0; i < 300; i++)
        assert_non_null(add(&t, 0, i));
    while ((item = hf__table_next(&t, item))) {
        assert_int_equal(item->seen++, 0);
        len++;
    }
    assert_int_equal(len, 300);
    for (item = hf__table_next(&t, NULL); item; item = next) {
        next = hf__table_next(&t, item);
        hf__table_remove(&t, item);
    }
    assert_int_equal(t.len, 0);
    hf__table_fini(&t);
    assert_int_equal(blocks, 0);
}

/* A table that cannot allocate more buckets gets slower, but keeps working. */
CASE(test_table_without_memory)
{
    struct hf__table t = {.core = &core};

    allowed = 0;
    assert_null(add(&t, 0, 0));
    allowed = 1;
    assert_null(add(&t, 0, 0));
    for (int i = 0; i < 100; i++) {
        struct item *item;

        allowed = 1; /* enough for the item or for the buckets */
        item = add(&t, 0, i);
        allowed = 1;
        assert_non_null(item ? item : add(&t, 0, i));
    }
    allowed = SIZE_MAX;
    for (int i = 0; i < 100; i++)
        assert_non_null(find(&t, 0, i));
    hf__table_fini(&t);
    assert_int_equal(blocks, 0);
}

CASE(test_uuid_is_of_version_4)
{
    uint8_t random[16];
    char uuid[HF__UUID_LEN + 1];

    memset(random, 0xff, sizeof(random));
    hf__uuid(random, uuid);
    assert_string_equal(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    for (int i = 0; i < 16; i++)
        random[i] = (uint8_t)i;
    hf__uuid(random, uuid);
    assert_string_equal(uuid, "00010203-0405-4607-8809-0a0b0c0d0e0f");
}

static void read_about(hf_party *p, const char *text, size_t len)
{
    memset(p, 'x', sizeof(*p));
    hf__about_read(p, text, text + len);
}

CASE(test_about_is_read_as_it_was_written)
{
    static const char strange[] = "a\0b\nlabel\n\0";
    char text[128], longer[1000];
    const char *end;
    hf_party p;

    end = text + hf__about(text, sizeof(text), "7k ");
    assert_int_equal(strncmp(text, "7k ", 3), 0);
    assert_int_equal(end[-1], '\n');
    read_about(&p, "host\nmy label", 13);
    assert_string_equal(p.host, "host");
    assert_string_equal(p.label, "my label");
    read_about(&p, "host", 4);
    assert_string_equal(p.host, "host");
    assert_string_equal(p.label, "");
    read_about(&p, strange, sizeof(strange) - 1);
    assert_string_equal(p.host, "a\\x00b");
    assert_string_equal(p.label, "label\n\\x00");
    memset(longer, 'h', sizeof(longer));
    read_about(&p, longer, sizeof(longer));
    assert_int_equal(strlen(p.host), sizeof(p.host) - 1);
    assert_string_equal(p.label, "");
}

CASE(test_left_of_a_lease)
{
    assert_int_equal(hf__left_ms(1000, 5000, 5000), 1000);
    assert_int_equal(hf__left_ms(1000, 5000, 5400), 600);
    assert_int_equal(hf__left_ms(1000, 5000, 6000), 0);
    assert_int_equal(hf__left_ms(1000, 5000, INT64_MAX), 0);
    assert_int_equal(hf__left_ms(1000, 5000, 4000), 1000);
    assert_int_equal(hf__left_ms(1000, INT64_MAX, 4000), 1000);
    assert_int_equal(hf__left_ms(1000, INT64_MIN, 400), 600);
    assert_true(hf__wall_ms() > 1500000000000);
}

/* Checks which entries of a queue hold the lock. Each letter is an entry, the
 * oldest first: r reads, w writes (or has a mutex), d has downgraded its write
 * hold. The entries in upper case must be the holders. */
static void holds(const char *expected)
{
    struct hf__order o = {0};

    for (const char *e = expected; *e; e++) {
        char kind = (char)(*e | 0x20);

        if (hf__order_holds(&o, kind == 'r', kind == 'd') != (*e != kind))
            fail_msg("%s: entry %td", expected, e - expected);
    }
}

CASE(test_order_finds_the_holders)
{
    holds("W");
    holds("Ww");
    holds("Wrr");
    holds("R");
    holds("RRwr");
    holds("DRR");
    holds("DRwr");
    holds("DdR");
    holds("RdR");
    holds("Wdr");
}

CASE(test_order_means)
{
    struct hf__query q = {0};

    assert_true(hf__order_means_all(&q));
    assert_true(hf__order_means(&q, 7, "me"));
    q.token = 7;
    assert_false(hf__order_means_all(&q));
    assert_true(hf__order_means(&q, 7, "me"));
    assert_false(hf__order_means(&q, 8, "me"));
    strcpy(q.owner, "me");
    assert_true(hf__order_means(&q, 7, "me"));
    assert_false(hf__order_means(&q, 7, "you"));
    q.token = 0;
    assert_false(hf__order_means_all(&q));
    assert_true(hf__order_means(&q, 8, "me"));
    assert_false(hf__order_means(&q, 8, "you"));
}

CASE(test_latch_requests_are_sent_again_in_their_session)
{
    struct hf__latch_requests l = {0};

    assert_int_equal(hf__latch_request(&l, 11, 1), HF__LATCH_FIRST);
    assert_int_equal(hf__latch_request(&l, 11, 1), HF__LATCH_AGAIN);
    assert_int_equal(hf__latch_request(&l, 11, 3), HF__LATCH_FIRST);
    assert_int_equal(hf__latch_request(&l, 12, 3), HF__LATCH_IN_DOUBT);
    assert_int_equal(hf__latch_request(&l, 12, 1), HF__LATCH_IN_DOUBT);
    assert_int_equal(hf__latch_request(&l, 12, 4), HF__LATCH_FIRST);
    assert_int_equal(hf__latch_request(&l, 12, 4), HF__LATCH_AGAIN);
    assert_int_equal(hf__latch_request(&l, 12, 3), HF__LATCH_IN_DOUBT);
    assert_int_equal(hf__latch_request(&l, 11, 4), HF__LATCH_IN_DOUBT);
}

CASE(test_arena_keeps_one_block)
{
    struct hf__arena a;
    char *piece[200];

    hf__arena_init(&a, &core, NULL, 1u << 20);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            piece[i] = hf__arena_take(&a, (size_t)i);
            assert_non_null(piece[i]);
            assert_int_equal((uintptr_t)piece[i] % sizeof(void *), 0);
            memset(piece[i], i, (size_t)i);
        }
        for (int i = 1; i < 200; i++)
            assert_int_equal(piece[i][i - 1], (char)i);
        assert_true(blocks > 1);
        hf__arena_reset(&a);
        assert_int_equal(blocks, 1);
    }
    hf__arena_fini(&a);
    assert_int_equal(blocks, 0);
}

CASE(test_arena_has_a_bound)
{
    struct hf__arena a;

    hf__arena_init(&a, &core, NULL, 10000);
    assert_null(hf__arena_take(&a, SIZE_MAX));
    assert_null(hf__arena_take(&a, 10001));
    assert_non_null(hf__arena_take(&a, 6000));
    assert_null(hf__arena_take(&a, 6000));
    assert_true(hf__arena_is_full(&a));
    hf__arena_reset(&a);
    assert_non_null(hf__arena_take(&a, 4000));
    allowed = 0;
    assert_null(hf__arena_take(&a, 4000));
    assert_false(hf__arena_is_full(&a));
    allowed = SIZE_MAX;
    hf__arena_fini(&a);
    assert_int_equal(blocks, 0);
}

/* The findings reported so far, as lines like "1 ensemble: ...". */
static char found[1024];

static void test_find(hf_client *client, struct hf__query *q,
                      enum hf_level level, const char *subject, const char *fmt,
                      ...)
{
    size_t len = strlen(found);
    va_list ap;

    len += (size_t)snprintf(found + len, sizeof(found) - len,
                            "%d %s: ", (int)level, subject);
    va_start(ap, fmt);
    len += (size_t)vsnprintf(found + len, sizeof(found) - len, fmt, ap);
    va_end(ap);
    snprintf(found + len, sizeof(found) - len, "\n");
}

static void finds(unsigned voters, const char *hosts, const char *first,
                  const char *second)
{
    static const struct hf__core finder = {.find = test_find};
    const struct hf__quorum of = {"ensemble", "server", voters, hosts};
    const char *line;

    found[0] = '\0';
    hf__find_quorum(&finder, NULL, NULL, &of);
    line = strchr(found, '\n') + 1;
    if (strncmp(found, first, strlen(first)) != 0 ||
        strncmp(line, second, strlen(second)) != 0 || !*second != !*line)
        fail_msg("%u, %s: %s", voters, hosts, found);
}

CASE(test_quorum_says_how_many_may_be_down)
{
    finds(0, "a:1", "1 ensemble: only one server", "");
    finds(1, "a:1", "1 ensemble: only one server", "");
    finds(2, "a:1,b:1", "1 ensemble: 2 servers: no locks unless both", "0 ");
    finds(3, "a:1,b:1,c:1", "0 ensemble: 3 servers, of which 1 may",
          "0 hosts: the URL names 3 of 3");
    finds(4, "a:1,b:1,c:1,d:1", "1 ensemble: 4 servers, of which 1 may", "0 ");
    finds(5, "10.0.0.1:7,10.0.0.2:7", "0 ensemble: 5 servers, of which 2 may",
          "1 hosts: the URL names 2 of 5 servers: when these are down");
    finds(3, "[fe80::1]:7", "0 ", "1 hosts: the URL names 1 of 3 servers");
    finds(3, "zoo.example:7", "0 ", "0 hosts: the URL names 1 host, and");
}

CASES_MAIN(NULL, NULL);
