/*
 * From the name of a lock to its keys and channels at the server, Redisson's
 * and our own. These functions need no client and no connection. The file lists
 * the keys that dialect=redisson, dialect=string and Redlock use, because a
 * lock must not have a name that could be one of these keys
 * (hf__rd_reserved()).
 */
#ifndef HF_REDIS_KEYS_H
#define HF_REDIS_KEYS_H

#include "backends/backend.h"
#include "net/stream.h"

#define RD_KEY_MAX (HF_NAME_MAX + 64) /* a name with the longest prefix */

/* A token counter lives this long after its last grant, or ten times the TTL of
 * that grant if that is longer. */
#define RD_TOKEN_TTL_MS 86400000LL

enum rd_key {
    RD_KEY_LOCK,    /* n itself */
    RD_KEY_TOKEN,   /* redisson_lock_token:{n} */
    RD_KEY_QUEUE,   /* redisson_lock_queue:{n} */
    RD_KEY_TIMEOUT, /* redisson_lock_timeout:{n} */
    RD_KEY_INFO,    /* ours: who holds n */
    RD_KEY_WAITERS, /* ours: unfair waiters, oldest first */
    RD_KEY_CROWD,   /* ours: a note for each of RD_KEY_WAITERS */
    RD_KEY_SEEN,    /* ours: until when each fair waiter counts as alive */
    RD_KEY_TOKEN_S, /* ours: the token of the string dialect */
    RD_KEY_HOLDS,   /* ours, of kinds other than the mutex: the holders */
    RD_KEY_LINE,    /* ours, other kinds: waiters, oldest first */
    RD_KEY_PARTY,   /* ours: a note for each of RD_KEY_LINE */
    RD_KEY_KIND,    /* ours: of which kind the lock is, if n is a string */
    RD_KEY_RESERVE, /* ours, Redlock: upper bound of the tokens in use */
    RD_KEY_DID,     /* ours: prefix of marks of counted latch requests */
    RD_KEY_PERMITS, /* {n}:timeout: a semaphore's permits in use */
    RD_KEY_BASE,    /* {n}: prefix of {n}:owner:rwlock_timeout:1 */
    /* The rest are channels. */
    RD_CHANNEL,    /* redisson_lock__channel:{n} */
    RD_MARK,       /* ours: subscribed together with RD_CHANNEL */
    RD_CHANNEL_RW, /* redisson_rwlock:{n} */
    RD_MARK_RW,
    RD_CHANNEL_SEM, /* redisson_sc:{n} */
    RD_MARK_SEM,
    RD_CHANNEL_LATCH, /* redisson_countdownlatch__channel__{n} */
};

/* Writes the key and returns its length, at most RD_KEY_MAX. The buffer `to`
 * needs room for one byte more than that. */
size_t hf__rd_key(char *to, enum rd_key, const char *name, size_t len);
void hf__rd_put_key(struct net_out *, enum rd_key, const char *name,
                    size_t len);
bool hf__rd_reserved(const char *name, size_t len);
/* Returns the prefix of the key, without the brace before the name. */
const char *hf__rd_prefix(enum rd_key);
/* Returns whether the name has the form "{m}", and thus shares keys with
 * "m". */
bool hf__rd_has_twin(const char *name, size_t len);
/* Returns the channel to which waiters for this kind subscribe. */
enum rd_key hf__rd_channel(enum hf_kind);

/* Returns the mark (such as RD_MARK), a second channel to which waiters for
 * this kind subscribe, or 0 if the kind has none. */
enum rd_key hf__rd_mark(enum hf_kind);

/* Writes a glob pattern that matches all strings that begin with `text`. `to`
 * needs room for 2 * len + 1 bytes. Returns the end of the pattern, which is
 * not terminated by a NUL. */
char *hf__rd_glob(char *to, const char *text, size_t len);

#endif
