/* Calls on a connection that works or ends. */
#include "grpc_fixture.h"

#include <poll.h>

CASE_HERE(test_unary_call)
{
    struct one *o = one_of(t, &unary);
    unsigned before;

    connect_it(t);
    assert_int_equal(t->ups, 1);
    send_one(t, o, "hello", 1500);
    assert_int_equal(t->len, 1);
    assert_string_equal(t->heard[0].headers,
                        ":method=POST :scheme=http :path=/test.Test/One "
                        ":authority=localhost content-type=application/grpc "
                        "te=trailers grpc-timeout=6000m hasleader=true ");
    assert_int_equal(t->heard[0].len, 10);
    assert_memory_equal(t->heard[0].body, "\0\0\0\0\5hello", 10);
    assert_true(t->heard[0].is_closed);
    assert_int_equal(o->overs, 0);
    answer_one(t, t->heard[0].id, "world");
    assert_int_equal(o->overs, 1);
    assert_int_equal(o->end, GRPC_ANSWERED);
    assert_int_equal(o->status, 0);
    assert_string_equal(o->got, "world");
    before = allocations; /* no more allocations from now on */
    for (int i = 2; i < 50; i++) {
        send_one(t, o, "hello", 1500);
        answer_one(t, t->heard[i - 1].id, i % 2 ? "one" : "");
        assert_int_equal(o->overs, i);
        assert_string_equal(o->got, i % 2 ? "one" : "");
    }
    assert_int_equal(allocations, before);
    assert_int_equal(t->g.open, 0);
    assert_int_equal(t->heard[7].reset, -1);
}

CASE_HERE(test_error_is_trailers_only)
{
    struct one *o = first_of(t, &unary);

    assert_null(strstr(t->heard[0].headers, "grpc-timeout"));
    end_one(t, 1,
            HEAD ";grpc-status=5;grpc-message=no%20lease%0a%2 %zz 100%25");
    assert_int_equal(o->end, GRPC_ANSWERED);
    assert_int_equal(o->status, 5);
    assert_string_equal(o->text, "no lease?%2 %zz 100%");
    /* An HTTP status with the same meaning is accepted too. */
    send_one(t, o, "x", 0);
    end_one(t, 3, ":status=400;content-type=application/grpc;grpc-status=13");
    assert_int_equal(o->end, GRPC_ANSWERED);
    assert_int_equal(o->status, 13);
    assert_string_equal(o->text, "");
    send_one(t, o, "x", 0);
    end_one(t, 5, HEAD ";grpc-status=17");
    assert_int_equal(o->status, GRPC_UNKNOWN);
}

CASE_HERE(test_answers_find_their_calls)
{
    enum { N = 20 };
    struct one *o[N];
    char text[16];

    connect_it(t);
    for (int i = 0; i < N; i++) {
        o[i] = one_of(t, &unary);
        snprintf(text, sizeof(text), "%d", i);
        ask(o[i], text, 0);
    }
    go(t);
    assert_int_equal(t->len, N);
    assert_int_equal(t->g.open, N);
    for (int i = N; i-- > 0;) {
        snprintf(text, sizeof(text), "<%d>", i);
        answer_one(t, t->heard[i].id, text);
        assert_string_equal(o[i]->got, text);
        assert_int_equal(o[i]->overs, 1);
    }
    assert_int_equal(t->g.open, 0);
}

/* Calls beyond the server's limit wait, and time out before they are sent. */
CASE_HERE(test_server_allows_few_streams)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &unary),
               *c = one_of(t, &unary);

    connect_with(t, 1);
    ask(a, "a", 0);
    ask(b, "b", 0);
    ask(c, "c", 500);
    go(t);
    assert_int_equal(t->len, 1);
    later(t, 500);
    assert_int_equal(c->end, GRPC_UNSENT);
    assert_int_equal(c->overs, 1);
    answers(t, 1, "a");
    /* The test has written the answer's frames itself, so nghttp2 does not know
     * that the stream is over. The test must therefore end the stream in
     * nghttp2 too. */
    assert_int_equal(nghttp2_submit_rst_stream(t->server, 0, 1, 0), 0);
    serve(t);
    go(t);
    assert_string_equal(a->got, "a");
    assert_int_equal(t->len, 2);
    assert_memory_equal(t->heard[1].body + 5, "b", 1);
    answer_one(t, t->heard[1].id, "b");
    assert_string_equal(b->got, "b");
}

