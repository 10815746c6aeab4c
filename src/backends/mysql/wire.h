/*
 * Packets of MySQL's protocol, in and out: a length of 3 bytes, a sequence
 * number, the payload. login.c and conn.c call this; who sends statements reads
 * the results.
 *
 * What comes is read through a cursor that never passes the end of the bytes,
 * because an attacker may have written them. The packets of one answer are
 * gathered as a list of results in the connection's arena. What goes out is
 * appended to the connection's stream.out. Nothing here reads or writes a
 * socket, sets an error text, or calls the owner of the connection. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_WIRE_H
#define HF_MYSQL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MY_HEADER 4
/* One of this length would be followed by more of it. */
#define MY_PACKET_MAX 0xffffff
/* What the server says first is not longer; "HTTP" as a length is. */
#define MY_LOGIN_MAX 65535
/* No request of ours has a longer answer. */
#define MY_ANSWER_MAX (8u << 20)

struct my_conn;

/* ---- results ------------------------------------------------------------ */

struct my_value {
    const char *text; /* terminated; NULL: it is NULL */
    size_t len;
};

struct my_row {
    struct my_row *next;
    struct my_value value[]; /* as many as the result has columns */
};

/* What one statement of a packet came to: done, rows, or an error, behind which
 * there is no other. Memory of the arena, gone when the callback returns. */
struct my_result {
    struct my_result *next;
    uint64_t affected, insert_id; /* done */
    size_t columns, rows_len;     /* rows: columns is not 0 */
    struct my_row *rows;          /* the first; NULL: none */
    uint16_t error;               /* 0: none */
    const char *text;             /* of the error; terminated */
};

/* The i-th, NULL if there is none. */
const struct my_result *hf__my_at(const struct my_result *, size_t i);
/* A decimal number of an answer, NULL and negative ones are not. */
bool hf__my_number(const struct my_value *, uint64_t *);
/* The number in a row's i-th column; 0 if there is none. */
uint64_t hf__my_num(const struct my_row *, size_t i);

/* ---- in ----------------------------------------------------------------- */

struct my_cursor {
    const unsigned char *at;
    size_t len;
    bool bad; /* more was read than there is; all that is read then is 0 */
};

uint64_t hf__my_get(struct my_cursor *, size_t bytes); /* little-endian */
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
 * long, is reported at its end, and nothing of it is left then. */
void hf__my_packet_begin(struct my_conn *);
void hf__my_put(struct my_conn *, const void *, size_t);
void hf__my_put_number(struct my_conn *, uint64_t, size_t bytes);
void hf__my_put_text(struct my_conn *, const char *); /* with its 0 */
int hf__my_packet_end(struct my_conn *, uint8_t seq); /* 0, HF_ENOMEM */
void hf__my_packet_undo(struct my_conn *);

#endif
