/* Internals of the MySQL backend: the meaning of the server's errors, the
 * report that a new connection is due, the pause between attempts, and the list
 * of waiters. */
#include "../../cases.h"
#include "backends/mysql/cmd.h"
#include "backends/mysql/error.h"
#include "backends/mysql/lock.h"
#include "backends/mysql/outcome.h"
#include "backends/mysql/query.h"
#include "backends/mysql/wait.h"
#include "backends/mysql/wire.h"

#include "../../../lib/bare_core.h"

static const struct meaning {
    uint16_t error;
    bool in_the_way, again;
    int code;
} meanings[] = {
    {1213, true, true, HF_EBACKEND},  /* a deadlock */
    {1205, true, true, HF_EBACKEND},  /* lock wait timeout */
    {1020, true, true, HF_EBACKEND},  /* the record has changed */
    {3058, true, true, HF_EBACKEND},  /* a deadlock of user locks */
    {3100, true, true, HF_EBACKEND},  /* refused by Group Replication */
    {3101, true, true, HF_EBACKEND},  /* rolled back by Group Replication */
    {1317, false, true, HF_EBACKEND}, /* KILL QUERY */
    {1969, false, true, HF_EBACKEND}, /* statement timeout of MariaDB */
    {3024, false, true, HF_EBACKEND}, /* statement timeout of MySQL */
    {1064, false, false, HF_EBACKEND},
    {1290, false, false, HF_EBACKEND}, /* read-only */
    {MY_NO_TABLE, false, false, HF_EBACKEND},
    {MY_FORBIDDEN, false, false, HF_EAUTH},
};

CASE(test_meanings)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++) {
        const struct meaning *is = &meanings[i];

        if (hf__my_means(is->error, MY_IN_THE_WAY) != is->in_the_way ||
            hf__my_means(is->error, MY_AGAIN) != is->again ||
            hf__my_code(is->error) != is->code)
            fail_msg("error %u has another meaning", is->error);
    }
}

static hf__time due_at = HF__NEVER;

static void note_due(hf_client *client, hf__time at)
{
    due_at = hf__min_time(due_at, at);
}

/* A wait for which no connection exists needs a new connection. Only advance()
 * creates connections, and advance() is called only when a timeout is due.
 * Therefore the wait must make a timeout due at once. */
CASE(test_new_connection_is_due)
{
    struct hf__core heeds = core;
    struct hf__remote remote = {.kind = HF_MUTEX, .label = ""};
    struct my_lock lock = {.remote = &remote};
    struct mysql m = {.core = &heeds, .waits_most = 1};

    heeds.due = note_due;
    assert_true(hf__my_wait(&m, &lock, true, 1));
    assert_non_null(lock.wait);
    assert_true(due_at <= now());
    assert_true(hf__my_waits_timeout(&m) <= now());
    hf__my_waits_fini(&m);
}

static char database[] = "d";

struct attempter {
    struct hf__remote remote;
    struct hf__req req;
};

/* Refuses the attempt: the lock is free, but another client is ahead in the
 * queue. The attempt then pauses. */
static void begin_nap(struct mysql *m, struct attempter *a, uint64_t hold_id)
{
    struct my_place place = {.free = true};

    *a = (struct attempter){
        .remote = {.name = "n",
                   .name_len = 1,
                   .kind = HF_MUTEX,
                   .label = "",
                   .attempt = &a->req},
        .req = {.op = HF__ATTEMPT, .hold_id = hold_id, .remote = &a->remote}};
    assert_int_equal(hf__my_attach(m, &a->remote), 0);
    ((struct my_lock *)a->remote.impl)->attempt_id = hold_id;
    hf__my_refused(m, &a->req, &place, now());
}

static bool naps(const struct mysql *m, const struct attempter *a)
{
    const struct my_lock *lock = m->naps;

    while (lock && lock != a->remote.impl)
        lock = lock->next_nap;
    return lock;
}

