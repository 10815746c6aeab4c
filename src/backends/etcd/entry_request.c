#include "entry_request.h"

#include "backends/common/about.h"
#include "base/list.h"

#include "entry.h"
#include "etcd.h"
#include "exchange.h"
#include "lock_state.h"
#include "txn.h"

#include <string.h>

#define VIEW 8 /* entries on the first page, if only the youngest matters */

static int over_request(struct grpc_call *c, hf__time now)
{
    return ((struct etcd *)c->owner)->answered(c, now);
}

static const struct grpc_method txn = {
    .path = "/etcdserverpb.KV/Txn", .most = ET_ANSWER, .over = over_request};

/* ---- memory -------------------------------------------------------------- */

/* Creates a request and begins its transaction. Returns NULL if memory is
 * short. The caller may fill in the transaction even then, because
 * request_send() accepts NULL. */
static struct et_request *request_new(struct etcd *e, enum et_op op,
                                      struct et_lock *line, struct et_txn *t)
{
    struct et_request *a = e->spare;

    hf__et_txn(t);
    if (a) {
        e->spare = a->next;
    } else {
        a = e->core->alloc(e->client, sizeof(*a));
        if (!a)
            return NULL;
        hf__grpc_call_init(&a->call, &e->g, &txn, e);
    }
    a->call.is_local = op == ET_READ_MARK ||
                       (op == ET_READ_QUEUE && !hf__et_is_safety_look(line));
    a->op = op;
    a->lock = line;
    a->batch = NULL;
    a->below = a->limit = a->view = 0;
    a->ahead = (struct et_ahead){0};
    e->drops += op == ET_DROP || op == ET_CONFIRM;
    hf__list_add(e->requests, a);
    return a;
}

void hf__et_request_over(struct et_request *a)
{
    if (a->lock && a->lock->under_way == a)
        a->lock->under_way = NULL;
}

void hf__et_request_free(struct etcd *e, struct et_request *a)
{
    hf__et_request_over(a);
    e->drops -= a->op == ET_DROP || a->op == ET_CONFIRM;
    hf__list_remove(e->requests, a);
    a->next = e->spare;
    e->spare = a;
}

void hf__et_requests_fini(struct etcd *e)
{
    struct et_request *a;

    while (e->requests)
        hf__et_request_free(e, e->requests);
    while ((a = e->spare)) {
        e->spare = a->next;
        hf__grpc_call_fini(&a->call);
        e->core->free(e->client, a);
    }
}

void hf__et_request_lost(const struct et_request *a)
{
    if (a->op != ET_ENTER || !a->lock)
        return;
    a->lock->maybe = a->lock->doubt = true;
}

void hf__et_request_forget(struct et_lock *l)
{
    struct et_request *a = l->under_way;

    if (!a)
        return;
    hf__et_request_lost(a);
    hf__grpc_cancel(&a->call);
    hf__et_request_free(l->e, a);
}

/* ---- requests ------------------------------------------------------------ */

/* Sends the request. Returns 0, HF__LATER or HF_ENOMEM. Frees a request that
 * was not sent. */
static int request_send(struct et_request *a, const struct et_txn *t)
{
    int rc;

    if (!a)
        return HF_ENOMEM;
    rc = hf__et_pack(&a->call, &t->m);
    if (!rc)
        rc = hf__grpc_start(&a->call, ET_CALL_MS);
    if (rc) {
        hf__et_request_free(a->call.g->owner, a);
        return rc;
    }
    if (a->lock)
        a->lock->under_way = a;
    return 0;
}

bool hf__et_needs_all(const struct et_lock *l)
{
    return l->form == ET_FORM_READ || l->form == ET_FORM_PERMIT;
}

/* Adds a read of the youngest entries below NAME/. If a->below is set, only
 * entries older than a->below are read. The member may answer without asking
 * its leader, because it has answered the ENTER or a later greeting, and so has
 * received every entry older than ours. An older entry that the member does not
 * have was deleted. (A safety look, hf__et_is_safety_look(), goes
 * through the leader.) */
