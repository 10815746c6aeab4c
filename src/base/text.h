/* Strings that people type and read: times, names in messages, misspelt words.
 * The library and the command share this file, so it depends on neither. */
#ifndef HF_TEXT_H
#define HF_TEXT_H

#include <holdfast.h>

/*
 * Parses "1500ms", "10s", "2m", "1h" or "1d"; a number without a unit means
 * seconds. A fraction of up to nine digits may follow a point ("0.5"). Parts of
 * a millisecond are rounded up. Returns 0, or EINVAL if `text` is not such a
 * time or the time exceeds HF_TIME_MAX_MS.
 */
int hf__parse_ms(const char *text, int64_t *ms);

/* A name as it is shown in a message: on one line, and short enough to leave
 * room for the rest of the message. */
struct hf__shown {
    char text[72];
};
/* Formats a name for a message. A long name is cut between two characters and
 * ends in "..."; each byte of a character that cannot be shown becomes '?'. */
struct hf__shown hf__show(const char *name);

/* Makes a string from an untrusted source safe to show. Each byte of a
 * character that cannot be shown (hf__character) becomes "\xNN"; the string is
 * cut if it no longer fits into `size` bytes. */
void hf__printable(char *text, size_t size);
/* Returns the length, at most len, of the UTF-8 character at s, and sets
 * *number to its code point. Returns 0 if there is no valid character. */
size_t hf__utf8(const unsigned char *s, size_t len, uint32_t *number);
/* Returns the length, at most len, of the UTF-8 character at s if it can be
 * shown. Returns 0 for an invalid character, for a control character, and for a
 * character that is invisible or changes the direction of the text around
 * it. */
size_t hf__character(const unsigned char *s, size_t len);

/* Returns how many letters of `meant` were mistyped in `word`: changed, left
 * out, added, or swapped with the next one. Returns UINT_MAX if the words are
 * not similar: if there is more than one mistake and more than one per three
 * letters of the longer word, or if there are as many mistakes as `word` has
 * letters. Also returns UINT_MAX if a word is empty or longer than 31
 * letters. */
unsigned hf__mistyped(const char *word, const char *meant, size_t meant_len);
/* Returns the word in `list` to which `word` is most similar, and sets *len to
 * its length; returns NULL if none is similar. The list has the form "one,
 * two:..., three": each of its words ends at a colon or a comma. */
const char *hf__meant(const char *word, const char *list, size_t *len);

#endif
