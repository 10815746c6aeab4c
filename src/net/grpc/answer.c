#include "answer.h"

#include "call.h"
#include "grpc.h"

#include <stdio.h>
#include <string.h>

/* The number of bytes before each message: one byte tells whether the message
 * is compressed, four bytes are its length. */
#define PREFIX 5
#define REFUSED_MS 50

/* ---- headers ------------------------------------------------------------- */

static int answer_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' - 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void hf__grpc_text(char *to, size_t size, const char *from, size_t len,
                   bool is_encoded)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < size; i++) {
        int c = (unsigned char)from[i];

        if (is_encoded && c == '%' && i + 2 < len &&
            answer_hex(from[i + 1]) >= 0 && answer_hex(from[i + 2]) >= 0) {
            c = answer_hex(from[i + 1]) << 4 | answer_hex(from[i + 2]);
            i += 2;
        }
        to[n++] = (char)(c < ' ' || c > '~' ? '?' : c);
    }
    to[n] = '\0';
}

/* Returns the number that the string contains, or -1 if it is not a number of
 * up to three digits. */
static int answer_number(const char *p, size_t len)
{
    int n = 0;

    if (!len || len > 3)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        n = n * 10 + (p[i] - '0');
    }
    return n;
}

/* Returns the gRPC status code n, or UNKNOWN if there is no such code. */
static int answer_status_of(int n)
{
    return n > GRPC_UNAUTHENTICATED ? GRPC_UNKNOWN : n;
}

static bool answer_is(const char *p, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(p, text, len) == 0;
}

static bool answer_is_grpc(const char *type, size_t len)
{
    static const char grpc[] = "application/grpc";
    size_t n = sizeof(grpc) - 1;

    return len >= n && memcmp(type, grpc, n) == 0 &&
           (len == n || type[n] == '+' || type[n] == ';');
}

void hf__grpc_header(struct grpc_call *c, const char *name, size_t name_len,
                     const char *value, size_t len)
{
    if (answer_is(name, name_len, ":status"))
        c->http = answer_number(value, len);
    else if (answer_is(name, name_len, "content-type"))
        c->is_grpc = answer_is_grpc(value, len);
    else if (answer_is(name, name_len, "grpc-status"))
        c->said = answer_status_of(answer_number(value, len));
    else if (answer_is(name, name_len, "grpc-message"))
        hf__grpc_text(c->text, sizeof(c->text), value, len, true);
}

/* ---- messages ------------------------------------------------------------ */

/* Returns the length of the message with its prefix, or 0 if the length is not
 * known yet. */
static size_t answer_whole_len(const struct grpc_buf *b)
{
    const uint8_t *p = b->data;

    if (b->len < PREFIX)
        return 0;
    return PREFIX +
           ((size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4]);
}

/* Moves the bytes that belong to the current message to the buffer of that
 * message. Allocates room only for bytes that have arrived, and not for the
 * announced length. */
static int answer_take(struct grpc_call *c, const uint8_t **p, size_t *len)
{
    struct grpc_buf *b = &c->in_buf;
    size_t whole = answer_whole_len(b), n = (whole ? whole : PREFIX) - b->len;

    if (n > *len)
        n = *len;
    if (hf__grpc_reserve(c->g, b, n))
        return hf__link_why(&c->g->link, HF_ENOMEM, "out of memory");
    memcpy(b->data + b->len, *p, n);
    b->len += n;
    *p += n;
    *len -= n;
    return 0;
}

/* Returns what is wrong with the prefix of the message, or NULL. */
static const char *answer_wrong_prefix(const struct grpc_call *c)
{
    size_t whole = answer_whole_len(&c->in_buf);

    if (!whole)
        return NULL;
    if (c->in_buf.data[0])
        return "the answer is compressed";
    return whole - PREFIX > c->method->most ? "the answer is too long" : NULL;
}

/* Resets the stream and ends the call as ODD, because the answer makes no
 * sense. */
