#include "example_server.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void run(void *server)
{
    struct example_server *s = server;
    struct server_args a = {0};

    server_arg(&a, "python3");
    server_arg(&a, "%s", EXAMPLE_SERVER);
    server_arg(&a, "%d", s->port);
    server_exec(&s->process, &a);
}

/* Sends one line on a connection without HELLO, and reads the two numbers of
 * the reply. */
static int ask(const struct example_server *s, const char *line, long n[2])
{
    int fd = server_connect(s->port), fields = 0;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r+");
    char text[80];

    if (f && send(fd, line, strlen(line), MSG_NOSIGNAL) > 0 &&
        fgets(text, sizeof(text), f))
        fields = sscanf(text, "COUNT %ld %ld", &n[0], &n[1]);
    if (f)
        fclose(f);
    return fields == 2 ? 0 : -1;
}

static bool answers(void *server)
{
    long n[2];

    return !ask(server, "COUNT\n", n);
}

int example_server_start(struct example_server *s)
{
    static const struct server_kind kind = {
        .name = EXAMPLE_SERVER,
        .run = run,
        .answers = answers,
    };

    s->kind = &kind;
    if (server_port(&s->process, &s->port))
        return -1;
    snprintf(s->url, sizeof(s->url), "example://127.0.0.1:%d", s->port);
    return example_server_again(s);
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
