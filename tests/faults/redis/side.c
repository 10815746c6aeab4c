#include "side.h"

const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};
const struct side reads = {HF_RWLOCK, HF_READ, HF_WRITE, 0, 0};
const struct side writes = {HF_RWLOCK, HF_WRITE, HF_READ, 0, 0};
const struct side permits = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, 2, SIZE};

hf_lock *lock_of(struct world *w, const char *url, int64_t ttl_ms,
                 int64_t op_ms, enum hf_kind kind)
{
    world_lock(w, url, ttl_ms, op_ms, HF_FAIR_DEFAULT);
    return world_change(w, w->len - 1, kind, kind == HF_SEMAPHORE ? SIZE : 0);
}

hf_lock *far_of(struct world *w, const struct side *s, int64_t ttl_ms,
                int64_t op_ms)
{
    return lock_of(w, w->far_url, ttl_ms, op_ms, s->kind);
}

hf_lock *near_of(struct world *w, const struct side *s)
{
    return lock_of(w, w->redis->url, 30000, 5000, s->kind);
}

int take_as(hf_lock *lock, enum hf_mode mode, uint32_t count, int64_t wait_ms,
            hf_error *err)
{
    return hf_lock_acquire(lock, HOW(wait_ms, .mode = mode, .permits = count),
                           err);
}

int take(hf_lock *lock, const struct side *s, int64_t wait_ms, hf_error *err)
{
    return take_as(lock, s->mode, s->permits, wait_ms, err);
}

int take_other(hf_lock *lock, const struct side *s, int64_t wait_ms,
               hf_error *err)
{
    return take_as(lock, s->other_mode, s->other_permits, wait_ms, err);
}

void all_of_it_is_free(struct world *w, const struct side *s, hf_lock *lock)
{
    uint32_t all = s->kind == HF_SEMAPHORE ? SIZE : 0;

    if (take_as(lock, HF_WRITE, all, 10000, &w->err)) {
        redis_server_print_keys(w->redis);
        fail_msg("somebody has it still: %s", w->err.text);
    }
    OK(hf_lock_release(lock, NULL));
    world_is_clean(w);
}

int puppet_do(struct proc *p, struct proc_cmd *cmd)
{
    struct proc_reply reply;

    OK(proc_do(p, cmd, &reply));
    return reply.rc;
}

void puppet_opens(struct world *w, struct proc *p, enum hf_kind kind,
                  int64_t ttl_ms)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = ttl_ms};

    OK(proc_start(p));
    snprintf(cmd.text, sizeof(cmd.text), "%s", w->redis->url);
    OK(puppet_do(p, &cmd));
    cmd.op = kind == HF_LATCH ? PROC_LATCH : PROC_NEW;
    cmd.kind = kind;
    cmd.permits = kind == HF_SEMAPHORE ? SIZE : 0;
    cmd.name_len = 1;
    cmd.name[0] = 'n';
    OK(puppet_do(p, &cmd));
}

void puppet_takes(struct world *w, struct proc *p, const struct side *s)
{
    struct proc_cmd cmd = {.op = PROC_TAKE,
                           .mode = s->mode,
                           .permits = s->permits,
                           .wait_ms = 1000};

    puppet_opens(w, p, s->kind, TTL_MS);
    OK(puppet_do(p, &cmd));
}
