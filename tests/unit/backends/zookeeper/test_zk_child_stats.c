/*
 * Requests about foreign children next to the client's entry. The cases run the
 * whole backend on a fake client library, whose answers the test provides. A
 * child of ZooKeeper's own recipe counts as an entry if it is ephemeral. The
 * answer about such a child is lost, is a refusal, arrives before a new entry
 * is created, or cannot be stored for lack of memory.
 */
#include "../../cases.h"
#include "backends/zookeeper/call.h"
#include "backends/zookeeper/cleanup.h"
#include "backends/zookeeper/entry.h"
#include "backends/zookeeper/lock.h"
#include "backends/zookeeper/notify.h"
#include "backends/zookeeper/queue.h"
#include "backends/zookeeper/zookeeper.h"

#define CASE_HERE(fn) CASE_AROUND(fn, begin, end)

#define NODE "/n"
#define STRANGER "x-5-0000000000"

enum what { CREATE, MULTI, EXISTS, LIST };
enum { CALLS_MAX = 32, GOES_ON = 99 };

struct call {
    enum what what;
    char path[200];
    void (*done)(void);
    const void *data;
    zoo_op_result_t *results; /* results of a MULTI */
};

static struct {
    struct zk z;
    struct hf__remote remote;
    struct hf__req req;
    struct call calls[CALLS_MAX]; /* in the order of sending */
    size_t len;
    char mine[100]; /* the client's own entry */
    long blocks;    /* number of allocated blocks */
    bool no_memory;
    int result;     /* how the attempt ended */
    char text[300]; /* the attempt's error message */
} fake;

static void *take(hf_client *c, size_t size)
{
    if (fake.no_memory)
        return NULL;
    fake.blocks++;
    return calloc(1, size);
}

static void give(hf_client *c, void *p)
{
    fake.blocks -= p != NULL;
    free(p);
}

static hf__time now(void)
{
    return 1;
}

static void over(hf_client *c, struct hf__req *req)
{
    fake.result = req->result;
}

static int why(hf_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fake.text, sizeof(fake.text), fmt, ap);
    va_end(ap);
    return code;
}

static void say(hf_client *c, const char *fmt, ...)
{
}

static void due(hf_client *c, hf__time at)
{
}

static const struct hf__core core = {.alloc = take,
                                     .free = give,
                                     .now = now,
                                     .done = over,
                                     .why = why,
                                     .lasts = why,
                                     .log = say,
                                     .due = due};

#define FAKE __attribute__((visibility("default"))) int

static int sent(enum what what, const char *path, void (*done)(void),
                const void *data)
{
    struct call *call = &fake.calls[fake.len];

    assert_true(fake.len++ < CALLS_MAX);
    *call = (struct call){.what = what, .done = done, .data = data};
    snprintf(call->path, sizeof(call->path), "%s", path);
    return ZOK;
}

FAKE zoo_state(zhandle_t *zh)
{
    return ZOO_CONNECTED_STATE;
}

FAKE zoo_acreate2(zhandle_t *zh, const char *path, const char *value, int len,
                  const struct ACL_vector *acl, int mode,
                  string_stat_completion_t done, const void *data)
{
    return sent(CREATE, path, (void (*)(void))done, data);
}

FAKE zoo_awexists(zhandle_t *zh, const char *path, watcher_fn watcher,
                  void *arg, stat_completion_t done, const void *data)
{
    return sent(EXISTS, path, (void (*)(void))done, data);
}

FAKE zoo_awget_children(zhandle_t *zh, const char *path, watcher_fn watcher,
                        void *arg, strings_completion_t done, const void *data)
{
    return sent(LIST, path, (void (*)(void))done, data);
}

FAKE zoo_amulti(zhandle_t *zh, int len, const zoo_op_t *ops,
                zoo_op_result_t *results, void_completion_t done,
                const void *data)
{
    const char *path =
        ops[len - 1].type == ZOO_CREATE_OP ? ops[len - 1].create_op.path : "";

    sent(MULTI, path, (void (*)(void))done, data);
    fake.calls[fake.len - 1].results = results;
    return ZOK;
}

