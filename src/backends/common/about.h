/*
 * The identity of a client: a uuid for servers; pid, host and label for people.
 * The backends store pid, host and label with each hold, and read them for an
 * inspection. No function allocates or keeps a pointer. Every string that is
 * written is terminated, and cut if it does not fit the caller's buffer. Pure,
 * except that hf__about() reads pid and host name and hf__wall_ms() the clock.
 */
#ifndef HF_ABOUT_H
#define HF_ABOUT_H

#include <holdfast.h>
#include <stddef.h>
#include <stdint.h>

#define HF__UUID_LEN 36

/* Writes a uuid of version 4, made from 16 random bytes. */
void hf__uuid(const uint8_t random[16], char out[HF__UUID_LEN + 1]);

/* Returns the wall-clock time in ms since 1970. */
int64_t hf__wall_ms(void);
/* Returns how much of a lease that began at since_ms is left at now_ms: from 0
 * to the whole lease, even if since_ms comes from the clock of a different
 * machine and is later than now_ms. */
int64_t hf__left_ms(int64_t lease_ms, int64_t since_ms, int64_t now_ms);

/* Writes "<what><pid>\n<host>\n", to which the caller adds a label. Returns the
 * length, before any cut. */
size_t hf__about(char *out, size_t size, const char *what);
/* Reads "<host>\n<label>", which follows the pid. */
void hf__about_read(hf_party *, const char *at, const char *end);

/* Returns the part of the string from *at up to `stop`, or up to `end` if there
 * is no `stop`. Sets *len to the length of the part, and moves *at past the
 * part and the `stop`. */
const char *hf__cut(const char **at, const char *end, char stop, size_t *len);
/* Copies as much of the string as fits. A zero byte would end the copy, so it
 * is written as \x00; the core escapes other characters that cannot be
 * shown. */
void hf__copy_text(char *to, size_t size, const char *from, size_t len);

#endif
