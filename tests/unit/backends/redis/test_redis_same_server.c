/*
 * The Redis module without a server: whether both connections lead to the same
 * server, which messages are trusted until that is known, and what happens when
 * the server refuses a subscription.
 */
#include "backends/redis/cmd.h"
#include "backends/redis/flights.h"
#include "backends/redis/lock.h"
#include "backends/redis/pipe.h"
#include "backends/redis/redis.h"
#include "backends/redis/reply.h"
#include "backends/redis/same_server.h"
#include "backends/redis/scripts.h"
#include "backends/redis/subscribe.h"
#include "redis_fixture.h"

#include <sys/epoll.h>

#define TOKEN 77
#define LOOK 1700000000000LL

static unsigned bells, lines;

static void note_bell(hf_client *client, struct hf__remote *remote)
{
    bells++;
}

static void note_line(hf_client *client, const char *fmt, ...)
{
    lines++;
}

/* A client with both connections; one of its lines waits for a mutex. */
struct scene {
    struct redis *r;
    struct hf__core core;
    int server, messages; /* the server's ends of the connections */
    struct hf__remote remote;
    struct hf__req attempt;
};

static void connect_messages(struct scene *s)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                     0);
    s->r->sub.link.stream.fd = fds[0];
    s->r->sub.link.state = NET_UP;
    s->r->sub.link.timer = HF__NEVER;
    s->r->sub.link.heard_at = clock_ns;
    s->messages = fds[1];
}

/* Delivers a message of this type, with a string as its payload. */
static void told(struct scene *s, const char *what, const char *text)
{
    struct rd_node payload = {
        .type = REDIS_REPLY_STRING, .text = text, .len = strlen(text)};
    struct rd_node channel = {.next = &payload,
                              .type = REDIS_REPLY_STRING,
                              .text = s->r->wake,
                              .len = s->r->wake_len};
    struct rd_node verb = {.next = &channel,
                           .type = REDIS_REPLY_STRING,
                           .text = what,
                           .len = strlen(what)};
    struct rd_node message = {.first = &verb,
                              .last = &payload,
                              .type = REDIS_REPLY_ARRAY,
                              .number = 3};

    assert_int_equal(hf__rd_pipe_reply(&s->r->sub, &message, test_now()), 0);
}

static void counted(struct scene *s, int64_t many)
{
    struct rd_node reply = {.type = REDIS_REPLY_INTEGER, .number = many};

    assert_int_equal(hf__rd_pipe_reply(&s->r->cmd, &reply, test_now()), 0);
}

static void answer_queued(struct scene *s)
{
    int64_t numbers[] = {RD_QUEUED, LOOK * 1000, 30000, 0, 1, 1};
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
    assert_int_equal(hf__rd_pipe_reply(&s->r->cmd, &reply, test_now()), 0);
    assert_int_equal(s->attempt.result, HF__QUEUED);
}

static struct scene *begin(void)
{
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->r = redis_begin(&s->server);
    s->core = core;
    s->core.bell = note_bell;
    s->core.log = note_line;
    s->r->core = &s->core;
    s->r->opened = true;
    s->r->cmd.link.connect_ms = s->r->sub.link.connect_ms = 1000;
    s->r->cmd.link.pause_ms = s->r->sub.link.pause_ms = 600;
    hf__net_set_path(&s->r->peer, "/nonexistent");
    s->r->cmd.link.stream.core = s->r->sub.link.stream.core = &s->core;
    s->r->wake_len = (size_t)snprintf(s->r->wake, sizeof(s->r->wake), "wake");
    connect_messages(s);
    s->remote = (struct hf__remote){
        .name = "n", .name_len = 1, .kind = HF_MUTEX, .label = ""};
    assert_int_equal(hf__rd_attach(s->r, &s->remote), 0);
    s->attempt = (struct hf__req){.remote = &s->remote,
                                  .op = HF__ATTEMPT,
                                  .hold_id = 1,
                                  .lease_ms = 30000,
                                  .may_queue = true};
    s->remote.attempt = &s->attempt;
    assert_int_equal(hf__rd_attempt(s->r, &s->attempt), HF__PENDING);
    answer_queued(s);
    bells = lines = 0;
    return s;
}

