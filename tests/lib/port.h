/* A loopback port of a test's own, for as long as it is bound: nobody is given
 * it while its server is down, nor before it is up. */
#ifndef PORT_H
#define PORT_H

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bound and not listened to: a connection is refused, and a server that sets
 * SO_REUSEADDR can listen there all the same. A descriptor, or -1. */
static inline int port_reserve(int *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 &&
        !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
        !bind(fd, (struct sockaddr *)&in, len) &&
        !getsockname(fd, (struct sockaddr *)&in, &len)) {
        *port = ntohs(in.sin_port);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* 0: there is none. */
static inline void port_give_back(int *fd)
{
    if (*fd > 0)
        close(*fd);
    *fd = 0;
}

#endif