static void say(struct one *o, const char *text)
{
    uint8_t *p = hf__grpc_room(&o->call, strlen(text));

    assert_non_null(p);
    memcpy(p, text, strlen(text));
}

CASE_HERE(test_stream_in_both_directions)
{
    struct one *o = one_of(t, &stream);
    uint8_t bytes[100];
    size_t n;

    connect_it(t);
    say(o, "one");
    assert_int_equal(hf__grpc_start(&o->call, 0), 0);
    go(t);
    say(o, "two");
    say(o, "three");
    go(t);
    assert_int_equal(t->heard[0].len, 8 + 8 + 10);
    assert_memory_equal(t->heard[0].body,
                        "\0\0\0\0\3one\0\0\0\0\3two\0\0\0\0\5three", 26);
    assert_false(t->heard[0].is_closed);
    headers(t, 1, false, HEAD);
    n = message(bytes, "a");
    n += message(bytes + n, "");
    n += message(bytes + n, "bcd");
    frame(t, NGHTTP2_DATA, 0, 1, bytes, n);
    go(t);
    assert_string_equal(o->got, "a  bcd ");
    assert_int_equal(o->messages, 3);
    for (size_t i = 0; i < n; i++) { /* cut anywhere */
        frame(t, NGHTTP2_DATA, 0, 1, bytes + i, 1);
        go(t);
    }
    assert_int_equal(o->messages, 6);
    assert_string_equal(o->got, "a  bcd a  bcd ");
    end_one(t, 1, "grpc-status=14;grpc-message=no leader");
    assert_int_equal(o->overs, 1);
    assert_int_equal(o->end, GRPC_ANSWERED);
    assert_int_equal(o->status, 14);
    assert_string_equal(o->text, "no leader");
    assert_int_equal(t->heard[0].reset, NGHTTP2_CANCEL); /* the client's half */
    /* The call can be started again. */
    say(o, "four");
    assert_int_equal(hf__grpc_start(&o->call, 0), 0);
    go(t);
    assert_int_equal(t->heard[1].len, 9);
    end_one(t, 3, HEAD ";grpc-status=0");
    assert_int_equal(o->overs, 2);
    assert_int_equal(o->status, 0);
}

/* Bytes that were sent make room in the buffer, although the buffer is never
 * empty. */
CASE_HERE(test_stream_that_is_never_drained)
{
    struct one *o = one_of(t, &stream);
    uint8_t *p;

    connect_it(t);
    say(o, "x");
    assert_int_equal(hf__grpc_start(&o->call, 0), 0);
    t->is_deaf = true; /* the window of 65535 bytes fills up */
    p = hf__grpc_room(&o->call, 65000);
    assert_non_null(p);
    memset(p, 'x', 65000);
    for (int i = 0; i < 40; i++) {
        p = hf__grpc_room(&o->call, 64000);
        assert_non_null(p);
        memset(p, 'x', 64000);
        go(t);
        t->is_deaf = false;
        serve(t);
        t->is_deaf = true;
        assert_true(o->call.out.from < o->call.out.len);
    }
    assert_true(o->call.out.cap <= 1 << 18);
}

/* A request is larger than the server's window, and an answer larger than the
 * client's. */
CASE_HERE(test_flow_control)
{
    enum { LONG = 300000, BIG = 6 << 20 };
    static struct grpc_method big; /* end() still uses it */
    struct one *o, *u = one_of(t, &unary);
    uint8_t *p;
    uint8_t piece[16005] = {0, 0, 0, 16000 >> 8, 16000 & 255};

    big = stream;
    big.most = 16000;
    o = one_of(t, &big);
    connect_it(t);
    p = hf__grpc_room(&u->call, LONG);
    assert_non_null(p);
    memset(p, 'x', LONG);
    assert_int_equal(hf__grpc_start(&u->call, 0), 0);
    go(t);
    assert_int_equal(t->heard[0].len, LONG + 5);
    assert_true(t->heard[0].is_closed);
    answer_one(t, 1, "fine");
    assert_string_equal(u->got, "fine");
    say(o, "x");
    assert_int_equal(hf__grpc_start(&o->call, 0), 0);
    go(t);
    headers(t, 3, false, HEAD);
    for (int i = 0; i < BIG / 16000; i++) {
        /* This window does not count the frames that the test writes. */
        int32_t sent = i * (int32_t)sizeof(piece);

        assert_true(nghttp2_session_get_stream_remote_window_size(
                        t->server, 3) > sent + (int32_t)sizeof(piece));
        assert_true(nghttp2_session_get_remote_window_size(t->server) >
                    sent + (int32_t)sizeof(piece));
        frame(t, NGHTTP2_DATA, 0, 3, piece, sizeof(piece));
        go(t);
    }
    assert_int_equal(o->messages, BIG / 16000);
    assert_int_equal(o->overs, 0);
    assert_int_equal(t->downs, 0);
}

