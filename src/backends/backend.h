/*
 * The narrow waist: what a backend offers the core, and which services of the
 * core it may use.
 *
 * A backend never blocks and has no thread. It starts requests, moves them on
 * when the core says that a descriptor is ready (ready) or that time has passed
 * (advance), and reports each request exactly once. It makes no decisions: the
 * core (local_queue.c, lease.c) decides how long a request waits, when an
 * attempt is repeated, and when a hold is lost.
 *
 * A backend has one of two natures:
 * - A *networked* backend is always called with the client's mutex held, so it
 *   needs no lock of its own. Threads wait by driving it (driver.c).
 * - A *direct* backend (HF__DIRECT; shared memory) answers attempt, abandon and
 *   release at once. The core may call these three on many threads at a time,
 *   each call with the mutex of the remote's name held. They never take
 *   client->mu. Threads wait in park. The other slots of a direct backend are
 *   called with the client's mutex held.
 *
 * Attempt, release, abandon and renew are idempotent by the hold id: if the
 * answer was lost, the core may send the request again, and the second answer
 * is the same as the first.
 *
 * A networked backend that cannot send now (it is not connected, or has enough
 * to write) keeps no queue. Its slot returns LATER, and the core parks the
 * request. When the backend calls go_on(), the core calls the same slots again
 * for all parked requests, in their order. If the caller of a parked request
 * gives up, the core takes the request out of the parked ones. (If the request
 * is an attempt, the core also abandons it; the backend answers DONE if nothing
 * was ever sent for its hold id.) A request that is still parked when its time
 * (meant_until) has passed is not sent: it ends as EUNKNOWN. So a request is
 * either with the backend (PENDING) or parked.
 */
#ifndef HF_BACKEND_H
#define HF_BACKEND_H

#include "base/time.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stdint.h>

#define HF__ABI 11

/* The outcomes of a request, in addition to the negative codes of holdfast.h. A
 * backend uses these codes: EUNKNOWN (sent, answer lost), EBACKEND, EAUTH,
 * EPROTO, EMISMATCH, ENOTOWNER (release, renew: not held), ENOMEM, ENOTSUP. */
enum hf__outcome {
    HF__DONE = 0,
    HF__PENDING = 1, /* core->done() reports the request later */
    HF__GRANTED = 2, /* attempt: granted; token and sent_at are set */
    HF__QUEUED = 3, /* attempt: the lock is not free, and the request is queued.
                       The core repeats the attempt when core->bell() is called,
                       and at poll_at at the latest */
    HF__BUSY = 4,   /* attempt with may_queue == false: the lock is not free */
    /* attach of a direct backend: see attach below. Any slot of a networked
     * backend: nothing was sent, and the backend no longer refers to the
     * request. Until the backend calls go_on(), which it does when it can send
     * again, all slots that send return LATER, so that no request overtakes
     * another. */
    HF__LATER = 5,
};

enum hf__op {
    HF__ATTEMPT = 1,
    HF__RELEASE, /* ends a hold */
    HF__ABANDON, /* gives up an attempt, whatever its outcome: leaves the queue,
                    and releases the hold if there is one after all */
    HF__RENEW,
    HF__INSPECT,
    HF__LIST,
    HF__BREAK,
    HF__DOWNGRADE, /* turns a write hold into a read hold */
    HF__LATCH_SET,
    HF__LATCH_DOWN,
    HF__LATCH_GET,
    HF__ASK, /* notifies the holders of a name that it is wanted */
    HF__PUT, /* writes a value if the hold still exists */
    HF__DIAGNOSE,
    HF__LISTEN, /* reports changes of a name, or of all names with a prefix */
};

struct hf__remote;

