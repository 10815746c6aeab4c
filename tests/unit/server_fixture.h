/*
 * A test backend: the test decides when requests are answered, and how. A test
 * that includes this file must link the internals of the library.
 */
#ifndef TESTS_SERVER_FIXTURE_H
#define TESTS_SERVER_FIXTURE_H

#include "base/futex.h"
#include "base/list.h"
#include "base/time.h"
#include "cases.h"
#include "core/client.h"
#include "core/line.h"
#include "core/lock.h"
#include "loop/backend_services.h"
#include "loop/module.h"
#include "options.h"

#include "../lib/wait.h"

static struct {
    const struct hf__core *core;
    hf_client *client;
    struct hf__req *asked; /* requests not answered yet */
    int answers;           /* number of requests that advance() still answers,
                              with `answer` */
    int16_t answer;
    bool answers_late; /* answers arrive while abandon() runs */
    unsigned refusals; /* releases to refuse before one is accepted */
    unsigned released;
    bool at_once;        /* attempts are answered immediately */
    bool keeps_releases; /* releases are answered like all other requests */
    bool never_ready;
    int opens, gets_ready; /* results of open() and opened() */
    unsigned closed;       /* atomic: number of close() calls */
    void (*in_open)(const struct hf__config *);
    hf__time (*in_timeout)(void);
    void (*in_ready)(uint32_t tag, uint32_t events);
    void (*in_advance)(hf__time now);
    void (*in_renew)(const struct hf__batch *);
} server;

static int server_open(hf_client *c, const struct hf__core *core,
                       const struct hf__config *config, void **self)
{
    server.core = core;
    server.client = c;
    *self = &server;
    if (server.in_open)
        server.in_open(config);
    return server.opens;
}

static int server_opened(void *self)
{
    return server.never_ready ? HF__PENDING : server.gets_ready;
}

static void server_close(void *self)
{
    __atomic_add_fetch(&server.closed, 1, __ATOMIC_SEQ_CST);
}

static bool refuses(const struct hf__req *req)
{
    return req->op == HF__RELEASE && !server.keeps_releases;
}

static void answer_one(void)
{
    struct hf__req *req = server.asked;
    struct hf__batch *batch = hf__container(req, struct hf__batch, req);

    server.asked = req->next;
    req->result = (int16_t)(refuses(req) ? HF_EBACKEND : server.answer);
    for (size_t i = 0; req->op == HF__RENEW && i < batch->len; i++)
        batch->item[i].result = req->result;
    req->sent_at = server.core->now();
    if (req->result == HF__QUEUED)
        req->poll_at = req->sent_at + 60000 * HF__MS;
    server.core->done(server.client, req);
}

static void server_ready(void *self, uint32_t tag, uint32_t events,
                         hf__time now)
{
    if (server.in_ready)
        server.in_ready(tag, events);
}

static void server_advance(void *self, hf__time now)
{
    if (server.in_advance)
        server.in_advance(now);
    while (server.asked && refuses(server.asked))
        answer_one();
    for (; server.asked && server.answers; server.answers--)
        answer_one();
}

static hf__time server_timeout(void *self)
{
    return server.in_timeout ? server.in_timeout() : HF__NEVER;
}

static int server_attach(void *self, struct hf__remote *remote)
{
    return 0;
}

static void server_detach(void *self, struct hf__remote *remote)
{
}

static int server_ask(void *self, struct hf__req *req)
{
    req->next = server.asked;
    server.asked = req;
    if (server.answers)
        server.core->due(server.client, server.core->now());
    return HF__PENDING;
}

static int server_attempt(void *self, struct hf__req *req)
{
    if (!server.at_once)
        return server_ask(self, req);
    req->sent_at = server.core->now();
    if (server.answer == HF__QUEUED)
        req->poll_at = req->sent_at + 60000 * HF__MS;
    return server.answer;
}

/* Abandons the request. If answers_late is set, the answer is delivered first,
 * as if a driver had read it after the core decided to abandon the request, but
 * before this call. */
