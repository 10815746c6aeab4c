/*
 * Packets of MySQL's protocol, for login.c and conn.c: a length of 3 bytes, a
 * sequence number, the payload. What comes is read through a cursor, which goes
 * over no end: an enemy may have written these bytes.
 */
#ifndef HF_MYSQL_WIRE_H
#define HF_MYSQL_WIRE_H

#include "conn.h"

#define MY_HEADER 4
/* One of this length would be followed by more of it. */
#define MY_PACKET_MAX 0xffffff
/* What the server says first is not longer; "HTTP" as a length is. */
#define MY_LOGIN_MAX 65535

/* ---- in ----------------------------------------------------------------- */

struct my_cursor {
    const unsigned char *at;
    size_t len;
    bool bad; /* more was read than there is; all that is read then is 0 */
};

uint64_t hf__my_get(struct my_cursor *, size_t bytes); /* little-endian */
/* A number that tells its own length. */
uint64_t hf__my_get_length(struct my_cursor *);
/* So many bytes; NULL: there are not. */
const void *hf__my_get_bytes(struct my_cursor *, uint64_t len);
/* Up to a 0, or to the end if there is none; *len is without it. */
const char *hf__my_get_text(struct my_cursor *, size_t *len);

/* An ERR, at the byte behind 0xff: its code, 0 if it is none. text: for people,
 * terminated, printable. */
uint16_t hf__my_get_error(struct my_cursor *, char *text, size_t size);

struct my_packet {
    uint8_t seq;
    size_t len; /* without its header; never 0 */
    struct my_cursor body;
};
/* The next packet of what has come: 1; 0: it is not complete; HF_EPROTO. */
int hf__my_packet_next(const char *bytes, size_t len, size_t max,
                       struct my_packet *);

/* One packet of an answer, gathered in the arena. 1: the answer is whole, 0:
 * more must come, HF_EPROTO, HF_ENOMEM. */
int hf__my_answer_add(struct my_conn *, struct my_cursor);
void hf__my_answer_reset(struct my_conn *);

/* ---- out ---------------------------------------------------------------- */

/* A packet in stream.out. A failure, for want of memory or because it is too
 * long, is told at its end, and nothing of it is left then. */
void hf__my_packet_begin(struct my_conn *);
void hf__my_put(struct my_conn *, const void *, size_t);
void hf__my_put_number(struct my_conn *, uint64_t, size_t bytes);
void hf__my_put_text(struct my_conn *, const char *); /* with its 0 */
int hf__my_packet_end(struct my_conn *, uint8_t seq); /* 0, HF_ENOMEM */
void hf__my_packet_undo(struct my_conn *);

/* ---- login.c ------------------------------------------------------------ */

/* A packet of the server before we are in: 1: we are; 0; a code, whose text is
 * set. */
int hf__my_login_packet(struct my_conn *, struct my_packet *, hf__time now);
/* TLS is agreed on; as above without 1. */
int hf__my_login_secured(struct my_conn *);
/* It will not say otherwise later unless somebody changes something. */
bool hf__my_error_lasts(uint16_t error);
/* It ends connections, this one as well. */
bool hf__my_error_ends(uint16_t error);

/* For the tests: *len bytes, at most 32. false: OpenSSL has failed. */
bool hf__my_scramble_native(const char *password, const unsigned char salt[20],
                            unsigned char to[32], size_t *len);
bool hf__my_scramble_sha2(const char *password, const unsigned char salt[20],
                          unsigned char to[32], size_t *len);

#endif
