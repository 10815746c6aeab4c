/*
 * Requests about entries: each is one gRPC call, with one transaction. A
 * request of an attempt or a release belongs to a lock, which has at most one
 * of them under way. A request of a renewal belongs to some items of a batch.
 * For other requests no caller waits. This unit packs and sends requests and
 * owns their memory. Answers go to etcd.answered, which frees the request.
 */
#ifndef HF_ETCD_ENTRY_REQUEST_H
#define HF_ETCD_ENTRY_REQUEST_H

#include "entry.h"
#include "net/grpc/grpc.h"

struct etcd;
struct et_lock;

#define ET_VIEW_MAX 1024 /* the largest page has this many entries */

/* What was read so far about the entries that are older than ours. */
struct et_ahead {
    uint8_t other;    /* enum et_form of an entry that does not match; or 0 */
    uint32_t size;    /* if `other` is a PERMIT: size of that semaphore */
    uint64_t permits; /* sum over all entries read */
    size_t len;       /* length of `before`; 0 if no entry that blocks ours was
                         read */
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

struct et_request {
    struct grpc_call call; /* first: callbacks cast it to et_request */
    struct et_request *next, *prev;
    enum et_op op;
    struct et_lock *lock;    /* NULL if no lock waits for the answer */
    int64_t below, limit;    /* READ_QUEUE: reads entries older than `below`,
                                `limit` at most */
    struct et_ahead ahead;   /* what the earlier pages contained */
    int64_t view;            /* revision of the first page; 0 if not read yet */
    struct hf__batch *batch; /* RENEW, WRITE_MARK: sent for `len` of its items,
                                starting at `from` */
    size_t from, len;
    int64_t rev; /* WRITE_MARK: create revision of the entry */
};

/* ---- requests of a lock -------------------------------------------------- */

/* Each function of this section that returns an int sends a request, and
 * returns 0, HF__LATER if there is no usable connection, or HF_ENOMEM. */
int hf__et_enter(struct et_lock *);
/* Reads a page of the entries before ours. This is the page after the one that
 * the request `before` has read, or the page of the youngest entries if
 * `before` is NULL. */
int hf__et_read_queue(struct et_lock *, const struct et_request *before);
/* Asks, for a READ lock, whether the writer that blocks it has a mark. */
int hf__et_read_mark(struct et_lock *, const struct et_ahead *);
/* Asks whether a latch is set, or an unfair mutex is taken. */
int hf__et_count(struct et_lock *);
/* Deletes the entry. If it is unknown whether the entry exists, or if an ENTER
 * may still create it, sends a CONFIRM first. */
int hf__et_drop(struct et_lock *);
bool hf__et_is_dropped(const struct et_lock *);
/* Returns true if all older entries matter, because readers and users of
 * permits may be granted while older holders exist. For other locks only the
 * youngest older entry matters. */
bool hf__et_needs_all(const struct et_lock *);

/* ---- requests of a renewal, with the same results ------------------------ */

/* Checks whether the entries of these items still exist. */
int hf__et_check(struct etcd *, struct hf__batch *, size_t from, size_t len);
/* Writes the mark of a downgraded writer. */
int hf__et_write_mark(struct etcd *, struct hf__batch *, size_t item);

/* ---- requests for which no caller waits ---------------------------------- */

/* Writes the entry's value again, with a fixed lease of lease_ms, or without a
 * fixed lease if lease_ms is 0. After a grant of permits the write also
 * notifies the next waiter, which watches this entry, that no waiter is before
 * it now. Does nothing for read-write locks. */
void hf__et_touch(const struct et_lock *, uint32_t lease_ms);
void hf__et_wipe(struct etcd *, const char *key, size_t len);
/* Deletes the entry by a request that does not belong to the lock. The answer
 * is ignored. When the function returns, the lock refers to no entry, unless
 * memory was short. */
void hf__et_leave(struct et_lock *);

/* ---- a request from its beginning to its end ----------------------------- */

/* Detaches the request from its lock. */
void hf__et_request_over(struct et_request *);
void hf__et_request_free(struct etcd *, struct et_request *);
/* Notes in the lock that its request gets no answer: an ENTER may have been
 * carried out, or may still be carried out later. */
void hf__et_request_lost(const struct et_request *);
/* Cancels the lock's request, if there is one, as if its answer had been
 * lost. */
void hf__et_request_forget(struct et_lock *);
void hf__et_requests_fini(struct etcd *);

#endif