static int server_abandon(void *self, struct hf__req *req)
{
    while (server.asked && server.answers_late)
        answer_one();
    server.asked = NULL;
    return HF__DONE;
}

static int server_release(void *self, struct hf__req *req)
{
    if (server.keeps_releases)
        return server_ask(self, req);
    if (server.refusals) {
        server.refusals--;
        return server_ask(self, req);
    }
    server.released++;
    return HF__DONE;
}

static int server_renew(void *self, struct hf__batch *batch)
{
    if (server.in_renew)
        server.in_renew(batch);
    return server_ask(self, &batch->req);
}

static int server_query(void *self, struct hf__query *query)
{
    return server_ask(self, &query->req);
}

/* A test may change these fields before it opens a client. */
static struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "test",
    .caps = {[HF_MUTEX] = HF_CAP_UNFAIR,
             [HF_RWLOCK] = HF_CAP_UNFAIR,
             [HF_SEMAPHORE] = HF_CAP_UNFAIR,
             [HF_LATCH] = HF_CAP_UNFAIR},
    .open = server_open,
    .opened = server_opened,
    .close = server_close,
    .ready = server_ready,
    .advance = server_advance,
    .next_timeout = server_timeout,
    .attach = server_attach,
    .detach = server_detach,
    .attempt = server_attempt,
    .release = server_release,
    .abandon = server_abandon,
    .renew = server_renew,
    .query = server_query,
};

/* Replaces the function of module.c: every URL leads to the test backend. */
int hf__backend_find(const char *scheme, const struct hf__backend **out,
                     hf_error *err)
{
    *out = &backend;
    return 0;
}

static inline hf_client *open_with(const hf_hooks *hooks)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c;

    memset(&server, 0, sizeof(server));
    opt.hooks = hooks;
    opt.op_timeout_ms = WAIT_LONG_MS;
    assert_int_equal(hf_open("test://", &opt, &c, NULL), 0);
    return c;
}

static inline hf_lock *make_lock(hf_client *c, const char *name,
                                 enum hf_kind kind, unsigned flags,
                                 uint32_t permits)
{
    hf_lock_options opt =
        LOCK_OPTIONS(.kind = kind, .flags = flags, .permits = permits);
    hf_lock *lock;

    assert_int_equal(hf_lock_new(c, name, HF_CSTRING, &opt, &lock, NULL), 0);
    return lock;
}

/* Opens a client whose attempts are answered immediately with `answer`. */
static inline hf_client *open_at_once(int16_t answer)
{
    hf_client *c = open_with(NULL);

    hf__mutex_lock(&c->mu);
    server.at_once = true;
    server.answer = answer;
    hf__mutex_unlock(&c->mu);
    return c;
}

struct call {
    int called, result;
};

static inline void note(struct call *call, int result)
{
    call->called++;
    call->result = result;
}

static inline void note_lock(void *call, hf_lock *lock, int result)
{
    note(call, result);
}

static inline void note_latch(void *call, hf_latch *latch, int result)
{
    note(call, result);
}

static inline void let_answer(hf_client *c, int answers, int16_t answer)
{
    hf__mutex_lock(&c->mu);
    server.answers = answers;
    server.answer = answer;
    if (server.asked && answers)
        server.core->due(c, server.core->now());
    hf__mutex_unlock(&c->mu);
}

static inline bool is_called(hf_client *c, const struct call *call)
{
    assert_true(hf_client_dispatch(c) >= 0);
    return call->called;
}

struct waiter {
    hf_lock *lock;
    hf_cancel cancel;
    int rc;
};

static inline void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.cancel = &w->cancel);

    w->rc = hf_lock_acquire(w->lock, &opt, NULL);
    return NULL;
}

static inline bool is_queued(const hf_lock *lock)
{
    bool queued;

    hf__line_lock(lock->line);
    queued = lock->line->queue.lease.state == HF__WAITING;
    hf__line_unlock(lock->line);
    return queued;
}

#endif
