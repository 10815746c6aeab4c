/*
 * The shared-memory backend's own types; see layout.h for what is in the file
 * and for the two rules that the queue rests on.
 *
 *   file.c   opens, checks, makes and maps the file
 *   slot.c   clients: registration, life and death, the tables' mutex
 *   entry.c  names: finding, making, taking back; tokens
 *   queue.c  the word and its queue: entering, leaving, passing on, leases
 *   attempt.c  what the core asks: looking, waiting, releasing, renewing
 *   wait.c   futexes: ringing, sleeping, the keeper's share
 *   query.c  inspect, list, break
 *   shm.c    the backend's table
 *
 * Who may touch what of a link: attempt, abandon and release, which the core
 * calls under the name's mutex. Except `hold_id` and `mine`, which renew reads
 * under another one, and what park reads with none: those are atomic.
 */
#ifndef HF_SHM_H
#define HF_SHM_H

#include "backend.h"
#include "layout.h"

#include <time.h>

#define SHM_LOOK_NS (2000 * HF__MS)  /* in case a wake-up was lost */
#define SHM_NAP_NS (5000 * HF__MS)   /* the keeper; see wait.c, of suspends */
#define SHM_POLL_NS (50 * HF__MS)    /* the kernel cannot tell of a death */
#define SHM_TABLES_NS (500 * HF__MS) /* who has them may be stopped */
#define SHM_WATCHED_MAX 100u         /* by the keeper, in one sleep */
#define SHM_NO_CELL 0xffffu

/* A place at which a test may end the process: between any two steps that
 * others can see. */
#ifdef HF__SHM_POINTS
void hf__shm_point(const char *file, int line);
#define SHM_POINT() hf__shm_point(__FILE__, __LINE__)
#else
#define SHM_POINT() ((void)0)
#endif

/* One client. */
struct shm {
    struct shm_file *file;
    hf_client *client;
    const struct hf__core *core;
    uint32_t me;       /* slot and generation, as in a word */
    const char *label; /* the client's: who has this one need not write it */
    int fd, dir_fd;
    char path[256];         /* of the file, for texts */
    atomic_bool no_waitv;   /* futex_waitv is missing or forbidden */
    atomic_bool lost;       /* the file was deleted under us */
    shm_u64 there_at;       /* when we last looked, in 64 ms */
    uint32_t doorbell_seen; /* the keeper's */

    pthread_mutex_t async_mutex; /* a leaf: nothing is taken under it */
    struct shm_wait *async;      /* those that the keeper watches for */
};

enum shm_state { SHM_IDLE, SHM_QUEUED, SHM_HELD };

/*
 * What a link needs to wait: made at its first wait, freed with it. `watch` is
 * what to sleep on, as of the last look.
 */
struct shm_wait {
    struct shm_watch {
        shm_u32 bell; /* value of its cell's bell before the look */
        shm_u32 slot; /* of the client whose death concerns it; 0: none */
        shm_u32 word; /* value of that slot's liveness word */
        _Atomic hf__time until; /* look again then at the latest */
    } watch;
    shm_u16 cell; /* while QUEUED, else SHM_NO_CELL */
    bool announced;
    uint8_t dying;       /* looks at a process that is not quite gone */
    bool in_async, rung; /* async_mutex */
    struct hf__remote *remote;
    struct shm_wait *next, **prev; /* async */
};

/* One name in one client: hf__remote.impl. There may be thousands: small. */
struct shm_link {
    struct shm_entry *entry;
    shm_u64 mine; /* HELD: the word, as it was granted */
    shm_u64 hold_id;
    _Atomic(struct shm_wait *) wait; /* NULL until there was one */
    uint32_t take_mask; /* bits of the word that must be 0 to take it at once */
    uint16_t index;     /* of the entry */
    uint8_t state;
    bool fair;
};

/* file.c */
int hf__shm_file_open(struct shm *, const struct hf__config *);
void hf__shm_file_close(struct shm *);
/* False, and the client is told, when the file was deleted under us. */
bool hf__shm_file_there(struct shm *);

/* slot.c */
/* The tables. EBACKEND if they are not to be had for so long; the text says
 * who has them. */
int hf__shm_lock(struct shm *, hf__time within);
bool hf__shm_trylock(struct shm *);
void hf__shm_unlock(struct shm *);
int hf__shm_slot_take(struct shm *, const char *label, hf__time by);
void hf__shm_slot_give(struct shm *);
bool hf__shm_alive(struct shm *, uint32_t owner);
bool hf__shm_gone(struct shm *, uint32_t owner);
/* Takes back what the dead left. Tables locked. */
void hf__shm_bury_all_locked(struct shm *);
void hf__shm_bury(struct shm *, uint32_t owner); /* if the mutex is free */

