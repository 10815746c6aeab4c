/* Texts that people type and read: times, and names in messages. Shared by the
 * library and the command, so it needs nothing of either. */
#ifndef HF_TEXT_H
#define HF_TEXT_H

#include <holdfast.h>

/*
 * Parses "1500ms", "10s", "2m", "1h" or "1d"; a number without a unit means
 * seconds. A fraction of up to nine digits may follow a point ("0.5"). Parts of
 * a millisecond are rounded up. Returns 0, or EINVAL, including for times
 * beyond HF_TIME_MAX_MS.
 */
int hf__parse_ms(const char *text, int64_t *ms);

/* A name as shown in a message: on one line, and cut to a length that leaves
 * room for the rest. */
struct hf__shown {
    char text[72];
};
/* Cuts at the end of a character, and adds "..."; characters that cannot be
 * shown become '?'. */
struct hf__shown hf__show(const char *name);

/* Makes a text that came from elsewhere safe to show. Control characters, and
 * bytes that are not UTF-8, become "\xNN"; the text is cut if it no longer
 * fits. */
void hf__printable(char *text, size_t size);
/* Returns the length of the UTF-8 character at s, which has at most len bytes,
 * and sets *number to its code point; 0 if there is no valid character. */
size_t hf__utf8(const unsigned char *s, size_t len, uint32_t *number);
/* Returns the same for a character that can be shown; 0 for a control
 * character, and for one that is invisible or changes the direction of the text
 * around it. */
size_t hf__character(const unsigned char *s, size_t len);

/* Returns how many letters of a word were mistyped (changed, left out, added,
 * or swapped with the next one), if it looks like the word `meant`: at most one
 * mistake, or one in three letters of the longer word. Else UINT_MAX. */
unsigned hf__mistyped(const char *word, const char *meant, size_t meant_len);
/* Returns the word of a list "one, two:..., three" to which the given word is
 * most similar, and sets *len to its length; NULL if none is similar. A word of
 * the list ends before a colon. */
const char *hf__meant(const char *word, const char *list, size_t *len);

#endif
