
#include "entry.h"

#include "backends/common/about.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_DIGITS 16
#define OURS "holdfast "

static bool entry_is_hex(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!at[i] || !strchr("0123456789abcdef", at[i]))
            return false;
    return len > 0;
}

/* Skips the string if the input begins with it, and returns whether it does. */
static bool entry_skip(const char **at, size_t *len, const char *text)
{
    size_t n = strlen(text);

    if (*len < n || memcmp(*at, text, n) != 0)
        return false;
    *at += n;
    *len -= n;
    return true;
}

/* Parses the digits after the last `stop` as a number from 1 to UINT32_MAX, and
 * cuts off the `stop` and the digits. Returns false if that fails. */
static bool entry_last_number(const char *at, size_t *len, char stop,
                              uint32_t *out)
{
    const char *found = memrchr(at, stop, *len);
    size_t digits;
    uint64_t n = 0;

    if (!found)
        return false;
    digits = *len - (size_t)(found - at) - 1;
    for (size_t i = 1; i <= digits && digits <= 10; i++) {
        if (found[i] < '0' || found[i] > '9')
            return false;
        n = 10 * n + (uint64_t)(found[i] - '0');
    }
    *len = (size_t)(found - at);
    *out = (uint32_t)n;
    return digits <= 10 && n > 0 && n <= UINT32_MAX;
}

static bool entry_is_own(const char *at, size_t len)
{
    return len > LEASE_DIGITS && !memchr(at, '/', len);
}

enum et_form hf__et_form(const char *rest, size_t len, uint32_t *permits,
                         uint32_t *size)
{
    uint32_t a, b;

    if (len <= LEASE_DIGITS && entry_is_hex(rest, len))
        return ET_FORM_MUTEX;
    if (len == 4 && memcmp(rest, "lock", len) == 0)
        return ET_FORM_UNFAIR;
    if (len == 5 && memcmp(rest, "latch", len) == 0)
        return ET_FORM_LATCH;
    if (entry_skip(&rest, &len, "read/"))
        return entry_is_own(rest, len) ? ET_FORM_READ : ET_FORM_NONE;
    if (entry_skip(&rest, &len, "write/")) {
        if (!entry_is_own(rest, len))
            return ET_FORM_NONE;
        return rest[len - 1] == '+' ? ET_FORM_MARK : ET_FORM_WRITE;
    }
    if (!entry_skip(&rest, &len, "permit/") ||
        !entry_last_number(rest, &len, '.', size ? size : &b) ||
        !entry_last_number(rest, &len, '.', permits ? permits : &a) ||
        !entry_is_own(rest, len))
        return ET_FORM_NONE;
    return ET_FORM_PERMIT;
}

/* Tries both possible lengths: an entry has one or two parts after the name. */
size_t hf__et_name_len(const char *key, size_t len)
{
    const char *slash = memrchr(key, '/', len);
    size_t at;

    for (int parts = 0; slash && parts < 2; parts++) {
        at = (size_t)(slash - key);
        if (hf__et_form(slash + 1, len - at - 1, NULL, NULL) != ET_FORM_NONE)
            return at;
        slash = memrchr(key, '/', at);
    }
    return 0;
}

/* The first possible key is "\0". As the end of a range, "\0" means that the
 * range has no end. */
size_t hf__et_prefix(char *key, size_t *len, char *end)
{
    size_t n = *len;

    memcpy(end, key, n);
    while (n && (uint8_t)end[n - 1] == 0xff)
        n--;
    if (n)
        end[n - 1]++;
    else
        end[n++] = '\0';
    if (!*len)
        key[(*len)++] = '\0';
    return n;
}

bool hf__et_is_reserved(const char *name, size_t len)
{
    static const char ours[] = ET_OURS, inside[] = "/" ET_OURS;

    return (len >= strlen(ours) && memcmp(name, ours, strlen(ours)) == 0) ||
           memmem(name, len, inside, strlen(inside));
}

