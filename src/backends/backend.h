/*
 * The narrow waist: what a backend offers the core, and what it may ask of it.
 *
 * A backend never blocks and has no thread. It starts requests, moves them on
 * when the core says that something can be read or written (ready) or has timed
 * out (advance), and reports each exactly once. It has no policy: the
 * core (local_queue.c, lease.c) decides how long a request waits, when to look
 * again and when a hold is lost.
 *
 * Two natures:
 * - A *networked* backend is called with the client's mutex held, always, so
 *   it needs no lock of its own. Threads wait by driving it (driver.c).
 * - A *direct* one (HF__DIRECT; shared memory) answers attempt, abandon and
 *   release at once, may be called for these on many threads at a time (for one
 *   remote under that name's mutex), and never asks for client->mu. Threads
 *   wait in park. Its other slots are called with the client's mutex held.
 *
 * Every request is idempotent by its hold id: attempt, release, abandon and
 * renew may be sent again when an answer was lost, and then say the same.
 *
 * A networked backend that cannot send now (it is not connected, or has enough
 * to write) keeps no queue: its slot answers LATER, and the core parks the
 * request. When the backend says go_on(), the core calls the same slots again,
 * for all that is parked, in the order in which it was asked. What gives up
 * before that is taken out (an attempt is abandoned as well: DONE, if nothing
 * was ever sent for its hold id); a request whose time is over (meant_until) is
 * refused by the core, EUNKNOWN. So a request is either with the backend
 * (PENDING) or parked.
 */
#ifndef HF_BACKEND_H
#define HF_BACKEND_H

#include "base/time.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stdint.h>

#define HF__ABI 11

/* What a request came to, beside the negative codes of holdfast.h. Of those a
 * backend uses EUNKNOWN (sent, answer lost), EBACKEND, EAUTH, EPROTO,
 * EMISMATCH, ENOTOWNER (release, renew: not ours), ENOMEM, ENOTSUP. */
enum hf__outcome {
    HF__DONE = 0,
    HF__PENDING = 1, /* core->done() will be called for it */
    HF__GRANTED = 2, /* attempt: ours, token and sent_at are set */
    HF__QUEUED = 3,  /* attempt: not yet; core->bell() tells when to ask again,
                        and poll_at when at the latest */
    HF__BUSY = 4,    /* attempt with may_queue == false: not now */
    HF__LATER = 5,   /* attach of a direct backend: see there.
                        Any slot of a networked one: nothing was sent. The
                        backend does not refer to the request any more, answers
                        LATER from now on, so that nothing is overtaken, and
                        says go_on() when it can send */
};

enum hf__op {
    HF__ATTEMPT = 1,
    HF__RELEASE, /* of a hold */
    HF__ABANDON, /* of an attempt, whatever became of it: leave the queue, and
                    release if it was granted after all */
    HF__RENEW,
    HF__INSPECT,
    HF__LIST,
    HF__BREAK,
    HF__DOWNGRADE, /* a write hold becomes a read hold */
    HF__LATCH_SET,
    HF__LATCH_DOWN,
    HF__LATCH_GET,
    HF__ASK, /* the holders of a name are told that it is wanted */
    HF__PUT, /* a value is written, if the hold is still there */
    HF__DIAGNOSE,
    HF__LISTEN, /* changes of a name, or of those with a prefix, are told */
};

struct hf__remote;