/* Like go(), but runs the client only when its descriptor is ready or its
 * timeout is due. */
static void go_strictly(struct scene *t)
{
    struct net_stream *s = &t->g.link.stream;
    bool moved;

    do {
        struct pollfd p = {.fd = s->fd, .events = (short)watched};

        moved = poll(&p, s->fd >= 0, 0) > 0;
        if (moved)
            hf__grpc_ready(&t->g, s->tag, (uint32_t)p.revents, clock_ns);
        if (moved || hf__grpc_timeout(&t->g) <= clock_ns)
            hf__grpc_advance(&t->g, clock_ns);
    } while (serve(t) || moved);
}

/* Connects to a server with a window so large that the server reads all that is
 * sent to it. */
static void connect_wide(struct scene *t)
{
    enum { WINDOW = 16 << 20 };
    nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                    WINDOW};

    accept_it(t);
    nghttp2_submit_settings(t->server, 0, &entry, 1);
    nghttp2_session_set_local_window_size(t->server, 0, 0, WINDOW);
    go(t);
    assert_int_equal(t->g.link.state, NET_UP);
}

/* A request is larger than what the client prepares at a time, and the server
 * reads all of it. */
CASE_HERE(test_long_request_goes_on)
{
    enum { LONG = 900000 };
    struct one *o = one_of(t, &unary);
    int room = 4 << 20;

    connect_wide(t);
    setsockopt(t->g.link.stream.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    assert_non_null(hf__grpc_room(&o->call, LONG));
    assert_int_equal(hf__grpc_start(&o->call, 0), 0);
    hf__grpc_flush(&t->g);
    go_strictly(t);
    assert_int_equal(t->heard[0].len, LONG + 5);
    answers(t, 1, "fine");
    go_strictly(t);
    assert_string_equal(o->got, "fine");
}

CASE_HERE(test_limit_passes)
{
    struct one *o = one_of(t, &unary), *other = one_of(t, &unary);

    connect_it(t);
    ask(o, "o", 300);
    ask(other, "p", 0);
    go(t);
    assert_true(hf__grpc_timeout(&t->g) == clock_ns + 300 * HF__MS);
    later(t, 299);
    assert_int_equal(o->overs, 0);
    later(t, 1);
    assert_int_equal(o->overs, 1);
    assert_int_equal(o->end, GRPC_LATE);
    assert_int_equal(t->heard[0].reset, NGHTTP2_CANCEL);
    assert_int_equal(t->pings, 1); /* because nothing has arrived since */
    answers(t, 1, "too late");
    answers(t, 3, "fine");
    go(t);
    assert_int_equal(o->overs, 1);
    assert_string_equal(other->got, "fine");
    assert_int_equal(t->downs, 0);
}

/* The server answers slowly and in any order: the limit of the other calls
 * grows to twice the longest time that an answer has taken. */
CASE_HERE(test_limit_grows_while_the_server_is_slow)
{
    enum { N = 6 };
    struct one *o[N];

    connect_it(t);
    for (int i = 0; i < N; i++) {
        o[i] = one_of(t, &unary);
        ask(o[i], "o", 300);
        go(t);
        later(t, 40);
    } /* 240 ms after the first */
    answer_one(t, 2 * (N - 1) + 1, "yes");
    later(t, 59);
    answer_one(t, 3, "yes"); /* it took 259 ms */
    for (int i = 0; i < N; i++)
        assert_int_equal(o[i]->overs, i == 1 || i == N - 1);
    later(t, 200);           /* 499 ms; less than twice 259 */
    answer_one(t, 5, "yes"); /* it took 419 ms */
    later(t, 300);           /* 799 ms */
    assert_int_equal(o[0]->overs + o[3]->overs + o[4]->overs, 0);
    later(t, 39); /* twice 419 */
    assert_int_equal(o[0]->end, GRPC_LATE);
    assert_int_equal(o[3]->overs + o[4]->overs, 0);
    later(t, 160);
    assert_int_equal(o[3]->end, GRPC_LATE);
    assert_int_equal(o[4]->end, GRPC_LATE);
    assert_int_equal(t->downs, 0);
}

/* The server answers one call slowly, and a later call is lost. When the slow
 * answer is no longer recent, quick answers shrink the time limit of the lost
 * call. */
CASE_HERE(test_limit_shrinks_with_the_next_answers)
{
    struct one *slow = one_of(t, &unary), *lost = one_of(t, &unary),
               *quick = one_of(t, &unary);

    connect_it(t);
    send_one(t, slow, "s", 1500);
    later(t, 1400);
    answer_one(t, t->heard[t->len - 1].id, "yes");
    send_one(t, lost, "l", 1500);
    later(t, 1400);
    send_one(t, quick, "q", 1500);
    answer_one(t, t->heard[t->len - 1].id, "yes");
    later(t, 500); /* 1900 ms; less than twice 1400 */
    assert_int_equal(lost->overs, 0);
    later(t, 100); /* the slow answer is no longer recent */
    send_one(t, quick, "q", 1500);
    answer_one(t, t->heard[t->len - 1].id, "yes");
    later(t, 1);
    assert_int_equal(lost->end, GRPC_LATE);
    assert_int_equal(t->downs, 0);
}

static void pong(struct scene *t)
{
    frame(t, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "holdfast", 8);
    go(t);
}

/* Three late calls in a row end the connection, even though the server answers
 * PINGs. */
CASE_HERE(test_server_that_answers_no_call_is_left)
{
    struct one *o = one_of(t, &unary), *p = one_of(t, &unary);

    connect_it(t);
    for (int i = 1; i <= 2; i++) {
        ask(o, "o", 300);
        ask(p, "p", 300); /* late at the same time as o, so both count as one */
        go(t);
        later(t, 300 * i); /* the second limit is twice as long */
        pong(t);
        assert_int_equal(o->overs, i);
    }
    send_one(t, o, "o", 300);
    answer_one(t, t->heard[t->len - 1].id, "yes");
    assert_string_equal(o->got, "yes");
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(t->downs, 0);
        send_one(t, o, "o", 300);
        later(t, 300 << (i - 1));
        if (i < 3)
            pong(t);
    }
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_int_equal(o->end, GRPC_LATE);
}