/* The calls below are never answered. */
FAKE zoo_adelete(zhandle_t *zh, const char *path, int version,
                 void_completion_t done, const void *data)
{
    return ZOK;
}

FAKE zoo_awget(zhandle_t *zh, const char *path, watcher_fn watcher, void *arg,
               data_completion_t done, const void *data)
{
    return ZOK;
}

static struct call next_call(enum what what)
{
    struct call call = fake.calls[0];

    assert_true(fake.len > 0);
    assert_int_equal(call.what, what);
    memmove(fake.calls, fake.calls + 1, --fake.len * sizeof(call));
    return call;
}

static void answer_create(void)
{
    struct call call = next_call(CREATE);
    struct Stat stat = {.czxid = 9};
    char path[220];

    snprintf(path, sizeof(path), "%s0000000003", call.path);
    snprintf(fake.mine, sizeof(fake.mine), "%s", strrchr(path, '/') + 1);
    ((string_stat_completion_t)call.done)(ZOK, path, &stat, call.data);
}

static void answer_pair(void)
{
    struct call call = next_call(MULTI);

    snprintf(fake.mine, sizeof(fake.mine), "%s", strrchr(call.path, '/') + 1);
    ((void_completion_t)call.done)(ZOK, call.data);
}

static void answer_exists(int rc, const char *name, int64_t czxid,
                          int64_t owner)
{
    struct call call = next_call(EXISTS);
    struct Stat stat = {.czxid = czxid, .ephemeralOwner = owner};

    assert_string_equal(strrchr(call.path, '/') + 1, name);
    ((stat_completion_t)call.done)(rc, &stat, call.data);
}

static void answer_list(const char *first, const char *second)
{
    char *names[2] = {(char *)first, (char *)second};
    struct String_vector children = {.count = second ? 2 : 1, .data = names};
    struct call call = next_call(LIST);

    ((strings_completion_t)call.done)(ZOK, &children, call.data);
}

static void both_are_listed(void)
{
    answer_list(STRANGER, fake.mine);
}

static int begin(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.z.core = fake.z.watches.core = &core;
    fake.z.zh = (zhandle_t *)&fake; /* the fake client library never reads it */
    fake.z.up = true;
    fake.z.session_id = 8;
    fake.z.timeout_ms = 30000;
    fake.z.root = "";
    fake.remote = (struct hf__remote){.name = "n",
                                      .name_len = 1,
                                      .kind = HF_MUTEX,
                                      .mode = HF_WRITE,
                                      .fair = true,
                                      .label = ""};
    return hf__zk_lock_attach(&fake.z, &fake.remote);
}

static int end(void **state)
{
    hf__zk_lock_detach(&fake.z, &fake.remote);
    fake.z.closing = true;
    hf__table_fini(&fake.z.watches);
    hf__zk_notify_fini(&fake.z);
    hf__zk_nodes_fini(&fake.z);
    hf__zk_calls_fini(&fake.z);
    return fake.blocks ? -1 : 0;
}

static void attempt(void)
{
    fake.result = GOES_ON;
    fake.req = (struct hf__req){.remote = &fake.remote,
                                .hold_id = 1,
                                .op = HF__ATTEMPT,
                                .lease_ms = 30000};
    fake.remote.attempt = &fake.req;
    assert_int_equal(
        hf__zk_lock_attempt(&fake.z, &fake.req, hf__zk_queue_attempt),
        HF__PENDING);
}

/* Runs an attempt up to the request about the foreign child. */
static void enter(void)
{
    attempt();
    answer_create();
    both_are_listed();
    assert_int_equal(fake.result, GOES_ON);
}

CASE_HERE(test_ephemeral_one_has_the_lock)
{
    enter();
    answer_exists(ZOK, STRANGER, 7, 5);
    both_are_listed();
    assert_int_equal(fake.result, HF__BUSY);
}

CASE_HERE(test_one_that_lasts_does_not_count)
{
    enter();
    answer_exists(ZOK, STRANGER, 7, 0);
    both_are_listed();
    assert_int_equal(fake.result, HF__GRANTED);
}

