/* For each kind of lock, the first waiter is stopped or its connections are
 * half open, and the other waiters pass it. In other cases the client that ends
 * the hold cannot notify the first waiter, which then acquires by polling. */
#include "mysql_faults.h"

#include "relay.h"

#include <stdio.h>

GROUP("first");

static const struct shape {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
} shapes[] = {
    {"fair mutex", HF_MUTEX, HF_FAIR},
    {"unfair mutex", HF_MUTEX, HF_UNFAIR},
    {"fair read-write lock", HF_RWLOCK, HF_FAIR},
    {"unfair read-write lock", HF_RWLOCK, HF_UNFAIR},
    {"fair semaphore", HF_SEMAPHORE, HF_FAIR},
    {"unfair semaphore", HF_SEMAPHORE, HF_UNFAIR},
    {"latch", HF_LATCH, HF_UNFAIR},
};

struct holder {
    hf_client *client;
    hf_lock *lock;   /* NULL for the latch */
    hf_latch *latch; /* a latch that is set to 1, or NULL */
};

static void hold(struct world *w, const struct shape *s, const char *url,
                 struct holder *h)
{
    *h = (struct holder){.client = my_open(w, url)};
    if (s->kind == HF_LATCH) {
        OK(hf_latch_new(h->client, "n", HF_CSTRING, &h->latch, &w->err));
        OK(hf_latch_set(h->latch, 1, &w->err));
        return;
    }
    OK(hf_lock_new(h->client, "n", HF_CSTRING,
                   KIND(s->kind, .permits = s->kind == HF_SEMAPHORE ? 1 : 0,
                        .fairness = s->fairness),
                   &h->lock, &w->err));
    OK(hf_lock_timed(h->lock, 5000, &w->err));
}

static void let_go(struct world *w, struct holder *h)
{
    assert_int_equal(h->latch ? hf_latch_down(h->latch, NULL, &w->err)
                              : hf_lock_release(h->lock, &w->err),
                     0);
}

static void holder_end(struct world *w, struct holder *h)
{
    assert_int_equal(h->latch ? hf_latch_free(h->latch) : hf_lock_free(h->lock),
                     0);
    world_ends(w, h->client);
}

static void begin_to_wait(struct proc *p, const struct shape *s,
                          const char *url, long waiters)
{
    bool is_latch = s->kind == HF_LATCH;
    struct proc_cmd open = {.op = PROC_OPEN};
    struct proc_cmd new = {.op = is_latch ? PROC_LATCH : PROC_NEW,
                           .kind = s->kind,
                           .permits = s->kind == HF_SEMAPHORE ? 1 : 0,
                           .fairness = s->fairness,
                           .name = "n",
                           .name_len = 1};
    struct proc_cmd take = {.op = is_latch ? PROC_WAIT : PROC_TAKE,
                            .mode = HF_WRITE,
                            .permits = 1,
                            .wait_ms = WAIT_MS};
    struct proc_reply r;

    snprintf(open.text, sizeof(open.text), "%s", url);
    OK(proc_start(p));
    OK(proc_do(p, &open, &r));
    assert_int_equal(r.rc, 0);
    OK(proc_do(p, &new, &r));
    assert_int_equal(r.rc, 0);
    OK(proc_send(p, &take));
    my_has_waiters(waiters);
}

static void has_it(struct proc *p, bool is_latch)
{
    struct proc_reply r;

    OK(proc_recv(p, &r, WAIT_LONG_MS));
    if (r.rc)
        fail_msg("%s: %s", hf_error_name(r.rc), r.err.text);
    if (!is_latch)
        OK(proc_do(p, &(struct proc_cmd){.op = PROC_GIVE}, &r));
    assert_int_equal(r.rc, 0);
}

static void passed(struct world *w, const struct shape *s, bool stopped)
{
    int64_t within = s->fairness == HF_FAIR ? FAIR_PASS_MS : PASS_MS;
    bool is_latch = s->kind == HF_LATCH;
    struct proc first, second;
    struct holder h;

    hold(w, s, my_one.url, &h);
    begin_to_wait(&first, s, stopped ? w->near_url : w->far_url, 1);
    begin_to_wait(&second, s, w->near_url, 2);
    if (stopped)
        OK(proc_stop(&first));
    else
        proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    let_go(w, &h);
    if (!WAIT_FOR_MS(proc_ready(&second, 0), within))
        fail_msg("%s: the second waiter did not pass the first", s->name);
    has_it(&second, is_latch);
    if (stopped) {
        OK(proc_continue(&first));
        has_it(&first, is_latch);
        OK(proc_end(&first));
    } else {
        world_heal(w);
        proc_kill(&first);
    }
    OK(proc_end(&second));
    holder_end(w, &h);
    my_server_empty(&my_one);
}

CASE(test_first_is_stopped)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        passed(w, &shapes[i], true);
}

CASE(test_first_is_half_open)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        passed(w, &shapes[i], false);
}

/* Asserts that the waiter finds a release or a break without being notified.
 * The client that releases or breaks is behind a proxy that shares connections.
 * This client notifies no waiter, because a KILL through the proxy could end a
 * statement of another session. */
static void looks_by_itself(struct world *w, const struct shape *s,
                            const char *url, bool breaks)
{
    struct holder h, breaker = {.client = my_open(w, url)};
    struct proc p;

    hold(w, s, breaks ? my_one.url : url, &h);
    begin_to_wait(&p, s, my_one.url, 1);
    if (breaks)
        OK(hf_break(breaker.client, "n", HF_CSTRING, &w->err));
    else
        let_go(w, &h);
    if (!WAIT_FOR_MS(proc_ready(&p, 0), REPEAT_MS + 500))
        fail_msg("%s: the waiter did not poll", s->name);
    has_it(&p, s->kind == HF_LATCH);
    OK(proc_end(&p));
    if (breaks && h.lock)
        hf_lock_release(h.lock, NULL);
    holder_end(w, &h);
    world_ends(w, breaker.client);
    my_server_empty(&my_one);
}

CASE(test_nothing_is_killed_through_a_proxy)
{
    struct relay *relay = relay_start(my_one.port);
    char url[128];

    assert_non_null(relay);
    my_server_url_at(relay_port(relay), "", url, sizeof(url));
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        if (shapes[i].fairness != HF_FAIR && shapes[i].kind != HF_LATCH)
            continue;
        looks_by_itself(w, &shapes[i], url, false);
        looks_by_itself(w, &shapes[i], url, true);
    }
    assert_int_equal(relay_kills(relay), 0);
    relay_end(relay);
}
