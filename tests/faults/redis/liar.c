#include "liar.h"

#include "../../lib/world.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

static const char greeting[] = "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";

static void say(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

/* One connection, until the client closes it. */
static void serve(struct liar *l, int fd)
{
    char buf[8192];
    bool greeted = false;

    while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;

        if (poll(&p, 1, 20) <= 0)
            continue;
        n = recv(fd, buf, sizeof(buf), 0);
        if (n <= 0 || (greeted && l->hangs_up)) {
            __atomic_add_fetch(&l->closed, 1, __ATOMIC_RELEASE);
            break;
        }
        if (!greeted && !l->hello)
            say(fd, greeting, sizeof(greeting) - 1);
        else if (!greeted)
            say(fd, l->hello, strlen(l->hello));
        else
            for (int i = 0; i < l->repeat; i++)
                say(fd, l->lie, l->lie_len);
        greeted = true;
    }
    close(fd);
}

static void *liar_main(void *arg)
{
    struct liar *l = arg;

    while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
        struct pollfd p = {l->listener, POLLIN, 0};
        int fd = poll(&p, 1, 20) > 0
                     ? accept4(l->listener, NULL, NULL, SOCK_CLOEXEC)
                     : -1;

        if (fd >= 0)
            serve(l, fd);
    }
    return NULL;
}

void liar_start(struct liar *l, char url[64])
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);

    l->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(l->listener, (struct sockaddr *)&in, len), 0);
    assert_int_equal(listen(l->listener, 8), 0);
    getsockname(l->listener, (struct sockaddr *)&in, &len);
    l->port = ntohs(in.sin_port);
    snprintf(url, 64, "redis://127.0.0.1:%d", l->port);
    OK(pthread_create(&l->thread, NULL, liar_main, l));
}

void liar_end(struct liar *l)
{
    __atomic_store_n(&l->stop, 1, __ATOMIC_RELEASE);
    pthread_join(l->thread, NULL);
    close(l->listener);
}
