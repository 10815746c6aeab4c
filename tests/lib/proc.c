#include "proc.h"

#include "options.h"
#include "record.h"
#include "wait.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PUPPET_FD 3

int proc_start(struct proc *p)
{
    char *argv[] = {"puppet", "--puppet", NULL};
    posix_spawn_file_actions_t actions;
    int pair[2], rc;

    p->pid = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], PUPPET_FD);
    rc = posix_spawn(&p->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    p->fd = pair[0];
    if (!rc)
        return 0;
    close(pair[0]);
    p->pid = 0;
    return -1;
}

int proc_send(struct proc *p, const struct proc_cmd *cmd)
{
    return send(p->fd, cmd, sizeof(*cmd), MSG_NOSIGNAL) == sizeof(*cmd) ? 0
                                                                        : -1;
}

bool proc_ready(struct proc *p, int ms)
{
    struct pollfd pfd = {p->fd, POLLIN, 0};
    int64_t end = wait_now() + (int64_t)ms * 1000000;
    int n;

    do
        n = poll(&pfd, 1, ms);
    while (n < 0 && wait_now() < end);
    return n > 0;
}

int proc_recv(struct proc *p, struct proc_reply *reply, int ms)
{
    if (!proc_ready(p, ms))
        return -1;
    return recv(p->fd, reply, sizeof(*reply), 0) == sizeof(*reply) ? 0 : -1;
}

int proc_do(struct proc *p, const struct proc_cmd *cmd,
            struct proc_reply *reply)
{
    return proc_send(p, cmd) ? -1 : proc_recv(p, reply, 3 * WAIT_LONG_MS);
}

static int reap(struct proc *p)
{
    int status = -1;

    while (waitpid(p->pid, &status, 0) < 0 && status == -1)
        if (kill(p->pid, 0))
            break;
    close(p->fd);
    p->pid = 0;
    return status;
}

void proc_kill(struct proc *p)
{
    if (!p->pid)
        return;
    kill(p->pid, SIGKILL);
    reap(p);
}

int proc_stop(struct proc *p)
{
    int status;

    if (kill(p->pid, SIGSTOP))
        return -1;
    return waitpid(p->pid, &status, WUNTRACED) == p->pid && WIFSTOPPED(status)
               ? 0
               : -1;
}

int proc_continue(struct proc *p)
{
    return kill(p->pid, SIGCONT);
}

int proc_end(struct proc *p)
{
    int status;

    if (!p->pid)
        return 0;
    shutdown(p->fd, SHUT_RDWR);
    status = reap(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct proc_shared *proc_shared_map(const char *path)
{
    struct proc_shared *s;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, sizeof(*s))) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return s == MAP_FAILED ? NULL : s;
}

void proc_shared_unmap(struct proc_shared *s)
{
    if (s)
        munmap(s, sizeof(*s));
}

/* TSan does not see that two clients of one process synchronize through the
 * server, so it would report a data race here. TSan is therefore off in this
 * function, which itself detects two holders at a time. */
__attribute__((no_sanitize("thread"), noinline)) void
proc_shared_bump(struct proc_shared *s)
{
    long seen = s->counter;

    if (s->inside++)
        s->violations++;
    if (seen % 16 == 0)
        sched_yield(); /* lets others try while the lock is held */
    s->counter = seen + 1;
    if (--s->inside)
        s->violations++;
}

struct puppet {
    hf_client *client;
    hf_lock *lock[PROC_LOCKS];
    hf_latch *latch;
};

bool proc_is_puppet(int argc, char **argv)
{
    return argc == 2 && !strcmp(argv[1], "--puppet");
}

int proc_open(const char *url, const hf_client_options *opt, hf_client **out,
              hf_error *err)
{
    struct timespec nap = {0, 300 * 1000000L};
    int rc = hf_open(url, opt, out, err);

    for (int tries = 1; rc && err->may_pass && tries < 5; tries++) {
        nanosleep(&nap, NULL);
        rc = hf_open(url, opt, out, err);
    }
    return rc;
}

static int puppet_open(struct puppet *p, const struct proc_cmd *c,
                       struct proc_reply *r)
{
    return proc_open(c->text, CLIENT(.ttl_ms = c->ttl_ms, .label = c->label),
                     &p->client, &r->err);
}

static int puppet_new(struct puppet *p, const struct proc_cmd *c,
                      struct proc_reply *r)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    if (c->kind)
        opt.kind = c->kind;
    opt.permits = c->permits;
    opt.fairness = c->fairness;
    opt.flags = c->flags;
    opt.handoff = c->handoff;
    opt.ttl_ms = c->ttl_ms;
    opt.max_hold_ms = c->max_hold_ms;
    return hf_lock_new(p->client, c->name, c->name_len, &opt, &p->lock[c->slot],
                       &r->err);
}

