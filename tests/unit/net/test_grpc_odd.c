/* A server that is faulty, hostile, or not a gRPC server at all. */
#include "grpc_fixture.h"

/* Asserts that the next connection works, whatever was received on this one. */
static void works_again(struct scene *t)
{
    struct one *o = one_of(t, &unary);

    if (t->g.link.state != NET_OFF)
        hf__grpc_stop(&t->g);
    assert_null(t->g.calls.first);
    assert_null(t->g.ended.first);
    assert_int_equal(t->g.open, 0);
    assert_int_equal(t->g.unary, 0);
    connect_it(t);
    send_one(t, o, "x", 0);
    answer_one(t, 1, "fine");
    assert_string_equal(o->got, "fine");
    one_free(o);
}

#define OK_END "grpc-status=0"

static const struct odd {
    const char *head;
    bool is_last; /* the headers end the stream */
    const char *body;
    size_t len;
    const char *tail;
    int status;
    const char *text;
} odd[] = {
    {HEAD, false, "\1\0\0\0\1x", 6, OK_END, 2, "compressed"},
    {HEAD, false, "\0\0\0\3\351", 5, NULL, 2, "too long"}, /* 1001 */
    {HEAD, false, "\0\377\377\377\377", 5, NULL, 2, "too long"},
    {HEAD, false, "\0\0\0\0\1x\0\0\0\0\1y", 12, OK_END, 2, "more than one"},
    {HEAD, false, "\0\0\0\0\1xy", 7, OK_END, 2, "more than one"},
    {HEAD, false, "", 0, OK_END, 2, "no whole message"},
    {HEAD, false, "\0\0\0\0", 4, OK_END, 2, "no whole message"},
    {HEAD, false, "\0\0\0\0\2x", 6, OK_END, 2, "no whole message"},
    {HEAD ";grpc-status=0", true, NULL, 0, NULL, 2, "no whole message"},
    {HEAD, false, "\0\0\0\0\1x", 6, "grpc-message=x", 2, "no status"},
    {HEAD, false, "\0\0\0\0\1x", 6, "grpc-status=zero", 2, "no status"},
    {HEAD, false, "\0\0\0\0\1x", 6, "grpc-status=-1", 2, "no status"},
    {HEAD, false, "\0\0\0\0\1x", 6, "grpc-status=", 2, "no status"},
    {HEAD, false, "\0\0\0\0\1x", 6, "grpc-status=4294967296", 2, "no status"},
    {HEAD, true, NULL, 0, NULL, 2, "no status"},
    {HEAD ";grpc-status=0", false, "\0\0\0\0\1x", 6, "x=y", 2, "no status"},
    {":status=200;content-type=text/html", false, "<html>", 6, NULL, 2,
     "not gRPC"},
    {":status=200;content-type=application/grpcx;grpc-status=0", true, NULL, 0,
     NULL, 2, "not gRPC"},
    {":status=200", true, NULL, 0, NULL, 2, "not gRPC"},
    {":status=503;content-type=text/plain", false, "busy", 4, NULL, 14,
     "status 503"},
    {":status=404", true, NULL, 0, NULL, 12, "status 404"},
    {":status=401", true, NULL, 0, NULL, 16, "status 401"},
    {":status=403", true, NULL, 0, NULL, 7, "status 403"},
    {":status=500;grpc-status=0", true, NULL, 0, NULL, 2, "status 500"},
};

CASE_HERE(test_odd_answers)
{
    struct one *o = one_of(t, &unary);

    connect_it(t);
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        int32_t id = (int32_t)(2 * i + 1);

        send_one(t, o, "x", 0);
        headers(t, id, odd[i].is_last, odd[i].head);
        if (odd[i].body)
            frame(t, NGHTTP2_DATA, 0, id, odd[i].body, odd[i].len);
        if (odd[i].tail)
            headers(t, id, true, odd[i].tail);
        go(t);
        assert_int_equal(o->overs, i + 1);
        assert_int_equal(o->end, GRPC_ODD);
        assert_int_equal(o->status, odd[i].status);
        if (!strstr(o->text, odd[i].text))
            fail_msg("%zu: %s", i, o->text);
    }
    assert_int_equal(t->downs, 0); /* other calls continue */
    one_free(o);
    works_again(t);
}