static void end(struct scene *s)
{
    hf__rd_forget(s->r, &s->attempt);
    hf__rd_detach(s->r, &s->remote);
    if (s->messages >= 0)
        close(s->messages);
    redis_end(s->r, s->server);
    free(s);
}

/* Sends the message that grants the mutex; returns whether the client trusts
 * it. */
static bool is_believed(struct scene *s)
{
    char text[64];
    int rc;

    bells = 0;
    snprintf(text, sizeof(text), "u1 %d %lld n", TOKEN, LOOK);
    told(s, "message", text);
    assert_int_equal(bells, 1); /* a reason to poll, trusted or not */
    rc = hf__rd_attempt(s->r, &s->attempt);
    assert_true(rc == HF__GRANTED || rc == HF__PENDING);
    return rc == HF__GRANTED;
}

static void with_scene(void (*run)(struct scene *))
{
    struct scene *s = begin();

    run(s);
    end(s);
}

#define SCENE_CASE(fn)                                                         \
    CASE_CALLED(fn, struct scene *s, NULL, NULL, with_scene(fn))

SCENE_CASE(test_believed_when_heard_and_counted)
{
    told(s, "subscribe", "1");
    assert_int_equal(bells, 0);
    counted(s, 1);
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    told(s, "message", "p1");
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_int_equal(bells, 1); /* because the attempt was sent before the
                                   proof */
    assert_true(is_believed(s));
}

SCENE_CASE(test_the_answer_may_come_last)
{
    told(s, "subscribe", "1");
    told(s, "message", "p1");
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    counted(s, 1);
    assert_true(is_believed(s));
}

SCENE_CASE(test_not_believed_before_the_proof)
{
    told(s, "subscribe", "1");
    counted(s, 1);
    assert_false(is_believed(s));
}

/* The client subscribes to a replica, which passes on the number that the proof
 * publishes; the master, to which the number was published, counts no
 * subscriber. */
SCENE_CASE(test_not_counted_is_apart)
{
    told(s, "subscribe", "1");
    told(s, "message", "p1");
    counted(s, 0);
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_int_equal(s->r->sub.link.state, NET_PAUSING); /* being replaced */
    assert_int_equal(lines, 1);
}

/* The command connection leads to another server, whose messages do not reach
 * the subscriber. */
SCENE_CASE(test_not_heard_is_apart)
{
    told(s, "subscribe", "1");
    counted(s, 1);
    assert_true(hf__rd_sub_timeout(s->r) <= clock_ns + 10000 * HF__MS);
    clock_ns += 10000 * HF__MS;
    hf__rd_pair_move(s->r, clock_ns);
    assert_int_equal(s->r->sub.link.state, NET_PAUSING);
}

static void prove_anew(struct scene *s, int64_t many)
{
    close(s->messages);
    connect_messages(s);
    told(s, "subscribe", "1");
    counted(s, many);
}

/* After the second failed proof the connection for messages stays, because some
 * messages may still arrive on it, and is replaced only rarely. Each of the two
 * failures is logged once. */
SCENE_CASE(test_apart_again_stays)
{
    hf__time pause = 0;

    told(s, "subscribe", "1");
    counted(s, 0);
    assert_true(s->r->sub.link.timer <= clock_ns + 1000 * HF__MS);
    prove_anew(s, 0);
    assert_int_equal(s->r->sub.link.state, NET_UP);
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_int_equal(lines, 2);
    bells = 0;
    assert_false(is_believed(s)); /* but a reason to poll */
    answer_queued(s);
    for (int i = 0; i < 10; i++) {
        hf__time at = hf__rd_pair_timeout(s->r);

        assert_in_range(at - clock_ns, 30000 * HF__MS, 600000 * HF__MS);
        assert_true(at - clock_ns >= pause);
        pause = at - clock_ns;
        clock_ns = at;
        hf__rd_sub_move(s->r, clock_ns);
        assert_int_not_equal(s->r->sub.link.state, NET_UP);
        prove_anew(s, 0);
    }
    assert_true(pause > 240000 * HF__MS);
    assert_int_equal(lines, 2);
    clock_ns = hf__rd_pair_timeout(s->r);
    hf__rd_pair_move(s->r, clock_ns);
    prove_anew(s, 1);
    told(s, "message", "p13");
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
}

/* If the server refuses the proof for now, the client repeats it until the
 * proof succeeds or is refused for good. */
