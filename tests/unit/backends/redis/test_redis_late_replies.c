/*
 * The Redis module without a server: an attempt is lost, and its client must
 * reckon until when the server may still execute the attempt.
 */
#include "backends/redis/cmd.h"
#include "backends/redis/late_replies.h"
#include "backends/redis/lock.h"
#include "backends/redis/pipe.h"
#include "backends/redis/query.h"
#include "backends/redis/redis.h"
#include "backends/redis/renew.h"
#include "backends/redis/reply.h"
#include "backends/redis/scripts.h"
#include "redis_fixture.h"

#define SERVER_US 1700000000000000
#define OP (5000 * HF__MS)
#define MARGIN (100 * HF__MS)

struct scene {
    struct redis *r;
    int server;
    struct hf__remote remote;
    struct hf__req attempt;
};

static struct scene *begin(void)
{
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->r = redis_begin(&s->server);
    s->remote = (struct hf__remote){
        .name = "n", .name_len = 1, .kind = HF_MUTEX, .label = ""};
    assert_int_equal(hf__rd_attach(s->r, &s->remote), 0);
    return s;
}

static void end(struct scene *s)
{
    hf__rd_detach(s->r, &s->remote);
    redis_end(s->r, s->server);
    free(s);
}

static void try_it(struct scene *s, uint64_t hold_id)
{
    s->attempt = (struct hf__req){.remote = &s->remote,
                                  .op = HF__ATTEMPT,
                                  .hold_id = hold_id,
                                  .lease_ms = 30000};
    assert_int_equal(hf__rd_attempt(s->r, &s->attempt), HF__PENDING);
}

static void answer_busy(struct scene *s)
{
    struct rd_node now = {.type = REDIS_REPLY_INTEGER, .number = SERVER_US};
    struct rd_node what = {
        .next = &now, .type = REDIS_REPLY_INTEGER, .number = RD_BUSY};
    struct rd_node reply = {
        .first = &what, .last = &now, .type = REDIS_REPLY_ARRAY, .number = 2};

    assert_int_equal(hf__rd_pipe_reply(&s->r->cmd, &reply, test_now()), 0);
    assert_int_equal(s->attempt.result, HF__BUSY);
}

/* Returns a scene in which one attempt was answered after `way`, and a second
 * one was lost with the connection and then given up. The connection is up
 * again. */
static struct scene *lost_after(hf__time way)
{
    struct scene *s = begin();

    try_it(s, 1);
    clock_ns += way;
    answer_busy(s);
    try_it(s, 2);
    hf__rd_cmd.down(&s->r->cmd, HF_EBACKEND, true, clock_ns);
    assert_int_equal(s->attempt.result, HF_EUNKNOWN);
    hf__rd_late_over(s->r, 2);
    return s;
}

/* Checks that an abandon is sent after `time`, and not before. */
static void let_go_after(struct scene *s, hf__time time)
{
    size_t before = s->r->cmd.sents.len;

    hf__rd_late_move(s->r, clock_ns + time - HF__MS);
    assert_int_equal(s->r->cmd.sents.len, before);
    assert_true(hf__rd_late_timeout(s->r) <= clock_ns + time);
    hf__rd_late_move(s->r, clock_ns + time);
    assert_int_equal(s->r->cmd.sents.len, before + 1);
}

CASE(test_lost_question_of_a_quick_server)
{
    struct scene *s = lost_after(2 * HF__MS);

    let_go_after(s, OP + MARGIN);
    assert_true(hf__rd_late_timeout(s->r) == HF__NEVER);
    end(s);
}

/* The server may have read its clock just after the earlier attempt was sent,
 * or just before the reply to that attempt arrived. In the latter case the
 * server's clock is up to 4 s behind our estimate, and the server may execute
 * the lost attempt up to 4 s later than we estimate. Therefore a second abandon
 * is sent 4 s after the first. */
CASE(test_lost_question_of_a_slow_server)
{
    struct scene *s = lost_after(4000 * HF__MS);

    let_go_after(s, OP + MARGIN);
    let_go_after(s, OP + MARGIN + 4000 * HF__MS);
    assert_true(hf__rd_late_timeout(s->r) == HF__NEVER);
    end(s);
}

/* Replies with one name, and with cursor "7": the scan continues. */
static void answer_list(struct redis *r)
{
    struct rd_node name = {.type = REDIS_REPLY_STRING, .text = "a", .len = 1};
    struct rd_node cursor = {
        .next = &name, .type = REDIS_REPLY_STRING, .text = "7", .len = 1};
    struct rd_node reply = {.first = &cursor,
                            .last = &name,
                            .type = REDIS_REPLY_ARRAY,
                            .number = 2};

    assert_int_equal(hf__rd_pipe_reply(&r->cmd, &reply, test_now()), 0);
}

/* A hostile server never ends the scan. The client ends it when the caller has
 * left. */