/* A message of exactly the maximum length is allowed, a longer one is not. */
CASE_HERE(test_longest_message)
{
    struct one *o = first_of(t, &stream);
    uint8_t bytes[5 + MOST + 6] = {0, 0, 0, MOST >> 8, MOST & 255};

    headers(t, 1, false, HEAD);
    frame(t, NGHTTP2_DATA, 0, 1, bytes, 5 + MOST);
    go(t);
    assert_int_equal(o->messages, 1);
    bytes[4]++;
    frame(t, NGHTTP2_DATA, 0, 1, bytes, 5);
    go(t);
    assert_int_equal(o->end, GRPC_ODD);
    assert_int_equal(t->heard[0].reset, NGHTTP2_CANCEL);
    frame(t, NGHTTP2_DATA, 0, 1, bytes + 5, MOST + 1); /* still being sent */
    go(t);
    assert_int_equal(o->overs, 1);
    assert_int_equal(t->downs, 0);
}

/* A stream that ends within a message has not ended normally. */
CASE_HERE(test_stream_ends_within_a_message)
{
    struct one *o = first_of(t, &stream);

    headers(t, 1, false, HEAD);
    frame(t, NGHTTP2_DATA, 0, 1, "\0\0\0\0\2x", 6);
    end_one(t, 1, OK_END);
    assert_int_equal(o->messages, 0);
    assert_int_equal(o->end, GRPC_ODD);
}

/* A code that a callback returns ends the connection. */
CASE_HERE(test_callbacks_end_the_connection)
{
    struct one *o = one_of(t, &unary), *s = one_of(t, &stream);

    connect_it(t);
    o->rc = s->rc = HF_EPROTO;
    ask(o, "o", 0);
    ask(s, "s", 0);
    go(t);
    answer_one(t, 1, "x");
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EPROTO);
    assert_int_equal(o->end, GRPC_ANSWERED);
    assert_int_equal(s->end, GRPC_LOST);
    connect_it(t);
    send_one(t, s, "s", 0);
    headers(t, 1, false, HEAD);
    says(t, 1, "m");
    go(t);
    assert_int_equal(t->downs, 2);
    assert_int_equal(s->messages, 1);
    one_free(o);
    one_free(s);
    t->hello_rc = HF_EAUTH;
    connect_with(t, 0);
    assert_int_equal(t->downs, 3);
    assert_int_equal(t->down_code, HF_EAUTH);
    t->hello_rc = 0;
    works_again(t);
}

/* Sending has failed, and an answer arrives before the connection is ended: the
 * error of the failure is kept. */
CASE_HERE(test_failure_keeps_its_text)
{
    connect_it(t);
    t->g.failed = hf__link_why(&t->g.link, HF_EPROTO, "HTTP/2 has failed");
    frame(t, NGHTTP2_PING, 0, 0, "12345678", 8);
    hf__grpc_ready(&t->g, t->g.link.stream.tag, EPOLLIN, clock_ns);
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EPROTO);
    assert_non_null(strstr(t->g.link.text, "HTTP/2 has failed"));
    works_again(t);
}

CASE_HERE(test_something_else_answers)
{
    static const char *const others[] = {
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        "-ERR unknown command 'PRI'\r\n",
        "+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        accept_it(t);
        raw(t, others[i], strlen(others[i]));
        for (int k = 0; k < 3; k++) {
            hf__grpc_ready(&t->g, t->g.link.stream.tag, EPOLLIN, clock_ns);
            hf__grpc_advance(&t->g, clock_ns);
        }
        assert_int_equal(t->downs, i + 1);
        assert_int_equal(t->down_code, HF_EPROTO);
        assert_int_equal(t->ups, 0);
        assert_non_null(strstr(t->g.link.text, "is it etcd?"));
    }
    works_again(t);
}