SCENE_CASE(test_refused_for_now_is_proved_again)
{
    told(s, "subscribe", "1");
    for (int i = 0; i < 3; i++) {
        answer(s->r, REDIS_REPLY_ERROR,
               i % 2 ? "LOADING the dataset" : "BUSY a script");
        assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
        assert_int_equal(s->r->sub.link.state, NET_UP);
        assert_int_equal(lines, 1);
        assert_int_equal(bells, 1);
        assert_in_range(hf__rd_pair_timeout(s->r) - clock_ns, 100 * HF__MS,
                        5000 * HF__MS);
        hf__rd_pair_move(s->r, clock_ns);
        assert_int_equal(s->r->cmd.sents.len, 0);
        clock_ns = hf__rd_pair_timeout(s->r);
        hf__rd_pair_move(s->r, clock_ns);
        assert_int_equal(s->r->cmd.sents.len, 1);
    }
    told(s, "message", "p4");
    counted(s, 1);
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_false(s->r->chans.refused);
    assert_true(hf__rd_pair_timeout(s->r) == HF__NEVER);
}

/* The command connection is lost before the proof is repeated: only the proof
 * on the new connection counts. */
SCENE_CASE(test_proof_again_ends_with_its_connection)
{
    told(s, "subscribe", "1");
    answer(s->r, REDIS_REPLY_ERROR, "BUSY a script");
    hf__rd_cmd.down(&s->r->cmd, HF_EBACKEND, true, clock_ns);
    assert_true(hf__rd_pair_timeout(s->r) == HF__NEVER);
    hf__rd_cmd.up(&s->r->cmd, clock_ns);
    assert_int_equal(s->r->cmd.sents.len, 1);
    told(s, "message", "p2");
    counted(s, 1);
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
}

/* The user is given the missing rights later: the next proof succeeds. */
SCENE_CASE(test_proof_after_a_refused_one)
{
    told(s, "subscribe", "1");
    answer(s->r, REDIS_REPLY_ERROR, "NOPERM no channel");
    hf__rd_cmd.down(&s->r->cmd, HF_EBACKEND, true, clock_ns);
    hf__rd_cmd.up(&s->r->cmd, clock_ns);
    told(s, "message", "p2");
    counted(s, 1);
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_false(s->r->chans.refused);
}

/* The command connection is lost and replaced, which is why a new proof is
 * needed. A number that belongs to the old proof proves nothing. */
SCENE_CASE(test_new_command_connection_is_proved_anew)
{
    told(s, "subscribe", "1");
    told(s, "message", "p1");
    counted(s, 1);
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
    hf__rd_cmd.down(&s->r->cmd, HF_EBACKEND, true, clock_ns);
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    hf__rd_cmd.up(&s->r->cmd, clock_ns);
    assert_int_equal(s->r->cmd.sents.len, 1);
    counted(s, 1);
    told(s, "message", "p1");
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_false(is_believed(s));
    told(s, "message", "p2");
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
}

/* The connection for messages is replaced during the first proof. The reply to
 * that proof says nothing about the new pair of connections. */
SCENE_CASE(test_answer_of_an_earlier_pair_proves_nothing)
{
    told(s, "subscribe", "1");
    hf__link_fail(&s->r->sub.link, HF_EBACKEND, clock_ns);
    close(s->messages);
    connect_messages(s);
    told(s, "subscribe", "1");
    told(s, "message", "p2");
    counted(s, 1);
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    counted(s, 0);
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_int_equal(s->r->sub.link.state, NET_PAUSING);
}

/* The server refuses the proof for good: waiters poll, and the connection
 * stays. */
SCENE_CASE(test_refused_proof_is_none)
{
    told(s, "subscribe", "1");
    answer(s->r, REDIS_REPLY_ERROR, "NOPERM no channel");
    assert_int_not_equal(s->r->chans.state, RD_SUB_LIVE);
    assert_int_equal(s->r->sub.link.state, NET_UP);
    assert_int_equal(lines, 1);
    assert_int_equal(bells, 1);
    assert_true(hf__rd_pair_timeout(s->r) == HF__NEVER);
}