/* When the connection ends, calls that were written become GRPC_LOST, the
 * oldest first; the others become GRPC_UNSENT. */
CASE_HERE(test_end_tells_lost_from_unsent)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &stream),
               *c = one_of(t, &unary);

    connect_it(t);
    ask(a, "a", 1000);
    ask(b, "b", 0);
    go(t);
    ask(c, "c", 1000);
    hang_up(t);
    go(t);
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_int_equal(a->end, GRPC_LOST);
    assert_int_equal(b->end, GRPC_LOST);
    assert_int_equal(c->end, GRPC_UNSENT);
    assert_non_null(strstr(a->text, "closed"));
    assert_int_equal(a->overs + b->overs + c->overs, 3);
    assert_non_null(hf__grpc_room(&a->call, 1));
    assert_int_equal(hf__grpc_start(&a->call, 0), HF__LATER);
    connect_it(t); /* nothing of the old connection is left */
    assert_int_equal(t->ups, 2);
    send_one(t, c, "again", 0);
    assert_int_equal(t->len, 1);
    answer_one(t, 1, "yes");
    assert_string_equal(c->got, "yes");
}

CASE_HERE(test_unread_connection_is_unsent)
{
    enum { N = 40 };
    struct one *o[N];
    unsigned lost = 0, unsent = 0;

    connect_wide(t);
    t->is_deaf = true;
    for (int i = 0; i < N; i++) {
        uint8_t *p;

        o[i] = one_of(t, &unary);
        p = hf__grpc_room(&o[i]->call, 60000);
        assert_non_null(p);
        assert_int_equal(hf__grpc_start(&o[i]->call, 0), 0);
        hf__grpc_flush(&t->g);
    }
    go(t);
    assert_true(t->g.link.stream.out.len <= 300000);
    hf__link_why(&t->g.link, HF_EBACKEND, "for a test");
    hf__link_fail(&t->g.link, HF_EBACKEND, clock_ns);
    t->is_deaf = false;
    serve(t);
    for (int i = 0; i < N; i++) {
        assert_int_equal(o[i]->overs, 1);
        lost += o[i]->end == GRPC_LOST;
        unsent += o[i]->end == GRPC_UNSENT;
        for (size_t k = 0; k < t->len && o[i]->end == GRPC_UNSENT; k++)
            assert_int_not_equal(t->heard[k].id, o[i]->call.id);
        one_free(o[i]);
    }
    assert_true(lost > 0 && unsent > 0);
    assert_int_equal(lost + unsent, N);
}

