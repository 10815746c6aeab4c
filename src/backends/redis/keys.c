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

static bool is_redissons(enum rd_key key)
{
    return key == RD_KEY_LOCK || key == RD_KEY_TOKEN || key == RD_KEY_QUEUE ||
           key == RD_KEY_TIMEOUT || key == RD_CHANNEL;
}

/* Before a name that has a brace. Ours have one colon more, which no wrapped
 * name can begin with. */
static char *put_prefix(char *to, enum rd_key key, const char *name, size_t len)
{
    bool twin = name[0] == '{' && name[len - 1] == '}' &&
                !memchr(name + 1, '{', len - 1);

    if (twin && key == RD_KEY_QUEUE)
        return stpcpy(to, "holdfast:queue:");
    if (twin && key == RD_KEY_TIMEOUT)
        return stpcpy(to, "holdfast:timeout:");
    to = stpcpy(to, prefixes[key]);
    return is_redissons(key) ? to : stpcpy(to, ":");
}

size_t hf__rd_key(char *to, enum rd_key key, const char *name, size_t len)
{
    char *p;

    if (key == RD_KEY_LOCK || memchr(name, '{', len)) {
        p = mempcpy(put_prefix(to, key, name, len), name, len);
    } else {
        p = stpcpy(to, prefixes[key]);
        *p++ = '{';
        p = mempcpy(p, name, len);
        *p++ = '}';
    }
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
