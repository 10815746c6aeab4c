#include "text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Digits as a number, which is cut off at the longest time. */
static const char *digits(const char *s, int64_t *value)
{
    for (*value = 0; isdigit((unsigned char)*s); s++)
        if (*value <= HF_TIME_MAX_MS)
            *value = *value * 10 + (*s - '0');
    return s;
}

/* In milliseconds; 0: no such unit. */
static int64_t unit_ms(const char *unit)
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
    const char *point = digits(text, &whole), *end = point;
    bool any = point > text;

    if (*point == '.') {
        end = digits(point + 1, &part);
        any = any || end > point + 1;
        if (end - (point + 1) > 9)
            return HF_EINVAL;
        for (const char *p = point + 1; p < end; p++)
            scale *= 10;
    }
    unit = unit_ms(end);
    if (!any || !unit || whole > HF_TIME_MAX_MS / unit)
        return HF_EINVAL;
    whole = whole * unit + (part * unit + scale - 1) / scale;
    if (whole > HF_TIME_MAX_MS)
        return HF_EINVAL;
    *ms = whole;
    return 0;
}

struct hf__shown hf__show(const char *name)
{
    struct hf__shown shown;
    size_t len = strlen(name), max = sizeof(shown.text) - sizeof("...");

    if (len >= sizeof(shown.text)) {
        /* Not in the middle of a character. */
        for (len = max; len && ((unsigned char)name[len] & 0xc0) == 0x80;)
            len--;
        memcpy(shown.text + len, "...", sizeof("..."));
    } else {
        shown.text[len] = '\0';
    }
    for (size_t i = 0; i < len; i++)
        shown.text[i] = (char)(iscntrl((unsigned char)name[i]) ? '?' : name[i]);
    return shown;
}

/* How many bytes the character at s has; 0: it is none that can be shown. */
static size_t character(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = *s < 0x80             ? 1
                 : (*s & 0xe0) == 0xc0 ? 2
                 : (*s & 0xf0) == 0xe0 ? 3
                 : (*s & 0xf8) == 0xf0 ? 4
                                       : 0;
    uint32_t c = len == 1 ? *s : *s & (0x7fu >> len);

    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) /* the end of the text, too */
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (!len || c < 0x20 || (c >= 0x7f && c < 0xa0) || c < least[len] ||
        (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        return 0;
    return len;
}

/* A copy that had no room for more may end within a character. */
static size_t without_half(const unsigned char *s, size_t len)
{
    size_t at = len;

    while (at && len - at < 3 && (s[at - 1] & 0xc0) == 0x80)
        at--;
    return at && s[at - 1] >= 0xc0 && !character(s + at - 1) ? at - 1 : len;
}

void hf__printable(char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = strlen(text), out = 0;
    char shown[256];

    size = size < sizeof(shown) ? size : sizeof(shown);
    if (len == size - 1)
        len = without_half(s, len);
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = character(s + i);
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