CASE_HERE(test_without_memory_nothing_is_granted)
{
    enter();
    answer_exists(ZOK, STRANGER, 7, 5);
    fake.no_memory = true;
    both_are_listed();
    assert_int_equal(fake.result, HF__BUSY);
}

CASE_HERE(test_without_memory_no_unfair_one_is_granted)
{
    fake.remote.fair = false;
    hf__zk_lock_detach(&fake.z, &fake.remote);
    assert_int_equal(hf__zk_lock_attach(&fake.z, &fake.remote), 0);
    attempt();
    answer_pair();
    answer_exists(ZOK, fake.mine, 9, 8);
    both_are_listed();
    answer_exists(ZOK, STRANGER, 7, 5);
    fake.no_memory = true;
    both_are_listed();
    assert_int_equal(fake.result, HF_EMISMATCH);
}

/* The answer about the child is lost, but the list of children arrives: the
 * request about the child is sent again. */
CASE_HERE(test_question_that_is_lost_is_asked_again)
{
    long blocks;

    enter();
    blocks = fake.blocks;
    for (int i = 0; i < 10; i++) {
        answer_exists(ZCONNECTIONLOSS, STRANGER, 0, 0);
        both_are_listed();
        assert_int_equal(fake.result, GOES_ON);
        assert_int_equal(fake.blocks, blocks);
    }
    answer_exists(ZOK, STRANGER, 7, 5);
    both_are_listed();
    assert_int_equal(fake.result, HF__BUSY);
}

/* The server refuses the request. It would refuse every repeated request too,
 * which is why the attempt ends. */
CASE_HERE(test_question_that_is_refused_ends_the_attempt)
{
    enter();
    answer_exists(ZNOAUTH, STRANGER, 0, 0);
    both_are_listed();
    assert_int_equal(fake.result, HF_EAUTH);
    assert_int_equal(fake.len, 0);
}

/* All entries were deleted, including ours, and the sequence restarted. A new
 * child has the name of a deleted one: the client asks the server again whether
 * the child is ephemeral. */
CASE_HERE(test_new_entry_asks_anew)
{
    enter();
    answer_exists(ZNONODE, STRANGER, 0, 0);
    answer_list(STRANGER, NULL);
    answer_create();
    both_are_listed();
    assert_int_equal(fake.result, GOES_ON);
    answer_exists(ZOK, STRANGER, 17, 5);
    both_are_listed();
    assert_int_equal(fake.result, HF__BUSY);
}

/* The answer about a deleted child arrives while the client creates its new
 * entry. The answer does not count for a new child of the same name. */
CASE_HERE(test_answer_of_the_time_before_is_not_used)
{
    struct call early;

    enter();
    early = next_call(EXISTS);
    answer_list(STRANGER, NULL);
    ((stat_completion_t)early.done)(ZNONODE, NULL, early.data);
    answer_create();
    both_are_listed();
    assert_int_equal(fake.result, GOES_ON);
    answer_exists(ZOK, STRANGER, 17, 5);
    both_are_listed();
    assert_int_equal(fake.result, HF__BUSY);
}

/* A child that does not exist is not remembered, because its name may next
 * belong to an ephemeral child. */
CASE_HERE(test_one_that_had_gone_is_not_remembered)
{
    const struct zk_lock *lock = fake.remote.impl;
    char other[] = "x-6-0000000001";

    enter();
    answer_exists(ZNONODE, STRANGER, 0, 0);
    {
        char *names[] = {(char[]){STRANGER}, other, fake.mine};
        struct String_vector children = {.count = 3, .data = names};
        struct call call = next_call(LIST);

        ((strings_completion_t)call.done)(ZOK, &children, call.data);
    }
    assert_int_equal(fake.result, HF__GRANTED);
    assert_true(lock->strangers == 0);
}

CASE_HERE(test_mismatch_names_both_kinds)
{
    attempt();
    answer_create();
    answer_list("lock", fake.mine);
    assert_int_equal(fake.result, HF_EMISMATCH);
    assert_string_equal(fake.text, "\"n\" is in use as an unfair mutex; you "
                                   "asked for a fair mutex");
}

CASES_MAIN(NULL, NULL);