/* The server accepts the connection and sends nothing. */
CASE_HERE(test_silent_server_is_not_up)
{
    t->is_deaf = true;
    accept_it(t);
    go(t);
    assert_int_equal(t->ups, 0);
    assert_int_equal(t->g.link.state, NET_GREETING);
    later(t, 1000);
    t->is_deaf = false;
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EBACKEND);
    works_again(t);
}

/* Runs the client, but not the server: serve() would fail on the frames that
 * the client sends back. */
static void hear(struct scene *t)
{
    char buf[4096];

    for (int i = 0; i < 20; i++) {
        hf__grpc_ready(&t->g, t->g.link.stream.tag, EPOLLIN | EPOLLOUT,
                       clock_ns);
        hf__grpc_advance(&t->g, clock_ns);
        while (t->fd >= 0 && recv(t->fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
            ;
    }
}

static void end_by(struct scene *t, struct one *o, int downs, int code)
{
    hear(t);
    assert_int_equal(t->downs, downs);
    assert_int_equal(t->down_code, code);
    assert_int_equal(o->overs, downs);
    assert_int_equal(o->end, GRPC_LOST);
    connect_it(t);
    send_one(t, o, "x", 0);
}

CASE_HERE(test_hostile_frames)
{
    static const uint8_t big[16385];
    static const uint8_t zeros[64];
    struct one *o = first_of(t, &unary);
    int n = 0;

    frame(t, NGHTTP2_DATA, 0, 1, big, sizeof(big)); /* longer than allowed */
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_DATA, 0, 0, zeros, 4); /* on stream 0 */
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_DATA, 0, 2, zeros, 4); /* on stream 2, never opened */
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\377\377\377", 3);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 99, "\210", 1);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1,
          "\0\0\0\2\202\206\204", 7);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_SETTINGS, 0, 0, zeros, 5);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_PING, 0, 0, zeros, 7);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_CONTINUATION, 0, 1, zeros, 4);
    end_by(t, o, ++n, HF_EPROTO);
    frame(t, NGHTTP2_HEADERS, 0, 1, "\210", 1); /* headers that never end */
    for (int i = 0; i < 100; i++)
        frame(t, NGHTTP2_CONTINUATION, 0, 1, "\0\1a\1b", 5);
    end_by(t, o, ++n, HF_EPROTO);
    one_free(o);
    works_again(t);
}

/* All data is read and acknowledged, and memory does not grow. */
CASE_HERE(test_very_much_data)
{
    enum { FRAMES = 2000, SIZE = 16380 }; /* 8 windows of empty messages */
    struct one *o = first_of(t, &stream);
    static const uint8_t zeros[SIZE];

    headers(t, 1, false, HEAD);
    for (int i = 0; i < FRAMES; i++) {
        frame(t, NGHTTP2_DATA, 0, 1, zeros, sizeof(zeros));
        hear(t);
    }
    assert_int_equal(o->messages, FRAMES * (SIZE / 5));
    assert_int_equal(o->overs + (int)t->downs, 0);
    assert_true(o->call.in_buf.cap <= 4096);
    one_free(o);
    works_again(t);
}

/* While the server reads nothing, the number of PINGs that wait for an
 * acknowledgement is limited. */
