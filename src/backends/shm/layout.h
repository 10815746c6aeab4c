/*
 * The layout of the file. Everything that another process may change is atomic.
 * Nothing in the file is a pointer (nor an object of the C library, which would
 * contain pointers), and every index is as narrow as its table is long (twelve
 * bits, 4096 elements) or is checked. Every loop over the file has a limit of
 * steps or of time, see retry.c. A wrong byte can therefore make locks wrong,
 * but it cannot make a process crash, hang or write outside the file. Only
 * truncation of the file can crash a process (SIGBUS). tests/faults/shm/flips.c
 * flips every bit of one object of each kind; hammer.c changes one word
 * continually.
 *
 * The state of a mutex is one word of 64 bits:
 *
 *     bits  0-11  slot of the client that holds it, 0: free
 *          12-19  that slot's generation, low bits
 *          20     WAITERS  a client is, or was, in the queue
 *          21     WAKING   unfair: a waiter was woken and has not checked yet
 *          22     LEASED   the entry's `lease` is that of the current holder
 *          24-39  stir: changed by rule 2 below
 *          40-63  count of grants, low bits of the token
 *
 * Two rules make every interleaving safe:
 * 1. Each grant raises the count, in the same compare-and-swap that grants.
 *    A word thus names one grant, and a decision about an earlier grant (its
 *    holder is dead, its lease has ended) cannot affect a later one.
 * 2. A client that changes data on which others base decisions (a cell enters
 *    or leaves the queue, a lease is prolonged) makes that change first and
 *    *stirs* the word afterwards. A client that decides reads the word first,
 *    then the rest, then swaps the word. A decision based on old data thus
 *    fails and is repeated.
 *
 * The token is the count, widened: `epoch` holds the upper bits and overlaps
 * the count by one bit (EPOCH_SHIFT is one less than the count has bits). If
 * that bit differs, the count has advanced by half its range since the epoch
 * was written, and the next holder raises the epoch. A grant therefore needs no
 * other write for its token, and tokens rise in the same order as the words.
 *
 * A read-write lock and a semaphore are the same thing: a number of permits, of
 * which a reader takes one and a writer all. Each hold or wait has a cell. The
 * state of all cells together is again one word:
 *
 *     bits  0-11  the cell that the last change was about
 *          12-23  permits of this cell after the change
 *          24-35  permits of all cells together
 *          36     NAMED    bits 0-23 are valid
 *          37     QUEUE    a client is, or was, in the queue
 *          38-63  count of changes
 *
 * If the word names a cell, the word says how many permits that cell has; for
 * every other cell its `hold` does. A client that wants to name another cell
 * first *writes down* what the word says of the named cell, into the `hold` of
 * that cell. Writing down also raises a version in the `hold`: if two clients
 * write down the same, the later one fails. Writing down changes no permits;
 * the change itself is then one swap of the word. A client that is killed
 * between the two therefore leaves nothing incomplete. The two rules hold here,
 * too: a change raises the count, and a client that enters or leaves the queue
 * or prolongs a lease stirs (raises only the count) afterwards. A cell waits
 * while it has a ticket and no permits. The token is `epoch`, which is raised
 * by each holder of all permits.
 *
 * A latch:
 *
 *     bits  0-31  the count
 *          32     QUEUE
 *          33-63  round: how often the count has reached 0
 */
#ifndef HF_SHM_LAYOUT_H
#define HF_SHM_LAYOUT_H

#include <holdfast.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SHM_MAGIC 0x0a747366646c6f68ULL /* "holdfst\n" */
#define SHM_VERSION 8u

#define SHM_NAMES 4096u
#define SHM_CELLS 4096u
#define SHM_SLOTS 4096u /* the first is never used: at most 4095 clients */
#define SHM_MAP_LEN (4096u / 64u)
#define SHM_LABEL 64u
#define SHM_NAME_MAX 512u
#define SHM_NO_NAME 0xffffu

#define SHM_SLOT_MASK 0xfffu
#define SHM_OWNER_MASK 0xfffffULL
#define SHM_WAITERS (1ULL << 20)
#define SHM_WAKING (1ULL << 21)
#define SHM_LEASED (1ULL << 22)
#define SHM_FLAGS (0xfULL << 20)
#define SHM_STIR_ONE (1ULL << 24)
#define SHM_STIR_MASK (0xffffULL << 24)
#define SHM_COUNT_ONE (1ULL << 40)
#define SHM_COUNT_MASK (0xffffffULL << 40)
/* The bits that tell the words of any two grants apart. */
#define SHM_GRANT_MASK (SHM_OWNER_MASK | SHM_COUNT_MASK)
#define SHM_EPOCH_SHIFT 23