/* An abandoned attempt and a detached lock are removed from the list of
 * pauses. */
CASE(test_nap_is_given_up)
{
    struct hf__core heeds = core;
    struct mysql m = {.core = &heeds, .login = {.database = database}};
    struct attempter a, b, c;
    struct hf__req abandon = {.op = HF__ABANDON, .hold_id = 1};

    heeds.due = note_due;
    begin_nap(&m, &a, 1);
    begin_nap(&m, &b, 2);
    begin_nap(&m, &c, 3);
    abandon.remote = &a.remote;
    assert_int_equal(hf__my_abandon(&m, &abandon), HF__DONE);
    assert_false(naps(&m, &a));
    hf__my_detach(&m, &b.remote);
    assert_true(m.naps == c.remote.impl && !m.naps->next_nap);
    hf__my_detach(&m, &c.remote);
    hf__my_detach(&m, &a.remote);
    assert_null(m.naps);
    assert_true(hf__my_naps_timeout(&m) == HF__NEVER);
}

static const struct hf__req *unsent;

static void note_unsent(hf_client *client, struct hf__req *req)
{
    unsent = req;
}

/* There is no connection when the pause ends: the request is returned to the
 * core. */
CASE(test_nap_ends_without_a_connection)
{
    struct hf__core heeds = core;
    struct mysql m = {.core = &heeds, .login = {.database = database}};
    struct attempter a;
    hf__time at;

    heeds.due = note_due;
    heeds.unsent = note_unsent;
    due_at = HF__NEVER;
    begin_nap(&m, &a, 1);
    at = hf__my_naps_timeout(&m);
    assert_true(at < HF__NEVER && due_at == at);
    hf__my_naps_advance(&m, at - 1);
    assert_true(naps(&m, &a) && !unsent);
    hf__my_naps_advance(&m, at);
    assert_true(!m.naps && unsent == &a.req && m.put_off);
    hf__my_detach(&m, &a.remote);
}

static hf_party *add_waiter(hf_client *client, struct hf__query *q, bool holds)
{
    assert_false(holds);
    assert_true(q->info->waiters_len < 4);
    return &q->info->waiters[q->info->waiters_len++];
}

static void ignore_done(hf_client *client, struct hf__req *req)
{
}

#define ALICE "a11cea11cea11cea11cea11cea11ce00"
#define BOB "b0bb0bb0bb0bb0bb0bb0bb0bb0bb0b00"

struct one { /* a row */
    struct my_row row;
    struct my_value value[4];
};

static size_t waiters_of(const char *kind, hf_party *waiters)
{
    /* Each row consists of the hash, owner, hold id, pid, mode, permits and
     * start of the wait, followed by the host and the label. */
    static const char *const said[] = {
        "/*hf:00 " ALICE " 7 1 1 1 10000 61. 62.*/ ",
        "/*hf:00 " ALICE " 6 1 1 1 20000 61. 62.*/ ",
        "/*hf:00 " ALICE " 7 1 1 1 40000 61. 62.*/ ",
        "/*hf:00 " BOB " 9 1 1 1 30000 61. 62.*/ "};
    struct one about = {.value = {{kind, 1}, {"3", 1}, {"5", 1}, {"1", 1}}};
    struct one row[4] = {0};
    struct my_result says[4] = {
        {.next = &says[1], .columns = 4, .rows = &about.row},
        {.next = &says[2], .columns = 10},
        {.next = &says[3], .columns = 10},
        {.columns = 1, .rows = &row[0].row}};
    struct hf__core heeds = core;
    struct mysql m = {.core = &heeds};
    hf_info info = {.waiters = waiters};
    struct hf__query q = {.req = {.op = HF__INSPECT}, .info = &info};
    struct my_flight f = {.op = HF__INSPECT, .req = &q.req};
    const struct my_answer a = {.first = says, .last = &says[3]};

    for (int i = 0; i < 4; i++) {
        row[i].value[0].text = said[i];
        row[i].row.next = i < 3 ? &row[i + 1].row : NULL;
    }
    heeds.add_party = add_waiter;
    heeds.done = ignore_done;
    assert_int_equal(hf__my_query_answer(&m, &f, &a), 0);
    assert_int_equal(q.req.result, HF__DONE);
    return info.waiters_len;
}

