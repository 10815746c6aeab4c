/*
 * The shared-memory backend's own types; see layout.h for what is in the file
 * and for the two rules that the queue rests on.
 *
 *   location.c  the directory: where it is, whose it may be
 *   parent_dirs.c    the directories above it
 *   file.c   opens, checks, makes and maps the file
 *   client_slot.c   clients: registration, life and death
 *   table_lock.c the lock of the tables; words that the kernel marks
 *   retry.c  how long a loop goes on while others change its word
 *   name_table.c  names: finding, making, taking back; tokens
 *   cell_take.c   cells: taking and giving back
 *   mutex_word.c  a mutex's word and queue: entering, leaving, passing on,
 * leases mutex.c  what the core asks: looking, waiting, releasing, renewing
 *   shared_word.c  the word of a shared kind: changing it, passing on, taking
 * back shared_lock.c   what the core asks of a line of such a kind latch.c  the
 * latch watch.c   futexes: ringing, sleeping, the helper thread's share
 *   notify.c    holders that listen: they are asked, or their hold is broken
 *   inspect.c  inspect, list, break, ask
 *   shm.c    the backend's table
 *
 * Who may touch what of a lock: attempt, abandon and release, which the core
 * calls under the name's mutex. Except `hold_id` and `mine`, which renew reads
 * under another one, and what park reads with none: those are atomic.
 */
#ifndef HF_SHM_H
#define HF_SHM_H

#include "backends/backend.h"
#include "base/list.h"
#include "layout.h"

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#define SHM_RECHECK_NS (2000 * HF__MS) /* in case a wake-up was lost */
#define SHM_NAP_NS                                                             \
    (5000 * HF__MS) /* the helper thread; see watch.c, of suspends */
#define SHM_POLL_NS (50 * HF__MS)    /* the kernel cannot tell of a death */
#define SHM_TABLES_NS (500 * HF__MS) /* the thread in them may be stopped */
#define SHM_CROWD_NS (1000 * HF__MS) /* many threads may want the tables */
#define SHM_WATCHED_MAX 100u         /* by the helper thread, in one sleep */
#define SHM_NO_CELL 0xffffu

/* Cells that idle locks keep for the next time: so many of a client, and never
 * the last quarter of all. */
#define SHM_KEPT_MAX 64u
#define SHM_KEPT_BELOW (SHM_CELLS / 4 * 3)

/* A place at which a test may end the process: between any two steps that
 * others can see. */
#ifdef HF__SHM_POINTS
void hf__shm_point(const char *file, int line);
#define SHM_POINT() hf__shm_point(__FILE__, __LINE__)
#else
#define SHM_POINT() ((void)0)
#endif

/* The helper thread's list of what the kernel is to mark, see table_lock.c. */
struct shm_robust {
    struct robust_list_head head, *old; /* old: the C library's */
    struct robust_list entry;
};

/* Names that are hurried at a time. */
#define SHM_HURRIED 8u

/* One client. */
struct shm {
    struct shm_file *file;
    hf_client *client;
    const struct hf__core *core;
    uint32_t me;      /* slot and generation, as in a word */
    atomic_bool lost; /* the file is another one: nothing is granted any more */
    const char *label; /* the client's: who has this one need not write it */
    int fd, dir_fd;
    char path[256]; /* of the file */
    dev_t root_dev; /* of the directory / when it was opened */
    ino_t root_ino;
    atomic_bool no_waitv;         /* futex_waitv is missing or forbidden */
    shm_u64 there_at;             /* when we last looked, in 64 ms */
    shm_u64 hurried[SHM_HURRIED]; /* loops were given up: see retry.c */
    uint32_t doorbell_seen;       /* the helper thread's */
    shm_u32 cells;                /* that locks of ours have */
    uint16_t *lock_counts; /* to each entry, of kinds that have several */
    bool listens;          /* the program hears of events */
    bool early_marks;      /* of what a thread of ours has not seen yet */
    uint32_t marks_seen;   /* the helper thread's */
    struct shm_listener *listeners;
    struct shm_robust robust;

    pthread_mutex_t async_mutex; /* a leaf: nothing is taken under it */
    struct shm_wait *async;      /* those that the helper thread watches for */
};

/* LEAVING: neither, but the word may be in our name still, or may be given to
 * us: a loop that was to end that was given up (retry.c). */
enum shm_lock_state { SHM_IDLE, SHM_QUEUED, SHM_HELD, SHM_LEAVING };

/*
 * What a lock needs to wait: made at its first wait, freed with it. `watch` is
 * what to sleep on, as of the last check.
 */