static void goaway(struct scene *t, int32_t last, uint32_t error,
                   const char *text)
{
    uint8_t p[64] = {0, 0, 0, (uint8_t)last, 0, 0, 0, (uint8_t)error};

    memcpy(p + 8, text, strlen(text));
    frame(t, NGHTTP2_GOAWAY, 0, 0, p, 8 + strlen(text));
}

CASE_HERE(test_goaway_lets_calls_finish)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &unary),
               *s = one_of(t, &stream);

    connect_it(t);
    later(t, 2000); /* the connection had worked, so there is no pause */
    ask(s, "s", 0);
    ask(a, "a", 0);
    ask(b, "b", 0);
    go(t);
    goaway(t, 3, 0, "graceful_stop");
    go(t);
    assert_int_equal(b->end, GRPC_UNSENT); /* the server has not processed it */
    assert_int_equal(b->overs, 1);
    assert_int_equal(a->overs, 0);
    assert_int_equal(t->downs, 0);
    assert_non_null(hf__grpc_room(&b->call, 1));
    assert_int_equal(hf__grpc_start(&b->call, 0), HF__LATER);
    answer_one(t, 3, "done");
    assert_string_equal(a->got, "done");
    assert_int_equal(t->downs, 1); /* because only the stream was left */
    assert_int_equal(s->end, GRPC_LOST);
    assert_non_null(strstr(s->text, "graceful_stop"));
    connect_it(t);
    send_one(t, b, "b", 0);
    answer_one(t, 1, "here");
    assert_string_equal(b->got, "here");
}

CASE_HERE(test_goaway_waits_for_a_while)
{
    struct one *a = one_of(t, &unary);

    connect_it(t);
    send_one(t, a, "a", 0);
    goaway(t, 1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
    go(t);
    assert_int_equal(t->downs, 0);
    later(t, 1000);
    assert_int_equal(t->downs, 1);
    assert_int_equal(a->end, GRPC_LOST);
    assert_non_null(strstr(a->text, "ENHANCE_YOUR_CALM, too_many_pings"));
}

/* Stream ids have 31 bits and are not reused: after the last one, a new
 * connection is needed. */
CASE_HERE(test_ids_run_out)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &unary);

    connect_it(t);
    later(t, 2000);
    assert_int_equal(
        nghttp2_session_set_next_stream_id(t->g.session, INT32_MAX), 0);
    ask(a, "a", 0);
    assert_non_null(hf__grpc_room(&b->call, 1));
    assert_int_equal(hf__grpc_start(&b->call, 0), HF__LATER);
    hf__grpc_flush(&t->g);
    serve(t);
    answer_one(t, INT32_MAX, "last");
    assert_int_equal(t->downs, 1);
    assert_int_equal(a->overs, 1);
    connect_it(t);
    send_one(t, b, "b", 0);
    answer_one(t, 1, "first");
    assert_string_equal(b->got, "first");
}

static void reset(struct scene *t, int32_t id, uint32_t error)
{
    uint8_t p[4] = {0, 0, 0, (uint8_t)error};

    frame(t, NGHTTP2_RST_STREAM, 0, id, p, 4);
    go(t);
}