/* A request. Owned by the core. */
struct hf__req {
    struct hf__req *next, *prev; /* of those that are parked */
    struct hf__remote *remote;   /* NULL: a hf__query or hf__batch */
    hf__time meant_until; /* then its caller leaves: nothing is sent for it
                             later, and a server that has a clock refuses it
                             from then on. HF__NEVER: it is always meant, or
                             (attempt) until it is abandoned */
    uint64_t hold_id;     /* unique in this client, never reused */
    hf__time sent_at;     /* out: just before the bytes were written */
    union {
        uint64_t token;   /* out, of GRANTED */
        hf__time poll_at; /* out, of QUEUED: HF__NEVER if the bell is sure */
    };
    int16_t result; /* out: outcome or code */
    uint8_t op;
    bool may_queue : 1; /* attempt: stay in the queue if it is not free */
    bool fixed : 1;     /* attempt: lease_ms is a fixed lease, for the server to
                           end even if we live */
    bool is_async : 1;  /* direct, attempt: no thread will park for it; ring
                           through the helper thread */
    bool flying : 1;    /* the core's: submitted, not yet processed */
    bool parked : 1;    /* the core's. In a slot: it was, more may follow, and
                           advance() does, so that they can be written
                           together */
    bool is_zero : 1;   /* latch, out, of GRANTED: it was 0 when it was asked;
                           else those who waited when it was last QUEUED may
                           go, and nobody else */
    bool untouched : 1; /* attempt, out, of a code: the server refused it before
                           it did anything, so this request has left nothing
                           there */
    uint32_t lease_ms;  /* attempt, renew: lease to ask for, never 0;
                           diagnose: the client's ttl */
    uint32_t session_ms; /* HF__SESSION, out, of GRANTED: from sent_at on the
                           server keeps the session for that long */
    uint32_t permits;    /* attempt: of a semaphore, how many; else 1 */
};

/*
 * A line to one name: at most one question or hold at a time. Owned by the
 * core, alive from attach to detach. A mutex has one in each client, a
 * read-write lock one for writing and some for reading, a semaphore one for
 * each hold; they are independent of each other, with hold ids of their own.
 * A line to a latch asks whether its count is 0: GRANTED says that it is, or
 * has been since it was QUEUED (is_zero), and leaves nothing to be held or
 * released.
 */
struct hf__remote {
    const char *name; /* terminated too; with the client's prefix in front */
    uint16_t name_len;
    uint8_t kind;     /* enum hf_kind */
    uint8_t mode : 1; /* enum hf_mode; HF_WRITE but for the lines for reading */
    bool fair : 1;
    uint32_t permits;  /* size of a semaphore */
    const char *label; /* of the present or next holder; "" if none */
    void *impl;        /* the backend's, set by attach, released by detach */
    struct hf__req *attempt; /* the attempt, pending or answered; NULL where
                            nothing is asked or held */
};

/* Renewal of many holds in one go: req.op == HF__RENEW, req.remote == NULL.
 * The backend sets each result (DONE, ENOTOWNER, EUNKNOWN ...) and
 * req.sent_at, then reports the whole. A hold of a line for reading that the
 * server knows as a write hold (the downgrade did not reach it) becomes a read
 * hold. */
struct hf__batch {
    struct hf__req req;
    size_t len;
    struct hf__renewal {
        struct hf__remote *remote;
        uint64_t hold_id;
        uint32_t lease_ms;   /* HF__SESSION, 0: a fixed one stays as it is */
        uint32_t session_ms; /* HF__SESSION, out, of DONE */
        int16_t result;
        bool no_longer;   /* the core's: the lease ends when it would have */
        uint32_t permits; /* of a semaphore, how many it has; else 1 */
    } * item;
    size_t chunks; /* the backend's: parts that are under way */
};

/* Who wants to hear of changes. Owned by the core, alive from LISTEN, if that
 * is DONE, to unlisten. */
struct hf__listener {
    const char *name; /* terminated too; with the client's prefix in front */
    size_t name_len;
    bool is_prefix; /* all names that begin so; name_len may be 0 */
    void *impl;     /* the backend's */
};

/*
 * Everything else. All but DOWNGRADE and PUT are about a name and not about a
 * hold. name and value live as long as the query.
 *
 * DOWNGRADE: `line` has the write hold req.hold_id; from this call on it is
 * the read hold of that id of `into`, and `line` is free for the next
 * question, whatever the answer will be. Both are looked at during this call
 * alone: they are NULL if it was parked. DONE; ENOTOWNER: it was gone.
 *
 * PUT: `line` has the hold req.hold_id; it is looked at during this call
 * alone. The value of the key `name` (without the client's prefix) becomes
 * `value`, in one step with the look at the hold. DONE; ENOTOWNER: it was gone;
 * EINVAL: no such key can be.
 *
 * ASK: DONE; ENOTOWNER: nobody holds it.
 *
 * DIAGNOSE: the name is the client's prefix. DONE; ENOTSUP: it cannot tell. A
 * setting that may not be read is a finding and not a failure. HF__PROMISE says
 * in one sentence when a hold ends and what it survives; the core puts it
 * first. That locks can be taken, and how long that takes, is found by the
 * core.
 *
 * LISTEN: DONE says that each later change of what INSPECT shows of the name,
 * or of which names there are with the prefix (and who holds them, if the
 * server tells), makes the backend call core->changed(): at once, or after it
 * has been connected again. ENOTSUP: the server does not tell, or not of a
 * prefix.
 *
 * BREAK: of all holds, or of those with that token and that owner (its text as
 * INSPECT shows it). Which they are is looked at in the step that ends them.
 * DONE; ENOTOWNER: nobody holds it, or the latch is not set; EBUSY: there are
 * holds, but none of these. Then count is the token of one, 0 if not known.
 *
 * LATCH_SET: DONE; EBUSY: it is set already (count: what is left). LATCH_DOWN:
 * one less, at 0 it stays. Both count once for one `request`, however often
 * they are sent. All three set count to what is left; one that was never set
 * has 0. EUNKNOWN with `request` set to 0: sent again, it might count twice.
 */
