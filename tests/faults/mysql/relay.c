#include "relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS = 32 };

struct relay {
    pthread_t thread;
    int listener, port, server;
    uint32_t stop;  /* atomic */
    uint32_t zone;  /* atomic: change the time zone */
    uint32_t name;  /* atomic: hide MariaDB's name */
    uint32_t old;   /* atomic: report an old version */
    uint32_t kept;  /* atomic: pass the server's thread id unchanged */
    uint32_t clock; /* atomic: garble requests for the clock */
    uint32_t kills; /* atomic: see relay_kills() */
    struct pair {
        int client, server;
        bool greeted;
    } pair[PAIRS];
    size_t len;
};

static struct sockaddr_in address(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port)};
}

static bool say(int fd, const char *data, ssize_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, (size_t)len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        data += n;
        len -= n;
    }
    return true;
}

/* Changes the thread id in the greeting, which arrives in one piece. The
 * greeting begins with four bytes of packet header, a byte, the version, its
 * NUL, and the thread id. */
static void change_number(char *data, ssize_t len)
{
    char *end = len > 5 ? memchr(data + 5, '\0', (size_t)len - 5) : NULL;

    if (end && end + 4 < data + len)
        end[3] = (char)(end[3] + 1); /* adds 65536 */
}

static void hide_name(char *data, ssize_t len)
{
    char *at = memmem(data, (size_t)len, "MariaDB", 7);

    if (at)
        memcpy(at, "Cloudy.", 7);
}

/* Replaces the version by a shorter one. Of the packet's length, only the
 * lowest byte changes. */
static ssize_t change_version(char *data, ssize_t len)
{
    static const char old[] = "5.5.30";
    char *at = data + 5, *to = at + sizeof(old) - 1;
    char *end = len > 5 ? memchr(at, '\0', (size_t)len - 5) : NULL;

    if (!end || end < to || end - to > (unsigned char)data[0])
        return len;
    memcpy(at, old, sizeof(old) - 1);
    memmove(to, end, (size_t)(data + len - end));
    data[0] = (char)(data[0] - (end - to));
    return len - (end - to);
}

static void garble_clock(char *data, ssize_t len)
{
    static const char said[] = "utc_timestamp(6)";
    char *at = memmem(data, (size_t)len, said, sizeof(said) - 1);

    if (at)
        *strchr(at, '6') = '?';
}

/* Changes the time zone in the statement that sets up a session. That statement
 * arrives in one piece, too. */
static void change_zone(char *data, ssize_t len)
{
    static const char said[] = ",time_zone='+00:00',";
    char *at = memmem(data, (size_t)len, said, sizeof(said) - 1);

    if (at)
        memcpy(strchr(at, '+'), "-05", 3);
}

static bool is_about_threads(const char *data, ssize_t len)
{
    return memmem(data, (size_t)len, "kill ", 5) ||
           memmem(data, (size_t)len, "processlist", 11);
}

static bool is_set(const uint32_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static ssize_t greet(struct relay *r, char *data, ssize_t len)
{
    if (!is_set(&r->kept))
        change_number(data, len);
    if (is_set(&r->name))
        hide_name(data, len);
    return is_set(&r->old) ? change_version(data, len) : len;
}

static bool pass(struct relay *r, struct pair *p, int from, int to)
{
    char data[16384];
    ssize_t n = recv(from, data, sizeof(data), 0);

    if (n > 0 && from == p->client && is_set(&r->zone))
        change_zone(data, n);
    if (n > 0 && from == p->client && is_set(&r->clock))
        garble_clock(data, n);
    if (n > 0 && from == p->client && is_about_threads(data, n))
        __atomic_add_fetch(&r->kills, 1, __ATOMIC_RELEASE);
    if (n > 0 && from == p->server && !p->greeted) {
        n = greet(r, data, n);
        p->greeted = true;
    }
    return n > 0 && say(to, data, n);
}

static void forget(struct relay *r, size_t i)
{
    close(r->pair[i].client);
    close(r->pair[i].server);
    r->pair[i] = r->pair[--r->len];
}

static void join(struct relay *r)
{
    struct sockaddr_in in = address(r->server);
    struct pair p = {accept4(r->listener, NULL, NULL, SOCK_CLOEXEC),
                     socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), false};

    if (r->len < PAIRS && p.client >= 0 &&
        !connect(p.server, (struct sockaddr *)&in, sizeof(in))) {
        r->pair[r->len++] = p;
        return;
    }
    close(p.client);
    close(p.server);
}

static void turn(struct relay *r)
{
    struct pollfd at[2 * PAIRS + 1] = {{r->listener, POLLIN, 0}};
    size_t len = r->len;

    for (size_t i = 0; i < len; i++) {
        at[2 * i + 1] = (struct pollfd){r->pair[i].client, POLLIN, 0};
        at[2 * i + 2] = (struct pollfd){r->pair[i].server, POLLIN, 0};
    }
    if (poll(at, 2 * len + 1, 20) <= 0)
        return;
    for (size_t i = len; i-- > 0;) {
        struct pair *p = &r->pair[i];

        if ((at[2 * i + 1].revents && !pass(r, p, p->client, p->server)) ||
            (at[2 * i + 2].revents && !pass(r, p, p->server, p->client)))
            forget(r, i);
    }
    if (at[0].revents)
        join(r);
}

static void *relay_main(void *arg)
{
    struct relay *r = arg;

    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
        turn(r);
    return NULL;
}

struct relay *relay_start(int port)
{
    struct relay *r = calloc(1, sizeof(*r));
    struct sockaddr_in in = address(0);
    socklen_t len = sizeof(in);

    if (!r)
        return NULL;
    r->server = port;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!bind(r->listener, (struct sockaddr *)&in, len) &&
        !listen(r->listener, 16) &&
        !getsockname(r->listener, (struct sockaddr *)&in, &len) &&
        !pthread_create(&r->thread, NULL, relay_main, r)) {
        r->port = ntohs(in.sin_port);
        return r;
    }
    close(r->listener);
    free(r);
    return NULL;
}

void relay_hides_name(struct relay *r)
{
    __atomic_store_n(&r->name, 1, __ATOMIC_RELEASE);
}

void relay_changes_zone(struct relay *r)
{
    __atomic_store_n(&r->zone, 1, __ATOMIC_RELEASE);
}

void relay_greets_as_old(struct relay *r)
{
    __atomic_store_n(&r->old, 1, __ATOMIC_RELEASE);
}

void relay_keeps_number(struct relay *r)
{
    __atomic_store_n(&r->kept, 1, __ATOMIC_RELEASE);
}

void relay_garbles_clock(struct relay *r)
{
    __atomic_store_n(&r->clock, 1, __ATOMIC_RELEASE);
}

uint32_t relay_kills(struct relay *r)
{
    return __atomic_load_n(&r->kills, __ATOMIC_ACQUIRE);
}

int relay_port(const struct relay *r)
{
    return r->port;
}

void relay_end(struct relay *r)
{
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
    pthread_join(r->thread, NULL);
    while (r->len)
        forget(r, r->len - 1);
    close(r->listener);
    free(r);
}
