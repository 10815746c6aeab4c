/* Texts that people type and read: times, and names in messages. Shared by the
 * library and the command, so it needs nothing of either. */
#ifndef HF_TEXT_H
#define HF_TEXT_H

#include <holdfast.h>

/*
 * Parses "1500ms", "10s", "2m", "1h" or "1d"; without a unit it is seconds. A
 * fraction of up to nine digits may follow a point ("0.5"). Parts of a
 * millisecond are rounded up. Returns 0, or EINVAL (also beyond
 * HF_TIME_MAX_MS).
 */
int hf__parse_ms(const char *text, int64_t *ms);

/* A name as shown in a message: on one line, and cut to a length that leaves
 * room for the rest. */
struct hf__shown {
    char text[72];
};
struct hf__shown hf__show(const char *name);

/* Makes a text safe to show that came from elsewhere. Control characters, and
 * bytes that are not UTF-8, become "\xNN"; the text is cut if it no longer
 * fits. */
void hf__printable(char *text, size_t size);
/* The length of the UTF-8 character at s, which has at most len bytes, and its
 * number. 0: there is none. */
size_t hf__utf8(const unsigned char *s, size_t len, uint32_t *number);
/* The same for a character that can be shown: no control character, and none
 * that is invisible or changes the direction of the text around it. */
size_t hf__character(const unsigned char *s, size_t len);

/* How many letters of a word were mistyped (changed, left out, added, or
 * swapped with the next one), if it looks like the other word: one mistake, or
 * one in three letters of the longer word. Otherwise UINT_MAX. */
unsigned hf__mistyped(const char *word, const char *meant, size_t meant_len);
/* The word of a list "one, two:..., three" that the given word looks like most.
 * A word of the list ends before a colon; *len is its length. NULL: none is
 * similar. */
const char *hf__meant(const char *word, const char *list, size_t *len);

#endif
