/*
 * Opening a client with a test backend that fails with each code in turn:
 * hf_open() returns the code, and frees everything of the client.
 */
#include "../cases.h"
#include "../server_fixture.h"

#include <dirent.h>

static const int codes[] = {
#define CODE(name, number, text) number,
    HF_ERRORS(CODE)
#undef CODE
};

struct left {
    size_t blocks, descriptors, helpers;
};

static size_t blocks; /* atomic: number of blocks not freed yet */

static void *take(void *ctx, size_t size)
{
    __atomic_add_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
    return malloc(size);
}

static void give(void *ctx, void *p)
{
    __atomic_sub_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
    free(p);
}

static bool is_any(const char *name)
{
    return name[0] != '.';
}

/* Returns whether the thread is a helper thread of the library; a sanitizer has
 * threads too. */
static bool is_helper(const char *tid)
{
    char path[64], name[32];

    snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", tid);
    wait_read(path, name, sizeof(name));
    return !strcmp(name, "hf-helper\n");
}

static size_t count(const char *path, bool (*counts)(const char *name))
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    size_t len = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        len += counts(entry->d_name);
    closedir(dir);
    return len;
}

static struct left look(void)
{
    return (struct left){__atomic_load_n(&blocks, __ATOMIC_SEQ_CST),
                         count("/proc/self/fd", is_any),
                         count("/proc/self/task", is_helper)};
}

/* Returns whether nothing is left over. The helper thread may still be exiting,
 * so callers repeat the call. */
static bool is_as_before(const struct left *before)
{
    struct left now = look();

    return now.blocks == before->blocks &&
           now.descriptors == before->descriptors &&
           now.helpers == before->helpers;
}

static int open_it(int64_t connect_timeout_ms, int64_t open_timeout_ms,
                   hf_error *err)
{
    static const hf_hooks hooks = {.alloc = take, .free = give};
    hf_client_options opt =
        CLIENT_OPTIONS(.hooks = &hooks,
                       .connect_timeout_ms = connect_timeout_ms,
                       .open_timeout_ms = open_timeout_ms);
    hf_client *c;
    int rc;

    rc = hf_open("test://", &opt, &c, err);
    if (rc)
        assert_null(c);
    else
        assert_int_equal(hf_close(c), 0);
    return rc;
}

/* Returns what hf_open() must return if the backend fails with `code`.
 * hf_open() never returns HF_EUNKNOWN, because a failed open leaves nothing in
 * doubt at the server. */
static int expected(int code)
{
    return code == HF_EUNKNOWN ? HF_EBACKEND : code;
}

static void fail_with(int opens, int gets_ready)
{
    struct left before = look();
    hf_error err = {0};
    int code = expected(opens ? opens : gets_ready);

    memset(&server, 0, sizeof(server));
    server.opens = opens;
    server.gets_ready = gets_ready;
    assert_int_equal(open_it(WAIT_LONG_MS, 0, &err), code);
    assert_int_equal(err.code, code);
    assert_true(strlen(err.text) > 0);
    assert_int_equal(server.closed, !opens);
    assert_true(WAIT_FOR(is_as_before(&before)));
}

CASE(test_open_failure_of_any_code_leaves_nothing)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        fail_with(codes[i], 0);
}

CASE(test_open_connecting_that_fails_leaves_nothing)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        fail_with(0, codes[i]);
}

static uint32_t may_return; /* atomic */

static void open_slowly(const struct hf__config *config)
{
    WAIT_FOR(__atomic_load_n(&may_return, __ATOMIC_SEQ_CST));
}

/* Lets the backend's open() return `opens` after hf_open() has given up. */
static void return_too_late(int opens)
{
    struct left before = look();
    hf_error err = {0};

    memset(&server, 0, sizeof(server));
    server.opens = opens;
    server.in_open = open_slowly;
    __atomic_store_n(&may_return, 0, __ATOMIC_SEQ_CST);
    assert_int_equal(open_it(1, 0, &err), HF_EBACKEND);
    assert_int_equal(err.code, HF_EBACKEND);
    assert_non_null(strstr(err.text, "took longer than 1 ms"));
    __atomic_store_n(&may_return, 1, __ATOMIC_SEQ_CST);
    assert_true(WAIT_FOR(is_as_before(&before)));
    assert_int_equal(server.closed, !opens);
}

CASE(test_open_given_up_leaves_nothing)
{
    return_too_late(0);
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        return_too_late(codes[i]);
}

static struct hf__config given; /* what the backend received */

static void note_times(const struct hf__config *config)
{
    given = *config;
}

static void expect_times(int64_t connect_ms, int64_t open_ms, uint32_t expected)
{
    memset(&server, 0, sizeof(server));
    server.in_open = note_times;
    assert_int_equal(open_it(connect_ms, open_ms, NULL), 0);
    assert_int_equal(given.connect_timeout_ms, connect_ms);
    assert_int_equal(given.open_timeout_ms, expected);
}

CASE(test_open_timeout_is_for_open_alone)
{
    expect_times(WAIT_LONG_MS, 0, WAIT_LONG_MS);
    expect_times(WAIT_LONG_MS, WAIT_LONG_MS - 1, WAIT_LONG_MS - 1);
    expect_times(WAIT_LONG_MS, 2 * WAIT_LONG_MS, WAIT_LONG_MS);
}

/* The backend's open() takes longer than open_timeout. */
CASE(test_open_ends_at_open_timeout)
{
    hf_error err = {0};
    struct left before = look();

    memset(&server, 0, sizeof(server));
    server.in_open = open_slowly;
    __atomic_store_n(&may_return, 0, __ATOMIC_SEQ_CST);
    assert_int_equal(open_it(HF__MS_MAX, 1, &err), HF_EBACKEND);
    assert_non_null(strstr(err.text, "took longer than 1 ms"));
    __atomic_store_n(&may_return, 1, __ATOMIC_SEQ_CST);
    assert_true(WAIT_FOR(is_as_before(&before)));
}

CASE(test_open_timeout_that_is_wrong)
{
    static const int64_t wrong[] = {-1, HF__MS_MAX + 1LL};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        hf_error err = {0};

        assert_int_equal(open_it(0, wrong[i], &err), HF_EINVAL);
        assert_non_null(strstr(err.text, "open_timeout_ms is "));
    }
}

CASES_MAIN(NULL, NULL);