#define SHM_PERMITS_MAX 0xfffu
#define SHM_NAMED (1ULL << 36)
#define SHM_QUEUE (1ULL << 37)
#define SHM_CHANGE_ONE (1ULL << 38)
#define SHM_CHANGE_MASK (~0ULL << 38)

#define SHM_LEFT_MASK 0xffffffffULL
#define SHM_LATCH_QUEUE (1ULL << 32)
#define SHM_ROUND_ONE (1ULL << 33)

/* how many clients one cell can watch at most */
#define SHM_WATCHED 6u

/* Bits of a cell's `minted`. SHM_MINTED: the owner has read the token of its
 * hold, which is the entry's `epoch`. SHM_ASKED and SHM_BROKEN: the owner must
 * be notified, see notify.c. */
#define SHM_MINTED 1u
#define SHM_ASKED 2u
#define SHM_BROKEN 4u

typedef _Atomic uint8_t shm_u8;
typedef _Atomic uint16_t shm_u16;
typedef _Atomic uint32_t shm_u32;
typedef _Atomic uint64_t shm_u64;

/*
 * A client. `alive` is a robust futex: it holds the id of the client's helper
 * thread while the client is open, and the kernel marks it when that thread
 * ends. Other clients that wait for this client watch `alive`.
 */
enum shm_slot_state { SHM_SLOT_FREE = 0, SHM_SLOT_USED = 1 };

struct shm_slot {
    _Alignas(64) shm_u32 alive;
    shm_u32 state;
    shm_u32 gen;
    shm_u32 pid;
    shm_u32 doorbell; /* futex of its helper thread, see wakeup.h */
    shm_u32 has_byte; /* 1 if the slot's byte is locked, see liveness.c */
    shm_u32 watchers; /* approximate number of cells that watch `alive` */
    shm_u32 listens;  /* 1 if its program receives events */
    shm_u64 start;    /* start of the process, in ticks since boot */
    shm_u64 label[SHM_LABEL / 8];
    shm_u32 marks;  /* how often its holds were marked, see notify.c */
    shm_u32 broken; /* 1 if one of its mutexes was broken since its helper
                       thread last checked */
};

/*
 * One client that waits for one name or, for a shared kind, holds it. A client
 * takes a cell by swapping its slot and generation into `owner`, which must be
 * 0. The owner gives the cell back, or the client that buries the owner does.
 */
struct shm_cell {
    _Alignas(64) shm_u32 owner; /* slot and generation as in a word, or 0 */
    shm_u32 bell; /* futex, raised when the owner should check the word again */
    shm_u64 ticket; /* its place in the queue */
    shm_u64 since;  /* wall clock, ms */
    shm_u64 hold; /* permits, 12 bits; a version that is never reset, 52 bits */
    shm_u64 lease; /* end in ms of BOOTTIME, 40 bits, or 0; ticket, 24 bits */
    shm_u32 lease_ms; /* length of the wanted fixed lease, or 0 */
    shm_u16 name;     /* index of the entry; SHM_NO_NAME if the cell is free */
    shm_u16 want;     /* how many permits the owner wants */
    shm_u16 watching[SHM_WATCHED]; /* slots that it watches, or 0 */
    shm_u8 is_async;  /* 1 if the doorbell must be rung, not `bell` */
    shm_u8 announced; /* 1 if the waiter after it, if any, was rung */
    shm_u8 rung_for;  /* shared kinds: 8 bits of the ticket for which it was
                         rung */
    shm_u8 minted;    /* for a shared kind, SHM_MINTED, SHM_ASKED, SHM_BROKEN */
    shm_u64 label[SHM_LABEL / 8];
};

/* A name. `name`, `name_len`, `kind` and `permits` are constant while the entry
 * is in use. */
struct shm_entry {
    _Alignas(64) shm_u64 word;
    shm_u64 epoch;
    shm_u64 since; /* wall clock of the grant in ms, rounded to seconds */
    shm_u64 lease; /* end in ms of BOOTTIME, 40 bits; grant's count, 24 bits */
    shm_u64 next_ticket;
    shm_u32 label_count; /* count of the grant that `label` belongs to */
    shm_u16 name_len;
    shm_u16 kind; /* enum hf_kind, plus 0x100 if fair */
    shm_u32 permits;
    uint32_t reserved;
    shm_u64 asked; /* for a mutex, the grant whose holder was asked, or 0 */
    shm_u64 label[SHM_LABEL / 8];
    char name[SHM_NAME_MAX];
    shm_u64 attached[SHM_MAP_LEN]; /* slots of clients with a handle on it */
    shm_u64 cells[SHM_MAP_LEN];    /* cells in its queue; for a shared kind,
                                      also those that hold or are idle */
};