struct shm_wait {
    struct shm_watch {
        shm_u32 bell; /* value of its cell's bell before the check */
        shm_u32 slot[SHM_WATCHED]; /* of clients whose death concerns it; 0 */
        shm_u32 word[SHM_WATCHED]; /* values of their liveness words */
        _Atomic hf__time until;    /* look again then at the latest */
    } watch;
    shm_u16 cell; /* while QUEUED, else SHM_NO_CELL */
    bool announced;
    uint8_t dying;       /* looks at a process that is not quite gone */
    hf__time verify_at;  /* not before: are those whom it watches alive? */
    bool in_async, rung; /* async_mutex */
    struct hf__remote *remote;
    struct shm_wait *next, *prev; /* async */
};

/* One name in one client: hf__remote.impl. There may be thousands: small. */
struct shm_lock {
    struct shm_entry *entry;
    shm_u64 mine; /* HELD: the word, as it was granted */
    shm_u64 hold_id;
    _Atomic(struct shm_wait *) wait; /* NULL until there was one */
    uint32_t take_mask; /* bits of the word that must be 0 to take it at once */
    uint16_t index;     /* of the entry */
    uint8_t state;
    uint8_t kind; /* of any but HF_MUTEX it is a shm_cell_lock */
};

/* A mutex of which nobody takes what is free before those who wait. */
static inline bool shm_is_fair(const struct shm_lock *l)
{
    return l->take_mask & SHM_FLAGS;
}

/* One of the locks of a name of another kind. Its cell stays with it when it
 * is idle, if there are enough. */
struct shm_cell_lock {
    struct shm_lock lock;
    shm_u16 cell;   /* or SHM_NO_CELL; renew reads it */
    uint16_t size;  /* permits that there are */
    bool leased;    /* the cell's lease may have an end */
    uint32_t round; /* latch: when the wait began */
};

/* Behind each lock of a client that listens. */
struct shm_listener {
    struct shm_listener *next, *prev;
    struct hf__remote *remote;
};

/* file.c */
int hf__shm_file_open(struct shm *, const struct hf__config *);
void hf__shm_file_close(struct shm *);
/* False, and the client is told, when the file was deleted under us, or the
 * path leads to another one. */
bool hf__shm_file_is_there(struct shm *);
int hf__shm_file_lost(struct shm *); /* EBACKEND, with the text for that */

/* retry.c */
/* A loop that ends when a word has stayed as it was for a moment. */
struct shm_retry {
    const struct shm_entry *of; /* what it is about; NULL: no name */
    uint32_t len;
    int64_t since; /* of the thread's time on a processor, in ns */
};
/* One more try? False: others have changed it for so long that they are no
 * clients that keep to the rules. */
bool hf__shm_retry(struct shm *, struct shm_retry *);
int hf__shm_retry_refuse(struct shm *); /* EBACKEND, with the text for that */

/* table_lock.c */
/* The one that has locked the tables. */
struct shm_thread {
    uint32_t number;
    struct robust_list_head *list; /* NULL: it has none */
};
/* The tables. EBACKEND if one thread keeps them locked for longer than our
 * patience (the text says which), or if we do not get them within the limit.
 * Attach and query call this with the client's mutex locked, which the helper
 * thread needs: their limit is a second. For attach the core asks again. */
int hf__shm_tables_lock(struct shm *, struct shm_thread *, hf__time patience,
                        hf__time limit);
bool hf__shm_tables_trylock(struct shm *, struct shm_thread *);
void hf__shm_tables_unlock(struct shm *, struct shm_thread *);
/* Of the helper thread: the word has its number, and is marked when it ends. */
void hf__shm_robust_begin(struct shm *, struct shm_thread *, shm_u32 *alive);
void hf__shm_robust_clear(struct shm *, shm_u32 *alive);
void hf__shm_robust_end(struct shm *); /* the tables are not locked */
void hf__shm_mark_dead(shm_u32 *at, uint32_t word);

/* client_slot.c */
int hf__shm_slot_take(struct shm *, const char *label, hf__time by);
void hf__shm_slot_give(struct shm *);
bool hf__shm_alive(struct shm *, uint32_t owner);
bool hf__shm_gone(struct shm *, uint32_t owner);
/* Is the client of that slot dead after all? Then it is from now on. */
void hf__shm_mark_unmarked(struct shm *, uint32_t slot);
/* Takes back what the dead left. Tables locked. */
void hf__shm_bury_all_locked(struct shm *);
void hf__shm_bury(struct shm *, uint32_t owner); /* if the tables are free */
/* By pidfd_open(2). What lives may be another process of the same number. */
enum shm_life { SHM_LIVES, SHM_EXITED, SHM_UNKNOWN };
enum shm_life hf__shm_life_of(uint32_t pid);

