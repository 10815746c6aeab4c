/* What people type and read: times, and names in messages. Shared by the
 * library and the command, and needs nothing of either. */
#ifndef HF_TEXT_H
#define HF_TEXT_H

#include <holdfast.h>

/*
 * "1500ms", "10s", "2m", "1h", "1d"; without a unit it is seconds. A fraction
 * of up to nine digits may follow a point, "0.5"; what is less than a
 * millisecond is rounded up. 0, or EINVAL: also beyond HF_TIME_MAX_MS.
 */
int hf__parse_ms(const char *text, int64_t *ms);

/* A name for a message, which has room for a line and not for HF_NAME_MAX
 * bytes of whatever: cut, and on one line. */
struct hf__shown {
    char text[72];
};
struct hf__shown hf__show(const char *name);

/* What others say of themselves may be any bytes: control characters, and what
 * is not UTF-8, become "\xNN". What then has no room is cut. */
void hf__printable(char *text, size_t size);
/* The length of the character of UTF-8 at s, of at most len bytes, and its
 * number; 0: there is none. */
size_t hf__utf8(const unsigned char *s, size_t len, uint32_t *number);
/* The same of one that can be shown to people: no control character, and none
 * that is invisible or changes the direction of the text around it. */
size_t hf__character(const unsigned char *s, size_t len);

/* How many letters of a word were mistyped (changed, left out, added, or
 * swapped with the next one), if it may have been meant for the other word;
 * else UINT_MAX. */
unsigned hf__mistyped(const char *word, const char *meant, size_t meant_len);
/* The word of a list "one, two:..., three" that is most like this one, up to a
 * colon, and its length; NULL: none is similar. */
const char *hf__meant(const char *word, const char *list, size_t *len);

#endif
