/*
 * Who a client is: to servers a uuid, to people a process on a host; and how
 * an entry that says so is read again. The backends write it beside a hold, and
 * read it for an inspection. No function allocates or keeps a pointer; each
 * writes to the caller's buffer, terminated and cut to its size. Pure, except
 * that hf__about() reads the host name and hf__wall_ms() the clock.
 */
#ifndef HF_ABOUT_H
#define HF_ABOUT_H

#include <holdfast.h>
#include <stddef.h>
#include <stdint.h>

#define HF__UUID_LEN 36

/* From 16 random bytes, of version 4. */
void hf__uuid(const uint8_t random[16], char out[HF__UUID_LEN + 1]);

/* Now, in ms since 1970, as entries say it to people. */
int64_t hf__wall_ms(void);
/* What is left, at now_ms, of a lease that began at since_ms by another
 * machine's clock: from 0 to all of it. */
int64_t hf__left_ms(int64_t lease_ms, int64_t since_ms, int64_t now_ms);

/* "<what><pid>\n<host>\n", to which a label is added; returns the length. */
size_t hf__about(char *out, size_t size, const char *what);
/* Reads what is behind the pid: "<host>\n<label>". */
void hf__about_read(hf_party *, const char *at, const char *end);

/* The next of several texts that end so; the last is whatever is left. */
const char *hf__cut(const char **at, const char *end, char stop, size_t *len);
/* What fits, terminated. A zero would end it, and is written as \x00; the core
 * sees to what else cannot be shown. */
void hf__copy_text(char *to, size_t size, const char *from, size_t len);

#endif