/* name_table.c */
int hf__shm_attach(void *, struct hf__remote *);
void hf__shm_detach(void *, struct hf__remote *);
/* -1: there is none. Tables locked; or attached: of those that we have locks
 * on, which nobody changes. */
int hf__shm_name_find(struct shm *, const char *name, size_t len,
                      bool attached);
/* Frees the entry if nobody has it, holds it or waits for it. */
bool hf__shm_name_reclaim_locked(struct shm *, unsigned index);
/* Names that nobody uses have stayed where the tables were not to be had
 * (`unswept`): takes them back. */
void hf__shm_names_sweep_locked(struct shm *);
void hf__shm_mutex_raise_epoch(struct shm_entry *, uint64_t epoch);
/* The label of that grant, where it is not its client's. */
void hf__shm_mutex_label_grant(struct shm_entry *, const char *, uint64_t word);

/* cell_take.c */
/* One of ours, in nobody's queue; or a code. */
int hf__shm_cell_take(struct shm *);
/* It is in nobody's queue any more: anybody's. */
void hf__shm_cell_free(struct shm_cell *);
/* Gives it back, with whatever it has. */
void hf__shm_cell_drop(struct shm *, unsigned cell);
/* What the lock needs to wait; ENOMEM, or EBACKEND: the file is gone. */
int hf__shm_wait_make(struct shm *, struct shm_lock *, struct hf__remote *);
/* The lock waits, with that cell, which has no place in the queue yet. */
void hf__shm_wait_begin(struct shm *, struct shm_lock *, unsigned cell,
                        const struct hf__req *);
/* It does not wait any more; its cell, which is returned, has a place still. */
unsigned hf__shm_wait_end(struct shm *, struct shm_lock *);
/* Like hf__shm_file_is_there, but asks the kernel now and then only, until it
 * is gone. */
bool hf__shm_file_still_there(struct shm *);
/* The next cell of an entry from that number on, if it is somebody's;
 * SHM_NO_CELL. */
unsigned hf__shm_queue_next(struct shm *, unsigned index, unsigned from);

/* mutex.c */
int hf__shm_lock_attempt(struct shm *, struct hf__req *);
int hf__shm_mutex_release(struct shm *, struct shm_lock *);
int hf__shm_lock_abandon(void *, struct hf__req *);
int hf__shm_lock_renew(void *, struct hf__batch *);
/* Ends whatever the lock has: a hold or a wait. */
int hf__shm_lock_let_go(struct shm *, struct shm_lock *);

/* mutex_word.c */
struct shm_queue_scan {
    unsigned len;    /* cells of this lock, the dead included */
    unsigned first;  /* the lowest ticket; SHM_NO_CELL */
    unsigned before; /* the highest ticket below mine */
    unsigned behind; /* the lowest ticket above mine */
    uint32_t first_owner, before_owner;
    uint64_t first_ticket, before_ticket, behind_ticket;
};

void hf__shm_queue_scan(struct shm *, unsigned index, uint32_t except,
                        uint64_t mine, struct shm_queue_scan *);
/* Into the queue, but not announced yet: the word does not tell of it. */
int hf__shm_enqueue(struct shm *, struct shm_lock *, struct hf__req *);
/* Out of the queue, with the lock. */
void hf__shm_dequeue(struct shm *, struct shm_lock *);
/* Out of the queue, without it. */
int hf__shm_leave(struct shm *, struct shm_lock *);
/* LEAVING: so that the word is not in our name, nor becomes so. */
int hf__shm_leave_word(struct shm *, struct shm_lock *);
/* The lease of that grant; `mine`: we are its holder. False: it is over. */
bool hf__shm_mutex_lease_write(struct shm *, unsigned index, uint64_t word,
                               hf__time until, bool mine);
/* Takes the lock from the word's owner and gives it to whoever is next. False:
 * the word has changed. */
bool hf__shm_mutex_pass(struct shm *, unsigned index, uint64_t word);
/* Makes decisions fail that were made on what has changed. Not of a latch. */
void hf__shm_queue_stir(struct shm *, struct shm_entry *, uint64_t flags);
/* When the lease of the word's holder ends; HF__NEVER if it has none. */
hf__time hf__shm_mutex_lease_end(struct shm_entry *, uint64_t word);

/* shared_word.c */
/*
 * One change, of a word as it was read: the cell has that many permits then.
 * False: the word has changed. The next is of a cell that somebody else has:
 * if that waits, it does not any more.
 */
