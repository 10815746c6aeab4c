/* A client is closed while other threads are inside verbs that need no hold.
 * Each call returns a result, and the first error that a thread gets is
 * HF_ECLOSED. One handle is kept, so that the closed client may still be
 * called. */
#include "conf.h"

struct visitor {
    struct conf_thread t;
    hf_client *client;
    const char *name;
    int (*visit)(struct visitor *);
    enum hf_fairness fairness;
    hf_lock *handle;
    int rc;
    long rounds; /* atomic */
};

static int visit_dispatch(struct visitor *v)
{
    int rc = hf_client_dispatch(v->client);

    return rc < 0 ? rc : 0;
}

static int visit_fd(struct visitor *v)
{
    int fd = hf_client_fd(v->client);

    return fd < 0 ? fd : 0;
}

static int visit_inspect(struct visitor *v)
{
    hf_info *info = NULL;
    int rc = hf_inspect(v->client, v->name, HF_CSTRING, &info, NULL);

    hf_info_free(info);
    return rc;
}

static int visit_list(struct visitor *v)
{
    hf_names *names = NULL;
    int rc = hf_list(v->client, v->name, &names, NULL);

    hf_names_free(names);
    return rc;
}

static int visit_break(struct visitor *v)
{
    int rc = hf_break(v->client, v->name, HF_CSTRING, NULL);

    return rc == HF_ENOTOWNER ? 0 : rc;
}

static int new_handle(struct visitor *v, unsigned flags, hf_lock **lock)
{
    hf_lock_options opt = LOCK_OPTIONS(.fairness = v->fairness, .flags = flags);

    return hf_lock_new(v->client, v->name, HF_CSTRING, &opt, lock, NULL);
}

static int visit_new(struct visitor *v)
{
    hf_lock *lock = NULL;
    int rc = new_handle(v, 0, &lock), freed = hf_lock_free(lock);

    return rc ? rc : freed;
}

static int visit_loss_fd(struct visitor *v)
{
    hf_lock *lock = NULL;
    int rc = new_handle(v, 0, &lock), fd = rc ? rc : hf_lock_fd(lock), freed;

    freed = hf_lock_free(lock);
    return fd < 0 ? fd : freed;
}

static void taken(void *arg, hf_lock *lock, int result)
{
    if (!result)
        hf_lock_release_nowait(lock, NULL);
}

/* Calls a verb whose callback runs in dispatch or in hf_close(). */
static int visit_async(struct visitor *v)
{
    int rc;

    if (!v->handle && (rc = new_handle(v, HF_OWNER_HANDLE, &v->handle)))
        return rc;
    rc = hf_lock_acquire_async(v->handle, NULL, taken, NULL, NULL);
    return rc == HF_EBUSY ? 0 : rc;
}

static void visit(void *arg)
{
    struct visitor *v = arg;

    while (!v->rc) {
        v->rc = v->visit(v);
        __atomic_add_fetch(&v->rounds, 1, __ATOMIC_RELAXED);
    }
}

static int (*const visits[])(struct visitor *) = {
    visit_dispatch, visit_fd,      visit_new,  visit_loss_fd, visit_async,
    visit_dispatch, visit_inspect, visit_list, visit_break,
};

enum { ALL = sizeof(visits) / sizeof(*visits), INSPECTING = 3 };

static void close_under_visits(void)
{
    size_t len = conf.caps & HF_CAP_INSPECT ? ALL : ALL - INSPECTING;
    hf_client *c = conf_open();
    struct visitor v[ALL];

    conf_lock(c, conf_name()); /* the handle that is kept */
    for (size_t i = 0; i < len; i++) {
        v[i] = (struct visitor){.client = c,
                                .name = conf_name(),
                                .visit = visits[i],
                                .fairness = conf.fairness};
        conf_thread_start(&v[i].t, visit, &v[i]);
    }
    for (size_t i = 0; i < len; i++)
        COMES(__atomic_load_n(&v[i].rounds, __ATOMIC_RELAXED) > 2);
    conf_close(c);
    for (size_t i = 0; i < len; i++) {
        conf_thread_join(&v[i].t);
        EXPECT(HF_ECLOSED, v[i].rc);
        OK(hf_lock_free(v[i].handle));
    }
}

CONF_CASE(test_inside_close_waits_for_whoever_is_there, CONF_EACH)
{
    for (int round = 0; round < 20; round++)
        close_under_visits();
}

/* Several threads close one client. One of them succeeds, the others get
 * HF_ECLOSED. */
struct closer {
    struct conf_thread t;
    hf_client *client;
    uint32_t *go; /* atomic */
    int rc;
};

static void close_it(void *arg)
{
    struct closer *c = arg;

    while (!__atomic_load_n(c->go, __ATOMIC_ACQUIRE))
        ;
    c->rc = hf_close(c->client);
}

static void close_at_once(void)
{
    enum { N = 3 };
    hf_client *c = conf_open();
    hf_lock *held = conf_lock(c, conf_name());
    struct closer closer[N];
    uint32_t go = 0;
    int closed = 0;

    OK(hf_lock_acquire(held, NULL, E));
    conf_forget(c);
    for (int i = 0; i < N; i++) {
        closer[i] = (struct closer){.client = c, .go = &go};
        conf_thread_start(&closer[i].t, close_it, &closer[i]);
    }
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < N; i++) {
        conf_thread_join(&closer[i].t);
        closed += closer[i].rc == 0;
        assert_true(closer[i].rc == 0 || closer[i].rc == HF_ECLOSED);
    }
    assert_int_equal(closed, 1);
}

CONF_CASE(test_inside_closed_once_by_several, CONF_EACH)
{
    for (int round = 0; round < 10; round++)
        close_at_once();
}