struct hf__query {
    struct hf__req req;
    const char *name; /* or the prefix to list; with the client's prefix */
    size_t name_len;
    struct hf__remote *line, *into; /* DOWNGRADE, PUT; req.remote is NULL */
    const char *value;              /* PUT */
    size_t value_len;
    uint64_t token;          /* BREAK; 0: any */
    char owner[64];          /* BREAK; "": any */
    uint64_t count;          /* latch: SET in, all out. BREAK, of EBUSY: out */
    uint64_t request;        /* latch: unique in this client */
    hf_info *info;           /* INSPECT, out: filled by add_party */
    hf_names *names;         /* LIST, out: by add_name, in any order */
    hf_diagnosis *diagnosis; /* DIAGNOSE, out: by find */
    bool cut;                /* the core's: there was no memory for a finding */
    struct hf__listener *listener; /* LISTEN */
};

#define HF__PROMISE "promise" /* a finding of every diagnosis */
#define HF__HOSTS 16          /* of one client */

/* A URL, taken apart. Values are decoded and terminated. */
struct hf__url {
    char *scheme, *user, *password, *path; /* "" where there is none */
    size_t hosts_len;
    struct hf__host {
        char *name;
        uint16_t port; /* 0: not given */
    } hosts[HF__HOSTS];
    size_t options_len;
    struct hf__option {
        char *key, *value;
    } options[32];
    char *memory; /* what all of the above points into; wiped when freed */
    size_t memory_len;
};

/* What the core has settled before it opens a backend. */
struct hf__config {
    struct hf__url *url;
    const char *password; /* "" if none */
    const char *label;
    uint32_t ttl_ms, connect_timeout_ms, op_timeout_ms;
    uint32_t open_timeout_ms; /* connect_timeout_ms or less: to be ready */
    int *caps; /* of this client, indexed by hf_kind: open may take some away */
    bool listens;  /* the program wants to hear of events */
    bool existing; /* HF_OPEN_EXISTING */
};

/* The addresses of "host:port,host:port", one list for each host, NULL where
 * none were found. */
struct hf__lookup {
    int code;      /* 0: of any host; EBACKEND, ENOMEM */
    bool may_pass; /* of EBACKEND: a lookup may succeed later */
    char why[160]; /* of a host without: "name: Name or service not known" */
    size_t len;
    struct addrinfo *list[HF__HOSTS];
};

#define HF__TAG_WAKE UINT32_MAX /* the core's own */

/* What the core does for a backend. Passed in, so that a module needs no
 * symbol of the library. */
