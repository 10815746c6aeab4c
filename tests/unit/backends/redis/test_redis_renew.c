/*
 * The Redis module without a server: a batch of renewals that is sent as
 * several commands.
 */
#include "backends/redis/cmd.h"
#include "backends/redis/flights.h"
#include "backends/redis/lock.h"
#include "backends/redis/redis.h"
#include "backends/redis/renew.h"
#include "backends/redis/requests.h"
#include "redis_fixture.h"

/* A mutex and a read hold, whose renewals need different scripts. */
struct scene {
    struct redis *r;
    int server;
    struct hf__remote mutex, reads;
    struct hf__renewal items[2];
    struct hf__batch batch;
};

static struct scene *begin(void)
{
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->r = redis_begin(&s->server);
    s->mutex =
        (struct hf__remote){.name = "m", .name_len = 1, .kind = HF_MUTEX};
    s->reads = (struct hf__remote){
        .name = "r", .name_len = 1, .kind = HF_RWLOCK, .mode = HF_READ};
    s->items[0] = (struct hf__renewal){
        .remote = &s->mutex, .hold_id = 1, .lease_ms = 30000};
    s->items[1] = (struct hf__renewal){
        .remote = &s->reads, .hold_id = 2, .lease_ms = 30000};
    s->batch = (struct hf__batch){
        .req = {.op = HF__RENEW, .meant_until = clock_ns + 20000 * HF__MS},
        .len = 2,
        .item = s->items};
    return s;
}

static void end(struct scene *s)
{
    redis_end(s->r, s->server);
    free(s);
}

/* The server lacks the script of the first command, which is sent again, but
 * has the script of the second command. The leases of the batch count from when
 * the commands were first sent. */
CASE(test_leases_count_from_what_was_sent_first)
{
    struct scene *s = begin();
    hf__time sent_at = clock_ns;

    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__PENDING);
    assert_int_equal(s->r->cmd.sents.len, 2);
    clock_ns += 15000 * HF__MS;
    answer(s->r, REDIS_REPLY_ERROR, "NOSCRIPT No matching script.");
    answer(s->r, REDIS_REPLY_STRING, "1");
    answer(s->r, REDIS_REPLY_STRING, "1");
    assert_int_equal(reports, 1);
    assert_int_equal(s->items[0].result, HF__DONE);
    assert_int_equal(s->items[1].result, HF__DONE);
    assert_true(s->batch.req.sent_at == sent_at);
    end(s);
}

/* A batch has to wait for the connection: its leases count from when its first
 * command was sent, not from when the batch was submitted. */
CASE(test_leases_do_not_count_from_before)
{
    struct scene *s = begin();

    s->r->cmd.link.state = NET_CONNECTING;
    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__LATER);
    assert_true(s->r->renew_until);
    clock_ns += 2000 * HF__MS;
    s->r->cmd.link.state = NET_UP;
    hf__rd_pump(s->r);
    assert_int_equal(goes, 1);
    assert_false(s->r->renew_until);
    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__PENDING);
    assert_true(s->batch.req.sent_at == clock_ns);
    answer(s->r, REDIS_REPLY_STRING, "1");
    answer(s->r, REDIS_REPLY_STRING, "0");
    assert_int_equal(reports, 1);
    assert_int_equal(s->items[1].result, HF_ENOTOWNER);
    end(s);
}

/* While a batch with a short lease waits, connecting may take at most a sixth
 * of that lease, even if a batch with a longer lease waits too. Once the time
 * limit of the short batch has passed, connecting may take longer. */
CASE(test_patience_is_short_while_it_is_meant)
{
    struct scene *s = begin();

    s->r->cmd.link.state = NET_CONNECTING;
    s->r->cmd.link.silence_ms = 10000;
    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__LATER);
    assert_int_equal(s->r->cmd.link.hurry_ms, 5000);
    s->items[0].lease_ms = 6000;
    s->batch.req.meant_until = clock_ns + 4000 * HF__MS;
    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__LATER);
    assert_int_equal(s->r->cmd.link.hurry_ms, 1000);
    s->items[0].lease_ms = 30000;
    s->batch.req.meant_until = clock_ns + 20000 * HF__MS;
    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__LATER);
    assert_int_equal(s->r->cmd.link.hurry_ms, 1000);
    clock_ns += 4000 * HF__MS;
    hf__rd_cmd.down(&s->r->cmd, HF_EBACKEND, false, clock_ns);
    assert_int_equal(s->r->cmd.link.hurry_ms, 0);
    end(s);
}

/* A script executes a Redis command for each permit that it renews. Therefore
 * the holds that one script renews have at most as many permits in total as one
 * acquire may take. */
CASE(test_scripts_are_bounded_by_permits)
{
    enum { MANY = 40 };
    static struct hf__renewal items[MANY];
    struct hf__remote permits = {
        .name = "p", .name_len = 1, .kind = HF_SEMAPHORE, .permits = 100000};
    struct scene *s = begin();
    uint32_t done = 0;

    for (uint32_t i = 0; i < MANY; i++)
        items[i] =
            (struct hf__renewal){.remote = &permits,
                                 .hold_id = i + 1,
                                 .lease_ms = 30000,
                                 .permits = i < 3 ? RD_PERMITS_MAX : 1000};
    s->batch.len = MANY;
    s->batch.item = items;
    assert_int_equal(hf__rd_renew(s->r, &s->batch), HF__PENDING);
    assert_int_equal(s->r->cmd.sents.len, 3 + (MANY - 3 + 3) / 4);
    for (size_t i = 0; i < s->r->cmd.sents.len; i++) {
        const struct rd_flight *f = hf__sent_at(&s->r->cmd.sents, i);
        uint32_t sum = 0;

        assert_int_equal(f->first, done);
        for (uint32_t k = 0; k < f->len; k++)
            sum += items[done++].permits;
        assert_true(sum <= RD_PERMITS_MAX);
    }
    assert_int_equal(done, MANY);
    end(s);
}

CASES_MAIN(NULL, NULL);
