/*
 * The Redis module without a server: wakeup messages have their own connection,
 * and may arrive before the reply to the attempt that they belong to.
 */
#include "../../cases.h"
#include "backends/redis/channels.h"
#include "backends/redis/flights.h"
#include "backends/redis/lock.h"
#include "backends/redis/pipe.h"
#include "backends/redis/redis.h"
#include "backends/redis/reply.h"
#include "backends/redis/same_server.h"
#include "backends/redis/scripts.h"
#include "backends/redis/subscribe.h"

#include <sys/mman.h>

#define NAME "n"
#define TOKEN 77
/* The server's clock at the first attempt and at the next one, in ms. */
#define LOOK 1700000000000
#define NEXT_LOOK (LOOK + 40000)

static hf__time clock_ns;
static unsigned bells;

static hf__time test_now(void)
{
    return ++clock_ns;
}

static void *test_take(hf_client *client, size_t size)
{
    return calloc(1, size);
}

static void test_give(hf_client *client, void *p)
{
    free(p);
}

static void test_done(hf_client *client, struct hf__req *req)
{
}

static void test_bell(hf_client *client, struct hf__remote *remote)
{
    bells++;
}

static const struct hf__core core = {.now = test_now,
                                     .alloc = test_take,
                                     .free = test_give,
                                     .done = test_done,
                                     .bell = test_bell};

/* A line of the semaphore, and its attempt, which has been sent. */
struct line {
    struct hf__remote remote;
    struct hf__req attempt;
    struct rd_flight flight;
};

static void attempt(struct redis *r, struct line *l, uint64_t hold_id)
{
    struct rd_lock *lock;

    *l = (struct line){.remote = {.name = NAME,
                                  .name_len = strlen(NAME),
                                  .kind = HF_SEMAPHORE,
                                  .permits = 1,
                                  .label = ""}};
    assert_int_equal(hf__rd_attach(r, &l->remote), 0);
    l->attempt = (struct hf__req){.remote = &l->remote,
                                  .op = HF__ATTEMPT,
                                  .hold_id = hold_id,
                                  .sent_at = test_now(),
                                  .lease_ms = 30000,
                                  .may_queue = true,
                                  .permits = 1};
    l->flight = (struct rd_flight){.req = &l->attempt,
                                   .remote = &l->remote,
                                   .hold_id = hold_id,
                                   .sent.net.at = l->attempt.sent_at,
                                   .op = HF__ATTEMPT};
    lock = l->remote.impl;
    lock->attempt_id = hold_id;
    lock->attempting = lock->sent = true;
    lock->lease_ms = l->attempt.lease_ms & RD_LEASE_MOST;
}

/* Sends the attempt again. */
static void ask_again(struct line *l)
{
    struct rd_lock *lock = l->remote.impl;

    l->attempt.sent_at = l->flight.sent.net.at = test_now();
    l->attempt.result = HF__PENDING;
    lock->attempting = true;
}

static void say(struct redis *r, const char *text)
{
    struct rd_node payload = {
        .type = REDIS_REPLY_STRING, .text = text, .len = strlen(text)};
    struct rd_node channel = {.next = &payload,
                              .type = REDIS_REPLY_STRING,
                              .text = r->wake,
                              .len = r->wake_len};
    struct rd_node what = {.next = &channel,
                           .type = REDIS_REPLY_STRING,
                           .text = "message",
                           .len = strlen("message")};
    struct rd_node message = {.first = &what,
                              .last = &payload,
                              .type = REDIS_REPLY_ARRAY,
                              .number = 3};

    assert_int_equal(hf__rd_pipe_reply(&r->sub, &message, test_now()), 0);
}

/* Delivers the message that grants the permit to hold_id. `look` is the
 * server's time of the attempt that the grant belongs to. */
static void call(struct redis *r, uint64_t hold_id, int64_t look)
{
    char text[64];

    snprintf(text, sizeof(text), "s%llu %d %lld " NAME,
             (unsigned long long)hold_id, TOKEN, (long long)look);
    say(r, text);
}

/* Replies "queued" to the attempt. `look` is the server's time in ms; `near` is
 * 1 if the waiter is among the first in the queue, 2 if it is among the last,
 * and 0 if neither. Returns the attempt's result. */