bool hf__shm_shared_change(struct shm *, struct shm_entry *, uint64_t *word,
                           unsigned cell, unsigned permits);
bool hf__shm_shared_take_back(struct shm *, struct shm_entry *, uint64_t *word,
                              unsigned cell);
/* Grants to those who are first in the queue, as many as fit, and rings them;
 * but not `self`. False: nothing was to be done. */
bool hf__shm_shared_pass(struct shm *, unsigned index, unsigned self);
/* In case that who granted to the cell is not there any more to go on. */
void hf__shm_shared_pass_on(struct shm *, unsigned index, unsigned cell,
                            uint64_t ticket);
/* All that the cell has, and its place; the word does not name it then. */
bool hf__shm_shared_clear(struct shm *, unsigned index, unsigned cell);
/* Takes it from all who hold it and are meant: DONE, ENOTOWNER, EBUSY as for
 * BREAK. */
int hf__shm_shared_break(struct shm *, unsigned index, struct hf__query *);
/* The cell has the lock, by that word, and its owner is not dead. */
bool hf__shm_shared_is_held_by(struct shm *, uint64_t word, unsigned cell);
/* Is the hold, of a client with a token, one of those that are to be broken? If
 * not, the query is told of its token. */
bool hf__shm_is_meant(struct shm *, struct hf__query *, uint32_t owner,
                      uint64_t token);
static inline unsigned shm_size(struct shm_entry *e)
{
    return shm_kind(e) == HF_RWLOCK ? SHM_PERMITS_MAX : e->permits;
}
static inline hf__time shm_cell_lease_end(struct shm_cell *c)
{
    uint64_t until = atomic_load(&c->lease) >> 24;

    return until ? (hf__time)until * HF__MS : HF__NEVER;
}
static inline uint64_t shm_to_ms(hf__time at)
{
    return (uint64_t)(at / HF__MS) + 1;
}

/* shared_lock.c */
/* It is free, and nobody waits: it is ours. False: look. */
bool hf__shm_shared_take(struct shm *, struct hf__req *);
/* An attempt; *dead: a client to be buried, or 0. */
int hf__shm_shared_attempt(struct shm *, struct hf__req *, uint32_t *dead);
/* Is it held still? */
bool shm_cell_lock_has(struct shm *, struct shm_cell_lock *);
int hf__shm_shared_release(struct shm *, struct hf__req *);
int hf__shm_shared_renew(struct shm *, const struct hf__renewal *,
                         hf__time now);
int hf__shm_shared_downgrade(struct shm *, const struct hf__query *);
/* Ends whatever the lock has. */
int hf__shm_shared_let_go(struct shm *, struct shm_cell_lock *);
void hf__shm_cell_lock_give_cell(struct shm *,
                                 struct shm_cell_lock *); /* it is idle */
/* A cell of that entry, for the lock to hold or wait with. */
int hf__shm_cell_lock_take_cell(struct shm *, struct shm_cell_lock *,
                                const struct hf__remote *);
/* Into the queue: the cell has a ticket. */
int hf__shm_cell_lock_enqueue(struct shm *, struct shm_cell_lock *,
                              struct hf__req *);
int hf__shm_wait_sleep(struct shm *, struct shm_wait *, struct hf__req *);

/* latch.c */
int hf__shm_latch_attempt(struct shm *, struct hf__req *);
int hf__shm_latch_query(struct shm *, struct hf__query *);
/* One less, or all; what is left. DONE, EBACKEND; ENOTOWNER: it was at 0. */
int hf__shm_latch_count_down(struct shm *, unsigned index, bool all,
                             uint32_t *left);

/* diagnose.c */
int hf__shm_diagnose(struct shm *, struct hf__query *);
bool hf__shm_logind_removes(const char *conf); /* by that file and its .d */
bool hf__shm_lingers(const char *dir, uid_t);

/* watch.c */
void hf__shm_ring_cell(struct shm *, unsigned cell);
void hf__shm_ring_doorbell(struct shm *, uint32_t owner);
/* It has its place in the queue: who is behind it, if anybody, is to know. */
void hf__shm_wait_announce(struct shm *, struct shm_wait *, unsigned behind);
/* A thread of ours may sleep there for another who has left: its place is not
 * there any more. */
void hf__shm_wake_cell(struct shm *, unsigned cell);
/* Of a place in a queue: is it the helper thread who waits there? */
void hf__shm_set_async(struct shm *, unsigned cell, bool is_async);
void hf__shm_futex_wake(shm_u32 *word, int how_many);
/* op: FUTEX_WAIT, FUTEX_WAIT_PRIVATE */
void hf__shm_futex_wait(const void *word, int op, uint32_t value,
                        hf__time from_now);
