/*
 * The lock's state machine: what an attempt, a release or an abandon does next,
 * step by step, as the answers come. The core calls the slots; answer.c says
 * how a request has ended; session.c says how the connection and the lease
 * fare. Nothing here sends bytes by itself: it calls entry_request.h.
 */
#ifndef HF_ETCD_LOCK_H
#define HF_ETCD_LOCK_H

#include "backends/backend.h"

struct etcd;
struct et_ahead;
struct et_lock;

/* ---- slots of the backend ----------------------------------------------- */

int hf__et_attach(void *, struct hf__remote *);
void hf__et_detach(void *, struct hf__remote *);
int hf__et_attempt(void *, struct hf__req *);
int hf__et_release(void *, struct hf__req *);
int hf__et_abandon(void *, struct hf__req *);

/* ---- how a request of the lock has ended -------------------------------- */

/* A step of the attempt has ended with that code, or with 0: the next one can
 * be taken. */
void hf__et_stepped(struct et_lock *, int code);
void hf__et_queue_read(struct et_lock *, const struct et_ahead *, int64_t view);
void hf__et_mark_read(struct et_lock *, const struct et_ahead *,
                      bool is_blocked, int64_t view);
/* LATCH: its create revision, or 0. */
void hf__et_counted(struct et_lock *, int64_t round, int64_t view);
void hf__et_dropped(struct et_lock *, int code, bool was_there);
/* Nothing of the request has reached the server. */
void hf__et_unsent(struct et_lock *);
/* What its holder writes (put.c) begins, and is over. */
void hf__et_writes(struct et_lock *);
void hf__et_has_written(struct et_lock *);

/* ---- for all locks of the client ---------------------------------------- */

/* A keep-alive was confirmed: locks that waited for it are granted. false: some
 * wait for a later one. */
bool hf__et_locks_proved(struct etcd *);
/* The connection has ended: what was not under way is EUNKNOWN, too. */
void hf__et_locks_down(struct etcd *);

#endif