static int answer_place(struct redis *r, struct line *l, int64_t look,
                        int64_t near)
{
    int64_t numbers[] = {RD_QUEUED, look * 1000 + 999, 30000, 0, 500, near};
    enum { N = sizeof(numbers) / sizeof(*numbers) };
    struct rd_node at[N] = {0};
    struct rd_node reply = {.first = &at[0],
                            .last = &at[N - 1],
                            .type = REDIS_REPLY_ARRAY,
                            .number = N};

    for (int i = 0; i < N; i++) {
        at[i].type = REDIS_REPLY_INTEGER;
        at[i].number = numbers[i];
        at[i].next = i + 1 < N ? &at[i + 1] : NULL;
    }
    bells = 0;
    assert_int_equal(hf__rd_verb_reply(r, &l->flight, &reply, test_now()), 0);
    return l->attempt.result;
}

static int answer_queued(struct redis *r, struct line *l, int64_t look)
{
    return answer_place(r, l, look, 0);
}

static struct redis *make(void)
{
    struct redis *r = calloc(1, sizeof(*r));

    assert_non_null(r);
    r->core = r->chans.table.core = &core;
    r->op_timeout_ms = 5000;
    strcpy(r->wake, "holdfast:wake:test");
    r->wake_len = strlen(r->wake);
    hf__rd_pipe_init(&r->sub, &core, NULL, &hf__rd_sub, r,
                     sizeof(struct rd_sent));
    r->sub.link.state = NET_PAUSING; /* nothing is sent */
    r->chance = 1;
    r->chans.state = RD_SUB_LIVE;
    return r;
}

static void end(struct redis *r, struct line *lines, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        hf__rd_forget(r, &lines[i].attempt);
        hf__rd_detach(r, &lines[i].remote);
    }
    hf__rd_sub_fini(r);
    free(r);
}

static struct line line; /* the line of the case, with its client */

static int begin(void **state)
{
    *state = make();
    return 0;
}

static int finish(void **state)
{
    end(*state, &line, 1);
    return 0;
}

#define CASE_HERE(fn) CASE_WITH(fn, begin, finish, struct redis *r)

CASE_HERE(test_early_message_is_the_answer)
{
    attempt(r, &line, 1);
    call(r, 1, LOOK);
    assert_int_equal(answer_queued(r, &line, LOOK), HF__GRANTED);
    assert_int_equal(line.attempt.token, TOKEN);
}

/* The message arrives. Then the command connection is replaced, and may lead to
 * a different server: the message no longer counts, and the attempt is sent
 * again. */
CASE_HERE(test_early_message_of_an_earlier_pair)
{
    attempt(r, &line, 1);
    call(r, 1, LOOK);
    hf__rd_pair_end(r);
    r->chans.state = RD_SUB_LIVE;
    assert_int_equal(answer_queued(r, &line, LOOK), HF__QUEUED);
    assert_int_equal(bells, 1);
}

/* More messages arrive than are kept: the attempts whose messages were dropped
 * are sent again, the others are granted. */
CASE(test_early_messages_of_many)
{
    enum { MANY = RD_EARLY + 8 };
    static struct line lines[MANY];
    struct redis *r = make();

    for (uint64_t i = 0; i < MANY; i++)
        attempt(r, &lines[i], i + 1);
    for (uint64_t i = 0; i < MANY; i++)
        call(r, i + 1, LOOK);
    for (int i = 0; i < MANY; i++) {
        bool is_forgotten = i < MANY - RD_EARLY;

        assert_int_equal(answer_queued(r, &lines[i], LOOK),
                         is_forgotten ? HF__QUEUED : HF__GRANTED);
        assert_int_equal(bells, is_forgotten);
    }
    end(r, lines, MANY);
}

/* Messages were dropped before the attempt is sent. None of them can belong to
 * the attempt, so it is not sent again. */
CASE_HERE(test_early_messages_are_nothing_to_later_questions)
{
    for (uint64_t i = 0; i < 2 * RD_EARLY; i++)
        call(r, 100 + i, LOOK);
    attempt(r, &line, 1);
    assert_int_equal(answer_queued(r, &line, LOOK), HF__QUEUED);
    assert_int_equal(bells, 0);
}

/* All slots for early messages are in use, but the attempts to which these
 * messages could belong have been answered. Overwriting one of the slots loses
 * nothing. */
CASE_HERE(test_early_messages_go_with_their_answers)
{
    for (uint64_t i = 0; i < RD_EARLY; i++)
        call(r, 100 + i, LOOK);
    r->cmd.sents.head += 2; /* replies have arrived since */
    attempt(r, &line, 1);
    call(r, 99, LOOK);
    assert_int_equal(answer_queued(r, &line, LOOK), HF__QUEUED);
    assert_int_equal(bells, 0);
}