/* A request. Owned by the core. */
struct hf__req {
    struct hf__req *next, *prev; /* links of parked requests */
    struct hf__remote *remote;   /* NULL: a hf__query or hf__batch */
    hf__time meant_until; /* when its caller stops waiting. After that time the
                             request is not sent; some backends also send the
                             limit, so that the server refuses a late request.
                             HF__NEVER: no limit */
    uint64_t hold_id;     /* unique in this client */
    hf__time sent_at;     /* out: the time just before the bytes were written */
    union {
        uint64_t token;   /* out, of GRANTED */
        hf__time poll_at; /* out, of QUEUED; HF__NEVER: the bell is reliable */
    };
    int16_t result; /* out: outcome or code */
    uint8_t op;
    bool may_queue : 1; /* attempt: join the queue if the lock is not free */
    bool fixed : 1; /* attempt: lease_ms is a fixed lease, which the server ends
                       even if the client lives */
    bool is_async : 1; /* direct, attempt: no thread parks for this request, so
                          the bell of its remote must wake the helper thread */
    bool flying : 1;   /* the core's: submitted, not yet processed */
    /* the core's: the request is parked, or a slot is being called to send a
     * request that was parked. In the second case more such calls may follow
     * before advance(), so a backend can write these requests together */
    bool parked : 1;
    /* latch, out, of GRANTED. True: the count was 0 when the server answered.
     * False: the count was 0 at some time since the last answer QUEUED, so only
     * waiters that were queued when that answer came may pass */
    bool is_zero : 1;
    bool untouched : 1;  /* attempt, out, with an error code: the server refused
                            the request before it did anything, so the request
                            has left nothing at the server */
    uint32_t lease_ms;   /* attempt, renew: the lease to ask for, never 0;
                            diagnose: the client's TTL */
    uint32_t session_ms; /* HF__SESSION, out, of GRANTED: how long the server
                            keeps the session, from sent_at on */
    uint32_t permits;    /* attempt: permits of a semaphore; otherwise 1 */
};

/*
 * A line to one name, with at most one attempt or hold at a time. Owned by the
 * core; exists from attach to detach. A client has one line to a mutex; to a
 * read-write lock one for writing and some for reading; to a semaphore one for
 * each hold. Lines are independent of each other and have hold ids of their
 * own. A line to a latch waits until its count is 0. GRANTED says that the
 * count is 0, or was 0 at some time since the answer QUEUED (is_zero); nothing
 * is held then, and nothing is released.
 */
struct hf__remote {
    const char *name; /* with the client's prefix; also terminated */
    uint16_t name_len;
    uint8_t kind;     /* enum hf_kind */
    uint8_t mode : 1; /* enum hf_mode; HF_READ on a line for reading */
    bool fair : 1;
    uint32_t permits;  /* size of a semaphore */
    const char *label; /* of the current or next holder; "" if none */
    void *impl;        /* the backend's; attach sets it, detach frees it */
    struct hf__req *attempt; /* the attempt, pending or answered; NULL if
                                nothing is requested or held */
};

/* A renewal of many holds: req.op is HF__RENEW and req.remote is NULL. The
 * backend sets each result (DONE, ENOTOWNER, EUNKNOWN ...) and req.sent_at, and
 * then reports the whole batch. If a downgrade did not reach the server, a
 * hold that is a read hold here is still a write hold there; the renewal turns
 * it into a read hold. */
struct hf__batch {
    struct hf__req req;
    size_t len;
    struct hf__renewal {
        struct hf__remote *remote;
        uint64_t hold_id;
        uint32_t lease_ms;   /* HF__SESSION: 0 if the hold has a fixed lease,
                                whose end does not move */
        uint32_t session_ms; /* HF__SESSION, out, of DONE */
        int16_t result;
        bool no_longer;   /* the core's: the renewal must not make the hold last
                             longer */
        uint32_t permits; /* number of permits of the hold of a semaphore;
                             otherwise 1 */
    } * item;
    size_t chunks; /* the backend's: number of parts under way */
};

/* A listener for changes. Owned by the core; exists from LISTEN, if that ends
 * with DONE, to unlisten. */
