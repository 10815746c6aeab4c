/* The statements of a mutex attempt, which must be the ones that the comment
 * of mutex.c shows, and the statement or outcome that follows each answer. The
 * effects of RINGS, LEFT_US and @b are tested only by the fault tests.
 *
 *     test_mysql_sql MUTEX_C
 *     test_mysql_sql             prints the statements, for that comment */
#include "../../cases.h"
#include "backends/mysql/cmd.h"
#include "backends/mysql/lock.h"
#include "backends/mysql/mutex.h"
#include "backends/mysql/wait.h"
#include "backends/mysql/wire.h"

#include <ctype.h>

#include "../../../lib/bare_core.h"

#define THREAD 298
#define HEAD 5 /* length of a packet's header and command byte */

static const char *mutex_c;
static char database[] = "d";

struct scene {
    struct hf__core core;
    struct mysql m;
    struct hf__remote remote;
    struct hf__req req;
    struct my_lock *lock;
    struct my_wait wait;
};

static const struct hf__req *done, *unsent;

static void note_done(hf_client *client, struct hf__req *req)
{
    done = req;
}

static void note_unsent(hf_client *client, struct hf__req *req)
{
    unsent = req;
}

/* Sets up an attempt at a fair mutex, whose waiter has connection id 298. */
static void set_up(struct scene *s)
{
    *s = (struct scene){.core = core,
                        .m = {.login = {.database = database},
                              .owner = "the-owner-16-by",
                              .host = "host",
                              .pid = 4321},
                        .remote = {.name = "name",
                                   .name_len = 4,
                                   .kind = HF_MUTEX,
                                   .mode = HF_WRITE,
                                   .fair = true,
                                   .label = "label"},
                        .req = {.op = HF__ATTEMPT,
                                .hold_id = 7001,
                                .lease_ms = 30000,
                                .meant_until = HF__NEVER}};
    s->core.done = note_done;
    s->core.unsent = note_unsent;
    s->m.core = &s->core;
    s->req.remote = &s->remote;
    hf__my_conn_init(&s->m.cmd, &s->core, NULL, &hf__my_cmd, &s->m,
                     sizeof(struct my_flight));
    assert_int_equal(hf__my_attach(&s->m, &s->remote), 0);
    s->lock = s->remote.impl;
    s->lock->attempt_id = s->req.hold_id;
    s->wait.conn.thread = THREAD;
    s->wait.state = MY_QUEUES;
    s->lock->wait = &s->wait;
    done = unsent = NULL;
}

static void tear_down(struct scene *s)
{
    s->lock->wait = NULL;
    hf__my_detach(&s->m, &s->remote);
    hf__my_conn_fini(&s->m.cmd);
}

static void hex(char *to, const char *begin, const void *bytes, size_t len,
                const char *end)
{
    strcpy(to, begin);
    for (size_t i = 0; i < len; i++)
        sprintf(to + strlen(to), "%02x", ((const unsigned char *)bytes)[i]);
    strcat(to, end);
}

static void replace(char *text, size_t size, const char *what, const char *by)
{
    for (char *at = text; (at = strstr(at, what)); at += strlen(by)) {
        size_t rest = strlen(at + strlen(what)) + 1;

        assert_true((size_t)(at - text) + strlen(by) + rest <= size);
        memmove(at + strlen(by), at + strlen(what), rest);
        memcpy(at, by, strlen(by));
    }
}

/* Writes the statement of the step, with names in place of the values that
 * differ between attempts. */
static void statement(enum my_step step, char *to, size_t size)
{
    struct scene s;
    const struct net_out *out;
    char value[128];

    set_up(&s);
    s.lock->step = step;
    assert_int_equal(hf__my_verb_encode(&s.m, &s.req), 0);
    out = &s.m.cmd.link.stream.out;
    assert_true(out->len > HEAD && out->len - HEAD < size);
    memcpy(to, out->data + HEAD, out->len - HEAD);
    to[out->len - HEAD] = '\0';
    hex(value, "x'", s.m.owner, MY_OWNER_LEN, "'");
    replace(to, size, value, ":owner");
    hex(value, ":", s.lock->hash, MY_HASH_LEN, "'");
    replace(to, size, value, ":<hash>'");
    hex(value, "x'", "name", 4, "'");
    replace(to, size, value, ":name");
    hex(value, "x'", "host", 4, "'");
    replace(to, size, value, ":host");
    hex(value, "x'", "label", 5, "'");
    replace(to, size, value, ":label");
    replace(to, size, "7001", ":hold");
    replace(to, size, "4321", ":pid");
    replace(to, size, "30000000", ":lease_us");
    replace(to, size, "298", ":waiter");
    tear_down(&s);
}

/* Removes white space, and the asterisk at the beginning of each comment
 * line. */
static void squeeze(char *text)
{
    char *to = text;
    bool is_begin = true;

    for (const char *p = text; *p; p++) {
        if (*p == '\n')
            is_begin = true;
        else if (is_begin && *p == '*')
            is_begin = false;
        else if (!isspace((unsigned char)*p)) {
            is_begin = false;
            *to++ = *p;
        }
    }
    *to = '\0';
}

static char *comments_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1u << 20);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1u << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

