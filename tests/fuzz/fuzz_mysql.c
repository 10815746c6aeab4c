/*
 * Feeds a connection of the MySQL backend (conn.h) anything that a server may
 * send: at the greeting, during the login, or with statements pending,
 * arbitrary bytes arrive in arbitrary pieces. The connection must not crash;
 * each statement must be answered or lost exactly once, and no password may be
 * sent in plain text.
 *
 * This is a target of clang's fuzzer; with PLAIN_MAIN it is a program that
 * mutates valid replies at random and prints the seed:
 *
 *     fuzz_mysql [TIMES [SEED]]
 */
#include "backends/mysql/conn.h"
#include "backends/mysql/login.h"
#include "backends/mysql/wire.h"
#include "fuzz_core.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATEMENTS 6
#define PASSWORD "a password in plain"

struct flight {
    struct my_sent sent;
    unsigned number;
};

struct scene {
    struct my_conn c;
    struct net_endpoint peer;
    uint32_t tags;
    int server; /* the server's end of the connection */
    unsigned asked, over;
    bool is_over[STATEMENTS * 2];
};

static void is_over(struct scene *s, const struct my_sent *sent)
{
    unsigned n = ((const struct flight *)sent)->number;

    must(n < s->asked && !s->is_over[n], "a statement is reported twice");
    s->is_over[n] = true;
    s->over++;
}

/* Handles an answer. Reads each value up to its terminating 0, so that the
 * sanitizer notices a value without one. */
static int answered(struct my_conn *c, const struct my_answer *a)
{
    const struct my_result *r = a->first;
    size_t bytes = 0;

    must(r != NULL, "an answer without a result");
    is_over(c->owner, a->sent);
    for (; r; r = r->next) {
        size_t rows = 0;

        must(!r->error || !r->next, "a result behind an error");
        bytes += r->error ? strlen(r->text) : 0;
        for (const struct my_row *row = r->rows; row; row = row->next, rows++)
            for (size_t i = 0; i < r->columns; i++)
                bytes += row->value[i].text ? strlen(row->value[i].text) : 0;
        must(rows == r->rows_len, "rows that are not there");
    }
    must(bytes <= MY_ANSWER_MAX, "more than was sent");
    return 0;
}

static void ask(struct scene *s)
{
    struct flight *a;

    hf__my_begin(&s->c);
    hf__my_sql(&s->c, "select %x, %u", "name", (size_t)4, (uint64_t)s->asked);
    a = hf__my_end(&s->c, answered);
    must(a != NULL, "no memory");
    a->number = s->asked++;
}

static int say_hello(struct my_conn *c, hf__time at)
{
    (void)at;
    ask(c->owner);
    ask(c->owner);
    return 0;
}

static void came_up(struct my_conn *c, hf__time at)
{
    (void)c, (void)at;
}

static void went_down(struct my_conn *c, int code, bool was_up, hf__time at)
{
    struct scene *s = c->owner;
    uint64_t written = c->link.stream.written;
    const struct my_sent *sent;

    (void)at;
    must(code < 0 && c->link.text[0], "an end without a reason");
    while ((sent = hf__sent_lost(&c->sents, written)))
        is_over(s, sent);
    while ((sent = hf__sent_unsent(&c->sents, written)))
        is_over(s, sent);
    if (!was_up) /* statements of say_hello() need no report */
        s->over = s->asked;
}

static const struct my_owner owner = {say_hello, came_up, went_down};

static void make_scene(struct scene *s, const struct my_login *login, int phase)
{
    struct net_link *l = &s->c.link;
    int fds[2];

    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), "no pair");
    s->server = fds[1];
    s->peer.core = &fake;
    hf__net_set_path(&s->peer, "/nonexistent");
    hf__my_conn_init(&s->c, &fake, NULL, &owner, s, sizeof(struct flight));
    s->c.login = login;
    l->stream.fd = fds[0];
    l->peer = &s->peer;
    l->tags = &s->tags;
    l->lost = "fuzz";
    l->pause_ms = l->connect_ms = l->silence_ms = 1000;
    s->c.phase = (uint8_t)phase;
    l->state = phase == MY_READY ? NET_UP : NET_GREETING;
    s->c.seq = phase == MY_GREETING ? 0 : phase == MY_READY ? 1 : 2;
    strcpy(s->c.plugin, "caching_sha2_password");
    for (int i = 0; i < STATEMENTS && phase == MY_READY; i++)
        ask(s);
    hf__net_flush(&l->stream);
}

/* Reads what the connection has sent to the server. The password must not be in
 * it, because the connection does not count as a Unix socket. */
static void drain(struct scene *s)
{
    static char buf[65536];
    ssize_t n = recv(s->server, buf, sizeof(buf), MSG_DONTWAIT);

    must(n <= 0 || !memmem(buf, (size_t)n, PASSWORD, strlen(PASSWORD)),
         "the password in plain");
}

/* Sends the data in pieces. The byte before each piece is half its length, or 0
 * if the piece is the rest of the data. */