/* While no subscription is confirmed, no proof is sent. */
SCENE_CASE(test_no_proof_without_messages)
{
    hf__rd_cmd.down(&s->r->cmd, HF_EBACKEND, true, clock_ns);
    hf__rd_cmd.up(&s->r->cmd, clock_ns);
    assert_int_equal(s->r->cmd.sents.len, 0);
}

static void subscription_is_refused(struct scene *s, const char *text)
{
    struct rd_node reply = {
        .type = REDIS_REPLY_ERROR, .text = text, .len = strlen(text)};

    assert_int_equal(hf__rd_pipe_reply(&s->r->sub, &reply, clock_ns), 0);
}

static struct scene *begin_live(void)
{
    struct scene *s = begin();

    hf__rd_sub.up(&s->r->sub, clock_ns);
    told(s, "subscribe", "1");
    told(s, "message", "p1");
    counted(s, 1);
    assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
    bells = lines = 0;
    return s;
}

/* Waits until the connection for messages is replaced; returns the pause before
 * that. */
static hf__time subscribe_anew(struct scene *s)
{
    hf__time pause = hf__rd_sub_timeout(s->r) - clock_ns;

    hf__rd_sub_move(s->r, clock_ns);
    assert_int_equal(s->r->sub.link.state, NET_UP); /* not replaced yet */
    clock_ns += pause;
    hf__rd_sub_move(s->r, clock_ns);
    assert_int_not_equal(s->r->sub.link.state, NET_UP);
    close(s->messages);
    connect_messages(s);
    hf__rd_sub.up(&s->r->sub, clock_ns);
    return pause;
}

/* The server refuses the subscription for now: waiters poll until a new
 * connection has subscribed. */
CASE(test_subscription_refused_for_now_is_made_anew)
{
    static const char *const texts[] = {
        "BUSY Redis is busy running a script",
        "LOADING Redis is loading the dataset in memory",
        "OOM command not allowed",
        "MISCONF Redis is configured to save RDB snapshots",
        "ERR upstream failure",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct scene *s = begin_live();

        subscription_is_refused(s, texts[i]);
        assert_int_equal(bells, 1);
        assert_int_equal(lines, 1);
        assert_true(s->r->chans.refused);
        assert_in_range(subscribe_anew(s), 100 * HF__MS, 2000 * HF__MS);
        told(s, "subscribe", "1");
        told(s, "message", "p2");
        counted(s, 1);
        assert_int_equal(s->r->chans.state, RD_SUB_LIVE);
        assert_false(s->r->chans.refused);
        assert_int_equal(lines, 1);
        end(s);
    }
}

/* The pauses between connections grow up to a limit. Only the first refusal is
 * logged until a subscription succeeds. */
CASE(test_subscription_refused_again_and_again)
{
    struct scene *s = begin_live();
    hf__time pause = 0;

    for (int i = 0; i < 20; i++) {
        subscription_is_refused(s, "BUSY a script"); /* the channel of a name */
        subscription_is_refused(s, "BUSY a script"); /* the client's own */
        assert_int_equal(lines, 1);
        s->r->sub.link.heard_at = HF__NEVER / 2; /* avoids a PING */
        pause = subscribe_anew(s);
        assert_in_range(pause, 100 * HF__MS, 60000 * HF__MS);
    }
    assert_true(pause >= 10000 * HF__MS);
    told(s, "subscribe", "1");
    subscription_is_refused(s, "BUSY a script");
    assert_int_equal(lines, 2);
    assert_in_range(subscribe_anew(s), 100 * HF__MS, 2000 * HF__MS);
    end(s);
}

/* The server refuses the channels of names, but not the client's own channel:
 * waiters poll. */
SCENE_CASE(test_one_subscription_of_two_is_refused)
{
    hf__rd_sub.up(&s->r->sub, clock_ns);
    subscription_is_refused(s, "NOPERM no channel");
    told(s, "subscribe", "1");
    told(s, "message", "p1");
    counted(s, 1);
    assert_true(s->r->chans.refused);
}

/* The server refuses the subscription for good: the connection stays, and
 * waiters poll until an administrator changes the server. */