struct shm_header {
    shm_u64 magic; /* written last when the file is initialised */
    uint32_t version;
    uint32_t reserved;
    uint64_t size;
    char boot[40];  /* the kernel's boot id */
    uint64_t world; /* inodes of the pid namespace and, from bit 32 on, the time
                       namespace */
    shm_u64 floor;  /* no new entry starts with a lower token */
    shm_u32 slots_high, names_high,
        cells_high; /* how much of each table was ever in use; scans stop there,
                       because the rest is empty */
    shm_u32 unswept; /* approximate number of unused names that are not taken
                        back yet */
    /* The table lock, which guards names and slots; see table_lock.c. */
    _Alignas(64) shm_u32 tables;
    shm_u32 unlocks; /* how often the table lock was released */
};

struct shm_file {
    struct shm_header header;
    _Alignas(64) shm_u32 hash[SHM_NAMES]; /* 0 if the entry is free */
    struct shm_slot slot[SHM_SLOTS];
    struct shm_cell cell[SHM_CELLS];
    struct shm_entry entry[SHM_NAMES];
};

_Static_assert(sizeof(shm_u64) == 8 && sizeof(shm_u32) == 4 &&
                   sizeof(shm_u16) == 2,
               "atomics are lock-free and as wide as their values");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit words without a lock");
_Static_assert(sizeof(long) == 8 && sizeof(time_t) == 8,
               "a 64-bit machine: times for the kernel are of that size");
_Static_assert(offsetof(struct shm_entry, label) == 64 &&
                   offsetof(struct shm_cell, label) == 64,
               "the hot part of an entry or a cell is one cache line");

static inline uint32_t shm_owner(uint64_t word)
{
    return (uint32_t)(word & SHM_OWNER_MASK);
}

static inline uint64_t shm_stirred(uint64_t word)
{
    return (word & ~SHM_STIR_MASK) | ((word + SHM_STIR_ONE) & SHM_STIR_MASK);
}

static inline uint64_t shm_lease(uint64_t until_ms, uint64_t word)
{
    return until_ms << 24 | word >> 40;
}

/* Returns the token of the grant in `word`, even if the entry's `epoch` is one
 * too low. */
static inline uint64_t shm_token(uint64_t epoch, uint64_t word)
{
    epoch += (epoch ^ word >> 63) & 1;
    return epoch << SHM_EPOCH_SHIFT | (word >> 40 & 0x7fffff);
}

/* Returns an enum hf_kind, or any value if the file is damaged. */
static inline unsigned shm_kind(const struct shm_entry *e)
{
    return e->kind & 0xff;
}

static inline bool shm_is_shared(const struct shm_entry *e)
{
    return shm_kind(e) == HF_RWLOCK || shm_kind(e) == HF_SEMAPHORE;
}

/* Returns the last token that was granted. */
static inline uint64_t shm_entry_token(struct shm_entry *e)
{
    uint64_t epoch = atomic_load(&e->epoch);

    return shm_kind(e) == HF_MUTEX ? shm_token(epoch, atomic_load(&e->word))
                                   : epoch;
}

/* ---- words of shared kinds ---------------------------------------------- */

static inline unsigned shm_named(uint64_t word)
{
    return (unsigned)(word & 0xfff);
}

static inline bool shm_names(uint64_t word, unsigned cell)
{
    return (word & (SHM_NAMED | 0xfff)) == (SHM_NAMED | cell);
}

static inline unsigned shm_named_has(uint64_t word)
{
    return (unsigned)(word >> 12 & 0xfff);
}

static inline unsigned shm_used(uint64_t word)
{
    return (unsigned)(word >> 24 & 0xfff);
}

/* Returns `word` after a change: `cell` now has `has` permits, and all cells
 * together have `used`. */
static inline uint64_t shm_changed(uint64_t word, unsigned cell, unsigned has,
                                   unsigned used)
{
    return ((word & (SHM_CHANGE_MASK | SHM_QUEUE)) + SHM_CHANGE_ONE) |
           SHM_NAMED | (uint64_t)(used & 0xfff) << 24 | (uint64_t)has << 12 |
           cell;
}

/* Returns how many permits `cell` had when the entry's word was `word`. */
static inline unsigned shm_has(struct shm_file *f, uint64_t word, unsigned cell)
{
    if (shm_names(word, cell))
        return shm_named_has(word);
    return (unsigned)(atomic_load(&f->cell[cell].hold) & 0xfff);
}

static inline uint32_t shm_left(uint64_t word)
{
    return (uint32_t)(word & SHM_LEFT_MASK);
}

#endif