static void answer_odd(struct grpc_call *c, int status, const char *text)
{
    hf__grpc_drop(c, NGHTTP2_CANCEL);
    c->status = status;
    snprintf(c->text, sizeof(c->text), "%s", text);
    hf__grpc_end(c, GRPC_ODD);
}

/* If the message is not allowed, ends the call as ODD and returns true. */
static bool answer_is_odd(struct grpc_call *c)
{
    const char *wrong =
        c->is_whole ? "more than one message" : answer_wrong_prefix(c);

    if (wrong)
        answer_odd(c, GRPC_UNKNOWN, wrong);
    return wrong;
}

int hf__grpc_data(struct grpc_call *c, const uint8_t *p, size_t len)
{
    struct grpc *g = c->g;
    int32_t id = c->id;
    int rc = 0;

    if (c->http != 200 || !c->is_grpc) {
        hf__grpc_finished(c);
        return 0;
    }
    while (len && !rc && !answer_is_odd(c)) {
        rc = answer_take(c, &p, &len);
        if (rc || c->in_buf.len != answer_whole_len(&c->in_buf) ||
            answer_wrong_prefix(c))
            continue;
        if (!c->method->is_stream) {
            c->is_whole = true;
            continue;
        }
        rc = c->method->message(c, c->in_buf.data + PREFIX,
                                c->in_buf.len - PREFIX, g->now);
        if (hf__grpc_find(g, id) != c) /* message() has cancelled the call */
            return rc;
        c->in_buf.len = 0;
    }
    /* The last bytes may have completed a prefix that is not allowed. */
    if (!rc && hf__grpc_find(g, id) == c && !c->is_whole)
        answer_is_odd(c);
    return rc;
}

/* ---- ends ---------------------------------------------------------------- */

/* Returns the gRPC status for an HTTP status, as the specification of gRPC
 * defines it. */
static int answer_status_of_http(int http)
{
    switch (http) {
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return 7; /* PERMISSION_DENIED */
    case 404:
        return 12; /* UNIMPLEMENTED */
    case 429:
    case 502:
    case 503:
    case 504:
        return 14; /* UNAVAILABLE */
    }
    return GRPC_UNKNOWN;
}

void hf__grpc_finished(struct grpc_call *c)
{
    char text[64];
    bool lacks = c->method->is_stream ? c->in_buf.len : !c->is_whole;

    if (c->http != 200 && (c->said < 0 || !c->is_grpc)) {
        snprintf(text, sizeof(text), "the answer has HTTP's status %d",
                 c->http);
        answer_odd(c, answer_status_of_http(c->http), text);
    } else if (!c->is_grpc) {
        answer_odd(c, GRPC_UNKNOWN, "the answer is not gRPC's");
    } else if (c->said < 0) {
        answer_odd(c, GRPC_UNKNOWN, "the answer has no status");
    } else if (c->said == GRPC_OK && lacks) {
        answer_odd(c, GRPC_UNKNOWN, "the answer has no whole message");
    } else {
        hf__grpc_drop(c, NGHTTP2_NO_ERROR);
        c->status = c->said;
        hf__grpc_end(c, GRPC_ANSWERED);
    }
}

void hf__grpc_was_reset(struct grpc_call *c, uint32_t error)
{
    bool is_unsent = error == NGHTTP2_REFUSED_STREAM && !c->http;

    snprintf(c->text, sizeof(c->text), "the call was reset: %s",
             nghttp2_http2_strerror(error));
    c->status = 14;
    /* A call that the server did not process may be sent again. If the
     * connection stays, the call is held and is sent again after a pause. If
     * the connection is about to end, the call ends UNSENT, and its owner can
     * send it on another connection at once. */
    if (is_unsent && c->g->leaves_at == HF__NEVER)
        hf__grpc_hold(c, c->g->now + REFUSED_MS * HF__MS);
    else
        hf__grpc_end(c, is_unsent ? GRPC_UNSENT : GRPC_LOST);
}