CASE_HERE(test_resets)
{
    struct one *o = first_of(t, &unary);

    reset(t, 1, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(o->overs, 0); /* reported only after a pause */
    assert_true(hf__grpc_timeout(&t->g) == clock_ns + 50 * HF__MS);
    later(t, 50);
    assert_int_equal(o->overs, 1);
    assert_int_equal(o->end, GRPC_UNSENT);
    assert_non_null(strstr(o->text, "REFUSED_STREAM"));
    send_one(t, o, "x", 0);
    reset(t, 3, NGHTTP2_CANCEL);
    assert_int_equal(o->end, GRPC_LOST);
    assert_non_null(strstr(o->text, "CANCEL"));
    send_one(t, o, "x", 0);
    headers(t, 5, false, HEAD ";grpc-status=0");
    says(t, 5, "half");
    reset(t, 5, NGHTTP2_REFUSED_STREAM); /* not believed: an answer has begun */
    assert_int_equal(o->end, GRPC_LOST);
    assert_int_equal(o->overs, 3);
    assert_int_equal(t->downs, 0);
}

CASE_HERE(test_cancel)
{
    struct one *o = one_of(t, &unary), *p = one_of(t, &unary);

    connect_it(t);
    ask(o, "never", 100);
    hf__grpc_cancel(&o->call); /* before a byte is written */
    send_one(t, o, "first", 100);
    assert_int_equal(t->len, 1);
    assert_memory_equal(t->heard[0].body + 5, "first", 5);
    hf__grpc_cancel(&o->call);
    send_one(t, o, "second", 0); /* while the server still has the first one */
    assert_int_equal(t->heard[0].reset, NGHTTP2_CANCEL);
    answers(t, t->heard[0].id, "one");
    answers(t, t->heard[1].id, "two");
    go(t);
    assert_int_equal(o->overs, 1);
    assert_string_equal(o->got, "two");
    later(t, 1000); /* the other limits ended with their calls */
    assert_int_equal(o->overs, 1);
    /* A callback cancels another call that has also ended. */
    ask(o, "o", 10);
    ask(p, "p", 10);
    o->cancels = p;
    go(t);
    later(t, 20);
    assert_int_equal(o->overs, 2);
    assert_int_equal(p->overs, 0);
    assert_true(hf__grpc_is_idle(&p->call));
}

/* A stream that is canceled by its own callback in the middle of a frame
 * receives no further message. */
CASE_HERE(test_cancel_inside_of_a_message)
{
    struct one *o = first_of(t, &stream);
    uint8_t bytes[100];
    size_t n = message(bytes, "a");

    o->cancels = o;
    n += message(bytes + n, "b");
    headers(t, 1, false, HEAD);
    frame(t, NGHTTP2_DATA, 0, 1, bytes, n);
    go(t);
    assert_int_equal(o->messages, 1);
    assert_int_equal(o->overs, 0);
    assert_int_equal(t->heard[0].reset, NGHTTP2_CANCEL);
    assert_int_equal(t->g.open, 0);
}

CASE_HERE(test_over_starts_the_next)
{
    struct one *o = one_of(t, &unary);

    connect_it(t);
    o->restarts = true;
    ask(o, "x", 0);
    for (int i = 0; i < 10; i++) {
        go(t);
        o->restarts = i < 8;
        answer_one(t, t->heard[i].id, "y");
        assert_int_equal(o->overs, i + 1);
        if (i == 8)
            break;
        assert_memory_equal(t->heard[i + 1].body + 5, "again", 5);
    }
}

CASE_HERE(test_silence_is_asked_about)
{
    struct one *o = one_of(t, &stream);

    connect_it(t);
    later(t, 100000); /* no stream is open, so no PING is sent */
    assert_int_equal(t->pings, 0);
    assert_true(hf__grpc_timeout(&t->g) == HF__NEVER);
    send_one(t, o, "x", 0);
    assert_int_equal(t->pings, 0);
    later(t, 2000);
    assert_int_equal(t->pings, 1);
    later(t, 900);
    pong(t);
    assert_int_equal(t->downs, 0);
    /* The server would count a PING within 5 s as abuse, because it has sent
     * nothing but the pong. */
    later(t, 2000);
    later(t, 2000);
    assert_int_equal(t->pings, 1);
    later(t, 300);
    assert_int_equal(t->pings, 2);
    pong(t);
    headers(t, 1, false, HEAD); /* now a PING is allowed again */
    go(t);
    later(t, 2000);
    assert_int_equal(t->pings, 3);
    later(t, 1000);
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_int_equal(o->end, GRPC_LOST);
}

/* Data does not replace the acknowledgement of a PING. */
CASE_HERE(test_ping_has_to_be_answered)
{
    struct one *o = first_of(t, &stream);

    headers(t, 1, false, HEAD);
    go(t);
    later(t, 2000);
    assert_int_equal(t->pings, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(t->downs, 0);
        says(t, 1, "x");
        go(t);
        assert_true(hf__grpc_timeout(&t->g) > clock_ns);
        later(t, 800);
    }
    assert_int_equal(t->downs, 1);
    assert_int_equal(o->messages, 5);
}

/* The usual PING of a gRPC server is acknowledged together with the next
 * request, any other PING at once. */
CASE_HERE(test_pings_of_the_server)
{
    static const uint8_t theirs[8] = {2, 4, 16, 16, 9, 14, 7, 7};
    struct one *o = one_of(t, &unary);
    uint64_t written;

    connect_it(t);
    frame(t, NGHTTP2_PING, 0, 0, "12345678", 8);
    go(t);
    assert_int_equal(t->acks, 1);
    assert_memory_equal(t->ack, "12345678", 8);
    written = t->g.link.stream.written;
    frame(t, NGHTTP2_PING, 0, 0, theirs, 8);
    go(t);
    assert_true(t->g.link.stream.written == written);
    send_one(t, o, "x", 0);
    assert_int_equal(t->acks, 2);
    assert_memory_equal(t->ack, theirs, 8);
}

static bool has_token(const struct heard *h, const char *token)
{
    char text[40];

    if (!token)
        return !strstr(h->headers, "token=");
    snprintf(text, sizeof(text), " token=%s ", token);
    return strstr(h->headers, text);
}

#define REFUSED HEAD ";grpc-status=16;grpc-message=invalid auth token"

CASE_HERE(test_token_is_renewed)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &unary),
               *late = one_of(t, &unary), *hello = one_of(t, &greeting);

    t->has_hello = true;
    connect_it(t);
    assert_int_equal(t->ups, 0);
    assert_non_null(hf__grpc_room(&a->call, 1));
    assert_int_equal(hf__grpc_start(&a->call, 0), HF__LATER);
    send_one(t, hello, "secret", 0);
    assert_true(has_token(&t->heard[0], NULL));
    answer_one(t, 1, "t1");
    assert_memory_equal(hello->call.in_buf.data, "\0\0\0\0\0\0", 7);
    assert_int_equal(hf__grpc_token(&t->g, hello->got, 0, ""), 0);
    hf__grpc_up(&t->g, clock_ns);
    assert_int_equal(t->ups, 1);
    ask(a, "a", 10000);
    ask(b, "b", 10000);
    go(t);
    assert_true(has_token(&t->heard[1], "t1"));
    end_one(t, t->heard[1].id, REFUSED);
    assert_int_equal(a->overs, 0);
    assert_int_equal(t->renewals, 1);
    ask(late, "late", 100); /* it waits for the token */
    headers(t, t->heard[2].id, true, REFUSED);
    go(t);
    assert_int_equal(t->len, 3);
    assert_int_equal(t->renewals, 1);
    later(t, 100);
    assert_int_equal(late->end, GRPC_UNSENT);
    ask(late, "late", 0);
    assert_int_equal(hf__grpc_token(&t->g, "t2", 0, ""), 0);
    go(t);
    assert_int_equal(t->len, 6);
    for (int i = 3; i < 6; i++)
        assert_true(has_token(&t->heard[i], "t2"));
    assert_memory_equal(t->heard[3].body, "\0\0\0\0\1a", 6);
    answers(t, t->heard[3].id, "A");
    headers(t, t->heard[4].id, true, REFUSED); /* a second refusal is final */
    go(t);
    assert_string_equal(a->got, "A");
    assert_int_equal(b->end, GRPC_ANSWERED);
    assert_int_equal(b->status, 16);
    assert_int_equal(t->renewals, 1);
    /* This call was sent with the old token, and is refused when the client
     * already has a new one. Therefore the client requests no further token. */
    assert_int_equal(hf__grpc_token(&t->g, "t3", 0, ""), 0);
    end_one(t, t->heard[5].id, REFUSED);
    assert_int_equal(t->renewals, 1);
    assert_true(has_token(&t->heard[6], "t3"));
    answer_one(t, t->heard[6].id, "L");
    assert_string_equal(late->got, "L");
}

