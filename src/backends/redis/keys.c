/*
 * From a name to keys and channels. Redisson's P(x,n) is x:{n}, or x:n where n
 * has a brace of its own, so that n = "{m}" and n = "m" come to the same
 * P(x,n). A shared channel or token does no harm (one too many looks, one
 * token skipped); a shared queue would: there, and in the keys of ours, the
 * two stay apart. The price: a fair lock named "{m}" is not Redisson's.
 */
#include "redis.h"

#include <string.h>

static const char *const prefixes[] = {
    [RD_KEY_LOCK] = "",
    [RD_KEY_TOKEN] = "redisson_lock_token:",
    [RD_KEY_QUEUE] = "redisson_lock_queue:",
    [RD_KEY_TIMEOUT] = "redisson_lock_timeout:",
    [RD_KEY_INFO] = "holdfast:info:",
    [RD_KEY_WAITERS] = "holdfast:waiters:",
    [RD_KEY_CROWD] = "holdfast:crowd:",
    [RD_KEY_SEEN] = "holdfast:seen:",
    [RD_KEY_TOKEN_S] = "holdfast:token:",
    [RD_CHANNEL] = "redisson_lock__channel:",
    [RD_MARK] = "holdfast:mark:",
};

/* What stands between prefix and name, when the name has a brace. */
static const char *infix(enum rd_key key, const char *name, size_t len)
{
    switch (key) {
    case RD_KEY_LOCK:
    case RD_KEY_TOKEN:
    case RD_CHANNEL:
        return "";
    case RD_KEY_QUEUE:
    case RD_KEY_TIMEOUT:
        if (name[0] == '{' && name[len - 1] == '}' &&
            !memchr(name + 1, '{', len - 1))
            return ":";
        return "";
    default:
        return ":";
    }
}

size_t hf__rd_key(char *to, enum rd_key key, const char *name, size_t len)
{
    char *p = stpcpy(to, prefixes[key]);
    bool wrap = key != RD_KEY_LOCK && !memchr(name, '{', len);

    if (wrap)
        *p++ = '{';
    else
        p = stpcpy(p, infix(key, name, len));
    memcpy(p, name, len);
    p += len;
    if (wrap)
        *p++ = '}';
    return (size_t)(p - to);
}

void hf__rd_put_key(struct rd_out *o, enum rd_key key, const char *name,
                    size_t len)
{
    char text[RD_KEY_MAX];

    hf__rd_put(o, text, hf__rd_key(text, key, name, len));
}

bool hf__rd_reserved(const char *name, size_t len)
{
    static const char *const ours[] = {
        "holdfast:",    "redisson_lock_",        "redisson_rwlock",
        "redisson_sc:", "redisson_unlock_latch", "redisson_countdownlatch",
    };

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (len >= strlen(ours[i]) &&
            memcmp(name, ours[i], strlen(ours[i])) == 0)
            return true;
    return false;
}