/* The server's process list may still show a statement that has just ended: a
 * waiter that appears in two statements is reported once. */
CASE(test_waiters_are_seen_once)
{
    hf_party waiters[4] = {0};

    assert_int_equal(waiters_of("1", waiters), 2); /* a mutex */
    assert_string_equal(waiters[0].owner, BOB ":9");
    assert_string_equal(waiters[1].owner, ALICE ":7");
    assert_int_equal(waiters[1].since_unix_ms, 40);
    assert_int_equal(waiters_of("3", waiters), 3); /* a semaphore */
    assert_string_equal(waiters[0].owner, ALICE ":6");
}

static char reason[128];

static int note_why(hf_client *client, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    return code;
}

/* Returns the error message of an attempt on a semaphore of 2 permits if the
 * name is in use with this kind and 3 permits. If `kind` is NULL, the attempt
 * has converted the name to a semaphore, but another client has converted it to
 * another kind since, which the attempt does not know. */
static const char *mismatch_with(const char *kind)
{
    struct hf__core heeds = core;
    struct mysql m = {.core = &heeds, .login = {.database = database}};
    struct hf__remote remote = {
        .name = "n", .name_len = 1, .kind = HF_SEMAPHORE, .permits = 2};
    struct hf__req req = {.op = HF__ATTEMPT, .remote = &remote};
    struct one row = {.value = {{"0", 1}, {kind, kind != NULL}, {"3", 1}}};
    struct my_result says = {.columns = 3, .rows = &row.row};
    const struct my_answer a = {.first = &says, .last = &says};

    heeds.why = note_why;
    heeds.done = ignore_done;
    assert_int_equal(hf__my_attach(&m, &remote), 0);
    if (kind) {
        assert_int_equal(hf__my_converted(&m, &req, &a), 0);
    } else {
        ((struct my_lock *)remote.impl)->conversion = MY_CONVERTED;
        hf__my_other_kind(&m, &req);
    }
    assert_int_equal(req.result, HF_EMISMATCH);
    hf__my_detach(&m, &remote);
    return reason;
}

CASE(test_mismatch_says_how_many_permits)
{
    assert_string_equal(mismatch_with("3"),
                        "the semaphore has 3 permits, not 2");
    assert_string_equal(mismatch_with("1"),
                        "the name is in use as another kind of lock");
    assert_string_equal(mismatch_with(NULL),
                        "the name is in use as another kind of lock, or as a "
                        "semaphore of another size");
}

/* ---- advice ------------------------------------------------------------- */

/* With long names, there is no room for all commands; those that fit must be
 * complete. */
CASE(test_advice_is_not_cut_within_a_command)
{
    static const char text[] =
        "SELECT command denied to user 'a_user_with_a_name_of_32_letters'@"
        "'a-host-with-a-long-name.in-a-long-domain.example.com' for table "
        "'holdfast_locks'";
    char name[65], to[640];
    struct my_login login = {.database = name};
    struct my_result says = {.error = 1142, .text = text};
    const struct my_answer a = {.first = &says, .last = &says};
    const char *last;

    memset(name, 'd', 64);
    name[64] = '\0';
    hf__my_advice(&a, &login, to, sizeof(to));
    assert_int_equal(strncmp(to, "grant select, ", 14), 0);
    last = strrchr(to, ';');
    assert_non_null(last);
    assert_non_null(strstr(last, "long-domain.example.com'"));
}

CASES_MAIN(NULL, NULL);