/* No byte after the end of a message is read, whatever its contents. */
CASE_HERE(test_message_ends_where_it_ends)
{
    static const char *const texts[] = {
        "", "s", "s1", "s1 ", "s1 7", "s1 7 8", "s1 7 8 ", "p", "00"};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(at, MAP_FAILED);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    attempt(r, &line, 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = at + page - strlen(texts[i]) - 1;

        say(r, strcpy(text, texts[i]));
    }
    assert_int_equal(answer_queued(r, &line, LOOK), HF__QUEUED);
    munmap(at, 2 * page);
}

static void first_look(struct redis *r)
{
    attempt(r, &line, 1);
    assert_int_equal(answer_queued(r, &line, LOOK), HF__QUEUED);
    bells = 0;
}

CASE_HERE(test_message_completes_the_look)
{
    first_look(r);
    call(r, 1, LOOK);
    assert_int_equal(bells, 1);
    assert_int_equal(hf__rd_attempt(r, &line.attempt), HF__GRANTED);
    assert_int_equal(line.attempt.token, TOKEN);
}

/* The permit of the first attempt was granted and has expired, and the second
 * attempt was queued. The message of the first grant arrives after the reply to
 * the second attempt, and does not grant the permit. */
CASE_HERE(test_message_of_an_earlier_look_is_none)
{
    first_look(r);
    ask_again(&line);
    assert_int_equal(answer_queued(r, &line, NEXT_LOOK), HF__QUEUED);
    call(r, 1, LOOK);
    assert_int_equal(bells, 1);
    assert_int_equal(hf__rd_attempt(r, &line.attempt), HF__LATER);
}

/* The permit of the first attempt was granted and has expired. The message of
 * that grant arrives before the reply to the second attempt, and does not grant
 * the permit. */
CASE_HERE(test_earlier_message_before_the_answer)
{
    first_look(r);
    ask_again(&line);
    call(r, 1, LOOK);
    assert_int_equal(bells, 0);
    assert_int_equal(answer_queued(r, &line, NEXT_LOOK), HF__QUEUED);
    assert_int_equal(bells, 1);
    assert_int_equal(hf__rd_attempt(r, &line.attempt), HF__LATER);
}

/* The message for the second attempt arrives before the reply to that attempt,
 * and grants the permit. */
CASE_HERE(test_message_before_the_answer_of_its_look)
{
    first_look(r);
    ask_again(&line);
    call(r, 1, NEXT_LOOK);
    assert_int_equal(answer_queued(r, &line, NEXT_LOOK), HF__GRANTED);
    assert_int_equal(line.attempt.token, TOKEN);
}

/* The wait ends while an early message for its attempt is kept: the message is
 * removed. */
CASE_HERE(test_message_that_was_not_needed_takes_no_room)
{
    first_look(r);
    ask_again(&line);
    call(r, 1, NEXT_LOOK);
    hf__rd_wait_end(r, &line.remote, test_now());
    for (int i = 0; i < RD_EARLY; i++)
        assert_int_equal(r->chans.early[i].hold_id, 0);
}

/* Returns the longest of 50 poll intervals, in ms. For `near`, see
 * answer_place(). */
static int64_t looks_within(int64_t near)
{
    struct redis *r = make();
    hf__time most = 0;

    first_look(r);
    for (int i = 0; i < 50; i++) {
        ask_again(&line);
        assert_int_equal(answer_place(r, &line, LOOK + i, near), HF__QUEUED);
        if (line.attempt.poll_at - clock_ns > most)
            most = line.attempt.poll_at - clock_ns;
    }
    end(r, &line, 1);
    return most / HF__MS;
}

CASE(test_first_and_last_look_often)
{
    assert_in_range(looks_within(1), 1500, 1900);
    assert_in_range(looks_within(2), 1500, 1900);
    assert_in_range(looks_within(0), 10000, 50000);
}

/* Waiters poll often while no messages can arrive, whatever the cause. */
CASE_HERE(test_deaf_one_looks_often)
{
    r->chans.state = RD_SUB_CONFIRMED;
    first_look(r);
    for (int i = 0; i < 20; i++) {
        assert_in_range(line.attempt.poll_at - clock_ns, 1, 1500 * HF__MS);
        ask_again(&line);
        assert_int_equal(answer_queued(r, &line, LOOK + i), HF__QUEUED);
    }
}

CASES_MAIN(NULL, NULL);
