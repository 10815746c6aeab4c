/* Parts of the backend by themselves: what the server's errors mean, and who is
 * told of a connection that is to be made. */
#include "../../src/backends/mysql/mysql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/bare_core.h"

static const struct meaning {
    uint16_t error;
    bool in_the_way, again;
    int code;
} meanings[] = {
    {1213, true, true, HF_EBACKEND},  /* a deadlock */
    {1205, true, true, HF_EBACKEND},  /* a lock that was waited for */
    {1020, true, true, HF_EBACKEND},  /* a record that has changed */
    {3058, true, true, HF_EBACKEND},  /* a deadlock of user locks */
    {3100, true, true, HF_EBACKEND},  /* Group Replication refuses it, */
    {3101, true, true, HF_EBACKEND},  /* or rolls it back */
    {1317, false, true, HF_EBACKEND}, /* KILL QUERY */
    {1969, false, true, HF_EBACKEND}, /* it took too long, MariaDB */
    {3024, false, true, HF_EBACKEND}, /* the same, MySQL */
    {1064, false, false, HF_EBACKEND},
    {1290, false, false, HF_EBACKEND}, /* read-only */
    {MY_NO_TABLE, false, false, HF_EBACKEND},
    {MY_FORBIDDEN, false, false, HF_EAUTH},
};

static void test_meanings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++) {
        const struct meaning *is = &meanings[i];

        if (hf__my_in_the_way(is->error) != is->in_the_way ||
            hf__my_again(is->error) != is->again ||
            hf__my_code(is->error) != is->code)
            fail_msg("error %u means something else", is->error);
    }
}

static hf__time due_at = HF__NEVER;

static void note_due(hf_client *client, hf__time at)
{
    (void)client;
    due_at = hf__min_time(due_at, at);
}

/* A slot may be what makes it, and advance() only comes when it is due. */
static void test_new_connection_is_due(void **state)
{
    struct hf__core heeds = core;
    struct hf__remote remote = {.kind = HF_MUTEX, .label = ""};
    struct my_line line = {.remote = &remote};
    struct mysql m = {.core = &heeds, .waits_most = 1};

    (void)state;
    heeds.due = note_due;
    assert_true(hf__my_wait(&m, &line, true, 1));
    assert_non_null(line.wait);
    assert_true(due_at <= now());
    assert_true(hf__my_waits_timeout(&m) <= now());
    hf__my_waits_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meanings),
        cmocka_unit_test(test_new_connection_is_due)};

    return cmocka_run_group_tests_name("inside", tests, NULL, NULL);
}
