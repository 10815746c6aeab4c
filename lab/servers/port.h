/* A loopback port for a temporary server, of the lab or of a test. While the
 * port is bound, no other process gets it: neither before the server has
 * started, nor while the server is down. */
#ifndef HF_LAB_PORT_H
#define HF_LAB_PORT_H

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

/* Binds a free port and does not listen: a connection is refused, and a server
 * that sets SO_REUSEADDR can still listen there. Returns a descriptor, or
 * -1. */
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

/* Closes the descriptor *fd of port_reserve(), and sets *fd to 0, which means
 * that there is none. */
static inline void port_give_back(int *fd)
{
    if (*fd > 0)
        close(*fd);
    *fd = 0;
}

#endif