static void play(struct scene *s, const uint8_t *data, size_t len)
{
    struct net_link *l = &s->c.link;

    while (len > 1 && l->stream.fd >= 0) {
        size_t some = data[0] ? (size_t)data[0] * 2 : len;

        data++, len--;
        some = some < len ? some : len;
        if (send(s->server, data, some, MSG_NOSIGNAL) > 0)
            hf__link_ready(l, l->stream.tag, EPOLLIN, clock_ns);
        drain(s);
        data += some, len -= some;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static char far[] = "far away";
    struct my_login login = {"user", PASSWORD, "database", NULL};
    struct scene *s;

    if (!len)
        return 0;
    s = calloc(1, sizeof(*s));
    make_scene(s, &login, data[0] % (MY_READY + 1));
    s->peer.hosts = far; /* not a Unix socket, on which the password may be sent
                            in plain text */
    play(s, data + 1, len - 1);
    s->peer.hosts = NULL;
    if (s->c.link.stream.fd >= 0)
        hf__link_fail(&s->c.link,
                      hf__link_why(&s->c.link, HF_EBACKEND, "the end"),
                      clock_ns);
    must(s->over == s->asked, "a statement was forgotten");
    hf__my_conn_fini(&s->c);
    close(s->server);
    free(s);
    return 0;
}

#ifdef PLAIN_MAIN
#define COLUMN "\3def\0\0\0\1a\0\x0c\x2d\0\1\0\0\0\xfd\0\0\0\0\0"
#define DONE "\7\0\0\1\0\1\5\2\0\0\0"
#define GOOD_(phase, text)                                                     \
    {                                                                          \
        phase, text, sizeof(text) - 1                                          \
    }

/* Valid packets for each phase. */
static const struct {
    uint8_t phase;
    const char *bytes;
    size_t len;
} good[] = {
    GOOD_(MY_GREETING,
          "\x27" /* only the greeting: no bytes may follow it */
          "\x4a\0\0\0\x0a"
          "8.0.46\0\x2a\1\0\0saltsalt\0\xff\xf7\x2d\2\0\xff\xc1\x15"
          "\0\0\0\0\0\0\0\0\0\0saltsaltsalt\0caching_sha2_password\0\0"
          "\2\0\0\2\1\3\7\0\0\3\0\0\0\2\0\0\0" DONE DONE),
    GOOD_(
        MY_LOGIN,
        "\0"
        "\2\0\0\2\1\4\x0c\0\0\4\1-----BEGIN \7\0\0\6\0\0\0\2\0\0\0" DONE DONE),
    GOOD_(MY_LOGIN, "\0"
                    "\x2c\0\0\2\xfe"
                    "mysql_native_password\0saltsaltsaltsaltsalt\0"
                    "\x0d\0\0\4\xff\x15\4#28000deny"),
    GOOD_(MY_READY, "\0"
                    "\1\0\0\1\2\x17\0\0\2" COLUMN "\x17\0\0\3" COLUMN
                    "\5\0\0\4\xfe\0\0\2\0\6\0\0\5\4abcd\xfb\3\0\0\6\1e\0"
                    "\5\0\0\7\xfe\0\0\x0a\0\7\0\0\x08\0\1\2\x0a\0\0\0"
                    "\x0f\0\0\x09\xff\x28\4#42000no way" DONE DONE),
    GOOD_(MY_READY,
          "\0" DONE DONE "\x0f\0\0\1\xff\x28\4#42000no way" DONE DONE DONE
          "\x11\0\0\0\xff\xbf\x0f#HY000too long"),
};

#define GOOD (sizeof(good) / sizeof(*good))

/* Writes a valid reply and the beginning of another, with a few bytes
 * changed. */
static size_t mutate(uint8_t *to, size_t first)
{
    static const uint8_t bytes[] = {0,    1,    2,    3,    5,    9,
                                    0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x7f};
    size_t other = draw(GOOD), changes = draw(6), len = 1, more;

    to[0] = good[first].phase;
    memcpy(to + len, good[first].bytes, good[first].len);
    len += good[first].len;
    more = draw(good[other].len);
    memcpy(to + len, good[other].bytes, more);
    len += more;
    if (draw(3) == 0)
        to[1] = (uint8_t)draw(60);
    for (size_t i = 0; i < changes; i++)
        to[1 + draw(len - 1)] = bytes[draw(sizeof(bytes))];
    return draw(4) ? len : draw(len) + 1;
}

static void try_good(size_t i)
{
    uint8_t buf[2048] = {good[i].phase};

    memcpy(buf + 1, good[i].bytes, good[i].len);
    LLVMFuzzerTestOneInput(buf, good[i].len + 1);
}

/* Each case begins with a different reply. */
int main(int argc, char **argv)
{
    const struct fuzzer f = {GOOD, 7000, mutate, "runs", NULL};

    for (size_t i = 0; i < GOOD; i++)
        try_good(i);
    return run_fuzzer(&f, argc, argv);
}
#endif