CASE(test_subscription_refused_for_good)
{
    static const char *const texts[] = {
        "NOPERM this user has no permissions to run the 'subscribe' command",
        "NOAUTH Authentication required.",
        "ERR unknown command 'SUBSCRIBE', with args beginning with: ",
        "ERR unknown command `SUBSCRIBE`, with args beginning with: ",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct scene *s = begin_live();

        s->r->sub.link.heard_at = HF__NEVER / 2; /* avoids a PING */
        subscription_is_refused(s, texts[i]);
        assert_int_equal(bells, 1);
        assert_int_equal(lines, 1);
        assert_true(s->r->chans.refused);
        assert_true(hf__rd_sub_timeout(s->r) >= HF__NEVER / 2);
        assert_int_equal(s->r->sub.link.state, NET_UP);
        end(s);
    }
}

/* A subscription is confirmed while the command connection is still
 * connecting. */
SCENE_CASE(test_connecting_is_still_waited_for)
{
    s->r->cmd.link.state = NET_CONNECTING;
    s->r->cmd.link.stream.connecting = true;
    s->r->cmd.link.stream.events = EPOLLOUT;
    told(s, "subscribe", "1");
    assert_int_equal(s->r->cmd.link.stream.events, EPOLLOUT);
    s->r->cmd.link.state = NET_UP;
}

SCENE_CASE(test_event_of_an_earlier_connection_is_ignored)
{
    const struct hf__backend *backend = hf_module(HF__ABI, "redis");
    char byte;

    s->r->cmd.link.stream.tag++;
    assert_int_equal(write(s->server, "?", 1), 1);
    backend->ready(s->r, s->r->cmd.link.stream.tag - 1, EPOLLIN | EPOLLHUP,
                   clock_ns);
    assert_int_equal(
        recv(s->r->cmd.link.stream.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    assert_int_equal(s->r->cmd.link.state, NET_UP);
}

static uint64_t wishes[8];
static size_t wishes_len;

static void note_wish(hf_client *client, struct hf__remote *remote,
                      uint64_t token)
{
    wishes[wishes_len++] = token;
}

static void granted(struct scene *s, int64_t token)
{
    struct rd_node last = {.type = REDIS_REPLY_INTEGER, .number = token};
    struct rd_node now = {
        .next = &last, .type = REDIS_REPLY_INTEGER, .number = LOOK * 1000};
    struct rd_node what = {
        .next = &now, .type = REDIS_REPLY_INTEGER, .number = RD_GRANTED};
    struct rd_node reply = {
        .first = &what, .last = &last, .type = REDIS_REPLY_ARRAY, .number = 3};

    assert_int_equal(hf__rd_pipe_reply(&s->r->cmd, &reply, test_now()), 0);
}

/* Two attempts are pending. Notifications that other clients want both holds
 * arrive before the grants, for the second hold many times. Each hold is
 * reported as wanted once, even if it is granted a second time. */
CASE(test_wishes_that_come_before_their_grants)
{
    struct scene *s = begin();
    struct hf__remote two[2] = {{.name = "a"}, {.name = "b"}};
    struct hf__req attempts[2];

    wishes_len = 0;
    s->core.wanted = note_wish;
    s->r->listens = true;
    for (int i = 0; i < 2; i++) {
        two[i].name_len = 1;
        two[i].kind = HF_MUTEX;
        two[i].label = "";
        attempts[i] = (struct hf__req){.remote = &two[i],
                                       .op = HF__ATTEMPT,
                                       .hold_id = 7 + (uint64_t)i,
                                       .lease_ms = 30000};
        assert_int_equal(hf__rd_attach(s->r, &two[i]), 0);
        assert_int_equal(hf__rd_attempt(s->r, &attempts[i]), HF__PENDING);
    }
    told(s, "message", "w7");
    for (int i = 0; i < RD_WISHES; i++)
        told(s, "message", "w8");
    assert_int_equal(wishes_len, 0);
    granted(s, 70);
    granted(s, 80);
    assert_int_equal(wishes_len, 2);
    assert_int_equal(wishes[0], 70);
    assert_int_equal(wishes[1], 80);
    assert_int_equal(hf__rd_attempt(s->r, &attempts[1]), HF__PENDING);
    granted(s, 80);
    assert_int_equal(wishes_len, 2);
    for (int i = 0; i < 2; i++)
        hf__rd_detach(s->r, &two[i]);
    s->r->listens = false; /* end() detaches a lock that was attached without
                              listening */
    end(s);
}

CASES_MAIN(NULL, NULL);
