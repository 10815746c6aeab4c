#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Reads digits into *value and returns where they end. Once *value exceeds the
 * longest time, further digits are skipped, so that *value cannot overflow. */
static const char *text_digits(const char *s, int64_t *value)
{
    for (*value = 0; isdigit((unsigned char)*s); s++)
        if (*value <= HF_TIME_MAX_MS)
            *value = *value * 10 + (*s - '0');
    return s;
}

/* Returns the length of the unit in milliseconds, or 0 if there is no such
 * unit. */
static int64_t text_unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1},    {"s", 1000},    {"", 1000},
                 {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strcmp(units[i].name, unit) == 0)
            return units[i].ms;
    return 0;
}

int hf__parse_ms(const char *text, int64_t *ms)
{
    int64_t whole, part = 0, scale = 1, unit;
    const char *point = text_digits(text, &whole), *end = point;
    bool any = point > text;

    if (*point == '.') {
        end = text_digits(point + 1, &part);
        any = any || end > point + 1;
        if (end - (point + 1) > 9)
            return HF_EINVAL;
        for (const char *p = point + 1; p < end; p++)
            scale *= 10;
    }
    unit = text_unit_ms(end);
    if (!any || !unit || whole > HF_TIME_MAX_MS / unit)
        return HF_EINVAL;
    whole = whole * unit + (part * unit + scale - 1) / scale;
    if (whole > HF_TIME_MAX_MS)
        return HF_EINVAL;
    *ms = whole;
    return 0;
}

size_t hf__utf8(const unsigned char *s, size_t most, uint32_t *number)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = *s < 0x80             ? 1
                 : (*s & 0xe0) == 0xc0 ? 2
                 : (*s & 0xf0) == 0xe0 ? 3
                 : (*s & 0xf8) == 0xf0 ? 4
                                       : 0;
    uint32_t c = len == 1 ? *s : *s & (0x7fu >> len);

    if (len > most)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) /* true for the final NUL, too */
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    *number = c;
    return c < least[len] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0
                                                                         : len;
}

size_t hf__character(const unsigned char *s, size_t most)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                  {0xfeff, 0xfeff}};
    uint32_t c;
    size_t len = hf__utf8(s, most, &c);

    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden) && len; i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return 0;
    return len;
}

struct hf__shown hf__show(const char *name)
{
    struct hf__shown shown;
    size_t len = strlen(name), max = sizeof(shown.text) - sizeof("..."), n;
    const unsigned char *s = (const unsigned char *)name;

    if (len >= sizeof(shown.text)) {
        /* Do not cut within a character. */
        for (len = max; len && (s[len] & 0xc0) == 0x80;)
            len--;
        memcpy(shown.text + len, "...", sizeof("..."));
    } else {
        shown.text[len] = '\0';
    }
    for (size_t i = 0; i < len; i += n ? n : 1) {
        n = hf__character(s + i, len - i);
        memcpy(shown.text + i, n ? name + i : "?", n ? n : 1);
    }
    return shown;
}

/* Returns the length of s without an incomplete UTF-8 character at its end. */
static size_t text_without_half(const unsigned char *s, size_t len)
{
    size_t at = len;

    while (at && len - at < 3 && (s[at - 1] & 0xc0) == 0x80)
        at--;
    return at && s[at - 1] >= 0xc0 && !hf__character(s + at - 1, 4) ? at - 1
                                                                    : len;
}

void hf__printable(char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = strlen(text), out = 0;
    char shown[800]; /* as large as the largest buffer that is passed, that of
                        hf__log() */

    size = size < sizeof(shown) ? size : sizeof(shown);
    if (len == size - 1)
        len = text_without_half(s, len);
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = hf__character(s + i, 4);
        if (out + (n ? n : 4) >= size)
            break;
        if (n)
            memcpy(shown + out, s + i, n);
        else
            snprintf(shown + out, size - out, "\\x%02x", s[i]);
        out += n ? n : 4;
    }
    memcpy(text, shown, out);
    text[out] = '\0';
}

/* ---- misspelt words --------------------------------------------------------
 */

enum { WORD_MAX = 31 };

static unsigned text_least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns the edit distance of a and b. Only the last three rows of the usual
 * table are kept. */
static unsigned text_edits(const char *a, size_t a_len, const char *b,
                           size_t b_len)
{
    unsigned rows[3][WORD_MAX + 1];

    for (size_t i = 0; i <= a_len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3],
                       *two_above = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            if (i == 0) {
                row[j] = (unsigned)j;
                continue;
            }
            row[j] = text_least(text_least(above[j], row[j - 1]) + 1,
                                above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = text_least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

unsigned hf__mistyped(const char *word, const char *meant, size_t meant_len)
{
    size_t len = strlen(word), most;
    unsigned n;

    if (len == 0 || len > WORD_MAX || meant_len == 0 || meant_len > WORD_MAX)
        return UINT_MAX;
    n = text_edits(word, len, meant, meant_len);
    /* The words are not similar if there are more mistakes than this (one
     * mistake is always allowed), or as many mistakes as `word` has letters. */
    most = (len > meant_len ? len : meant_len) / 3;
    return n <= (most > 1 ? most : 1) && n < len ? n : UINT_MAX;
}

const char *hf__meant(const char *word, const char *list, size_t *len)
{
    const char *meant = NULL;
    unsigned best = UINT_MAX, n;

    for (const char *p = list; *p; p += strspn(p, ", ")) {
        size_t p_len = strcspn(p, ",:");

        n = hf__mistyped(word, p, p_len);
        if (n < best) {
            best = n;
            meant = p;
            *len = p_len;
        }
        p += strcspn(p, ",");
    }
    return meant;
}