static void request_add_view(struct et_request *a, struct et_txn *t, char *end)
{
    const struct et_lock *l = a->lock;
    Etcd__Range *r = hf__et_range(t, ET_THEN, l->key, l->dir_len);

    memcpy(end, l->key, l->dir_len);
    end[l->dir_len - 1] = '/' + 1;
    r->range_end.data = (uint8_t *)end;
    r->range_end.len = l->dir_len;
    if (!a->limit)
        a->limit = hf__et_needs_all(l) ? ET_VIEW_MAX : VIEW;
    r->limit = a->limit;
    r->sort_order = ETCD__RANGE__ORDER__DESCEND;
    r->sort_target = ETCD__RANGE__TARGET__CREATE;
    r->serializable = a->op == ET_ENTER || a->call.is_local;
    r->max_create_revision = a->below ? a->below - 1 : 0;
}

static void request_add_guard(const struct etcd *e, struct et_txn *t,
                              enum et_branch branch)
{
    hf__et_put(t, branch, e->guard_key, e->guard_len, e->about,
               strlen(e->about), e->lease);
}

int hf__et_enter(struct et_lock *l)
{
    struct etcd *e = l->e;
    char end[ET_KEY_MAX], value[ET_VALUE_MAX];
    struct et_txn t;
    struct et_request *a = request_new(e, ET_ENTER, l, &t);
    size_t len;

    if (!a)
        return HF_ENOMEM;
    l->since_ms = hf__wall_ms();
    len = hf__et_value(value, e->about, l->remote->label,
                       l->attempt->fixed ? l->attempt->lease_ms : 0,
                       l->since_ms, l->since_ms);
    hf__et_if_created(&t, l->key, l->key_len, 0);
    hf__et_if_changed(&t, e->guard_key, e->guard_len, e->guard);
    hf__et_put(&t, ET_THEN, l->key, l->key_len, value, len, e->lease);
    request_add_view(a, &t, end);
    hf__et_range(&t, ET_ELSE, l->key, l->key_len)->keys_only = false;
    hf__et_range(&t, ET_ELSE, e->guard_key, e->guard_len);
    return request_send(a, &t);
}

int hf__et_read_queue(struct et_lock *l, const struct et_request *before)
{
    char end[ET_KEY_MAX];
    struct et_txn t;
    struct et_request *a = request_new(l->e, ET_READ_QUEUE, l, &t);

    if (!a)
        return HF_ENOMEM;
    a->below = l->rev;
    if (before) {
        a->below = before->below;
        a->ahead = before->ahead;
        a->view = before->view;
        a->limit =
            before->limit < ET_VIEW_MAX ? 16 * before->limit : ET_VIEW_MAX;
    }
    hf__et_if_created(&t, l->key, l->key_len, l->rev);
    request_add_view(a, &t, end);
    return request_send(a, &t);
}

/* One range reads both keys, because the key of the mark directly follows that
 * of the writer's entry. */
int hf__et_read_mark(struct et_lock *l, const struct et_ahead *s)
{
    char end[ET_KEY_MAX + 1];
    struct et_txn t;
    struct et_request *a = request_new(l->e, ET_READ_MARK, l, &t);
    Etcd__Range *r = hf__et_range(&t, ET_THEN, s->before, s->len);

    memcpy(end, s->before, s->len);
    end[s->len] = ET_MARK + 1;
    r->range_end.data = (uint8_t *)end;
    r->range_end.len = s->len + 1;
    r->serializable = true;
    if (a)
        a->ahead = *s;
    return request_send(a, &t);
}

/* Writes the guard and reads the entry. After this write no earlier ENTER can
 * succeed. So if the entry does not exist then, no earlier ENTER will create
 * the entry. */
static int request_confirm(struct et_lock *l)
{
    struct et_txn t;
    struct et_request *a = request_new(l->e, ET_CONFIRM, l, &t);

    request_add_guard(l->e, &t, ET_THEN);
    hf__et_range(&t, ET_THEN, l->key, l->key_len)->keys_only = false;
    return request_send(a, &t);
}

static size_t request_mark_of(const struct et_lock *l,
                              char mark[ET_KEY_MAX + 1])
{
    memcpy(mark, l->key, l->key_len);
    mark[l->key_len] = ET_MARK;
    return l->key_len + 1;
}

static void request_add_drop(struct et_txn *t, const struct et_lock *l,
                             char mark[ET_KEY_MAX + 1])
{
    hf__et_if_created(t, l->key, l->key_len, l->rev);
    hf__et_delete(t, ET_THEN, l->key, l->key_len);
    if (l->mark != ET_UNMARKED)
        hf__et_delete(t, ET_THEN, mark, request_mark_of(l, mark));
}

