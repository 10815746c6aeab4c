/*
 * A pipe, tested without locks. Its server is a listening socket of the test
 * program, which sends what a case requires.
 */
#include "../../cases.h"
#include "backends/redis/pipe.h"
#include "backends/redis/reply.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../../../lib/bare_core.h"
#include "../../../lib/shm_dir.h"

#define CASE_HERE(fn) CASE_WITH(fn, begin, end, struct scene *t)

/* A command that was sent. */
struct asked {
    struct rd_sent sent;
    int number;
};

struct scene {
    char dir[64];
    int listener, server; /* -1: not connected */
    struct net_endpoint peer;
    uint32_t tags;
    struct rd_pipe pipe;
    unsigned ups, downs, pushes;
    int down_code;
    char told[64];           /* number of each command, and its reply */
    char lost[64], not [64]; /* numbers of the lost and of the unwritten
                                commands */
};

static void up(struct rd_pipe *p, hf__time at)
{
    ((struct scene *)p->owner)->ups++;
}

static int push(struct rd_pipe *p, const struct rd_node *reply, hf__time at)
{
    struct scene *t = p->owner;

    t->pushes += hf__rd_is(hf__rd_at(reply, 0), "message");
    return 0;
}

static void down(struct rd_pipe *p, int code, bool was_up, hf__time at)
{
    struct scene *t = p->owner;
    const struct asked *a;
    size_t len = 0;

    t->downs++;
    t->down_code = code;
    for (; (a = hf__sent_lost(&p->sents, p->link.stream.written)); len++)
        t->lost[len] = (char)('0' + a->number);
    for (len = 0; (a = hf__sent_unsent(&p->sents, p->link.stream.written));
         len++)
        t->not [len] = (char)('0' + a->number);
}

static const struct rd_owner owner = {.up = up, .push = push, .down = down};

static int begin(void **state)
{
    struct scene *t = calloc(1, sizeof(*t));
    char path[80];

    assert_non_null(t);
    assert_non_null(shm_dir_make(t->dir, sizeof(t->dir), "holdfast-pipe"));
    snprintf(path, sizeof(path), "%s/s", t->dir);
    t->peer.core = &core;
    assert_int_equal(hf__net_set_path(&t->peer, path), 0);
    t->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    t->server = -1;
    assert_int_equal(bind(t->listener, (struct sockaddr *)&t->peer.addr[0].sa,
                          t->peer.addr[0].len),
                     0);
    assert_int_equal(listen(t->listener, 5), 0);
    hf__rd_pipe_init(&t->pipe, &core, NULL, &owner, t, sizeof(struct asked));
    t->pipe.link.peer = &t->peer;
    t->pipe.link.tags = &t->tags;
    t->pipe.link.lost = "test: lost it";
    t->pipe.link.connect_ms = t->pipe.link.silence_ms = 1000;
    t->pipe.link.pause_ms = 100;
    t->pipe.user = t->pipe.password = "";
    *state = t;
    return 0;
}

static int end(void **state)
{
    struct scene *t = *state;
    char path[80];

    hf__rd_pipe_fini(&t->pipe);
    hf__net_endpoint_fini(&t->peer);
    close(t->listener);
    if (t->server >= 0)
        close(t->server);
    snprintf(path, sizeof(path), "%s/s", t->dir);
    unlink(path);
    rmdir(t->dir);
    free(t);
    return 0;
}

/* Asserts that the server receives `text` and nothing else. */
static void hears(struct scene *t, const char *text)
{
    char got[512] = "";

    assert_int_equal(read(t->server, got, sizeof(got) - 1), strlen(text));
    assert_string_equal(got, text);
}

static void says(struct scene *t, const char *text)
{
    assert_int_equal(write(t->server, text, strlen(text)), strlen(text));
    hf__link_ready(&t->pipe.link, t->pipe.link.stream.tag, EPOLLIN, clock_ns);
    hf__link_advance(&t->pipe.link, clock_ns);
}

static void connect_it(struct scene *t)
{
    hf__link_start(&t->pipe.link, clock_ns);
    clock_ns += 200 * HF__MS; /* longer than the pause before connecting */
    hf__link_advance(&t->pipe.link, clock_ns);
    if (t->server >= 0)
        close(t->server);
    t->server = accept(t->listener, NULL, NULL);
    assert_true(t->server >= 0);
}

/* Notes the reply. If the reply is not a number, returns HF_EPROTO, which ends
 * the connection. */
static int answered(struct rd_pipe *p, struct rd_sent *sent,
                    const struct rd_node *reply, hf__time at)
{
    struct scene *t = p->owner;
    size_t len = strlen(t->told);
    int64_t n = 0;

    if (!hf__rd_int(reply, &n))
        return HF_EPROTO;
    snprintf(t->told + len, sizeof(t->told) - len, "%d=%d ",
             ((struct asked *)sent)->number, (int)n);
    return 0;
}

static void request(struct scene *t, int number, uint32_t replies)
{
    struct asked *a = hf__rd_pipe_send(&t->pipe, answered, replies, 64);

    assert_non_null(a);
    a->number = number;
    hf__rd_put_count(&t->pipe.link.stream.out, '*', 1);
    hf__rd_put_text(&t->pipe.link.stream.out, "X");
}