struct hf__listener {
    const char *name; /* with the client's prefix; also terminated */
    size_t name_len;
    bool is_prefix; /* listens to all names that begin with `name`; name_len may
                       be 0 */
    void *impl;     /* the backend's */
};

/*
 * Any other request. All but DOWNGRADE and PUT are about a name and not about a
 * hold. name and value live as long as the query.
 *
 * DOWNGRADE: `line` has the write hold req.hold_id. From this call on that hold
 * is a read hold of `into`, with the same id, and `line` is free for another
 * attempt, whatever the answer will be. Both pointers are valid during this
 * call only; they are NULL if the request was parked. The result is DONE, or
 * ENOTOWNER if the hold was gone.
 *
 * PUT: `line` has the hold req.hold_id; the pointer is valid during this call
 * only. Sets the key `name` (without the client's prefix) to `value`, in one
 * step with the check of the hold. The result is DONE; ENOTOWNER if the hold
 * was gone; or EINVAL if there can be no such key.
 *
 * ASK: the result is DONE, or ENOTOWNER if the name is not held.
 *
 * DIAGNOSE: the name is the client's prefix. The result is DONE, or ENOTSUP if
 * the backend has no diagnosis. A setting that the user is not allowed to read
 * is a finding and not a failure. The finding HF__PROMISE says in one sentence
 * when a hold ends and what it survives; the core puts it first. The core
 * itself checks that locks can be acquired, and how long that takes.
 *
 * LISTEN: after DONE the backend calls core->changed() for each later change of
 * what INSPECT shows of the name; for a prefix, for each name that comes or
 * goes (or changes its holder, if the server says so). It calls changed() as
 * soon as it knows of the change. If it may have missed changes while it was
 * not connected, it calls changed() once it is connected again. The result is
 * ENOTSUP if the server does not report changes, or not for a prefix.
 *
 * BREAK: ends all holds, or those with the given token and owner (the text that
 * INSPECT shows). A hold ends only if it has that token and owner at that
 * moment. The result is DONE; ENOTOWNER if the name is not held, or the
 * latch is not set; or EBUSY if there are holds, but none with that token and
 * owner: count is then the token of one of them, or 0 if it is not known.
 *
 * LATCH_SET: the result is DONE, or EBUSY if the latch is set already; count is
 * then its count. LATCH_DOWN: counts one down, but not below 0. Both take
 * effect once for each value of `request`, however often they are sent.
 * LATCH_SET, LATCH_DOWN and LATCH_GET set count to the latch's count
 * afterwards; a latch that was never set has 0. If the result is EUNKNOWN and
 * the backend has set `request` to 0, the request may count twice if it is sent
 * again.
 */
struct hf__query {
    struct hf__req req;
    const char *name; /* or the prefix to list; with the client's prefix */
    size_t name_len;
    struct hf__remote *line, *into; /* DOWNGRADE, PUT; req.remote is NULL */
    const char *value;              /* PUT */
    size_t value_len;
    uint64_t token;   /* BREAK; 0: any */
    char owner[64];   /* BREAK; "": any */
    uint64_t count;   /* latch: in of SET, out of all. BREAK: out of EBUSY */
    uint64_t request; /* latch: unique in this client */
    hf_info *info;    /* INSPECT, out: filled by add_party */
    hf_names *names;  /* LIST, out: filled by add_name, in any order */
    hf_diagnosis *diagnosis; /* DIAGNOSE, out: filled by find */
    bool cut;                /* the core's: there was no memory for a finding */
    struct hf__listener *listener; /* LISTEN */
};

#define HF__PROMISE "promise" /* a finding of every diagnosis */
#define HF__HOSTS 16          /* the maximum number of hosts of a client */

/* A parsed URL. Values are decoded and terminated. */
struct hf__url {
    char *scheme, *user, *password, *path; /* "" if absent */
    size_t hosts_len;
    struct hf__host {
        char *name;
        uint16_t port; /* 0: not given */
    } hosts[HF__HOSTS];
    size_t options_len;
    struct hf__option {
        char *key, *value;
    } options[32];
    char *memory; /* the parts above point into it; wiped when freed */
    size_t memory_len;
};

