#include "socket.h"

#include "session_proof.h"
#include "zookeeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

/* The library rounds its timeouts by less than this. */
#define SLACK (10 * HF__MS)

static void socket_unwatch(struct zk *z)
{
    z->unwatched = false;
    z->ready = 0;
    z->tag++;
    if (z->own_fd < 0)
        return;
    z->core->watch(z->client, z->own_fd, 0, z->tag);
    close(z->own_fd);
    z->own_fd = -1;
}

void hf__zk_socket_gone(struct zk *z)
{
    socket_unwatch(z);
    z->fd = -1;
    z->first_words = false;
    z->cause[0] = '\0';
}

static int socket_to_read_or_write(const struct zk *z, uint32_t events)
{
    return (events & ~(uint32_t)EPOLLOUT ? ZOOKEEPER_READ : 0) |
           (events & ~(uint32_t)EPOLLIN ? z->interest & ZOOKEEPER_WRITE : 0);
}

void hf__zk_socket_ready(struct zk *z, uint32_t tag, uint32_t events)
{
    if (tag == z->tag)
        z->ready |= socket_to_read_or_write(z, events);
}

/* poll(2) and epoll(7) use the same bits for events. */
void hf__zk_socket_poll(struct zk *z)
{
    struct pollfd p = {.fd = z->fd, .events = POLLIN};

    if (z->interest & ZOOKEEPER_WRITE)
        p.events |= POLLOUT;
    if (poll(&p, 1, 0) > 0)
        z->ready = socket_to_read_or_write(z, (uint32_t)p.revents);
}

void hf__zk_socket_watch(struct zk *z, int fd, int interest)
{
    uint32_t events = (interest & ZOOKEEPER_READ ? EPOLLIN : 0) |
                      (interest & ZOOKEEPER_WRITE ? EPOLLOUT : 0);

    if (z->up && fd == z->fd && interest == z->interest && !z->unwatched)
        return;
    /* While the client is not up, fd == z->fd does not mean that nothing has
     * changed: the library may have replaced its socket with one that has the
     * same number. */
    if (!z->up || fd != z->fd || z->own_fd < 0) {
        socket_unwatch(z);
        if (fd >= 0)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        if (fd >= 0)
            z->own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    z->fd = fd;
    z->interest = interest;
    z->unwatched =
        fd >= 0 && (z->own_fd < 0 ||
                    z->core->watch(z->client, z->own_fd, events, z->tag) != 0);
}

void hf__zk_socket_sent(struct zk *z)
{
    struct timeval tv;
    int fd, wanted;

    /* zookeeper_interest() tells whether the socket is full or broken. But it
     * also does all work of the library that is due, which only advance() may
     * do. Therefore it is not called here if work is due, nor while advance()
     * runs, which calls it by itself. */
    if (z->moving)
        return;
    z->used = z->sent;
    if (zoo_state(z->zh) != ZOO_CONNECTED_STATE ||
        z->core->now() + SLACK >= z->timer) {
        z->timer = 0;
        z->core->due(z->client, 0);
        return;
    }
    if (zookeeper_interest(z->zh, &fd, &wanted, &tv) == ZOK)
        hf__zk_socket_watch(z, fd, wanted);
    if (z->unwatched)
        z->timer = 0;
    /* This wakes the driver in time to notice that an answer is late. */
    z->core->due(z->client, z->sent + ZK_NUDGE);
}
