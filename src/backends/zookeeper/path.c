#include "path.h"

#include "entry.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sink {
    char *to;
    size_t len, cap;
};

static void path_put(struct sink *s, const char *text, size_t len)
{
    if (len < s->cap && s->len < s->cap - len)
        memcpy(s->to + s->len, text, len);
    s->len += len;
}

static void path_put_hex(struct sink *s, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[3] = {'%', digits[byte >> 4], digits[byte & 15]};

    path_put(s, text, sizeof(text));
}

/* Returns the value of a hexadecimal digit in upper case, as this file writes
 * it, or -1 for any other character. */
static int path_digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int path_hex_at(const char *s, size_t len)
{
    int high, low;

    if (len < 3 || *s != '%')
        return -1;
    high = path_digit_of(s[1]);
    low = path_digit_of(s[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* ---- what the server accepts --------------------------------------------- */

/* Returns the length of a UTF-8 character by its first byte, or 0 if no
 * character that the server accepts begins with this byte. The server refuses
 * characters of four bytes, because it sees them as surrogates. */
static size_t path_length_of(unsigned char first)
{
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : (first & 0xf0) == 0xe0        ? 3
                                           : 0;
}

static bool path_is_taken(uint32_t c, size_t len)
{
    static const uint32_t least[] = {0, 0x20, 0xa0, 0x800};

    return c >= least[len] && c != 0x7f && !(c >= 0xd800 && c <= 0xf8ff) &&
           c < 0xfff0;
}

/* Returns the length of the character if it may stay unchanged, or 0 if it must
 * be escaped. */
static size_t path_plain(const char *s, size_t left)
{
    unsigned char first = (unsigned char)*s;
    size_t len = path_length_of(first);
    uint32_t c = len == 1 ? first : first & (0x7fu >> len);

    if (!len || len > left)
        return 0;
    for (size_t i = 1; i < len; i++) {
        unsigned char next = (unsigned char)s[i];

        if ((next & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (next & 0x3f);
    }
    return path_is_taken(c, len) && path_hex_at(s, left) < 0 ? len : 0;
}

/* ---- from name to path --------------------------------------------------- */

static bool path_is(const char *s, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(s, text, len) == 0;
}

static bool path_is_entry(const char *s, size_t len)
{
    char text[HF_NAME_MAX + 1];
    struct zk_entry e;

    if (len >= sizeof(text))
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    return hf__zk_entry_parse(text, &e);
}

static void path_put_component(struct sink *o, const char *s, size_t len)
{
    bool dots = path_is(s, len, ".") || path_is(s, len, "..");

    path_put(o, "/", 1);
    if (!len)
        path_put_hex(o, 0);
    for (size_t i = 0, n; i < len; i += n) {
        n = dots ? 0 : path_plain(s + i, len - i);
        if (n)
            path_put(o, s + i, n);
        else
            path_put_hex(o, (unsigned char)s[i]);
        n = n ? n : 1;
    }
}

const char *hf__zk_path_refused(const char *name, size_t len, const char *root,
                                size_t *part_len)
{
    const char *end = name + len, *s = name;

    for (;;) {
        const char *slash = memchr(s, '/', (size_t)(end - s));
        size_t n = (size_t)((slash ? slash : end) - s);

        *part_len = n;
        if (s == name ? !*root && path_is(s, n, "zookeeper")
                      : path_is_entry(s, n))
            return s;
        if (!slash)
            return NULL;
        s = slash + 1;
    }
}

static bool path_encode(struct sink *o, const char *name, size_t len,
                        const char *root)
{
    const char *end = name + len, *s = name;
    size_t part;

    if (hf__zk_path_refused(name, len, root, &part))
        return false;
    for (;;) {
        const char *slash = memchr(s, '/', (size_t)(end - s));

        path_put_component(o, s, (size_t)((slash ? slash : end) - s));
        if (!slash)
            return true;
        s = slash + 1;
    }
}

int hf__zk_path(const char *name, size_t len, const char *root, char *out,
                size_t cap)
{
    struct sink o = {.to = out, .cap = cap};

    path_put(&o, root, strlen(root));
    if (len > HF_NAME_MAX || !path_encode(&o, name, len, root) || o.len >= cap)
        return HF_EINVAL;
    out[o.len] = '\0';
    return (int)o.len;
}

/* ---- from path to name --------------------------------------------------- */

static void path_take_component(struct sink *o, const char *s, size_t len)
{
    if (path_is(s, len, "%00"))
        return;
    for (size_t i = 0; i < len; i++) {
        int byte = path_hex_at(s + i, len - i);
        char c = byte < 0 ? s[i] : (char)byte;

        path_put(o, &c, 1);
        i += byte < 0 ? 0 : 2;
    }
}

/* Returns true if the name encodes to this path. Other paths may decode to the
 * same name. */
static bool path_leads_to(const char *name, size_t len, const char *root,
                          const char *path)
{
    char text[ZK_PATH_MAX] = "";
    struct sink o = {.to = text, .cap = sizeof(text)};

    return len <= HF_NAME_MAX && !memchr(name, 0, len) &&
           path_encode(&o, name, len, root) && strlen(path) == o.len &&
           memcmp(path, text, o.len) == 0;
}

int hf__zk_name(const char *path, const char *root, char *out, size_t cap)
{
    struct sink o = {.to = out, .cap = cap};
    const char *below;

    if (strncmp(path, root, strlen(root)) != 0)
        return HF_EINVAL;
    below = path + strlen(root);
    if (*below != '/')
        return HF_EINVAL;
    for (const char *s = below; *s;) {
        size_t n = strcspn(++s, "/");

        if (s - 1 != below)
            path_put(&o, "/", 1);
        path_take_component(&o, s, n);
        s += n;
    }
    if (!o.len || o.len >= cap || !path_leads_to(out, o.len, root, below))
        return HF_EINVAL;
    out[o.len] = '\0';
    return (int)o.len;
}

const char *hf__zk_join(char out[ZK_WHOLE_MAX], const char *path,
                        const char *child)
{
    size_t len = strnlen(path, ZK_WHOLE_MAX - 2);
    size_t more = strnlen(child, ZK_WHOLE_MAX - 2 - len);

    memcpy(out, path, len);
    out[len++] = '/';
    memcpy(out + len, child, more);
    out[len + more] = '\0';
    return out;
}
