#include "api/lock_verb.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/time.h"
#include "core/client.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/lock.h"
#include "policy/local_queue.h"

int hf__lock_unusable(const hf_lock *lock, hf_error *err)
{
    if (!lock)
        return hf__fail(err, HF_EINVAL, "the lock is NULL");
    if (hf__client_check(lock->line->client) == HF_EFORK)
        return hf__fail(err, HF_EFORK,
                        "this lock is the parent process's; open a client in "
                        "the child");
    return hf__fail(err, HF_ECLOSED, "the client of this lock was closed");
}

hf__time hf__lock_clock(const struct hf__line *n, bool timed)
{
    const struct hf__queue *g = &n->queue;

    return timed || !n->client->endless || g->lease.deadline != HF__NEVER ||
                   (g->head && g->head->max_hold_ms)
               ? hf__now()
               : 0;
}

int hf__lock_lease_valid(const char *field, int64_t ms, const char *zero,
                         hf_error *err)
{
    if (ms == 0 || (ms >= HF_LEASE_MIN_MS && ms <= HF__MS_MAX))
        return 0;
    return hf__fail(
        err, HF_EINVAL, "%s is %lld; it must be 0 (%s), or %d to %lld", field,
        (long long)ms, zero, HF_LEASE_MIN_MS, (long long)HF__MS_MAX);
}

void hf__lock_wait_begin(hf_lock *lock)
{
    hf_client *c = lock->line->client;

    lock->waits++;
    hf__mutex_lock(&c->mu);
    c->inside++;
    hf__mutex_unlock(&c->mu);
    hf__line_unlock(lock->line);
}

void hf__lock_wait_leave(hf_lock *lock, struct hf__line *line)
{
    lock->waits--;
    hf__lines_rest(line);
}

void hf__lock_wait_end(hf_lock *lock, struct hf__line *line)
{
    hf_client *c = lock->line->client;

    hf__line_lock(line);
    hf__lock_wait_leave(lock, line);
    hf__line_unlock(line);
    hf__client_leave(c);
}
