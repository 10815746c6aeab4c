/* A black hole in the network that needs no privileges: packets to the socket
 * disappear without an acknowledgement. */
#ifndef TESTS_HOLE_H
#define TESTS_HOLE_H

#include <linux/filter.h>
#include <stdlib.h>
#include <sys/socket.h>

static inline void hole_before(int fd)
{
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog all = {.len = 1, .filter = &drop};

    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)))
        abort();
}

#endif