/* entry.c */
int hf__shm_attach(void *, struct hf__remote *);
void hf__shm_detach(void *, struct hf__remote *);
/* -1: there is none. Tables locked, like the next. */
int hf__shm_find_locked(struct shm *, const char *name, size_t len);
/* Frees the entry if nobody has it, holds it or waits for it. */
bool hf__shm_reclaim_locked(struct shm *, unsigned index);
/* The tables are not to be had: names that nobody uses stay, until somebody
 * has them and sweeps. */
void hf__shm_leave_unswept(struct shm *);
void hf__shm_sweep_locked(struct shm *);
void hf__shm_raise_epoch(struct shm_entry *, uint64_t epoch);
/* The label of that grant, where it is not its client's. */
void hf__shm_label_grant(struct shm_entry *, const char *, uint64_t word);

/* attempt.c */
int hf__shm_attempt_slow(struct shm *, struct hf__req *);
int hf__shm_release_slow(struct shm *, struct shm_link *);
int hf__shm_abandon(void *, struct hf__req *);
int hf__shm_renew(void *, struct hf__batch *);
/* Ends whatever the link has: a hold or a wait. */
void hf__shm_let_go(struct shm *, struct shm_link *);

/* queue.c */
struct shm_scan {
    unsigned len;    /* cells of this lock, the dead included */
    unsigned first;  /* the lowest ticket; SHM_NO_CELL */
    unsigned before; /* the highest ticket below mine */
    unsigned behind; /* the lowest ticket above mine */
    uint32_t first_owner, before_owner;
    uint64_t first_ticket, before_ticket, behind_ticket;
};

void hf__shm_scan(struct shm *, unsigned index, uint32_t except, uint64_t mine,
                  struct shm_scan *);
/* Into the queue, but not announced yet: the word does not tell of it. */
int hf__shm_enqueue(struct shm *, struct shm_link *, struct hf__req *);
/* Out of the queue, with the lock. */
void hf__shm_dequeue(struct shm *, struct shm_link *);
/* Out of the queue, without it. */
void hf__shm_leave(struct shm *, struct shm_link *);
/* The lease of that grant; `mine`: we are its holder. False: it is over. */
bool hf__shm_lease_write(struct shm *, unsigned index, uint64_t word,
                         hf__time until, bool mine);
/* Takes the lock from the word's owner and gives it to whoever is next. False:
 * the word has changed. */
bool hf__shm_pass(struct shm *, unsigned index, uint64_t word);
/* Makes decisions fail that were made on what has changed. */
void hf__shm_stir(struct shm_entry *);
/* Takes a cell out of its queue. */
void hf__shm_cell_drop(struct shm *, unsigned cell);
/* When the lease of the word's holder ends; HF__NEVER if it has none. */
hf__time hf__shm_lease_end(struct shm_entry *, uint64_t word);

/* wait.c */
void hf__shm_ring(struct shm *, unsigned cell);
void hf__shm_wake(shm_u32 *word, int how_many);
void hf__shm_tell_death(struct shm *, uint32_t owner);
/* To look again when the owner dies, and at that time at the latest. */
void hf__shm_watch(struct shm *, struct shm_wait *, uint32_t owner,
                   hf__time until);
/* Its cell watches nobody any more. */
void hf__shm_unwatch(struct shm *, struct shm_cell *);
/* If whom it watches is dead: tells those who sleep on the same word. */
void hf__shm_pass_on_death(struct shm *, struct shm_wait *);
void hf__shm_park(void *, struct hf__remote *, uint32_t *word, uint32_t expect,
                  hf__time until);
void hf__shm_advance(void *, hf__time now);
/* Returns when to look again at the latest. */
hf__time hf__shm_async_add(struct shm *, struct shm_wait *);
void hf__shm_async_remove(struct shm *, struct shm_wait *);

/* query.c */
int hf__shm_query(void *, struct hf__query *);

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
static inline bool shm_grant(const struct shm *s, struct shm_link *l,
                             struct hf__req *req, uint64_t word)
{
    struct shm_entry *e = l->entry;
    uint64_t epoch = atomic_load_explicit(&e->epoch, memory_order_acquire);

    if (__builtin_expect((epoch ^ word >> 63) & 1, 0))
        hf__shm_raise_epoch(e, epoch);
    if ((atomic_load_explicit(&e->word, memory_order_relaxed) ^ word) &
        SHM_GRANT_MASK)
        return false;
    /* To the second, for people: half the price of the finer clock. */
    atomic_store_explicit(&e->since, (uint64_t)time(NULL) * 1000,
                          memory_order_relaxed);
    if (__builtin_expect(req->remote->label != s->label, 0))
        hf__shm_label_grant(e, req->remote->label, word);
    req->token = shm_token(epoch, word);
    l->state = SHM_HELD;
    /* In this order, for renew: it reads them in the other one. */
    atomic_store_explicit(&l->hold_id, req->hold_id, memory_order_relaxed);
    atomic_store_explicit(&l->mine, word, memory_order_release);
    return true;
}

#endif