#define X "*1\r\n$1\r\nX\r\n"

CASE_HERE(test_hello_comes_first)
{
    t->pipe.user = "me";
    t->pipe.password = "secret";
    t->pipe.db = 3;
    connect_it(t);
    hears(t, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n"
             "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n");
    says(t, "+OK\r\n");
    assert_int_equal(t->ups, 0);
    assert_false(hf__link_wanted(&t->pipe.link));
    says(t, "+OK\r\n");
    assert_int_equal(t->ups, 1);
    assert_true(hf__link_wanted(&t->pipe.link));
    assert_int_equal(hf__link_opened(&t->pipe.link), HF__DONE);
}

/* The server's error message may contain the password. */
CASE_HERE(test_refused_hello_is_not_quoted)
{
    t->pipe.password = "secret";
    connect_it(t);
    says(t, "-ERR secret is wrong\r\n");
    assert_int_equal(t->down_code, HF_EAUTH);
    assert_null(strstr(t->pipe.link.text, "secret"));
    assert_true(t->pipe.link.refused_at == clock_ns);
    assert_int_equal(t->pipe.link.open_code, HF_EAUTH);
}

CASE_HERE(test_answers_find_their_commands)
{
    connect_it(t);
    assert_int_equal(t->ups, 1); /* up at once, since there is no hello */
    request(t, 1, 1);
    request(t, 2, 3);
    request(t, 3, 1);
    hf__net_flush(&t->pipe.link.stream);
    hears(t, X X X);
    says(t, ":7\r\n:8\r\n:9");
    says(t, "\r\n:10\r\n");
    assert_true(t->pipe.link.awaits);
    says(t, ":11\r\n");
    assert_string_equal(t->told, "1=7 2=8 2=9 2=10 3=11 ");
    assert_false(t->pipe.link.awaits);
    assert_int_equal(t->pipe.sents.len, 0);
}

/* The ring of pending commands grows while its oldest element is not at the
 * start of its memory. */
CASE_HERE(test_many_are_under_way)
{
    connect_it(t);
    for (int i = 0; i < 1000; i++) {
        request(t, i % 7, 1);
        hf__net_flush(&t->pipe.link.stream);
        hears(t, X);
        if (i % 3)
            continue;
        t->told[0] = '\0';
        says(t, ":1\r\n");
        assert_int_equal(t->told[0], '0' + i / 3 % 7);
    }
    assert_int_equal(t->pipe.sents.len, 1000 - 334);
}

CASE_HERE(test_what_nobody_asked_for_is_pushed)
{
    struct net_out *o;

    connect_it(t);
    o = hf__rd_pipe_room(&t->pipe, 64);
    assert_non_null(o);
    hf__rd_put_count(o, '*', 1);
    hf__rd_put_text(o, "X");
    hf__net_flush(&t->pipe.link.stream);
    hears(t, X);
    says(t, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    assert_int_equal(t->pushes, 1);
    assert_int_equal(t->downs, 0);
}

/* When the connection ends, commands that were written are lost, the oldest
 * first; the others are given back, the newest first. The oldest lost command
 * is the one whose reply failed. */
CASE_HERE(test_end_tells_lost_from_unsent)
{
    connect_it(t);
    for (int i = 1; i <= 3; i++)
        request(t, i, 1);
    hf__net_flush(&t->pipe.link.stream);
    request(t, 4, 1);
    request(t, 5, 1);
    says(t, ":1\r\n+what\r\n");
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EPROTO);
    assert_string_equal(t->told, "1=1 ");
    assert_string_equal(t->lost, "23");
    assert_string_equal(t->not, "54");
    connect_it(t); /* nothing of the old connection is left */
    request(t, 6, 1);
    hf__net_flush(&t->pipe.link.stream);
    hears(t, X);
    says(t, ":6\r\n");
    assert_string_equal(t->told, "1=1 6=6 ");
}

CASE_HERE(test_silence_ends_it)
{
    connect_it(t);
    clock_ns += 100000 * HF__MS; /* no command is pending: no reply is due */
    assert_true(hf__link_timeout(&t->pipe.link) == HF__NEVER);
    request(t, 1, 1);
    hf__net_flush(&t->pipe.link.stream);
    assert_true(hf__link_timeout(&t->pipe.link) == clock_ns + 1000 * HF__MS);
    hf__link_hurry(&t->pipe.link, 300, clock_ns);
    clock_ns += 300 * HF__MS;
    hf__link_advance(&t->pipe.link, clock_ns);
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_string_equal(t->lost, "1");
}

/* An event of a closed descriptor must not count as an event of the new
 * connection. */
CASE_HERE(test_old_event_is_ignored)
{
    uint32_t old;

    connect_it(t);
    old = t->pipe.link.stream.tag;
    hf__link_fail(&t->pipe.link, HF_EBACKEND, clock_ns);
    assert_false(hf__link_ready(&t->pipe.link, old, EPOLLIN, clock_ns));
    connect_it(t);
    assert_false(hf__link_ready(&t->pipe.link, old, EPOLLIN, clock_ns));
}

CASES_MAIN(NULL, NULL);
