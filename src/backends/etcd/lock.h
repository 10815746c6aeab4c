/*
 * The lock's state machine: what an attempt, a release or an abandon sends,
 * step by step. The core calls the slots, answer.c reports how a request of the
 * lock has ended, and session.c reports the end of the connection and confirmed
 * keep-alives. entry_request.c sends the requests.
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

/* Handles the end of a step of the attempt. `code` is the result of the
 * attempt, or 0 if the next step can be taken. */
void hf__et_stepped(struct et_lock *, int code);
void hf__et_queue_read(struct et_lock *, const struct et_ahead *, int64_t view);
void hf__et_mark_read(struct et_lock *, const struct et_ahead *,
                      bool is_blocked, int64_t view);
/* Handles the answer to a COUNT. `round` is the create revision of the latch,
 * or of the one key of an unfair mutex, or 0 if the key does not exist. */
void hf__et_counted(struct et_lock *, int64_t round, int64_t view);
void hf__et_dropped(struct et_lock *, int code, bool was_there);
/* Gives the lock's release, abandon or attempt back to the core, because the
 * message that was sent for it never reached the server. */
void hf__et_unsent(struct et_lock *);
/* Notes that a write of the holder (put.c) begins. A release waits until all
 * writes have ended. */
void hf__et_writes(struct et_lock *);
/* Notes that a write of the holder has ended. */
void hf__et_has_written(struct et_lock *);

/* ---- for all locks of the client ----------------------------------------- */

/* Grants the locks that wait for a keep-alive, if that keep-alive is confirmed
 * now. Returns false if some locks wait for a later keep-alive. */
bool hf__et_locks_proved(struct etcd *);
/* Handles the end of the connection. The core's attempts, releases and abandons
 * for which no request is under way end as EUNKNOWN. The bells of queued locks
 * ring. */
void hf__et_locks_down(struct etcd *);

#endif