struct hf__core {
    uint32_t abi;
    hf__time (*now)(void);
    /* 0, or EBACKEND: getrandom(2) failed. */
    int (*random)(void *buf, size_t len);
    void *(*alloc)(hf_client *, size_t); /* zeroed; NULL: out of memory */
    void (*free)(hf_client *, void *);   /* NULL is fine */
    void (*log)(hf_client *, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
    /* The text for the failure that is about to be returned or reported. Puts
     * the backend's name in front. Returns code. */
    int (*why)(hf_client *, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
    /* The same for an EBACKEND that does not pass by itself (hf_error.may_pass
     * is 0): a host that does not exist, a server that cannot do it. */
    int (*lasts)(hf_client *, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

    /* Why the server cannot be reached, for the texts of those who wait in
     * vain: "host:port: Connection refused". NULL: it can. With the client's
     * mutex held. */
    void (*trouble)(hf_client *, const char *text);

    /* A pending request is finished: its result is set. Only marks it. */
    void (*done)(hf_client *, struct hf__req *);
    /* A pending request of which nothing was sent, as LATER: it is parked, in
     * front of all others. Of several the newest is to be given back first.
     * From ready() and advance() only. */
    void (*unsent)(hf_client *, struct hf__req *);
    /* Requests can be sent: what is parked is handed over as soon as ready() or
     * advance() has returned, and then advance() is called once more. From
     * these two only. */
    void (*go_on)(hf_client *);
    /* The server can be reached and refuses us: everything that is parked comes
     * to this code, untouched, with the text of why(). From ready() and
     * advance() only. */
    void (*refuse)(hf_client *, int code);
    /* What a QUEUED attempt waits for may have happened. Only marks. From
     * ready() and advance() only. */
    void (*bell)(hf_client *, struct hf__remote *);
    /* The hold of that id is gone: taken away (session is NULL), or its session
     * is over: "the server ended session 7". Only marks. From ready() and
     * advance() only. Of a direct backend it may be wrong: the core looks, by a
     * renewal, unless the lease is a fixed one. */
    void (*lost)(hf_client *, struct hf__remote *, uint64_t hold_id,
                 const char *session);
    /* Somebody asks for the hold of that token: HF_EVENT_WANTED. With the
     * client's mutex held. */
    void (*wanted)(hf_client *, struct hf__remote *, uint64_t token);
    /* What is listened to may have changed; of a prefix: that name, or NULL for
     * any. Only marks. One call too many does no harm. With the client's mutex
     * held. */
    void (*changed)(hf_client *, struct hf__listener *, const char *name,
                    size_t len);
    /* HF_EVENT_DOWN, HF_EVENT_UP; HF_EVENT_LOST: every hold is lost (this one
     * from anywhere, the others with the client's mutex held). why: of LOST,
     * for people. */
    void (*session)(hf_client *, int event, const char *why);

    /* Poll fd for EPOLLIN, EPOLLOUT (level-triggered); 0 for events removes
     * it. ready() is called with the tag (any but HF__TAG_WAKE) and what has
     * come. ENOMEM, EBACKEND. */
    int (*watch)(hf_client *, int fd, uint32_t events, uint32_t tag);
    /* advance() is to be called then at the latest: for what is due sooner, by
     * something else than advance(), than next_timeout() has said. */
    void (*due)(hf_client *, hf__time at);

    /* Looks names up: here (in open() only, because it blocks), or else on a
     * thread for which nobody waits. NULL: no memory, or no thread. */
    struct hf__lookup *(*lookup)(const char *hosts, bool here);
    /* Then, and until it is left, it can be read. */
    bool (*lookup_over)(const struct hf__lookup *);
    /* Over or not, nobody wants it any more; NULL is fine. */
    void (*lookup_leave)(struct hf__lookup *);

    /* Options of the URL: NULL if not given. Marks it as known. */
    const char *(*option)(struct hf__url *, const char *key);
    /* "10s", "1500ms", "2m", "1h", "3" (seconds) -> ms; EINVAL. */
    int (*parse_ms)(const char *text, int64_t *ms);

    /* Appends to the answer of a query; NULL: out of memory, the query is then
     * to be reported as ENOMEM. The memory is zeroed. */
    hf_party *(*add_party)(hf_client *, struct hf__query *, bool holds);
    int (*add_name)(hf_client *, struct hf__query *, const char *, size_t);
    /* One finding of a DIAGNOSE. The core reports ENOMEM if there was no room
     * for one. */
    void (*find)(hf_client *, struct hf__query *, enum hf_level,
                 const char *subject, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
};

enum hf__backend_flag {
    HF__DIRECT = 1 << 0,
    HF__ENDLESS = 1 << 1, /* a hold without a fixed lease needs no renewal */
    /* Holds and places live as long as a session that all of a client share:
     * nothing ends by itself before it. A fixed lease is kept by the core,
     * which renews it like any other and lets go at its end. When a session is
     * over the backend reports its holds as lost, what was to be let go as
     * DONE (a release that was never sent: ENOTOWNER), pending attempts as
     * EUNKNOWN, and rings for those who queue. */
    HF__SESSION = 1 << 2,
};

/* A slot may be NULL where it says so, or if it is for the other nature: ready,
 * opened and next_timeout of a direct backend, park of a networked one. */
struct hf__backend {
    uint32_t abi;     /* HF__ABI */
    const char *name; /* "redis": in front of every error text */
    unsigned flags;
    int caps[5]; /* hf_cap bits, indexed by hf_kind */
    bool fair_by_default;
    const char *options; /* those it knows, for the error text: "dialect" */
    /* How a hold can be gone before its deadline, for the text of a loss: "it
     * was taken away: ..."; NULL: in general words. */
    const char *taken;

    /*
     * Connects, or starts to, without blocking for longer than a name lookup
     * would: called on the helper thread, with no lock held. *self is
     * the backend's state. Afterwards the core drives until opened() says DONE
     * or a code, or open_timeout is over. If open returns a code (any of them),
     * it has freed what it had made: close() is not called.
     */
    int (*open)(hf_client *, const struct hf__core *, const struct hf__config *,
                void **self);
    /* PENDING, DONE, or why not. NULL: it is open at once. */
    int (*opened)(void *self);
    /* Nothing is pending any more, or nobody cares. On the helper
     * thread. */
    void (*close)(void *self);

    /* Networked only. What is watched under this tag can be read or written:
     * EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP. The event may be old: the
     * descriptor may have been closed, or read by another thread, since then.
     * So a backend gives each descriptor a tag of its own, ignores those that
     * it does not know any more, and expects EAGAIN. Never blocks. */
    void (*ready)(void *self, uint32_t tag, uint32_t events, hf__time now);
    /* Does what is due. Called after ready() was told of everything that had
     * come before `now` (of at most 63 descriptors), so that a server that has
     * not answered by then is late. Never blocks. Of a direct backend it is
     * called by the helper thread alone. */
    void (*advance)(void *self, hf__time now);
    /* Networked only. HF__NEVER: nothing will be due. */
    hf__time (*next_timeout)(void *self);

    /* Direct only. Sleeps until *word != expect (a private futex), remote's
     * bell rings or the one it waits for dies, or the time is over; may return
     * early. remote == NULL: the helper thread sleeps; advance() follows. */
    void (*park)(void *self, struct hf__remote *remote, uint32_t *word,
                 uint32_t expect, hf__time until);

    /* EINVAL: the name is one of the backend's own. EMISMATCH if it can tell
     * at once. LATER, of a direct one: it could not now, and has said why. The
     * core lets others use the client, and asks again until op_timeout. */
    int (*attach)(void *self, struct hf__remote *);
    void (*detach)(void *self, struct hf__remote *);

    /* QUEUED requests are attempted again with the same hold id until granted
     * or abandoned. One that finds itself granted already renews the lease. */
    int (*attempt)(void *self, struct hf__req *);
    /* op RELEASE. DONE; ENOTOWNER: was not held. Sent after whatever of
     * this remote was sent before. */
    int (*release)(void *self, struct hf__req *);
    /* op ABANDON. remote->attempt may be pending still: if it is of the same
     * hold id, it is never reported then. */
    int (*abandon)(void *self, struct hf__req *);
    /* NULL: ENOTSUP, and a hold lasts as long as its first lease. */
    int (*renew)(void *self, struct hf__batch *);
    /* NULL: ENOTSUP. No capability then that needs one. */
    int (*query)(void *self, struct hf__query *);
    /* What LISTEN began is over, or a LISTEN that has failed; it may never have
     * reached the backend. NULL: LISTEN is ENOTSUP, and is not asked for. */
    void (*unlisten)(void *self, struct hf__listener *);
};

/* A module exports this: what serves URLs of that scheme, or NULL if it is of
 * another ABI. Linked into the library it has another name. */
#define HF__MODULE_SYMBOL "hf_module"
typedef const struct hf__backend *hf__module_fn(uint32_t abi,
                                                const char *scheme);
#ifdef hf_module
hf__module_fn hf_module;
#else
__attribute__((visibility("default"))) hf__module_fn hf_module;
#endif

#endif
