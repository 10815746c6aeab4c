/*
 * From the name of a lock to the keys and channels at the server: Redisson's,
 * and our own. Pure: no client, no connection. The words of both dialects and
 * of Redlock are here, so that no name of a lock can be a key of ours
 * (hf__rd_reserved).
 */
#ifndef HF_REDIS_KEYS_H
#define HF_REDIS_KEYS_H

#include "backends/backend.h"
#include "net/stream.h"

#define RD_KEY_MAX (HF_NAME_MAX + 64) /* a name with the longest prefix */

/* The counter of a name lives so long after its last grant, or ten leases. */
#define RD_TOKEN_TTL_MS 86400000LL

enum rd_key {
    RD_KEY_LOCK,    /* n itself */
    RD_KEY_TOKEN,   /* redisson_lock_token:{n} */
    RD_KEY_QUEUE,   /* redisson_lock_queue:{n} */
    RD_KEY_TIMEOUT, /* redisson_lock_timeout:{n} */
    RD_KEY_INFO,    /* ours: who holds it */
    RD_KEY_WAITERS, /* ours: unfair waiters, as they came */
    RD_KEY_CROWD,   /* ours: what those say of themselves */
    RD_KEY_SEEN,    /* ours: fair waiters, and until when they live */
    RD_KEY_TOKEN_S, /* ours: the token of the string dialect */
    RD_KEY_HOLDS,   /* ours, not of the mutex: who holds it */
    RD_KEY_LINE,    /* ours, not of the mutex: waiters, as they came */
    RD_KEY_PARTY,   /* ours, not of the mutex: what those say of themselves */
    RD_KEY_KIND,    /* ours: what the string n is */
    RD_KEY_RESERVE, /* ours, of Redlock: which tokens may be in use */
    RD_KEY_DID,     /* ours: the beginning; what was counted already */
    RD_KEY_PERMITS, /* {n}:timeout */
    RD_KEY_BASE,    /* {n}: the beginning of {n}:owner:rwlock_timeout:1 */
    RD_CHANNEL,     /* redisson_lock__channel:{n} */
    RD_MARK,        /* ours: subscribed together with RD_CHANNEL */
    RD_CHANNEL_RW,  /* redisson_rwlock:{n}, and so on */
    RD_MARK_RW,
    RD_CHANNEL_SEM, /* redisson_sc:{n} */
    RD_MARK_SEM,
    RD_CHANNEL_LATCH, /* redisson_countdownlatch__channel__{n} */
};

/* Writes the key, which may be terminated; returns its length, at most
 * RD_KEY_MAX. There has to be room for one more. */
size_t hf__rd_key(char *to, enum rd_key, const char *name, size_t len);
void hf__rd_put_key(struct net_out *, enum rd_key, const char *name,
                    size_t len);
bool hf__rd_reserved(const char *name, size_t len);
/* What is before a name without braces: up to the "{". */
const char *hf__rd_prefix(enum rd_key);
/* It is "{m}": there may be an "m". */
bool hf__rd_has_twin(const char *name, size_t len);
/* What a kind's waiters listen to; 0: there is no mark. */
enum rd_key hf__rd_channel(enum hf_kind);
enum rd_key hf__rd_mark(enum hf_kind);

/* The text as a glob pattern that means itself, and anything after it; up to
 * twice as long and one more. Returns its end. */
char *hf__rd_glob(char *to, const char *text, size_t len);

#endif