CASE(test_list_ends_when_its_caller_has_left)
{
    int server;
    struct redis *r = redis_begin(&server);
    struct hf__query q = {.req = {.op = HF__LIST, .meant_until = clock_ns + OP},
                          .name = ""};

    assert_int_equal(hf__rd_query(r, &q), HF__PENDING);
    for (int i = 0; i < 100; i++)
        answer_list(r);
    assert_int_equal(reports, 0);
    assert_int_equal(r->cmd.sents.len, 1);
    clock_ns += OP;
    answer_list(r);
    assert_int_equal(reports, 1);
    assert_int_equal(q.req.result, HF_EUNKNOWN);
    assert_int_equal(r->cmd.sents.len, 0);
    redis_end(r, server);
}

/* The server never stops sending names, and the caller waits forever: the scan
 * ends after 256 MB. */
CASE(test_list_of_too_many_names_ends)
{
    int server;
    struct redis *r = redis_begin(&server);
    struct hf__query q = {.req = {.op = HF__LIST, .meant_until = HF__NEVER},
                          .name = ""};
    char *text = calloc(1, 1 << 20);
    struct rd_node name = {
        .type = REDIS_REPLY_STRING, .text = text, .len = 1 << 20};
    struct rd_node cursor = {
        .next = &name, .type = REDIS_REPLY_STRING, .text = "7", .len = 1};
    struct rd_node reply = {.first = &cursor, .type = REDIS_REPLY_ARRAY};

    assert_int_equal(hf__rd_query(r, &q), HF__PENDING);
    for (int i = 0; i < 255; i++)
        assert_int_equal(hf__rd_pipe_reply(&r->cmd, &reply, test_now()), 0);
    assert_int_equal(reports, 0);
    assert_int_equal(hf__rd_pipe_reply(&r->cmd, &reply, test_now()), 0);
    assert_int_equal(reports, 1);
    assert_int_equal(q.req.result, HF_EBACKEND);
    assert_int_equal(r->cmd.sents.len, 0);
    redis_end(r, server);
    free(text);
}

/* The client takes the server's reading of its clock for the time at which the
 * request was sent. If the server read its clock only when it replied, 3 s
 * later, the client's estimate of the clock is 3 s ahead. Even then the server
 * must not execute the query after the caller has left. */
CASE(test_query_is_not_meant_for_longer_than_its_caller)
{
    int server;
    struct redis *r = redis_begin(&server);
    struct hf__query q = {.req.meant_until = clock_ns + OP};
    const hf__time way = 3000 * HF__MS;

    r->server_us = SERVER_US;
    r->server_at = clock_ns - way;
    r->server_ahead = way;
    assert_int_equal(hf__rd_meant_until(r, &q.req), SERVER_US + OP / 1000);
    redis_end(r, server);
}

struct renewal {
    struct hf__batch batch;
    struct hf__renewal item;
};

static void renew_it(struct scene *s, struct renewal *one)
{
    s->r->server_us = SERVER_US;
    s->r->server_at = clock_ns;
    one->item = (struct hf__renewal){
        .remote = &s->remote, .hold_id = 1, .lease_ms = 30000, .permits = 1};
    one->batch = (struct hf__batch){
        .req = {.op = HF__RENEW, .meant_until = clock_ns + OP},
        .len = 1,
        .item = &one->item};
    assert_int_equal(hf__rd_renew(s->r, &one->batch), HF__PENDING);
}

static void answer_too_late(struct scene *s, int64_t now_us)
{
    struct rd_node now = {.type = REDIS_REPLY_INTEGER, .number = now_us};
    struct rd_node what = {
        .next = &now, .type = REDIS_REPLY_INTEGER, .number = RD_STALE};
    struct rd_node reply = {
        .first = &what, .last = &now, .type = REDIS_REPLY_ARRAY, .number = 2};

    assert_int_equal(hf__rd_pipe_reply(&s->r->cmd, &reply, test_now()), 0);
}

/* The server refuses the renewal as too late, because its clock was set
 * forward. The refusal contains the server's new time, from which the client
 * computes the limit of the renewal again. The client sends the renewal again,
 * because the caller's time is not over. The lease counts from when the renewal
 * was first sent. */
CASE(test_renewal_by_a_clock_that_jumped)
{
    struct scene *s = begin();
    struct renewal one;
    hf__time began = clock_ns;

    renew_it(s, &one);
    clock_ns += HF__MS;
    answer_too_late(s, SERVER_US + 3600000000LL);
    assert_int_equal(reports, 0);
    assert_int_equal(s->r->cmd.sents.len, 1);
    assert_true(hf__rd_meant_until(s->r, &one.batch.req) >
                SERVER_US + 3600000000LL);
    answer(s->r, REDIS_REPLY_STRING, "1");
    assert_int_equal(reports, 1);
    assert_int_equal(one.item.result, HF__DONE);
    assert_true(one.batch.req.sent_at == began);
    end(s);
}

CASE(test_renewal_that_is_too_late)
{
    struct scene *s = begin();
    struct renewal one;

    renew_it(s, &one);
    clock_ns += OP;
    answer_too_late(s, SERVER_US + OP / 1000 + 1);
    assert_int_equal(reports, 1);
    assert_int_equal(one.item.result, HF_EUNKNOWN);
    assert_int_equal(s->r->cmd.sents.len, 0);
    end(s);
}

CASES_MAIN(NULL, NULL);