int hf__et_drop(struct et_lock *l)
{
    char mark[ET_KEY_MAX + 1];
    struct et_request *a;
    struct et_txn t;

    if (!l->rev || l->doubt)
        return request_confirm(l);
    a = request_new(l->e, ET_DROP, l, &t);
    request_add_drop(&t, l, mark);
    return request_send(a, &t);
}

bool hf__et_is_dropped(const struct et_lock *l)
{
    return l->under_way &&
           (l->under_way->op == ET_DROP || l->under_way->op == ET_CONFIRM);
}

/* Must be called only for a key that no later entry will have, because the
 * deletion may be carried out late. */
void hf__et_leave(struct et_lock *l)
{
    char mark[ET_KEY_MAX + 1];
    struct et_request *a;
    struct et_txn t;

    hf__et_request_forget(l);
    if (!hf__et_may_be_there(l))
        return;
    a = request_new(l->e, ET_TOUCH, NULL, &t);
    if (!a)
        return;
    if (l->rev)
        request_add_drop(&t, l, mark);
    else
        hf__et_delete(&t, ET_THEN, l->key, l->key_len);
    if (l->doubt)
        request_add_guard(l->e, &t, ET_THEN);
    request_send(a, &t);
    l->rev = 0;
    l->maybe = l->doubt = false;
    l->mark = ET_UNMARKED;
}

/* Does nothing for read-write locks. Go's RWMutex orders entries by their last
 * change, so these entries must never be written again. */
void hf__et_touch(const struct et_lock *l, uint32_t lease_ms)
{
    struct etcd *e = l->e;
    char value[ET_VALUE_MAX];
    struct et_request *a;
    struct et_txn t;
    size_t len;

    if (l->form == ET_FORM_READ || l->form == ET_FORM_WRITE)
        return;
    a = request_new(e, ET_TOUCH, NULL, &t);
    len = hf__et_value(value, e->about, l->remote->label, lease_ms, l->since_ms,
                       hf__wall_ms());
    hf__et_if_created(&t, l->key, l->key_len, l->rev);
    hf__et_put(&t, ET_THEN, l->key, l->key_len, value, len, e->lease);
    request_send(a, &t); /* if this fails, nothing is lost */
}

void hf__et_wipe(struct etcd *e, const char *key, size_t len)
{
    struct et_txn t;
    struct et_request *a = request_new(e, ET_TOUCH, NULL, &t);

    hf__et_delete(&t, ET_THEN, key, len);
    request_send(a, &t); /* if this fails, the key is deleted with the lease */
}

int hf__et_count(struct et_lock *l)
{
    struct et_txn t;
    struct et_request *a = request_new(l->e, ET_COUNT, l, &t);

    hf__et_range(&t, ET_THEN, l->key, l->key_len);
    return request_send(a, &t);
}

/* ---- requests of a renewal ----------------------------------------------- */

static int request_send_of(struct et_request *a, const struct et_txn *t,
                           struct hf__batch *b, size_t from, size_t len)
{
    if (a) {
        a->batch = b;
        a->from = from;
        a->len = len;
    }
    return request_send(a, t);
}

int hf__et_write_mark(struct etcd *e, struct hf__batch *b, size_t item)
{
    const struct et_lock *l = b->item[item].remote->impl;
    char mark[ET_KEY_MAX + 1];
    struct et_txn t;
    struct et_request *a = request_new(e, ET_WRITE_MARK, NULL, &t);

    hf__et_if_created(&t, l->key, l->key_len, l->rev);
    hf__et_put(&t, ET_THEN, mark, request_mark_of(l, mark), "", 0, e->lease);
    if (a)
        a->rev = l->rev;
    return request_send_of(a, &t, b, item, 1);
}

int hf__et_check(struct etcd *e, struct hf__batch *b, size_t from, size_t len)
{
    struct et_txn t;
    struct et_request *a = request_new(e, ET_RENEW, NULL, &t);

    for (size_t i = 0; i < len; i++) {
        const struct et_lock *l = b->item[from + i].remote->impl;

        hf__et_if_created(&t, l->key, l->key_len, l->rev);
        hf__et_range(&t, ET_ELSE, l->key, l->key_len);
    }
    return request_send_of(a, &t, b, from, len);
}
