/*
 * From names to keys and channels. Let P(x,n) be the key that Redisson derives
 * from the prefix x and the name n: x:{n}, or x:n if n itself contains a brace.
 * Let S(n,x) be the key that Redisson derives from the name n and the suffix x:
 * {n}:x, or n:x if n contains a brace.
 *
 * The names "{m}" and "m" have the same P(x,n). If they share a channel or a
 * token counter, that does no harm: it costs a superfluous poll, or skips a
 * token. Sharing a queue or a set of permits would do harm. The keys of queues
 * and permits and our own keys therefore differ between the two names. The
 * price is that Redisson and holdfast do not share a fair lock or a semaphore
 * named "{m}".
 */
#include "keys.h"

#include "pipe.h"

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
    [RD_KEY_HOLDS] = "holdfast:holds:",
    [RD_KEY_LINE] = "holdfast:line:",
    [RD_KEY_PARTY] = "holdfast:party:",
    [RD_KEY_KIND] = "holdfast:kind:",
    [RD_KEY_RESERVE] = "holdfast:reserve:",
    [RD_KEY_DID] = "holdfast:did:",
    [RD_KEY_PERMITS] = "",
    [RD_KEY_BASE] = "",
    [RD_CHANNEL] = "redisson_lock__channel:",
    [RD_MARK] = "holdfast:mark:",
    [RD_CHANNEL_RW] = "redisson_rwlock:",
    [RD_MARK_RW] = "holdfast:rwmark:",
    [RD_CHANNEL_SEM] = "redisson_sc:",
    [RD_MARK_SEM] = "holdfast:scmark:",
    [RD_CHANNEL_LATCH] = "redisson_countdownlatch__channel__",
};

const char *hf__rd_prefix(enum rd_key key)
{
    return prefixes[key];
}

bool hf__rd_has_twin(const char *name, size_t len)
{
    return name[0] == '{' && name[len - 1] == '}' &&
           !memchr(name + 1, '{', len - 1);
}

/* Writes the prefix for a name that contains a brace. Our own keys get one more
 * colon, so that "{m}" and "m" have different keys. */
static char *keys_put_prefix(char *to, enum rd_key key, const char *name,
                             size_t len)
{
    bool twin = hf__rd_has_twin(name, len);

    if (twin && key == RD_KEY_QUEUE)
        return stpcpy(to, "holdfast:queue:");
    if (twin && key == RD_KEY_TIMEOUT)
        return stpcpy(to, "holdfast:timeout:");
    if (twin && key == RD_KEY_PERMITS)
        return stpcpy(to, "holdfast:permits:");
    to = stpcpy(to, prefixes[key]);
    return strncmp(prefixes[key], "holdfast:", 9) ? to : stpcpy(to, ":");
}

size_t hf__rd_key(char *to, enum rd_key key, const char *name, size_t len)
{
    char *p;

    if (key == RD_KEY_LOCK ||
        (memchr(name, '{', len) && key != RD_CHANNEL_LATCH)) {
        p = mempcpy(keys_put_prefix(to, key, name, len), name, len);
    } else {
        p = stpcpy(to, prefixes[key]);
        *p++ = '{';
        p = mempcpy(p, name, len);
        *p++ = '}';
    }
    return (size_t)(stpcpy(p, key == RD_KEY_PERMITS ? ":timeout" : "") - to);
}

void hf__rd_put_key(struct net_out *o, enum rd_key key, const char *name,
                    size_t len)
{
    char text[RD_KEY_MAX + 1];

    hf__rd_put(o, text, hf__rd_key(text, key, name, len));
}

enum rd_key hf__rd_channel(enum hf_kind kind)
{
    return kind == HF_RWLOCK      ? RD_CHANNEL_RW
           : kind == HF_SEMAPHORE ? RD_CHANNEL_SEM
           : kind == HF_LATCH     ? RD_CHANNEL_LATCH
                                  : RD_CHANNEL;
}

enum rd_key hf__rd_mark(enum hf_kind kind)
{
    return kind == HF_RWLOCK      ? RD_MARK_RW
           : kind == HF_SEMAPHORE ? RD_MARK_SEM
           : kind == HF_LATCH     ? 0
                                  : RD_MARK;
}

/* Returns whether the name may be the key S(n,x) of another name n: the key of
 * a semaphore's permits, or the key of the timeout of a read hold. */
static bool keys_is_kept_beside(const char *name, size_t len)
{
    static const char permits[] = ":timeout", read[] = ":rwlock_timeout:";
    size_t n = sizeof(permits) - 1;

    if (!memchr(name, '{', len))
        return false;
    return (len > n && memcmp(name + len - n, permits, n) == 0) ||
           memmem(name, len, read, sizeof(read) - 1);
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
    return keys_is_kept_beside(name, len);
}

char *hf__rd_glob(char *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr("*?[]\\^-", text[i]) && text[i])
            *to++ = '\\';
        *to++ = text[i];
    }
    *to++ = '*';
    return to;
}