CASE(test_comment_shows_the_statements)
{
    char *source = comments_of(mutex_c), sql[8192];

    squeeze(source);
    for (enum my_step step = MY_STEP_UPDATE; step <= MY_STEP_UPSERT; step++) {
        statement(step, sql, sizeof(sql));
        squeeze(sql);
        for (char *next, *one = sql; one; one = next) {
            next = strchr(one, ';');
            if (next)
                *next++ = '\0';
            if (!strstr(source, one))
                fail_msg("the comment in mutex.c does not show:\n%s", one);
        }
    }
    free(source);
}

enum { COLUMNS = 8 };
struct row {
    struct my_row row;
    struct my_value value[COLUMNS];
};

#define KIND 0x80 /* the columns of SELECT, as bits */
#define OURS 0x40
#define OVER 0x20
#define RINGS 0x10
#define ODD 0x08
#define LEFT 0x04
#define TURN 0x02
#define HAVE 0x01

static const struct {
    const char *what;
    unsigned columns;
    int step;     /* the next statement, or -1 for none */
    int converts; /* an enum my_conversion */
    int result;   /* if no statement follows and the attempt must not queue */
} selects[] = {
    {"held by another client", KIND | RINGS | LEFT, -1, 0, HF__BUSY},
    {"the same, on our turn", KIND | RINGS | LEFT | TURN, -1, 0, HF__BUSY},
    {"the same, and we have the bell", KIND | RINGS | LEFT | HAVE, -1, 0,
     HF__BUSY},
    {"already ours", KIND | OURS | RINGS | LEFT, MY_STEP_UPSERT, 0, 0},
    {"from before the clock was set back", KIND | ODD | LEFT, MY_STEP_UPSERT, 0,
     0},
    {"free, on our turn", KIND | OVER | TURN, MY_STEP_UPDATE, 0, 0},
    {"of another kind", LEFT | TURN, MY_STEP_SELECT, MY_CONVERTING, 0},
};

static int taken(struct scene *s, const struct my_result *says)
{
    const struct my_answer a = {.first = says, .last = says, .now = now()};

    return hf__my_mutex_taken(&s->m, &s->req, &a);
}

CASE(test_select_leads_on)
{
    for (size_t i = 0; i < sizeof(selects) / sizeof(*selects); i++) {
        struct scene s;
        struct row row = {.row = {NULL}};
        struct my_result says = {
            .columns = COLUMNS, .rows = &row.row, .rows_len = 1};

        for (int c = 0; c < COLUMNS; c++)
            row.value[c] = (struct my_value){
                selects[i].columns & 1u << (COLUMNS - 1 - c) ? "1" : "0", 1};
        set_up(&s);
        s.lock->wait = NULL;
        s.lock->step = MY_STEP_SELECT;
        assert_int_equal(taken(&s, &says), 0);
        if (selects[i].step < 0 ? done != &s.req || unsent
                                : unsent != &s.req || done)
            fail_msg("%s: wrong next step", selects[i].what);
        if (selects[i].step >= 0)
            assert_int_equal(s.lock->step, selects[i].step);
        else
            assert_int_equal(s.req.result, selects[i].result);
        assert_int_equal(s.lock->conversion, selects[i].converts);
        tear_down(&s);
    }
}

/* Answers to a SELECT that found no row, and answers to the other two
 * statements. */
CASE(test_others_lead_on)
{
    struct my_result none = {.columns = COLUMNS}, nothing = {.affected = 0},
                     token = {.affected = 1, .insert_id = 77},
                     busy = {.affected = 2, .insert_id = (1ULL << 62) + 1},
                     other = {.affected = 2, .insert_id = (1ULL << 62) + 4};
    const struct {
        enum my_step step;
        const struct my_result *says;
        int next, result;
    } cases[] = {{MY_STEP_SELECT, &none, MY_STEP_UPSERT, 0},
                 {MY_STEP_UPDATE, &nothing, MY_STEP_SELECT, 0},
                 {MY_STEP_UPDATE, &token, -1, HF__GRANTED},
                 {MY_STEP_UPSERT, &token, -1, HF__GRANTED},
                 {MY_STEP_UPSERT, &busy, -1, HF__BUSY},
                 {MY_STEP_UPSERT, &other, MY_STEP_UPSERT, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scene s;

        set_up(&s);
        s.lock->wait = NULL;
        s.lock->step = (uint8_t)cases[i].step;
        assert_int_equal(taken(&s, cases[i].says), 0);
        assert_true(cases[i].next < 0 ? done == &s.req : unsent == &s.req);
        if (cases[i].next >= 0)
            assert_int_equal(s.lock->step, cases[i].next);
        else
            assert_int_equal(s.req.result, cases[i].result);
        if (cases[i].result == HF__GRANTED)
            assert_int_equal(s.req.token, 77);
        assert_int_equal(s.lock->conversion, cases[i].says == &other
                                                 ? MY_CONVERTING
                                                 : MY_NOT_CONVERTED);
        tear_down(&s);
    }
}

int main(int argc, char **argv)
{
    char sql[8192];

    for (enum my_step step = MY_STEP_UPDATE; argc < 2 && step <= MY_STEP_UPSERT;
         step++) {
        statement(step, sql, sizeof(sql));
        printf("%s\n\n", sql);
    }
    if (argc < 2)
        return 0;
    mutex_c = argv[1];
    return run_cases(NULL, NULL);
}