int hf__et_kind(enum et_form form)
{
    static const uint8_t kinds[] = {
        [ET_FORM_MUTEX] = HF_MUTEX, [ET_FORM_UNFAIR] = HF_MUTEX,
        [ET_FORM_READ] = HF_RWLOCK, [ET_FORM_WRITE] = HF_RWLOCK,
        [ET_FORM_MARK] = HF_RWLOCK, [ET_FORM_PERMIT] = HF_SEMAPHORE,
        [ET_FORM_LATCH] = HF_LATCH,
    };

    return kinds[form];
}

size_t hf__et_rest(char out[ET_REST_MAX], enum et_form form, int64_t lease,
                   uint64_t hold_id, uint32_t permits, uint32_t size)
{
    static const char *const dirs[] = {
        [ET_FORM_READ] = "read/",
        [ET_FORM_WRITE] = "write/",
        [ET_FORM_MARK] = "write/",
        [ET_FORM_PERMIT] = "permit/",
    };
    char end[24] = "";

    switch (form) {
    case ET_FORM_NONE:
        return 0;
    case ET_FORM_MUTEX:
        return (size_t)snprintf(out, ET_REST_MAX, "%" PRIx64, lease);
    case ET_FORM_UNFAIR:
        return (size_t)snprintf(out, ET_REST_MAX, "lock");
    case ET_FORM_LATCH:
        return (size_t)snprintf(out, ET_REST_MAX, "latch");
    case ET_FORM_PERMIT:
        snprintf(end, sizeof(end), ".%" PRIu32 ".%" PRIu32, permits, size);
        break;
    case ET_FORM_MARK:
        strcpy(end, "+");
        break;
    default:
        break;
    }
    return (size_t)snprintf(out, ET_REST_MAX, "%s%016" PRIx64 "-%" PRIx64 "%s",
                            dirs[form], lease, hold_id, end);
}

/* ---- values -------------------------------------------------------------- */

size_t hf__et_value(char out[ET_VALUE_MAX], const char *about,
                    const char *label, uint32_t lease_ms, int64_t since_ms,
                    int64_t now_ms)
{
    int n = snprintf(out, ET_VALUE_MAX,
                     OURS "%" PRIu32 " %" PRId64 " %" PRId64 "\n%s%s", lease_ms,
                     since_ms, now_ms, about, label);

    return n < ET_VALUE_MAX ? (size_t)n : ET_VALUE_MAX - 1;
}

int64_t hf__et_number(const char **at, const char *end)
{
    size_t len;
    const char *from = hf__cut(at, end, ' ', &len);
    char text[24];

    hf__copy_text(text, sizeof(text), from, len);
    return strtoll(text, NULL, 10);
}

void hf__et_value_read(hf_party *p, const char *value, size_t len,
                       int64_t now_ms)
{
    const char *end = value + len, *line, *stop;
    int64_t lease;
    size_t n;

    if (!entry_skip(&value, &len, OURS))
        return;
    line = hf__cut(&value, end, '\n', &n);
    stop = line + n;
    lease = hf__et_number(&line, stop);
    p->since_unix_ms = hf__et_number(&line, stop);
    if (lease > 0 && lease <= UINT32_MAX)
        p->left_ms = hf__left_ms(lease, hf__et_number(&line, stop), now_ms);
    line = hf__cut(&value, end, '\n', &n);
    p->pid = hf__et_number(&line, line + n);
    hf__about_read(p, value, end);
}

size_t hf__et_count_text(char out[ET_VALUE_MAX], uint64_t count)
{
    return (size_t)snprintf(out, ET_VALUE_MAX, OURS "latch %" PRIu64, count);
}

bool hf__et_count_parse(const char *value, size_t len, uint64_t *count)
{
    char text[24];
    char *end;

    if (!entry_skip(&value, &len, OURS "latch ") || !len ||
        len >= sizeof(text) || value[0] < '1' || value[0] > '9')
        return false;
    hf__copy_text(text, sizeof(text), value, len);
    errno = 0;
    *count = strtoull(text, &end, 10);
    return !*end && !errno;
}