static int puppet_take(struct puppet *p, const struct proc_cmd *c,
                       struct proc_reply *r)
{
    hf_lock *lock = p->lock[c->slot];
    int rc =
        hf_lock_acquire(lock,
                        HOW(c->wait_ms, .mode = c->mode, .permits = c->permits,
                            .lease_ms = c->lease_ms),
                        &r->err);

    r->returned = wait_now();
    if (!rc)
        rc = hf_lock_token(lock, &r->token);
    if (!rc)
        rc = hf_lock_deadline(lock, &r->deadline);
    return rc;
}

static int puppet_loop(struct puppet *p, const struct proc_cmd *c,
                       struct proc_reply *r)
{
    const hf_acquire_options forever = HF_ACQUIRE_OPTIONS_INIT;
    struct record_owner o = {.record = record_map(c->text),
                             .lock = p->lock[c->slot],
                             .owner = c->owner,
                             .process = c->process,
                             .op_timeout_ms = c->wait_ms,
                             .kind = c->kind,
                             .size = c->permits,
                             .rough = c->flags};
    int rc = o.record ? 0 : HF_EBACKEND;

    if (!rc && !c->times)
        rc = record_rounds(&o);
    for (r->count = 0; !rc && r->count < c->times; r->count++)
        rc = record_round(&o, &forever);
    record_unmap(o.record);
    return rc;
}

/* Runs rounds that acquire and release several locks together. */
static int puppet_all(struct puppet *p, const struct proc_cmd *c,
                      struct proc_reply *r)
{
    struct proc_shared *s = proc_shared_map(c->text);
    hf_part parts[PROC_LOCKS] = {0};
    int rc = s ? 0 : HF_EBACKEND;

    for (size_t i = 0; i < c->slot; i++)
        parts[i].lock = p->lock[c->flags >> (4 * i) & 15];
    for (r->count = 0; !rc && r->count < c->times; r->count++) {
        rc = hf_lock_acquire_all(parts, c->slot, NULL, &r->err);
        if (rc)
            break;
        proc_shared_bump(s);
        rc = hf_lock_release_all(parts, c->slot, &r->err);
    }
    proc_shared_unmap(s);
    return rc;
}

static int puppet_do(struct puppet *p, const struct proc_cmd *c,
                     struct proc_reply *r)
{
    hf_lock *lock = p->lock[c->slot % PROC_LOCKS];
    int rc;

    switch (c->op) {
    case PROC_OPEN:
        return puppet_open(p, c, r);
    case PROC_CLOSE:
        rc = hf_close(p->client);
        p->client = NULL;
        return rc;
    case PROC_NEW:
        return puppet_new(p, c, r);
    case PROC_FREE:
        p->lock[c->slot] = NULL;
        return hf_lock_free(lock);
    case PROC_TAKE:
        return puppet_take(p, c, r);
    case PROC_GIVE:
        return hf_lock_release(lock, &r->err);
    case PROC_CHECK:
        rc = hf_lock_check(lock);
        return rc ? rc : hf_lock_count(lock, &r->count);
    case PROC_TOKEN:
        return hf_lock_token(lock, &r->token);
    case PROC_RENEW:
        return hf_lock_renew(lock, c->lease_ms, &r->err);
    case PROC_LOOP:
        return puppet_loop(p, c, r);
    case PROC_ALL:
        return puppet_all(p, c, r);
    case PROC_DOWN:
        return p->latch ? hf_latch_down(p->latch, &r->token, &r->err)
                        : hf_lock_downgrade(lock, &r->err);
    case PROC_LATCH:
        return hf_latch_new(p->client, c->name, c->name_len, &p->latch,
                            &r->err);
    case PROC_SET:
        return hf_latch_set(p->latch, c->times, &r->err);
    case PROC_WAIT:
        return hf_latch_wait(p->latch, c->wait_ms, NULL, &r->err);
    case PROC_EXIT:
        _exit(0);
    }
    return HF_EINVAL;
}

int proc_puppet(void)
{
    struct puppet p = {0};
    struct proc_cmd cmd;
    struct proc_reply reply;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(PUPPET_FD, F_SETFD, FD_CLOEXEC);
    while (recv(PUPPET_FD, &cmd, sizeof(cmd), 0) == sizeof(cmd)) {
        memset(&reply, 0, sizeof(reply));
        if (cmd.announce)
            send(PUPPET_FD, &reply, sizeof(reply), MSG_NOSIGNAL);
        reply.called = wait_now();
        reply.rc = puppet_do(&p, &cmd, &reply);
        if (!reply.returned)
            reply.returned = wait_now();
        if (send(PUPPET_FD, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
            break;
    }
    hf_latch_free(p.latch);
    rc = hf_close(p.client);
    for (int i = 0; i < PROC_LOCKS; i++)
        hf_lock_free(p.lock[i]);
    return rc ? 1 : 0;
}