CASE_HERE(test_flood_of_pings)
{
    uint8_t ping[17] = {0, 0, 8, NGHTTP2_PING};
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL, i;

    connect_it(t);
    for (i = 0; i < 1000000 && !t->downs; i++) {
        while (send(t->fd, ping, sizeof(ping), flags) != sizeof(ping) &&
               !t->downs) {
            hf__grpc_ready(&t->g, t->g.link.stream.tag, EPOLLIN | EPOLLOUT,
                           clock_ns);
            hf__grpc_advance(&t->g, clock_ns);
        }
        assert_true(t->g.link.stream.out.cap <= 1 << 20);
    }
    assert_int_equal(t->downs, 1);
    works_again(t);
}

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (uint32_t)((seed * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

/* Writes a frame that is almost correct. */
static void nearly_right(struct scene *t)
{
    static const char *const blocks[] = {
        HEAD, OK_END, ":status=200", "grpc-status=5;grpc-message=%41",
        ":status=200;content-type=application/grpc;grpc-status=14"};
    uint8_t bytes[64];
    int32_t id = (int32_t)(2 * chance(6) + 1);
    size_t n;

    switch (chance(8)) {
    case 0:
    case 1:
    case 2:
        headers(t, id, chance(2), blocks[chance(5)]);
        return;
    case 3:
    case 4:
        n = message(bytes, "some words");
        if (chance(3) == 0)
            n -= chance(10);
        if (chance(4) == 0)
            bytes[chance(5)] = (uint8_t)chance(256);
        frame(t, NGHTTP2_DATA, (uint8_t)(chance(5) == 0), id, bytes, n);
        return;
    case 5:
        for (n = 0; n < 12; n++)
            bytes[n] = (uint8_t)chance(chance(2) ? 256 : 8);
        frame(t, (uint8_t)chance(11), (uint8_t)(chance(2) ? 0 : chance(256)),
              chance(2) ? id : 0, bytes, chance(13));
        return;
    case 6:
        frame(t, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\7", 4);
        return;
    default:
        for (n = 0; n < 20; n++)
            bytes[n] = (uint8_t)chance(256);
        if (chance(20) == 0)
            raw(t, bytes, chance(20) + 1);
    }
}

CASE_HERE(test_noise)
{
    enum { ROUNDS = 400, CALLS = 5 };

    for (int round = 1; round <= ROUNDS; round++) {
        struct one *o[CALLS];

        seed = 4711 + (uint64_t)round;
        connect_it(t);
        for (int i = 0; i < CALLS; i++) {
            o[i] = one_of(t, i % 2 ? &stream : &unary);
            ask(o[i], "x", i ? 0 : 50);
        }
        for (int i = 0; i < 12 && t->g.link.state == NET_UP; i++) {
            nearly_right(t);
            hear(t);
            clock_ns += 10 * HF__MS;
        }
        if (t->g.link.state == NET_UP) {
            hang_up(t);
            hear(t);
        }
        hf__grpc_stop(&t->g);
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(o[i]->overs, 1);
            one_free(o[i]);
        }
    }
    works_again(t);
}

/* Each allocation of the client fails once, in turn. */
CASE_HERE(test_out_of_memory)
{
    unsigned n = 0;
    bool failed;

    do {
        struct one *o = one_of(t, &unary), *s = one_of(t, &stream);
        bool has_o, has_s;

        n++;
        connect_it(t);
        fail_in = n;
        has_o =
            hf__grpc_room(&o->call, 20000) && hf__grpc_start(&o->call, 0) == 0;
        go(t);
        has_s = hf__grpc_room(&s->call, 10) && hf__grpc_start(&s->call, 0) == 0;
        go(t);
        hf__grpc_token(&t->g, "token", 0, "");
        if (t->g.link.state == NET_UP && t->len) {
            headers(t, 1, false, HEAD);
            says(t, 1, "words");
        }
        go(t);
        failed = fail_in == 0;
        fail_in = 0;
        hang_up(t);
        go(t);
        assert_int_equal(o->overs, has_o);
        assert_int_equal(s->overs, has_s);
        one_free(o);
        one_free(s);
        works_again(t);
        hf__grpc_stop(&t->g);
    } while (failed);
    assert_true(n > 3);
}

CASES_MAIN(NULL, NULL);
