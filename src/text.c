#include "text.h"

#include <ctype.h>
#include <stdbool.h>
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
