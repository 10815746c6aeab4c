#include "example_server.h"

#include "../../lab/servers/port.h"
#include "server_process.h"

#include <stdio.h>
#include <string.h>

static void run(const struct example_server *s, pid_t parent)
{
    char port[16];
    const char *argv[] = {"python3", EXAMPLE_SERVER, port, NULL};

    snprintf(port, sizeof(port), "%d", s->port);
    server_process_exec(argv, parent);
}

/* One line, as the administrator: two numbers. */
static int ask(const struct example_server *s, const char *line, long n[2])
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fields = 0;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r+");
    char text[80];

    if (f && !connect(fd, (struct sockaddr *)&in, sizeof(in)) &&
        send(fd, line, strlen(line), MSG_NOSIGNAL) > 0 &&
        fgets(text, sizeof(text), f))
        fields = sscanf(text, "COUNT %ld %ld", &n[0], &n[1]);
    if (f)
        fclose(f);
    return fields == 2 ? 0 : -1;
}

/* Reaps the server if it has ended. */
static bool ended(struct example_server *s)
{
    if (waitpid(s->pid, NULL, WNOHANG) != s->pid)
        return false;
    s->pid = 0;
    return true;
}

int example_server_again(struct example_server *s)
{
    pid_t parent = getpid();
    long n[2];

    s->pid = fork();
    if (s->pid == 0)
        run(s, parent);
    if (s->pid < 0)
        return -1;
    return WAIT_FOR(ended(s) || !ask(s, "COUNT\n", n)) && s->pid ? 0 : -1;
}

int example_server_start(struct example_server *s)
{
    s->reserved = port_reserve(&s->port);
    snprintf(s->url, sizeof(s->url), "example://127.0.0.1:%d", s->port);
    if (s->reserved >= 0 && !example_server_again(s))
        return 0;
    fprintf(stderr, "%s does not start\n", EXAMPLE_SERVER);
    return -1;
}

void example_server_kill(struct example_server *s)
{
    server_process_kill(&s->pid);
}

int example_server_stop(struct example_server *s)
{
    return server_process_stop(s->pid);
}

int example_server_continue(struct example_server *s)
{
    return kill(s->pid, SIGCONT);
}

void example_server_end(struct example_server *s)
{
    example_server_kill(s);
    port_give_back(&s->reserved);
}

long example_server_holds(const struct example_server *s)
{
    long n[2];

    return ask(s, "COUNT\n", n) ? -1 : n[0];
}

long example_server_places(const struct example_server *s)
{
    long n[2];

    return ask(s, "COUNT\n", n) ? -1 : n[1];
}

int example_server_break(const struct example_server *s)
{
    long n[2];

    return ask(s, "BREAK\n", n);
}