CASE_HERE(test_no_token_can_be_had)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &unary),
               *s = one_of(t, &stream);

    connect_it(t);
    send_one(t, a, "a", 0);
    end_one(t, 1, REFUSED);
    ask(b, "b", 0);
    ask(s, "s", 0);
    hf__grpc_token(&t->g, NULL, 3, "wrong password");
    go(t);
    assert_int_equal(a->end, GRPC_ANSWERED);
    assert_int_equal(a->status, 16);
    assert_string_equal(a->text, "invalid auth token");
    assert_int_equal(b->end, GRPC_UNSENT);
    assert_int_equal(b->status, 3);
    assert_string_equal(s->text, "wrong password");
    /* The owner cannot get a token: the refusal is the answer. */
    t->renew_rc = HF_EAUTH;
    send_one(t, a, "a", 0);
    end_one(t, 3, REFUSED);
    assert_int_equal(a->overs, 2);
    assert_int_equal(a->status, 16);
    /* The owner cannot get a token on this connection, which ends. The next
     * connection requests a token. */
    t->renew_rc = HF_EBACKEND;
    send_one(t, a, "a", 0);
    end_one(t, 5, REFUSED);
    assert_int_equal(t->downs, 1);
    assert_int_equal(a->end, GRPC_UNSENT);
    connect_it(t);
    /* The connection ends while calls wait for a token. */
    t->renew_rc = 0;
    send_one(t, a, "a", 0);
    end_one(t, 1, REFUSED);
    hang_up(t);
    go(t);
    assert_int_equal(a->end, GRPC_UNSENT);
}

