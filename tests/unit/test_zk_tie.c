/*
 * What is asked about the children beside an entry, against a fake server whose
 * answers the test gives: one that cannot be told, one that is refused, one
 * that is about the time before a new entry; and no memory for any of it.
 */
#include "../../src/backends/zookeeper/zookeeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STRANGER "x-5-0000000000"
#define DIR "/n"
#define MINE "_c_00000000-0000-4000-8000-000000000001-lock-0000000003"

enum { ASKED_MAX = 8 };

static struct {
    struct zk z;
    struct zk_line *line;
    struct zk_node *node;
    struct hf__req req;
    struct {
        zk_done_fn *done;
        void *owner;
    } asked[ASKED_MAX];
    size_t asks;    /* not answered yet */
    unsigned lists; /* sent */
    long blocks;    /* of memory */
    bool no_memory;
    int result; /* of the line's ask; 1: it goes on */
    int denied; /* the server's code for that */
} fake;

static void *take(hf_client *c, size_t size)
{
    (void)c;
    if (fake.no_memory)
        return NULL;
    fake.blocks++;
    return calloc(1, size);
}

static void give(hf_client *c, void *p)
{
    (void)c;
    fake.blocks -= p != NULL;
    free(p);
}

static hf__time now(void)
{
    return 0;
}

static const struct hf__core core = {.alloc = take, .free = give, .now = now};

/* ---- what tie.c and stranger.c call -------------------------------------- */

int hf__zk_exists(struct zk *z, const char *path, zk_done_fn *done, void *owner)
{
    (void)z;
    assert_string_equal(path, DIR "/" STRANGER);
    assert_true(fake.asks < ASKED_MAX);
    fake.asked[fake.asks].done = done;
    fake.asked[fake.asks++].owner = owner;
    return 0;
}

bool hf__zk_lost(int rc)
{
    return rc == ZCONNECTIONLOSS;
}

int hf__zk_denied(struct zk *z, int rc, const char *right, const char *path)
{
    (void)z;
    assert_string_equal(right, "READ");
    assert_string_equal(path, DIR "/" STRANGER);
    fake.denied = rc;
    return HF_EAUTH;
}

const char *hf__zk_node_name(const struct zk_node *node)
{
    return node->path + node->dir_len + 1;
}

int hf__zk_node_list(struct zk_node *node, zk_done_fn *listed)
{
    (void)node;
    (void)listed;
    fake.lists++;
    return 0;
}

void hf__zk_node_called(struct zk_node *node)
{
    node->calls--;
}

void hf__zk_fail(struct zk_line *line, int rc)
{
    (void)line;
    fake.result = rc;
}

/* ---- a place among the children ------------------------------------------ */

static char *names[] = {(char[]){STRANGER}, (char[]){MINE}};
static const struct String_vector children = {.count = 2, .data = names};

static void listed(struct zk *z, void *owner, int rc,
                   const struct zk_reply *reply)
{
    (void)z;
    (void)owner;
    (void)rc;
    (void)reply;
}

/* As the kinds do with a list: what becomes of the ask. 1: it goes on; or a
 * code, or HF__BUSY or HF__GRANTED. */
static int judge(void)
{
    struct zk_place place;
    struct zk_entry mine;
    int64_t *czxid;
    int rc = hf__zk_ties_known(fake.node, &children, &czxid);

    if (rc)
        return rc;
    hf__zk_entry_parse(MINE, &mine);
    hf__zk_place(children.data, czxid, 2, &mine, ZK_RULE_MUTEX, &place);
    core.free(NULL, czxid);
    fake.result = 1;
    if (place.stranger != ZK_NOBODY &&
        hf__zk_strangers(fake.node, &children, ZK_RULE_MUTEX, mine.seq, listed))
        return fake.result;
    return place.ahead ? HF__BUSY : HF__GRANTED;
}

static void answer(int rc, int64_t czxid, int64_t owner)
{
    struct Stat stat = {.czxid = czxid, .ephemeralOwner = owner};
    struct zk_reply reply = {.stat = &stat};

    assert_true(fake.asks > 0);
    fake.asks--;
    fake.asked[fake.asks].done(&fake.z, fake.asked[fake.asks].owner, rc,
                               &reply);
}

/* What hf__zk_node_create() does to an entry that is made anew. */
static void make_anew(void)
{
    fake.node->asked = false;
    hf__zk_ties_forget(&fake.z, fake.node);
}

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof(fake));
    fake.z.core = &core;
    fake.line = calloc(1, sizeof(*fake.line) + sizeof(DIR));
    fake.node = calloc(1, sizeof(*fake.node) + sizeof(DIR "/" MINE));
    if (!fake.line || !fake.node)
        return -1;
    fake.line->z = fake.node->z = &fake.z;
    fake.line->node = fake.node;
    fake.node->line = fake.line;
    fake.line->ask = &fake.req;
    strcpy(fake.line->path, DIR);
    strcpy(fake.node->path, DIR "/" MINE);
    fake.node->dir_len = sizeof(DIR) - 1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf__zk_ties_forget(&fake.z, NULL);
    free(fake.line);
    free(fake.node);
    return fake.blocks ? -1 : 0;
}

