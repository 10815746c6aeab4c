#include "proxy.h"
#include "hole.h"
#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define PAIRS 64
#define HELD (1 << 18) /* limit of the bytes held back in each direction */

struct pair {
    int client, server; /* -1 if free, or if that side is closed */
    char held[HELD];    /* bytes from the server, not yet passed on */
    size_t len;
    char hoard[HELD]; /* bytes from the client, held back by proxy_hoard() */
    size_t hoard_len;
    bool hoarding;
    uint64_t number; /* position in the order of arrival */
    int64_t due;     /* PROXY_DELAY, PROXY_DRIP: when to pass more on */
    bool used;
    bool finished; /* FIN sent to the client */
    bool asked;    /* the client has sent `counts` and has no reply yet */
    /* deaf: bytes of the client were dropped; mute: bytes of the server. */
    bool deaf, mute;
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t mu; /* guards all below; not held while the thread polls */
    pthread_cond_t turned;
    int listener, wake, port, to;
    enum proxy_mode mode;
    long value;
    proxy_censor *censor;
    bool stop, cut, deliver;
    unsigned cut_oldest;  /* how many of the oldest connections to cut */
    const char *word;     /* clients that send this are cut off; or NULL */
    const char *counts;   /* word whose replies are counted, or NULL */
    unsigned asked, done; /* requests to the thread, and how many it has
                             served */
    uint64_t sent, answered, numbers, counted;
    struct pair pairs[PAIRS];
};

static void reset(int *fd)
{
    struct linger now = {1, 0};

    if (*fd < 0)
        return;
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(*fd);
    *fd = -1;
}

static void end_pair(struct pair *p)
{
    reset(&p->client);
    reset(&p->server);
    p->used = p->finished = false;
    p->len = p->hoard_len = 0;
}

/* Closes both sides. If hoarded bytes of the client remain to be delivered,
 * closes only the client's side. */
static void end_client(struct pair *p)
{
    if (!p->hoard_len)
        end_pair(p);
    else
        reset(&p->client);
    p->mute = true;
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the next read from this socket fails too */
        data += n;
        len -= (size_t)n;
    }
}

static void take_new(struct proxy *x)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)x->to),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC);
    struct pair *p = x->pairs;

    while (p < x->pairs + PAIRS && p->used)
        p++;
    if (fd < 0)
        return;
    if (p == x->pairs + PAIRS || x->mode == PROXY_REFUSE) {
        reset(&fd);
        return;
    }
    *p = (struct pair){.used = true, .client = fd, .number = x->numbers++};
    p->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(p->server, (struct sockaddr *)&in, sizeof(in)))
        end_pair(p);
}

static bool says(const char *word, const char *data, size_t len)
{
    return word && memmem(data, len, word, strlen(word));
}

static void from_client(struct proxy *x, struct pair *p)
{
    char buf[65536];
    ssize_t n = recv(p->client, buf, sizeof(buf), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_client(p);
        return;
    }
    if (says(x->word, buf, (size_t)n)) {
        end_pair(p);
        return;
    }
    p->asked |= says(x->counts, buf, (size_t)n);
    p->deaf |= x->mode == PROXY_DEAF || x->mode == PROXY_BLACK_HOLE;
    if (p->deaf)
        return;
    if (p->hoarding && (size_t)n <= HELD - p->hoard_len) {
        memcpy(p->hoard + p->hoard_len, buf, (size_t)n);
        p->hoard_len += (size_t)n;
        return;
    }
    x->sent += (uint64_t)n;
    write_all(p->server, buf, (size_t)n);
}

static void give_hoard(struct proxy *x, struct pair *p)
{
    p->hoarding = false;
    if (!p->hoard_len)
        return;
    x->sent += p->hoard_len;
    write_all(p->server, p->hoard, p->hoard_len);
    p->hoard_len = 0;
    if (p->client < 0)
        shutdown(p->server, SHUT_WR); /* the server reads all, then closes */
}

static void from_server(struct proxy *x, struct pair *p)
{
    ssize_t n = recv(p->server, p->held + p->len, HELD - p->len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_pair(p);
        return;
    }
    x->answered += (uint64_t)n;
    x->counted += p->asked;
    p->asked = false;
    if (!p->len)
        p->due = wait_now() + (x->mode == PROXY_DELAY ? x->value * 1000000 : 0);
    p->len += (size_t)n;
}

static void pass(struct pair *p, size_t len)
{
    write_all(p->client, p->held, len);
    memmove(p->held, p->held + len, p->len - len);
    p->len -= len;
}

static uint32_t number_at(const char *bytes)
{
    uint32_t n;

    memcpy(&n, bytes, sizeof(n));
    return ntohl(n);
}

