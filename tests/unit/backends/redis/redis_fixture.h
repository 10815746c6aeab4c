/*
 * The Redis module without a server: its command connection is up, what it
 * sends is not read, and the test provides the replies.
 */
#ifndef REDIS_FIXTURE_H
#define REDIS_FIXTURE_H

#include "../../cases.h"
#include "backends/redis/cmd.h"
#include "backends/redis/flights.h"
#include "backends/redis/late_replies.h"
#include "backends/redis/pipe.h"
#include "backends/redis/redis.h"
#include "backends/redis/reply.h"
#include "backends/redis/subscribe.h"

static hf__time clock_ns = 1000 * HF__MS;
static unsigned reports;

static inline hf__time test_now(void)
{
    return clock_ns;
}

static inline void *test_take(hf_client *client, size_t size)
{
    return calloc(1, size);
}

static inline void test_give(hf_client *client, void *p)
{
    free(p);
}

static inline void test_done(hf_client *client, struct hf__req *req)
{
    reports++;
}

static unsigned goes;
static struct hf__req *given_back; /* the newest first */

static inline void test_go_on(hf_client *client)
{
    goes++;
}

static inline void test_unsent(hf_client *client, struct hf__req *req)
{
    req->next = given_back;
    given_back = req;
}

static inline void test_refuse(hf_client *client, int code)
{
}

static inline int test_watch(hf_client *client, int fd, uint32_t events,
                             uint32_t tag)
{
    return 0;
}

static inline int test_random(void *buf, size_t len)
{
    memset(buf, 7, len);
    return 0;
}

static inline void test_trouble(hf_client *client, const char *text)
{
}

static inline void test_session(hf_client *client, int event, const char *why)
{
}

static inline int test_why(hf_client *client, int code, const char *fmt, ...)
{
    return code;
}

static inline void test_due(hf_client *client, hf__time at)
{
}

static inline int test_add_name(hf_client *client, struct hf__query *query,
                                const char *name, size_t len)
{
    return 0;
}

static const struct hf__core core = {.now = test_now,
                                     .random = test_random,
                                     .alloc = test_take,
                                     .free = test_give,
                                     .done = test_done,
                                     .unsent = test_unsent,
                                     .go_on = test_go_on,
                                     .refuse = test_refuse,
                                     .watch = test_watch,
                                     .due = test_due,
                                     .add_name = test_add_name,
                                     .trouble = test_trouble,
                                     .session = test_session,
                                     .why = test_why,
                                     .lasts = test_why};

static inline struct redis *redis_begin(int *server)
{
    struct redis *r = calloc(1, sizeof(*r));
    int fds[2];

    assert_non_null(r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                     0);
    *server = fds[1];
    r->core = r->peer.core = r->chans.table.core = &core;
    r->op_timeout_ms = 5000;
    r->chance = 1;
    hf__rd_pipe_init(&r->cmd, &core, NULL, &hf__rd_cmd, r,
                     sizeof(struct rd_flight));
    hf__rd_pipe_init(&r->sub, &core, NULL, &hf__rd_sub, r,
                     sizeof(struct rd_sent));
    r->cmd.link.peer = r->sub.link.peer = &r->peer;
    r->cmd.link.tags = r->sub.link.tags = &r->tags;
    r->cmd.link.stream.fd = fds[0];
    r->cmd.link.state = NET_UP;
    reports = goes = 0;
    given_back = NULL;
    return r;
}

static inline void redis_end(struct redis *r, int server)
{
    hf__rd_pipe_fini(&r->cmd);
    hf__rd_pipe_fini(&r->sub);
    hf__rd_late_fini(r);
    hf__rd_sub_fini(r);
    close(server);
    free(r);
}

static inline void answer(struct redis *r, int type, const char *text)
{
    struct rd_node reply = {.type = type, .text = text, .len = strlen(text)};

    assert_int_equal(hf__rd_pipe_reply(&r->cmd, &reply, test_now()), 0);
}

#endif