/* After GOAWAY the client requests no more tokens, but open calls may
 * finish. */
CASE_HERE(test_no_token_after_goaway)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &unary);

    connect_it(t);
    t->renew_rc = HF_EBACKEND;
    ask(a, "a", 0);
    ask(b, "b", 0);
    go(t);
    goaway(t, 3, 0, "");
    headers(t, 1, true, REFUSED);
    go(t);
    assert_int_equal(t->renewals + t->downs, 0);
    answer_one(t, 3, "done");
    assert_string_equal(b->got, "done");
    assert_int_equal(t->downs, 1);
    assert_int_equal(a->end, GRPC_UNSENT);
}

/* A refused stream ends, and the next one waits for the new token. */
CASE_HERE(test_stream_renews_the_token)
{
    struct one *a = one_of(t, &stream), *b = one_of(t, &stream);

    connect_it(t);
    ask(a, "a", 0);
    ask(b, "b", 0);
    go(t);
    end_one(t, 1, REFUSED);
    assert_int_equal(a->end, GRPC_ANSWERED);
    assert_int_equal(a->status, 16);
    assert_int_equal(t->renewals, 1);
    send_one(t, a, "a", 0);
    assert_int_equal(t->len, 2);
    assert_int_equal(hf__grpc_token(&t->g, "t2", 0, ""), 0);
    go(t);
    assert_int_equal(t->len, 3);
    assert_true(has_token(&t->heard[2], "t2"));
    end_one(t, 3, REFUSED); /* it was sent with the old token */
    assert_int_equal(b->overs, 1);
    assert_int_equal(t->renewals, 1);
}

CASE_HERE(test_stopped_without_a_word)
{
    struct one *a = one_of(t, &unary), *b = one_of(t, &stream);

    connect_it(t);
    ask(a, "a", 10);
    ask(b, "b", 0);
    go(t);
    hf__grpc_stop(&t->g);
    later(t, 100);
    assert_int_equal(a->overs + b->overs + (int)t->downs, 0);
    assert_true(hf__grpc_is_idle(&a->call));
    connect_it(t);
    send_one(t, a, "a", 0);
    answer_one(t, 1, "x");
    assert_int_equal(a->overs, 1);
}

CASES_MAIN(NULL, NULL);