/* Passes on whole ZooKeeper packets, except watch events. A packet begins with
 * its length and the number of the request; a watch event has the number -1. */
static void pass_answers(struct pair *p)
{
    while (p->len >= 8 && p->len >= 4 + (size_t)number_at(p->held)) {
        size_t len = 4 + (size_t)number_at(p->held);

        if (number_at(p->held + 4) != UINT32_MAX) {
            pass(p, len);
            continue;
        }
        memmove(p->held, p->held + len, p->len - len);
        p->len -= len;
    }
}

/* Passes on the bytes that are due. Returns the time when more will be due, or
 * 0 if there is nothing to wait for. */
static int64_t move(struct proxy *x, struct pair *p, int64_t now)
{
    size_t some;

    p->mute |=
        p->len && (x->mode == PROXY_SWALLOW || x->mode == PROXY_BLACK_HOLE);
    if (p->mute || p->finished) {
        p->len = 0;
        return 0;
    }
    switch (x->mode) {
    case PROXY_RESET:
    case PROXY_HALF_CLOSE:
        some = (size_t)x->value < p->len ? (size_t)x->value : p->len;
        pass(p, some);
        x->value -= (long)some;
        if (!p->len)
            return 0;
        if (x->mode == PROXY_RESET)
            end_pair(p);
        else
            p->finished = !shutdown(p->client, SHUT_WR);
        x->mode = PROXY_PASS;
        return 0;
    case PROXY_DELAY:
        if (p->len && now < p->due)
            return p->due;
        break;
    case PROXY_DRIP:
        if (!p->len || now < p->due)
            return p->len ? p->due : 0;
        pass(p, 1);
        p->due = now + x->value * 1000;
        return p->due;
    case PROXY_LOSE_EVENTS:
        pass_answers(p);
        return 0;
    default:
        break;
    }
    some = x->censor ? x->censor(p->held, &p->len) : p->len;
    pass(p, some);
    return 0;
}

static void cut_oldest(struct proxy *x)
{
    struct pair *oldest = NULL;

    for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++)
        if (p->used && (!oldest || p->number < oldest->number))
            oldest = p;
    if (oldest)
        end_client(oldest);
}

static int64_t move_all(struct proxy *x)
{
    int64_t now = wait_now(), due = 0, at;

    for (; x->cut_oldest; x->cut_oldest--)
        cut_oldest(x);
    for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++) {
        if (p->used && x->cut)
            end_client(p);
        if (p->used && x->deliver)
            give_hoard(x, p);
        if (p->used && x->mode == PROXY_LOSS && p->client >= 0)
            hole_before(p->client);
        at = p->used ? move(x, p, now) : 0;
        if (at && (!due || at < due))
            due = at;
    }
    x->cut = x->deliver = false;
    return due;
}

static size_t fill(struct proxy *x, struct pollfd *fds)
{
    size_t n = 2;

    fds[0] = (struct pollfd){x->wake, POLLIN, 0};
    fds[1] = (struct pollfd){x->listener, POLLIN, 0};
    for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++) {
        bool room = p->used && p->len < HELD;

        fds[n++] = (struct pollfd){p->used ? p->client : -1, POLLIN, 0};
        fds[n++] = (struct pollfd){room ? p->server : -1, POLLIN, 0};
    }
    return n;
}

static void round_of(struct proxy *x, const struct pollfd *fds)
{
    uint64_t many;

    if (fds[0].revents && read(x->wake, &many, sizeof(many)) < 0)
        return;
    for (size_t i = 0; i < PAIRS; i++) {
        struct pair *p = &x->pairs[i];

        if (p->used && fds[2 + 2 * i].revents)
            from_client(x, p);
        if (p->used && fds[3 + 2 * i].revents)
            from_server(x, p);
    }
    if (fds[1].revents)
        take_new(x);
}

static void *proxy_main(void *arg)
{
    struct proxy *x = arg;
    struct pollfd fds[2 + 2 * PAIRS];

    pthread_mutex_lock(&x->mu);
    while (!x->stop) {
        int64_t due = move_all(x), left;
        struct timespec ts;
        size_t n;

        x->done = x->asked;
        pthread_cond_broadcast(&x->turned);
        n = fill(x, fds);
        left = due ? due - wait_now() : 0;
        left = left < 0 ? 0 : left;
        ts = (struct timespec){left / 1000000000, left % 1000000000};
        pthread_mutex_unlock(&x->mu);
        n = ppoll(fds, n, due ? &ts : NULL, NULL) > 0 ? n : 0;
        pthread_mutex_lock(&x->mu);
        if (n)
            round_of(x, fds);
    }
    for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++)
        if (p->used)
            end_pair(p);
    pthread_mutex_unlock(&x->mu);
    return NULL;
}

