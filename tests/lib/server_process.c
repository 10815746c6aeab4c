#include "server_process.h"

#include "../../lab/servers/port.h"
#include "shm_dir.h"
#include "wait.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int server_port(struct server_process *p, int *port)
{
    int i = 0;

    while (i < SERVER_PORTS && p->reserved[i])
        i++;
    if (i == SERVER_PORTS)
        return -1;
    p->reserved[i] = port_reserve(port);
    return p->reserved[i] < 0 ? -1 : 0;
}

int server_dir(struct server_process *p, const char *name, bool durable)
{
    if (!durable)
        return shm_dir_make(p->dir, sizeof(p->dir), name) ? 0 : -1;
    snprintf(p->dir, sizeof(p->dir), "/tmp/%s.XXXXXX", name);
    return mkdtemp(p->dir) ? 0 : -1;
}

static void forget(struct server_process *p)
{
    if (p->kind && p->kind->forget)
        p->kind->forget(p);
}

int server_spawn(struct server_process *p)
{
    pid_t parent = getpid();
    sigset_t none;

    forget(p);
    p->is_stopped = false;
    p->pid = fork();
    if (p->pid)
        return p->pid < 0 ? -1 : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent)
        p->kind->run(p);
    _exit(127);
}

/* Returns whether the server has ended; reaps it if so. */
static bool has_ended(struct server_process *p)
{
    if (p->pid > 0 && waitpid(p->pid, NULL, WNOHANG) != p->pid)
        return false;
    p->pid = 0;
    return true;
}

int server_await(struct server_process *p)
{
    int64_t ms = p->kind->ready_ms ? p->kind->ready_ms : WAIT_LONG_MS;

    if (WAIT_FOR_MS(has_ended(p) || p->kind->answers(p), ms) && p->pid)
        return 0;
    fprintf(stderr, "%s does not start; see %s/log\n", p->kind->name, p->dir);
    return -1;
}

int server_again(struct server_process *p)
{
    if (server_spawn(p) || server_await(p))
        return -1;
    return p->kind->warm ? p->kind->warm(p) : 0;
}

void server_kill(struct server_process *p)
{
    forget(p);
    p->is_stopped = false;
    if (p->pid <= 0)
        return;
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
}

int server_stop(struct server_process *p)
{
    if (kill(p->pid, SIGSTOP))
        return -1;
    p->is_stopped = true;
    return WAIT_FOR(wait_state(p->pid, p->pid) == 'T') ? 0 : -1;
}

int server_continue(struct server_process *p)
{
    p->is_stopped = false;
    return kill(p->pid, SIGCONT);
}

void server_end(struct server_process *p)
{
    server_kill(p);
    for (int i = 0; i < SERVER_PORTS; i++)
        port_give_back(&p->reserved[i]);
    if (p->dir[0])
        server_dir_remove(p->dir);
    p->dir[0] = '\0';
}

void server_arg(struct server_args *a, const char *fmt, ...)
{
    size_t room = sizeof(a->text) - a->used;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(a->text + a->used, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room ||
        a->len + 1 == sizeof(a->arg) / sizeof(*a->arg))
        _exit(127);
    a->arg[a->len++] = a->text + a->used;
    a->used += (size_t)n + 1;
}

void server_args(struct server_args *a, const char *const *list, size_t most)
{
    for (size_t i = 0; i < most && list[i]; i++)
        server_arg(a, "%s", list[i]);
}

_Noreturn void server_exec(const struct server_process *p,
                           struct server_args *a)
{
    char log[80];
    int fd;

    snprintf(log, sizeof(log), "%s/log", p->dir);
    fd = p->dir[0] ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0 || (dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0))
        execvp(a->arg[0], a->arg);
    _exit(127);
}

int server_connect(int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 2};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (fd < 0 || !connect(fd, (struct sockaddr *)&in, sizeof(in)))
        return fd;
    close(fd);
    return -1;
}