/* ---- the cases ------------------------------------------------------------
 */

static void test_ephemeral_one_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(judge(), 1);
    answer(ZOK, 7, 5);
    assert_int_equal(judge(), HF__BUSY);
    assert_int_equal(fake.node->calls, 0);
}

static void test_without_memory_nothing_is_granted(void **state)
{
    (void)state;
    assert_int_equal(judge(), 1);
    answer(ZOK, 7, 5);
    fake.no_memory = true;
    assert_int_equal(judge(), HF_ENOMEM);
    fake.no_memory = false;
    assert_int_equal(judge(), HF__BUSY);
}

static void test_without_memory_to_ask_nothing_is_granted(void **state)
{
    (void)state;
    fake.no_memory = true;
    assert_int_equal(judge(), HF_ENOMEM);
    fake.no_memory = false;
    assert_int_equal(judge(), 1);
    assert_int_equal(fake.asks, 1);
}

static void test_what_is_not_known_yet_is_not_passed(void **state)
{
    (void)state;
    assert_int_equal(judge(), 1);
    assert_int_equal(judge(), 1); /* a list that came before the answer */
    assert_int_equal(fake.asks, 1);
    assert_int_equal(fake.lists, 2);
    answer(ZCONNECTIONLOSS, 0, 0);
    assert_int_equal(judge(), 1);
    assert_int_equal(fake.asks, 1);
}

static void test_asked_again_it_takes_no_more_memory(void **state)
{
    long blocks;

    (void)state;
    assert_int_equal(judge(), 1);
    blocks = fake.blocks;
    for (int i = 0; i < 10; i++) {
        answer(ZCONNECTIONLOSS, 0, 0);
        assert_int_equal(judge(), 1);
        assert_int_equal(fake.blocks, blocks);
    }
}

/* Asked once more, the server would say the same at once, for ever. */
static void test_refusal_is_told(void **state)
{
    (void)state;
    assert_int_equal(judge(), 1);
    answer(ZNOAUTH, 0, 0);
    assert_int_equal(judge(), HF_EAUTH);
    assert_int_equal(fake.denied, ZNOAUTH);
    assert_int_equal(fake.asks, 0);
    assert_int_equal(fake.lists, 1);
}

static void test_new_entry_asks_anew(void **state)
{
    (void)state;
    assert_int_equal(judge(), 1);
    answer(ZNONODE, 0, 0);
    assert_int_equal(judge(), HF__GRANTED);
    make_anew();
    assert_int_equal(judge(), 1);
    answer(ZOK, 7, 5);
    assert_int_equal(judge(), HF__BUSY);
}

static void test_answer_to_the_entry_before_is_not_used(void **state)
{
    (void)state;
    assert_int_equal(judge(), 1);
    make_anew();
    answer(ZNONODE, 0, 0);
    assert_int_equal(judge(), 1);
    assert_int_equal(fake.asks, 1);
    answer(ZOK, 7, 5);
    assert_int_equal(judge(), HF__BUSY);
    assert_int_equal(fake.node->calls, 0);
}

/* A name that is free may be taken by an ephemeral one: it does not last. */
static void test_one_that_had_gone_is_not_remembered_as_lasting(void **state)
{
    uint64_t hash = hf__zk_stranger_hash(STRANGER);

    (void)state;
    assert_int_equal(judge(), 1);
    answer(ZNONODE, 0, 0);
    hf__zk_strangers(fake.node, &children, ZK_RULE_MUTEX, 3, listed);
    assert_true(fake.line->strangers != hash);
    make_anew();
    assert_int_equal(judge(), 1);
    answer(ZOK, 7, 0);
    hf__zk_strangers(fake.node, &children, ZK_RULE_MUTEX, 3, listed);
    assert_true(fake.line->strangers == hash);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        T(test_ephemeral_one_is_waited_for),
        T(test_without_memory_nothing_is_granted),
        T(test_without_memory_to_ask_nothing_is_granted),
        T(test_what_is_not_known_yet_is_not_passed),
        T(test_asked_again_it_takes_no_more_memory),
        T(test_refusal_is_told),
        T(test_new_entry_asks_anew),
        T(test_answer_to_the_entry_before_is_not_used),
        T(test_one_that_had_gone_is_not_remembered_as_lasting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