static void nudge(struct proxy *x)
{
    uint64_t one = 1;
    unsigned mine = ++x->asked;

    if (write(x->wake, &one, sizeof(one)) < 0)
        abort();
    while ((int)(x->done - mine) < 0)
        pthread_cond_wait(&x->turned, &x->mu);
}

struct proxy *proxy_start(int port)
{
    return proxy_start_at(1, port);
}

struct proxy *proxy_start_at(int host, int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr =
                                 htonl(INADDR_LOOPBACK - 1 + (in_addr_t)host)};
    socklen_t len = sizeof(in);
    struct proxy *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->to = port;
    x->wake = eventfd(0, EFD_CLOEXEC);
    x->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_mutex_init(&x->mu, NULL);
    pthread_cond_init(&x->turned, NULL);
    if (bind(x->listener, (struct sockaddr *)&in, len) ||
        listen(x->listener, 64) ||
        getsockname(x->listener, (struct sockaddr *)&in, &len) ||
        pthread_create(&x->thread, NULL, proxy_main, x))
        abort();
    x->port = ntohs(in.sin_port);
    return x;
}

int proxy_port(const struct proxy *x)
{
    return x->port;
}

void proxy_set(struct proxy *x, enum proxy_mode mode, long value)
{
    pthread_mutex_lock(&x->mu);
    x->mode = mode;
    x->value = value;
    nudge(x);
    pthread_mutex_unlock(&x->mu);
}

void proxy_censors(struct proxy *x, proxy_censor *censor)
{
    pthread_mutex_lock(&x->mu);
    x->censor = censor;
    pthread_mutex_unlock(&x->mu);
}

void proxy_cut(struct proxy *x)
{
    pthread_mutex_lock(&x->mu);
    x->cut = true;
    nudge(x);
    pthread_mutex_unlock(&x->mu);
}

void proxy_cut_oldest(struct proxy *x, unsigned many)
{
    pthread_mutex_lock(&x->mu);
    x->cut_oldest = many;
    nudge(x);
    pthread_mutex_unlock(&x->mu);
}

static uint64_t get(struct proxy *x, const uint64_t *number)
{
    uint64_t n;

    pthread_mutex_lock(&x->mu);
    n = *number;
    pthread_mutex_unlock(&x->mu);
    return n;
}

void proxy_cut_at(struct proxy *x, const char *word)
{
    pthread_mutex_lock(&x->mu);
    x->word = word;
    pthread_mutex_unlock(&x->mu);
}

void proxy_count(struct proxy *x, const char *word)
{
    pthread_mutex_lock(&x->mu);
    x->counts = word;
    pthread_mutex_unlock(&x->mu);
}

uint64_t proxy_counted(struct proxy *x)
{
    return get(x, &x->counted);
}

void proxy_lead_to(struct proxy *x, int port)
{
    pthread_mutex_lock(&x->mu);
    x->to = port;
    pthread_mutex_unlock(&x->mu);
}

uint64_t proxy_sent(struct proxy *x)
{
    return get(x, &x->sent);
}

uint64_t proxy_connections(struct proxy *x)
{
    return get(x, &x->numbers);
}

void proxy_hoard(struct proxy *x)
{
    pthread_mutex_lock(&x->mu);
    for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++)
        p->hoarding = p->used;
    pthread_mutex_unlock(&x->mu);
}

void proxy_deliver(struct proxy *x)
{
    pthread_mutex_lock(&x->mu);
    x->deliver = true;
    nudge(x);
    pthread_mutex_unlock(&x->mu);
}

uint64_t proxy_hoarded(struct proxy *x)
{
    uint64_t n = 0;

    pthread_mutex_lock(&x->mu);
    for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++)
        n += p->used ? p->hoard_len : 0;
    pthread_mutex_unlock(&x->mu);
    return n;
}

uint64_t proxy_answered(struct proxy *x)
{
    return get(x, &x->answered);
}

void proxy_end(struct proxy *x)
{
    uint64_t one = 1;

    if (!x)
        return;
    pthread_mutex_lock(&x->mu);
    x->stop = true;
    pthread_mutex_unlock(&x->mu);
    if (write(x->wake, &one, sizeof(one)) < 0)
        abort();
    pthread_join(x->thread, NULL);
    close(x->wake);
    close(x->listener);
    pthread_mutex_destroy(&x->mu);
    pthread_cond_destroy(&x->turned);
    free(x);
}
