/*
 * Packets of MySQL's protocol, in and out: a length of 3 bytes, a sequence
 * number, the payload. login.c and conn.c call these functions; the functions
 * that handle answers read the results.
 *
 * Input is read through a cursor that never passes the end of the bytes,
 * because an attacker may have written them. The packets of one answer become a
 * list of results in the connection's arena. Output is appended to stream.out.
 * Nothing here reads or writes a socket, sets an error message, or calls the
 * owner of the connection. The client's mutex is held.
 */
#ifndef HF_MYSQL_WIRE_H
#define HF_MYSQL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MY_HEADER 4
/* A payload of this length would be continued in the next packet. */
#define MY_PACKET_MAX 0xffffff
/* The upper bound of the greeting and of the packets of the login. "HTTP", read
 * as the header of a packet, states a greater length. */
#define MY_LOGIN_MAX 65535
/* The upper bound of an answer; no request of this backend has a longer one. */
#define MY_ANSWER_MAX (8u << 20)

struct my_conn;

/* ---- results ------------------------------------------------------------ */

struct my_value {
    const char *text; /* terminated; NULL if the value is NULL */
    size_t len;
};

struct my_row {
    struct my_row *next;
    struct my_value value[]; /* one per column of the result */
};

/* The result of one statement of a packet: done, rows, or an error, which is
 * always the last result. The memory belongs to the arena and is valid until
 * the my_answer_fn returns. */
struct my_result {
    struct my_result *next;
    uint64_t affected, insert_id; /* of a statement without a result set */
    size_t columns, rows_len;     /* columns is 0 if there is no result set */
    struct my_row *rows;          /* the first row, or NULL */
    uint16_t error;               /* the error number, or 0 */
    const char *text;             /* message of the error; terminated */
};

/* Returns the i-th result, or NULL. */
const struct my_result *hf__my_at(const struct my_result *, size_t i);
/* Reads a decimal number. Returns false for NULL and for negative numbers. */
bool hf__my_number(const struct my_value *, uint64_t *);
/* Returns the number in the i-th column of a row, or 0 if there is no row or no
 * number. */
uint64_t hf__my_num(const struct my_row *, size_t i);

/* ---- in ----------------------------------------------------------------- */

struct my_cursor {
    const unsigned char *at;
    size_t len;
    bool bad; /* true after a read past the end: all further reads give 0 */
};

uint64_t hf__my_get(struct my_cursor *, size_t bytes); /* little-endian */
/* Returns the next `len` bytes, or NULL if there are fewer. */
const void *hf__my_get_bytes(struct my_cursor *, uint64_t len);
/* Returns the string up to a 0 byte, or to the end if there is none. *len does
 * not count the 0 byte. */
const char *hf__my_get_text(struct my_cursor *, size_t *len);

/* Reads an ERR packet from the byte after 0xff. Returns the error number, or 0
 * if the packet is malformed. `text` becomes a terminated, printable string. */
uint16_t hf__my_get_error(struct my_cursor *, char *text, size_t size);

struct my_packet {
    uint8_t seq;
    size_t len; /* without the header; never 0 */
    struct my_cursor body;
};
/* Finds the next packet. Returns 1; 0 if the packet is not complete; or
 * HF_EPROTO. */
int hf__my_packet_next(const char *bytes, size_t len, size_t max,
                       struct my_packet *);

/* Adds a packet to the answer. Returns 1 if the answer is complete, 0 if more
 * packets follow, HF_EPROTO or HF_ENOMEM. */
int hf__my_answer_add(struct my_conn *, struct my_cursor);
void hf__my_answer_reset(struct my_conn *);

/* ---- out ---------------------------------------------------------------- */

/* These write a packet to stream.out. If there is no memory, or the packet is
 * too long, hf__my_packet_end() removes the packet and returns HF_ENOMEM. */
void hf__my_packet_begin(struct my_conn *);
void hf__my_put(struct my_conn *, const void *, size_t);
void hf__my_put_number(struct my_conn *, uint64_t, size_t bytes);
void hf__my_put_text(struct my_conn *, const char *); /* with its 0 */
int hf__my_packet_end(struct my_conn *, uint8_t seq); /* 0, HF_ENOMEM */
void hf__my_packet_undo(struct my_conn *);

#endif