void hf__shm_wake_watchers(struct shm *, uint32_t owner);
/* Is a holder gone (then it is *dead, and those who watch it are told), or its
 * lease over? */
bool hf__shm_is_over(struct shm *, uint32_t owner, hf__time lease_end,
                     uint32_t *dead);
/* To look again when one of the owners dies, and at that time at the latest.
 * At most SHM_WATCHED. */
void hf__shm_watch(struct shm *, struct shm_wait *, const uint32_t *owners,
                   unsigned len, hf__time until);
/* The cell watches nobody any more, from that place of its list on. */
void hf__shm_unwatch(struct shm *, struct shm_cell *, unsigned from);
/* If whom it watches is dead: tells those who sleep on the same word. Asks the
 * kernel if it has waited in vain. */
void hf__shm_pass_on_death(struct shm *, struct shm_wait *);
void hf__shm_park(void *, struct hf__remote *, uint32_t *word, uint32_t expect,
                  hf__time until);
void hf__shm_advance(void *, hf__time now);
/* Returns when to look again at the latest. */
hf__time hf__shm_async_add(struct shm *, struct shm_wait *);
void hf__shm_async_remove(struct shm *, struct shm_wait *);

/* notify.c */
int hf__shm_notify_ask(struct shm *,
                       const struct hf__query *); /* tables locked */
/* The holder, if it listens, shall look: at its mutexes; at the cell, what:
 * SHM_ASKED, SHM_BROKEN. Tables locked. */
void hf__shm_notify_broken(struct shm *, uint32_t owner);
void hf__shm_notify_cell(struct shm *, unsigned cell, uint32_t owner,
                         uint8_t what);
/* Of a lock on a name of that kind, with its listener if there is one. */
size_t hf__shm_lock_size(const struct shm *, uint8_t kind);
void hf__shm_notify_add(struct shm *, struct shm_lock *, struct hf__remote *);
void hf__shm_notify_remove(struct shm *, struct shm_lock *);
/* What the client has been told since the last time. By the helper thread. */
void hf__shm_notify_poll(struct shm *);

/* inspect.c */
int hf__shm_query(void *, struct hf__query *);

static inline bool shm_is_lost(const struct shm *s)
{
    return __builtin_expect(
        atomic_load_explicit(&s->lost, memory_order_relaxed), 0);
}

static inline bool shm_is_grant(uint64_t a, uint64_t b)
{
    return !((a ^ b) & SHM_GRANT_MASK);
}

static inline uint64_t shm_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Texts in the file are copied in words, so that a reader who comes at the
 * wrong moment sees a mixture and not a race. */
static inline void shm_label_put(shm_u64 *to, const char *text)
{
    uint64_t words[SHM_LABEL / 8] = {0};

    for (size_t i = 0; text && i < SHM_LABEL - 1 && text[i]; i++)
        ((char *)words)[i] = text[i];
    for (size_t i = 0; i < SHM_LABEL / 8; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
}

static inline void shm_label_get(char *to, shm_u64 *from)
{
    for (size_t i = 0; i < SHM_LABEL / 8; i++)
        ((uint64_t *)(void *)to)[i] =
            atomic_load_explicit(&from[i], memory_order_relaxed);
    to[SHM_LABEL - 1] = '\0';
}

/*
 * The word is in our name: writes down what goes with it. False: it is not any
 * more (broken); then the token might be a wrong one, too.
 */
static inline bool shm_mutex_grant(const struct shm *s, struct shm_lock *l,
                                   struct hf__req *req, uint64_t word)
{
    struct shm_entry *e = l->entry;
    uint64_t epoch = atomic_load_explicit(&e->epoch, memory_order_acquire);

    if (__builtin_expect((epoch ^ word >> 63) & 1, 0))
        hf__shm_mutex_raise_epoch(e, epoch);
    if ((atomic_load_explicit(&e->word, memory_order_relaxed) ^ word) &
        SHM_GRANT_MASK)
        return false;
    /* To the second, for people: half the price of the finer clock. */
    atomic_store_explicit(&e->since, (uint64_t)time(NULL) * 1000,
                          memory_order_relaxed);
    if (__builtin_expect(req->remote->label != s->label, 0))
        hf__shm_mutex_label_grant(e, req->remote->label, word);
    req->token = shm_token(epoch, word);
    l->state = SHM_HELD;
    /* In this order, for renew: it reads them in the other one. */
    atomic_store_explicit(&l->hold_id, req->hold_id, memory_order_relaxed);
    atomic_store_explicit(&l->mine, word, memory_order_release);
    return true;
}

#endif
