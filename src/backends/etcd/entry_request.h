/*
 * The requests about entries: one gRPC call each, most of them a transaction. A
 * request of an attempt or a release belongs to a lock, which has at most one
 * of them under way; one of a renewal belongs to some items of a batch; the
 * rest belongs to nobody. This unit packs and sends them and owns their memory.
 * What an answer means is not decided here: it goes to etcd.answered, which
 * frees the request afterwards.
 */
#ifndef HF_ETCD_ENTRY_REQUEST_H
#define HF_ETCD_ENTRY_REQUEST_H

#include "entry.h"
#include "net/grpc/grpc.h"

struct etcd;
struct et_lock;

#define ET_VIEW_MAX 1024 /* entries that are read in one go */

/* What was read before our entry. */
struct et_ahead {
    uint8_t other;    /* enum et_form: one of another kind; or PERMIT, */
    uint32_t size;    /* of a semaphore of that size */
    uint64_t permits; /* of all of them */
    size_t len;       /* of the youngest that we have to wait for; 0: none */
    char before[ET_KEY_MAX];
};

enum et_op {
    ET_ENTER,
    ET_READ_QUEUE,
    ET_READ_MARK,
    ET_COUNT,
    ET_CONFIRM,
    ET_DROP,
    ET_RENEW,
    ET_TOUCH,
    ET_WRITE_MARK,
};

/* A request about entries. */
struct et_request {
    struct grpc_call call; /* first: callbacks cast it back */
    struct et_request *next, *prev;
    enum et_op op;
    struct et_lock *lock;    /* NULL: nobody wants to hear of it any more */
    int64_t below, limit;    /* of a view */
    struct et_ahead ahead;   /* what was seen so far, */
    int64_t view;            /* at this revision; 0: at that of the answer */
    struct hf__batch *batch; /* RENEW, WRITE_MARK: */
    size_t from, len;        /* these of its items */
    int64_t rev;             /* WRITE_MARK: of this entry */
};

/* ---- requests of a lock ------------------------------------------------- */

/* These return 0: it is under way; HF__LATER, HF_ENOMEM. */
int hf__et_enter(struct et_lock *);
/* Reads the entries before ours; from where that answer ended, if one is given.
 */
int hf__et_read_queue(struct et_lock *, const struct et_request *before);
/* READ: is the writer that was found marked? */
int hf__et_read_mark(struct et_lock *, const struct et_ahead *);
/* LATCH: is it set? */
int hf__et_count(struct et_lock *);
/* Deletes the entry, also one that may yet be made: then a CONFIRM comes
 * first. */
int hf__et_drop(struct et_lock *);
bool hf__et_is_dropped(const struct et_lock *);
/* Where a lock that has the whole queue behind it may still be granted
 * (readers, permits), all entries before ours matter; else only the youngest.
 */
bool hf__et_needs_all(const struct et_lock *);

/* ---- requests of a renewal; as those above ------------------------------- */

/* Are the entries of these items still there? */
int hf__et_check(struct etcd *, struct hf__batch *, size_t from, size_t len);
/* WRITE: writes the mark, which says that the writer reads now. */
int hf__et_write_mark(struct etcd *, struct hf__batch *, size_t item);

/* ---- requests whose answers nobody waits for ---------------------------- */

/* Writes what the entry says: from now on it has that fixed lease, or 0. The
 * next waiter for permits watches the entry, and hears that it is first now.
 * Does nothing if the entry is of a read-write lock. */
void hf__et_touch(const struct et_lock *, uint32_t lease_ms);
void hf__et_wipe(struct etcd *, const char *key, size_t len);
/* Deletes the entry as hf__et_drop() does; the lock forgets it at once. */
void hf__et_leave(struct et_lock *);

/* ---- a request from its beginning to its end ---------------------------- */

/* It is not under way for its lock any more. */
void hf__et_request_over(struct et_request *);
void hf__et_request_free(struct etcd *, struct et_request *);
/* It ends without an answer: an ENTER may have been done, or be done yet. */
void hf__et_request_lost(const struct et_request *);
/* Whatever is under way for the lock is cancelled, as if it was lost. */
void hf__et_request_forget(struct et_lock *);
void hf__et_requests_fini(struct etcd *);

#endif