/* What the core has settled before it opens a backend. */
struct hf__config {
    struct hf__url *url;
    const char *password; /* "" if none */
    const char *label;
    uint32_t ttl_ms, connect_timeout_ms, op_timeout_ms;
    uint32_t open_timeout_ms; /* for opened(); at most connect_timeout_ms */
    int *caps;     /* hf_cap bits of this client, indexed by hf_kind; open() may
                      clear some */
    bool listens;  /* the program has on_event */
    bool existing; /* HF_OPEN_EXISTING */
};

/* The addresses of "host:port,host:port": a list for each host, or NULL if it
 * has none. */
struct hf__lookup {
    int code;      /* 0 if at least one host has addresses; EBACKEND, ENOMEM */
    bool may_pass; /* after EBACKEND: a later lookup may succeed */
    char why[160]; /* the error of a host without addresses: "name: Name or
                      service not known" */
    size_t len;
    struct addrinfo *list[HF__HOSTS];
};

#define HF__TAG_WAKE UINT32_MAX /* reserved for the core */

/* The services of the core for a backend. They are passed in as a table, so
 * that a module needs no symbol of the library. */
struct hf__core {
    uint32_t abi;
    hf__time (*now)(void);
    /* Returns 0, or EBACKEND if getrandom(2) failed. */
    int (*random)(void *buf, size_t len);
    void *(*alloc)(hf_client *, size_t); /* zeroed; NULL: out of memory */
    void (*free)(hf_client *, void *);   /* NULL is allowed */
    void (*log)(hf_client *, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
    /* Sets the text of the failure that is about to be returned or reported,
     * with the backend's name in front. Returns the code. */
    int (*why)(hf_client *, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
    /* As why(), for an EBACKEND that does not pass by itself (hf_error.may_pass
     * is 0): a host that does not exist, a server that lacks a feature. */
    int (*lasts)(hf_client *, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

    /* Sets the reason why the server cannot be reached, for the error texts of
     * callers that wait: "host:port: Connection refused". NULL: it can be
     * reached. The client's mutex is held. */
    void (*trouble)(hf_client *, const char *text);

    /* Reports that a pending request has ended; its result is set. The core
     * only takes note, and acts later. */
    void (*done)(hf_client *, struct hf__req *);
    /* Gives back a pending request of which nothing was sent, as LATER does.
     * The request is parked in front of all others, so give back the newest
     * first. Must be called only from ready() and advance(). */
    void (*unsent)(hf_client *, struct hf__req *);
    /* Says that requests can be sent again. The core hands the parked requests
     * over as soon as ready() or advance() has returned, and then calls
     * advance() once more. Must be called only from ready() and advance(). */
    void (*go_on)(hf_client *);
    /* Says that the server can be reached but refuses the client: all parked
     * requests fail with this code and the text of why(), and are marked as
     * untouched. Must be called only from ready() and advance(). */
    void (*refuse)(hf_client *, int code);
    /* Reports that the event that a QUEUED attempt waits for may have happened.
     * The core only takes note, and acts later. Must be called only from
     * ready() and advance(). */
    void (*bell)(hf_client *, struct hf__remote *);
    /* Reports that the hold of that id is gone. session: NULL if the hold was
     * taken away; otherwise why its session has ended ("the server ended
     * session 7"). The core only takes note, and acts later. Must be called
     * only from ready() and advance(). A direct backend may be wrong: the core
     * checks by a renewal, unless the lease is fixed. */
    void (*lost)(hf_client *, struct hf__remote *, uint64_t hold_id,
                 const char *session);
    /* Reports that another client asks for the hold of that token
     * (HF_EVENT_WANTED). The client's mutex is held. */
    void (*wanted)(hf_client *, struct hf__remote *, uint64_t token);
    /* Reports that what the listener listens to may have changed. name: for a
     * prefix, the name that has changed; NULL if it may be any. The core only
     * takes note, and acts later. A superfluous call does no harm. The client's
     * mutex is held. */
    void (*changed)(hf_client *, struct hf__listener *, const char *name,
                    size_t len);
    /* Reports HF_EVENT_DOWN or HF_EVENT_UP, with the client's mutex held; or
     * HF_EVENT_LOST (all holds are lost), from anywhere. why: the reason of
     * LOST, for people. */
    void (*session)(hf_client *, int event, const char *why);

    /* Polls fd for EPOLLIN, EPOLLOUT (level-triggered); events 0 removes it.
     * ready() gets the tag (any but HF__TAG_WAKE) and the events. Returns 0,
     * ENOMEM or EBACKEND. */
    int (*watch)(hf_client *, int fd, uint32_t events, uint32_t tag);
    /* Asks for a call of advance() at that time at the latest. Needed if
     * something has become due earlier than next_timeout() last returned,
     * unless advance() caused that: after advance() the core reads
     * next_timeout() again. */
    void (*due)(hf_client *, hf__time at);

    /* Looks names up. here: true for a lookup on the calling thread, which then
     * blocks (allowed in open() only); false for one on a separate thread.
     * Returns NULL if there is no memory, or no thread could be created. */
    struct hf__lookup *(*lookup)(const char *hosts, bool here);
    /* Returns whether the lookup has ended; it can then be read until
     * lookup_leave(). */
    bool (*lookup_over)(const struct hf__lookup *);
    /* Gives up the lookup, whether it has ended or not. NULL is allowed. */
    void (*lookup_leave)(struct hf__lookup *);

    /* Returns the value of an option of the URL; NULL if it is not given. */
    const char *(*option)(struct hf__url *, const char *key);
    /* Converts "10s", "1500ms", "2m", "1h" or "3" (seconds) to ms. Returns 0 or
     * EINVAL. */
    int (*parse_ms)(const char *text, int64_t *ms);

    /* These two append to the answer of a query. If they return NULL or ENOMEM,
     * there is no memory, and the query must be reported as ENOMEM. A party is
     * zeroed. */
    hf_party *(*add_party)(hf_client *, struct hf__query *, bool holds);
    int (*add_name)(hf_client *, struct hf__query *, const char *, size_t);
    /* Adds a finding to a DIAGNOSE. If there was no memory for one, the core
     * reports ENOMEM. */
    void (*find)(hf_client *, struct hf__query *, enum hf_level,
                 const char *subject, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
};

enum hf__backend_flag {
    HF__DIRECT = 1 << 0,
    HF__ENDLESS = 1 << 1, /* a hold without a fixed lease needs no renewal */
    /* Holds and places in the queue live as long as the client's session, and
     * end only with it. The core enforces a fixed lease: it renews the hold
     * like any other, and releases it when the lease ends. When a session ends,
     * the backend reports the holds as lost, pending releases and abandons as
     * DONE (a release that was never sent as ENOTOWNER), and pending attempts
     * as EUNKNOWN. For attempts that are QUEUED it calls bell(). */
    HF__SESSION = 1 << 2,
};

/* A backend. A slot may be NULL if its comment says so, or if it is for
 * backends of the other nature: ready, opened and next_timeout of a direct
 * backend, park of a networked one. */
struct hf__backend {
    uint32_t abi;     /* HF__ABI */
    const char *name; /* "redis"; precedes every error text */
    unsigned flags;
    int caps[5]; /* hf_cap bits, indexed by hf_kind */
    bool fair_by_default;
    const char *options; /* URL options of the backend: "dialect, db" */
    /* How a hold can be gone before its deadline: a sentence about the lock,
     * "it is no longer ...", for the text of a loss. NULL: a general text. */
    const char *taken;

    /*
     * Connects, or starts to. May block for as long as a name lookup. Called on
     * the helper thread, with no lock held. Sets *self, the backend's state.
     * After that the core drives until opened() returns DONE or a code, or
     * open_timeout has passed. If open returns a code, it has freed everything,
     * and close() is not called.
     */
    int (*open)(hf_client *, const struct hf__core *, const struct hf__config *,
                void **self);
    /* Returns PENDING until the backend is connected, then DONE; or an error
     * code. The slot is NULL if open() leaves nothing to wait for. */
    int (*opened)(void *self);
    /* Frees everything. Called on the helper thread when nothing is pending, or
     * when the core gives up what is pending. */
    void (*close)(void *self);

    /* Networked only. Handles the events (EPOLLIN, EPOLLOUT, EPOLLERR,
     * EPOLLHUP) of the descriptor that is watched under this tag. The events
     * may be outdated, because the descriptor may have been closed since then,
     * or read by another thread. So a backend gives each descriptor a tag of
     * its own, ignores unknown tags, and expects EAGAIN. Never blocks. */
    void (*ready)(void *self, uint32_t tag, uint32_t events, hf__time now);
    /* Does what is due. Called after ready() has got everything that had
     * arrived before `now` (on up to 63 descriptors), so that a server that has
     * not answered by then is late. Never blocks. For a direct backend only the
     * helper thread calls it. */
    void (*advance)(void *self, hf__time now);
    /* Networked only. Returns when advance() has something to do next, or
     * HF__NEVER. */
    hf__time (*next_timeout)(void *self);

    /* Direct only. Sleeps until *word != expect (a private futex), the remote's
     * bell rings, the holder that the remote waits for dies, or the time is
     * `until`. May return early. remote == NULL: the helper thread sleeps, and
     * advance() follows. */
    void (*park)(void *self, struct hf__remote *remote, uint32_t *word,
                 uint32_t expect, hf__time until);

    /* Begins to use a line. Returns 0; EINVAL if the backend reserves the name;
     * EMISMATCH if the backend finds at once that the name is in use otherwise;
     * or, from a direct backend, LATER if it could not attach now, and has set
     * the text: the core then lets other threads use the client, and tries
     * again until op_timeout. */
    int (*attach)(void *self, struct hf__remote *);
    void (*detach)(void *self, struct hf__remote *);

    /* Requests the lock. A QUEUED request is attempted again with the same hold
     * id until it is granted or abandoned. If the server has already granted
     * the lock for this hold id, the attempt renews the lease. */
    int (*attempt)(void *self, struct hf__req *);
    /* Ends a hold (op RELEASE). The result is DONE, or ENOTOWNER if the server
     * no longer had the hold. Must be sent after all earlier requests of this
     * remote. */
    int (*release)(void *self, struct hf__req *);
    /* Gives up an attempt (op ABANDON). remote->attempt may still be pending;
     * if it has the same hold id, it must not be reported from then on. */
    int (*abandon)(void *self, struct hf__req *);
    /* Renews a batch of holds. NULL: renewals fail with ENOTSUP, and a hold
     * lasts as long as its first lease. */
    int (*renew)(void *self, struct hf__batch *);
    /* Sends a query. NULL: queries fail with ENOTSUP, and the backend has no
     * capability that needs one. */
    int (*query)(void *self, struct hf__query *);
    /* Ends what LISTEN began; also called after a LISTEN that failed or never
     * reached the backend. NULL: LISTEN fails with ENOTSUP, and is not sent. */
    void (*unlisten)(void *self, struct hf__listener *);
};

/* A module exports this function. It returns the backend for URLs of that
 * scheme, or NULL if the module has another ABI. If the module is linked into
 * the library, the function has another name. */
#define HF__MODULE_SYMBOL "hf_module"
typedef const struct hf__backend *hf__module_fn(uint32_t abi,
                                                const char *scheme);
#ifdef hf_module
hf__module_fn hf_module;
#else
__attribute__((visibility("default"))) hf__module_fn hf_module;
#endif

#endif
