/* A reserved port: only the server for which it is reserved can listen on it.
 * Connections are refused while that server does not listen. */
#include "../../../lab/servers/port.h"
#include "../cases.h"

static struct sockaddr_in at(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Returns 0 or errno. */
static int try_connect(int port)
{
    struct sockaddr_in in = at(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = connect(fd, (struct sockaddr *)&in, sizeof(in)) ? errno : 0;

    close(fd);
    return rc;
}

/* Returns a descriptor or -1. */
static int try_listen(int port, int reuses)
{
    struct sockaddr_in in = at(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuses, sizeof(reuses)) &&
        !bind(fd, (struct sockaddr *)&in, sizeof(in)) && !listen(fd, 1))
        return fd;
    close(fd);
    return -1;
}

CASE(test_port_is_silent_and_kept)
{
    int port = 0, fd = port_reserve(&port);

    assert_true(fd > 0);
    assert_true(port > 0);
    assert_int_equal(try_connect(port), ECONNREFUSED);
    assert_int_equal(try_listen(port, 0), -1);
    port_give_back(&fd);
    assert_int_equal(fd, 0);
}

/* A server may be killed and started again any number of times. */
CASE(test_port_is_its_servers)
{
    int port = 0, fd = port_reserve(&port), server;

    for (int i = 0; i < 3; i++) {
        server = try_listen(port, 1);
        assert_true(server >= 0);
        assert_int_equal(try_connect(port), 0);
        close(server);
        assert_int_equal(try_connect(port), ECONNREFUSED);
        assert_int_equal(try_listen(port, 0), -1);
    }
    port_give_back(&fd);
}

/* Two reservations never get the same port, although both allow reuse. */
CASE(test_ports_differ)
{
    enum { MANY = 200 };
    int fd[MANY], port[MANY] = {0};

    for (int i = 0; i < MANY; i++) {
        fd[i] = port_reserve(&port[i]);
        assert_true(fd[i] > 0);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(port[i], port[j]);
    }
    for (int i = 0; i < MANY; i++)
        port_give_back(&fd[i]);
}

CASES_MAIN(NULL, NULL);
