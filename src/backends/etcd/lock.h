/*
 * The lock's state machine: what an attempt, a release or an abandon sends,
 * step by step. The core calls the slots, answer.c reports how a request of the
 * lock has ended, and session.c reports what happens to the connection and the
 * lease. entry_request.h sends the requests.
 */
#ifndef HF_ETCD_LOCK_H
#define HF_ETCD_LOCK_H

#include "backends/backend.h"

struct etcd;
struct et_ahead;
struct et_lock;

/* ---- slots of the backend ------------------------------------------------ */

int hf__et_attach(void *, struct hf__remote *);
void hf__et_detach(void *, struct hf__remote *);
int hf__et_attempt(void *, struct hf__req *);
int hf__et_release(void *, struct hf__req *);
int hf__et_abandon(void *, struct hf__req *);

/* ---- a request of the lock has ended ------------------------------------- */

/* A step of the attempt has ended: with a code, or with 0 if the next step can
 * be taken. */
void hf__et_stepped(struct et_lock *, int code);
void hf__et_queue_read(struct et_lock *, const struct et_ahead *, int64_t view);
void hf__et_mark_read(struct et_lock *, const struct et_ahead *,
                      bool is_blocked, int64_t view);
/* The create revision of the latch, or 0 if it is not set. */
void hf__et_counted(struct et_lock *, int64_t round, int64_t view);
void hf__et_dropped(struct et_lock *, int code, bool was_there);
/* The server has seen nothing of the request: gives it back to the core. */
void hf__et_unsent(struct et_lock *);
/* The holder begins to write something (put.c), and has finished. A release
 * waits for that. */
void hf__et_writes(struct et_lock *);
void hf__et_has_written(struct et_lock *);

/* ---- for all locks of the client ----------------------------------------- */

/* A keep-alive was confirmed: grants what waited for it. Returns false if some
 * locks wait for a later one. */
bool hf__et_locks_proved(struct etcd *);
/* The connection has ended. Requests that were not under way end as EUNKNOWN,
 * too. */
void hf__et_locks_down(struct etcd *);

#endif
