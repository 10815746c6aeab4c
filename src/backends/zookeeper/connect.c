#include "connect.h"

#include "zookeeper.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define LOOKUP_PART 3 /* time between lookups: the timeout divided by this */
#define LOOKUP_MIN_MS 1000
#define LOOKUP_MAX_MS 10000
#define FOUND_MS 100  /* time between checks of a running lookup */
#define ANSWER_MIN 36 /* shortest first packet of a server, in bytes */
#define ANSWER_MAX 37

/* ---- addresses ----------------------------------------------------------- */

/* Appends one address. An IPv6 address needs no brackets, because the library
 * takes what follows the last colon as the port. */
static void connect_append(struct zk_addrs *out, const struct addrinfo *a)
{
    char host[64], port[8];
    size_t len = strlen(out->text);
    int n;

    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    n = snprintf(out->text + len, sizeof(out->text) - len, "%s%s:%s",
                 len ? "," : "", host, port);
    if ((size_t)n >= sizeof(out->text) - len)
        out->text[len] = '\0'; /* the address does not fit: remove it */
    else
        out->len++;
}

/* Makes the number of addresses odd. The library moves on by two addresses
 * after each failure, so with an even number it would never reach half of
 * them. */
static void connect_make_odd(struct zk_addrs *out)
{
    size_t len = strlen(out->text), first = strcspn(out->text, ",");

    if (out->len % 2 || !out->len)
        return;
    if (len + 1 + first < sizeof(out->text)) {
        out->text[len] = ',';
        memcpy(out->text + len + 1, out->text, first);
        out->text[len + 1 + first] = '\0';
    } else {
        *strrchr(out->text, ',') = '\0';
        out->len--;
    }
}

void hf__zk_addrs(const struct hf__lookup *found, struct zk_addrs *out)
{
    *out = (struct zk_addrs){0};
    for (size_t i = 0; i < found->len; i++)
        for (const struct addrinfo *a = found->list[i]; a; a = a->ai_next)
            connect_append(out, a);
    connect_make_odd(out);
}

/* Sets the time of the next lookup, early enough that the session can still be
 * resumed. */
void hf__zk_lookup_later(struct zk *z, hf__time now)
{
    hf__time ms = (hf__time)z->timeout_ms / LOOKUP_PART;

    ms = ms < LOOKUP_MIN_MS ? LOOKUP_MIN_MS : ms;
    ms = ms > LOOKUP_MAX_MS ? LOOKUP_MAX_MS : ms;
    z->lookup_at = z->numeric ? HF__NEVER : now + ms * HF__MS;
}

/* Returns true if the library has given up the connection. (Functions of the
 * library may also fail for lack of memory, while the socket stays open.) */
bool hf__zk_is_closed(const struct zk *z)
{
    int state = zoo_state(z->zh);

    return state != ZOO_CONNECTING_STATE && state != ZOO_ASSOCIATING_STATE &&
           state != ZOO_CONNECTED_STATE;
}

/* Takes the addresses of a finished lookup. Does nothing while an attempt to
 * connect is running: with new addresses the library might begin another
 * attempt, whose start connect_at would not show. Does not set unchanged
 * addresses again, because the library would call drand48(3), whose sequence
 * belongs to the program. */
static void connect_take_found(struct zk *z)
{
    struct zk_addrs addrs;

    if (!z->job || !z->core->lookup_over(z->job) ||
        (z->zh && !z->up && !hf__zk_is_closed(z)))
        return;
    hf__zk_addrs(z->job, &addrs);
    z->core->lookup_leave(z->job);
    z->job = NULL;
    if (addrs.len && !z->up && strcmp(addrs.text, z->addrs->text) != 0 &&
        (!z->zh || zoo_set_servers(z->zh, addrs.text) == ZOK))
        *z->addrs = addrs;
}

void hf__zk_lookup_move(struct zk *z, hf__time now)
{
    connect_take_found(z);
    if (z->up || now < z->lookup_at)
        return;
    hf__zk_lookup_later(z, now);
    if (!z->job)
        z->job = z->core->lookup(z->hosts, false);
}

hf__time hf__zk_lookup_timeout(const struct zk *z)
{
    hf__time at = z->lookup_at;

    if (z->up)
        return HF__NEVER;
    if (z->job && at > z->core->now() + FOUND_MS * HF__MS)
        at = z->core->now() + FOUND_MS * HF__MS;
    return at;
}

/* ---- attempts ------------------------------------------------------------ */

/* Disconnects the socket, so that the library notices and tries the next
 * server. */
static void connect_hang_up(struct zk *z)
{
    struct sockaddr unspecified = {.sa_family = AF_UNSPEC};

    (void)connect(z->fd, &unspecified, sizeof(unspecified));
}

/* Sets the time limit of the first attempt to connect to each address. If there
 * are several addresses, these attempts share about half of the time for
 * opening. The other half is left for a second attempt at a slow address. */
void hf__zk_first_round(struct zk *z, size_t addresses)
{
    uint32_t ms = z->open_timeout_ms - z->open_timeout_ms / 10;

    z->open_until = z->core->now() + ms * HF__MS;
    z->untried = addresses;
    z->patience_ms = addresses > 1 ? ms / 2 / (uint32_t)addresses + 1 : ms;
}

/* Counts one of the library's first attempts, of which there is one for each
 * address. Returns true if another attempt may be made. */
bool hf__zk_may_try_again(struct zk *z)
{
    if (!z->untried)
        return false;
    z->untried--;
    return z->untried || (z->was_late && z->core->now() < z->open_until);
}

hf__time hf__zk_late_at(const struct zk *z)
{
    if (z->up || z->fd < 0 || z->cause[0])
        return HF__NEVER;
    if (!z->opened && !z->untried)
        return z->open_until;
    return z->connect_at + z->patience_ms * HF__MS;
}

/* Ends an attempt that has taken too long. (A server that is starting may
 * accept a connection and never answer.) */
void hf__zk_give_up_late(struct zk *z, hf__time now)
{
    bool is_heard = zoo_state(z->zh) == ZOO_ASSOCIATING_STATE;

    if (z->ready || now < hf__zk_late_at(z))
        return;
    snprintf(z->cause, sizeof(z->cause), "no answer within %s%s",
             hf__span((now - z->connect_at) / HF__MS).text,
             is_heard && !z->opened ? "; is it ZooKeeper?" : "");
    z->was_late = true;
    connect_hang_up(z);
    z->ready = ZOOKEEPER_READ | (z->interest & ZOOKEEPER_WRITE);
    if (z->opened && z->patience_ms < z->timeout_ms)
        z->patience_ms += z->patience_ms / 2;
}

/* Returns true if the answer is not from ZooKeeper, whose answers begin with
 * their length in four bytes. */
static bool connect_is_foreign(struct zk *z)
{
    uint8_t head[4];
    ssize_t n;

    if (z->first_words || zoo_state(z->zh) != ZOO_ASSOCIATING_STATE)
        return false;
    n = recv(z->fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
    z->first_words = n > 0;
    return n == (ssize_t)sizeof(head) &&
           (head[0] || head[1] || head[2] || head[3] < ANSWER_MIN ||
            head[3] > ANSWER_MAX);
}

void hf__zk_refuse_foreign(struct zk *z)
{
    if (!connect_is_foreign(z))
        return;
    snprintf(z->cause, sizeof(z->cause),
             "the server answers, but it is not ZooKeeper");
    z->refusal = HF_EPROTO;
    connect_hang_up(z);
}
