#include "zk_hand.h"

#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define BEGUN 8 /* limit of pending requests */
#define PATIENCE_MS 20000
#define NUDGE_MS 1000

/* A request, and where its reply is stored. */
struct question {
    struct zk_hand *hand;
    bool used;
    char *out;
    size_t size;
    struct Stat *stat;
    struct String_vector *names;
};

struct zk_hand {
    zhandle_t *zh;
    unsigned under_way;
    int failed; /* first error of the requests that were begun */
    struct question question[BEGUN];
};

static void quiet(const char *message)
{
    (void)message;
}

static void watcher(zhandle_t *zh, int type, int state, const char *path,
                    void *ctx)
{
    (void)zh, (void)type, (void)state, (void)path, (void)ctx;
}

static void turn(struct zk_hand *h, int most_ms)
{
    struct pollfd pfd = {.fd = -1};
    struct timeval tv = {0};
    int interest = 0, events, ms;

    zookeeper_interest(h->zh, &pfd.fd, &interest, &tv);
    pfd.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                         (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    ms = (int)(tv.tv_sec * 1000 + tv.tv_usec / 1000);
    poll(&pfd, 1, ms < most_ms ? ms : most_ms);
    events = (pfd.revents & (POLLIN | POLLHUP | POLLERR) ? ZOOKEEPER_READ : 0) |
             (pfd.revents & POLLOUT ? ZOOKEEPER_WRITE : 0);
    zookeeper_process(h->zh, events);
}

#define DRIVE_UNTIL(h, cond, ms)                                               \
    ({                                                                         \
        int64_t drive_end = wait_now() + (int64_t)(ms)*1000000;                \
        bool drive_met;                                                        \
                                                                               \
        while (!(drive_met = (cond)) && wait_now() < drive_end)                \
            turn(h, 100);                                                      \
        drive_met;                                                             \
    })

static void on_nudge(int rc, const struct Stat *stat, const void *data)
{
    (void)rc, (void)stat, (void)data;
}

/* A member of an ensemble of ZooKeeper 3.8 can leave a request unprocessed
 * until the next request arrives. Therefore a further request is sent every
 * second while replies are missing. */
int zk_hand_await(struct zk_hand *h)
{
    int failed;

    for (int ms = 0; !DRIVE_UNTIL(h, h->under_way == 0, NUDGE_MS);
         ms += NUDGE_MS) {
        if (ms >= PATIENCE_MS)
            return ZOPERATIONTIMEOUT;
        zoo_aexists(h->zh, "/", 0, on_nudge, NULL);
    }
    failed = h->failed;
    h->failed = 0;
    return failed;
}

static struct zk_hand *open_as(const char *hosts, int session_ms,
                               const clientid_t *id)
{
    struct zk_hand *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->zh = zookeeper_init2(hosts, watcher, session_ms, id, h, 0, quiet);
    if (h->zh &&
        DRIVE_UNTIL(h, zoo_state(h->zh) == ZOO_CONNECTED_STATE, PATIENCE_MS))
        return h;
    zk_hand_close(h);
    return NULL;
}

struct zk_hand *zk_hand_open(const char *hosts, int session_ms)
{
    return open_as(hosts, session_ms, NULL);
}

/* The server derives the password from the session's id, with java.util.Random
 * and this seed. */
struct zk_hand *zk_hand_steal(const char *hosts, int64_t session_id)
{
    const uint64_t a = 0x5DEECE66D, mask = (1ull << 48) - 1;
    uint64_t seed = (((uint64_t)session_id ^ 0xB3415C00u) ^ a) & mask;
    clientid_t id = {.client_id = session_id};

    for (size_t i = 0; i < sizeof(id.passwd); i++) {
        if (i % 4 == 0)
            seed = (seed * a + 0xB) & mask;
        id.passwd[i] = (char)(seed >> (16 + 8 * (i % 4)));
    }
    return open_as(hosts, 10000, &id);
}

void zk_hand_close(struct zk_hand *h)
{
    if (!h)
        return;
    if (h->zh)
        zookeeper_close(h->zh);
    free(h);
}

zhandle_t *zk_hand_handle(struct zk_hand *h)
{
    return h->zh;
}

static struct question *begin(struct zk_hand *h, struct question as)
{
    struct question *q = h->question;

    while (q->used)
        if (++q == h->question + BEGUN)
            abort();
    *q = as;
    q->hand = h;
    q->used = true;
    h->under_way++;
    return q;
}

static void over(struct question *q, int rc)
{
    struct zk_hand *h = q->hand;

    if (rc && !h->failed)
        h->failed = rc;
    h->under_way--;
    q->used = false;
}

static int begun(struct question *q, int rc)
{
    if (rc)
        over(q, rc);
    return rc;
}

static void on_void(int rc, const void *data)
{
    over((struct question *)data, rc);
}

static void on_string(int rc, const char *value, const struct Stat *stat,
                      const void *data)
{
    struct question *q = (struct question *)data;

    if (!rc && q->out)
        snprintf(q->out, q->size, "%s", value);
    if (!rc && q->stat)
        *q->stat = *stat;
    over(q, rc);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct question *q = (struct question *)data;

    if (!rc && q->stat)
        *q->stat = *stat;
    over(q, rc);
}

static void on_data(int rc, const char *value, int len, const struct Stat *stat,
                    const void *data)
{
    struct question *q = (struct question *)data;

    (void)stat;
    if (!rc && q->size)
        snprintf(q->out, q->size, "%.*s", len < 0 ? 0 : len, value);
    over(q, rc);
}

static void on_names(int rc, const struct String_vector *names,
                     const void *data)
{
    struct question *q = (struct question *)data;

    if (!rc && q->names) {
        allocate_String_vector(q->names, names->count);
        for (int i = 0; i < names->count; i++)
            q->names->data[i] = strdup(names->data[i]);
    }
    over(q, rc);
}

static int begin_create(struct zk_hand *h, const char *path, const char *data,
                        int mode, struct question as)
{
    struct question *q = begin(h, as);

    return begun(q,
                 zoo_acreate2(h->zh, path, data, data ? (int)strlen(data) : -1,
                              &ZOO_OPEN_ACL_UNSAFE, mode, on_string, q));
}

int zk_hand_begin_create(struct zk_hand *h, const char *path, const char *data,
                         int mode, char *out, size_t size)
{
    return begin_create(h, path, data, mode,
                        (struct question){.out = out, .size = size});
}

int zk_hand_begin_children(struct zk_hand *h, const char *path,
                           struct String_vector *names)
{
    struct question *q = begin(h, (struct question){.names = names});

    return begun(q, zoo_aget_children(h->zh, path, 0, on_names, q));
}

int zk_hand_begin_delete(struct zk_hand *h, const char *path)
{
    struct question *q = begin(h, (struct question){0});

    return begun(q, zoo_adelete(h->zh, path, -1, on_void, q));
}

int zk_hand_create(struct zk_hand *h, const char *path, const char *data,
                   int mode, char *out, size_t size, struct Stat *stat)
{
    begin_create(h, path, data, mode,
                 (struct question){.out = out, .size = size, .stat = stat});
    return zk_hand_await(h);
}

int zk_hand_delete(struct zk_hand *h, const char *path)
{
    zk_hand_begin_delete(h, path);
    return zk_hand_await(h);
}

int zk_hand_set(struct zk_hand *h, const char *path, const char *data)
{
    struct question *q = begin(h, (struct question){0});

    begun(q, zoo_aset(h->zh, path, data, (int)strlen(data), -1, on_stat, q));
    return zk_hand_await(h);
}

int zk_hand_get(struct zk_hand *h, const char *path, char *data, size_t size)
{
    struct question *q = begin(h, (struct question){.out = data, .size = size});

    begun(q, zoo_aget(h->zh, path, 0, on_data, q));
    return zk_hand_await(h);
}

int zk_hand_stat(struct zk_hand *h, const char *path, struct Stat *stat)
{
    struct question *q = begin(h, (struct question){.stat = stat});

    begun(q, zoo_aexists(h->zh, path, 0, on_stat, q));
    return zk_hand_await(h);
}

static void on_path(int rc, const char *path, const void *data)
{
    (void)path;
    over((struct question *)data, rc);
}

int zk_hand_sync(struct zk_hand *h)
{
    struct question *q = begin(h, (struct question){0});

    begun(q, zoo_async(h->zh, "/", on_path, q));
    return zk_hand_await(h);
}

int zk_hand_children(struct zk_hand *h, const char *path,
                     struct String_vector *names)
{
    zk_hand_begin_children(h, path, names);
    return zk_hand_await(h);
}
