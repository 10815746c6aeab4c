/*
 * The simulation: processes with queues and threads, an unreliable network and
 * a reliable server, under one virtual clock.
 *
 * Everything happens in events of a heap (heap.c), in the order of their time,
 * and all random choices come from one seed, so that a run can be reproduced.
 * The queue and the lease are the real ones. Around them, process.c does what
 * src/core/line.c does, and thread.c what src/api/acquire.c does. What callers
 * see is written into a history (tests/lib/history.h) and checked after the
 * run. The simulation itself checks more: OWN (a release fails though the
 * thread owns the lock, or succeeds though its hold is lost), JOIN (a reader
 * joined a read hold too late), SPIN (time does not advance), SIM (the
 * simulation is wrong, or the core sends what backend.h does not allow).
 *
 * Real time is `world.now`; each process and the server see it through a clock
 * of their own, which runs a little faster or slower.
 */
#ifndef SIM_H
#define SIM_H

#include "../lib/history.h"
#include "policy/line_set.h"

#define MS HF__MS
#define SEC (1000 * MS)
#define NAMES_MAX 3
#define THREADS_MAX 5
#define PROCS_MAX 4
#define QUEUE_MAX 64
#define HOLDS_MAX 64  /* of one name, at the server */
#define LINES_MAX 160 /* of a process; more means that they leak */
#define ENTRIES_MAX 32
#define ITEMS_MAX 16
#define SESSION_OVER (-1000) /* a result: the session does not exist */
#define LOOK (2 * SEC)       /* a waiter polls at least every 2 s */

/* Ways to break what surrounds the core. mutate.py creates the mutants of the
 * core itself. */
enum break_it {
    BREAK_RELEASE_ANY = 1 << 0,    /* any client can release a hold */
    BREAK_RENEW_REVIVES = 1 << 1,  /* a renewal takes a free lock */
    BREAK_TOKEN_RESTARTS = 1 << 2, /* a restart resets the tokens */
    BREAK_WALL_CLOCK = 1 << 3,     /* the process's clock is sometimes set */
    BREAK_ATTEMPT_TWICE = 1 << 4,  /* a repeated attempt does not find its
                                      hold */
    BREAK_ABANDON_HALF = 1 << 5,   /* abandon does not remove a grant */
    BREAK_TOKEN_HOLD = 1 << 6,     /* the token is the client's hold id */
    BREAK_NO_BELL = 1 << 7,        /* waiters are not woken and do not poll */
    BREAK_READ_FREELY = 1 << 8,    /* readers ignore writers */
    BREAK_COUNT_HOLDS = 1 << 9,    /* each hold counts as one permit */
    BREAK_TOKEN_SHARED = 1 << 10,  /* readers get an old token */
    BREAK_ASK_FOR_ONE = 1 << 11,   /* an attempt always asks for one permit */
};

struct rng {
    uint64_t state;
};

struct config {
    const char *profile;
    uint16_t procs, threads, names;
    uint8_t kind[NAMES_MAX];   /* enum hf_kind */
    uint32_t whole[NAMES_MAX]; /* the number of shares of the lock */
    bool fair, hands_over, endless, session, renew_sets, lossy, unhurried;
    bool sulks; /* no other fault occurs: see refusals.c */
    uint32_t ttl_ms, op_timeout_ms;
    uint32_t handoff;
    int64_t delay_lo, delay_hi, hold_hi, think_hi, lag_hi;
    int64_t wake;        /* how long a lock that waiters want may stay free */
    int64_t fault_every; /* mean time between faults, or 0 for none */
    /* Probabilities in per mille. The first declaration is about faults of the
     * network and of machines, the second about what threads want. The third is
     * about which fault occurs next; if the draw selects none of these, a
     * connection is reset. */
    uint32_t spike, reset, late, twice, deaf, lag, refuse;
    uint32_t fixed, capped, tries, timed, cancels, async, nested, waited, reads,
        downgrades;
    uint32_t kill, stop, freeze, ill, restart, cut;
    int32_t drift_ppm; /* at most, in either direction */
};

struct clock {
    int64_t base;
    int64_t ppm;
};

enum event_kind {
    EV_THREAD,  /* the next step of a thread; a: thread, b: generation */
    EV_TIMEOUT, /* the wait of a thread has timed out; a, b: the same */
    EV_CANCEL,  /* a thread is cancelled; a, b: the same */
    EV_WAKE,    /* a thread wakes; a, b: the same. The kinds below have no
                   generation */
    EV_TIMER,   /* a: line, b: the time that it was armed for */
    EV_ARRIVE,  /* message reaches the server */
    EV_ANSWER,  /* message's answer reaches the process */
    EV_LANDED,  /* a thread delivers a renewal's answer to the names */
    EV_BELL,    /* a wakeup arrives; a: line */
    EV_RESET,   /* a connection breaks; b: its epoch */
    EV_UP,      /* a process has a connection again; b: its epoch */
    EV_CONTINUE,
    EV_SPAWN,
    EV_WRITE, /* a write reaches the resource, or its reply reaches thread a */
    EV_FAULT,
    EV_THAW,
    EV_REAP,  /* the kernel reports a death; b: serial of the process */
    EV_LATCH, /* the latch is set or counted down; a: name */
    EV_SULK,  /* the server begins to refuse, or stops */
};

struct message;

struct event {
    int64_t at;
    uint64_t seq;
    uint64_t b;
    struct message *message;
    uint32_t serial; /* of the process that receives it; 0: the world receives
                        it */
    uint16_t proc, a;
    uint8_t kind;
};

struct heap {
    struct event *event;
    size_t len, room;
    uint64_t seq;
};

/* A request; a RENEW holds the renewals of a batch. */
struct message {
    struct message *next; /* the next one in flight or unsent */
    uint32_t refs;
    uint32_t serial; /* of the sender */
    uint16_t proc, lock, line, thread;
    uint8_t op;
    bool fixed, may_queue, cancelled, dropped, copy, late, executed;
    bool untouched; /* refused, and the backend knows that nothing was done */
    bool is_zero; /* GRANTED because the latch is 0, not because of the round */
    uint32_t epoch;
    uint32_t session; /* of the sender */
    uint64_t hold_id, token;
    int64_t sent_at; /* by the sender's clock */
    int64_t look_in; /* QUEUED: the time after which to poll again */
    uint64_t round;  /* latch: the round awaited; in an answer, the current
                        round */
    uint32_t lease_ms;
    uint32_t share; /* ATTEMPT: the share wanted */
    int result;
    uint32_t items;
    struct renewal {
        uint64_t hold_id;
        uint32_t lease_ms;
        uint16_t lock, line;
        bool reads; /* whether the line is for reading */
        int result;
    } item[ITEMS_MAX]; /* RENEW; must be last: it may be allocated in part */
};

enum phase {
    T_IDLE,
    T_WAITING,
    T_HOLDING,
    T_WRITING,
    T_RENEWING,
    T_RELEASING,
    T_DONE
};

struct thread {
    struct hf__waiter waiter; /* must be first: thread_wake() casts it */
    struct process *process;
    struct name *line;   /* the line where it waits or holds */
    uint64_t generation; /* events of an older generation are void */
    uint64_t release_id; /* RELEASING: the hold being released */
    uint64_t value;      /* the value that was read from the resource */
    uint64_t token;
    int64_t hold_until, grace;
    int64_t cap;      /* the longest hold that the thread wants */
    int64_t hard_cap; /* when max_hold ends its hold */
    uint32_t owner;   /* in the history */
    uint16_t index, lock, depth;
    uint8_t phase, mode;
    int64_t lost_at, called_at;
    int64_t told_until; /* the deadline last recorded in the history */
    bool excused;       /* see refusals.c */
    bool written, lost;
    bool forgotten; /* lost, and the queue no longer remembers the loss */
};

/* A line of a process under one name: a queue, and its one hold or place at the
 * server. */
struct name {
    struct hf__queue queue;
    struct hf__line_entry line;
    struct process *process;
    struct message *ask;      /* the attempt that is not answered yet */
    int64_t timer_at;         /* HF__NEVER if it is not armed */
    int64_t granted_at;       /* by the process's clock */
    int64_t owed_since;       /* since when waiters have had no answer, or
                                 HF__NEVER */
    int64_t asked_at;         /* since when no attempt has been answered, or
                                 HF__NEVER */
    uint64_t round, round_of; /* latch: `round` is from the answer to the
                                 attempt with hold id round_of */
    uint16_t lock, index;
};

/* All lines of a process under one name. */
struct lock {
    struct hf__line_set lines;
    struct hf__reader *spare;
    struct hf__reader *entry; /* ENTRIES_MAX of them, which the world owns */
    uint32_t entries;         /* in use */
};

struct process {
    struct world *world;
    uint32_t serial; /* its number, also in the history; never reused */
    uint16_t index;
    bool alive;
    int64_t stopped_until;
    int64_t went_on_at; /* when it last continued, by its clock */
    struct clock clock;
    struct lock lock[NAMES_MAX];
    struct name *line; /* LINES_MAX of them, which the world owns */
    uint16_t lines;
    struct thread thread[THREADS_MAX];
    /* The fields below are about the connection. */
    bool up;
    uint32_t session; /* the number of its current session */
    uint32_t epoch;
    int64_t last_arrival, last_answer;
    struct message *flight, **flight_end, *unsent, **unsent_end;
};

struct entry {
    uint32_t serial; /* of the process, or 0 if there is no entry */
    uint16_t proc, line;
    uint32_t share;
    bool ghost; /* created by a request that its sender had given up */
    uint64_t hold_id, token;
    int64_t expiry; /* by the server's clock, or HF__NEVER */
    uint32_t lease_ms;
    bool fixed;
    bool placed; /* granted to a waiter that has sent no attempt since: ends
                    when its place in the queue would have ended */
};

struct slot {
    struct entry hold[HOLDS_MAX];
    struct entry queue[QUEUE_MAX];
    uint32_t holds, queue_len;
    uint64_t last_token;
    uint32_t count; /* of a latch */
};

/* What clients can observe of a latch. In the history it is a lock that is held
 * while its count is not 0. */
struct latch {
    uint32_t owner;
    uint64_t sets;
    int64_t shut_at; /* when the count last rose from 0 */
};

/* The last session of each process, where there are sessions. */
struct session {
    uint32_t serial, number;
    uint32_t epoch; /* requests on an older connection are refused */
    int64_t expiry; /* by the server's clock */
};

struct resource {
    uint64_t token, value;
};

struct tally {
    unsigned long long calls, grants, reentries, events;
    unsigned long long shared, joined, permits, through, downgrades;
    unsigned long long kills, stops, freezes, ills, restarts, resets, cuts,
        lates, copies, bells, sulks, refused;
};

struct world {
    struct rng rng;
    struct config cfg;
    struct heap heap;
    struct history history;
    struct history_rules rules;
    struct history_verdict verdict; /* what the simulation itself has found */
    struct process proc[PROCS_MAX];
    struct slot slot[NAMES_MAX];
    struct latch latch[NAMES_MAX];
    struct session session[PROCS_MAX];
    struct name line[PROCS_MAX][LINES_MAX];
    struct hf__reader entry[PROCS_MAX][NAMES_MAX][ENTRIES_MAX];
    struct resource resource[NAMES_MAX];
    struct clock server_clock;
    struct tally tally;
    struct message *spare;
    int64_t now, called_at, server_frozen_until, server_ill_until;
    int64_t server_cuts_until; /* until then each request breaks its
                                  connection */
    struct sulk {
        unsigned ops;  /* the operations that are refused, as 1 << enum
                          hf__op */
        int64_t since; /* when the refusals began, or ended */
        bool partly;   /* a refused request may have been executed */
        bool ends;     /* the server will soon stop refusing */
    } sulk;
    uint64_t quota; /* the number of acquires still to be called */
    uint32_t serials, owners;
    uint32_t moment; /* the number of events at the current time */
    unsigned broken; /* enum break_it */
    bool verbose;
};

/* chance.c */
uint64_t rng_next(struct rng *);
int64_t rng_between(struct rng *, int64_t lo, int64_t hi); /* inclusive */
bool rng_chance(struct rng *, uint32_t per_mille);
/* Returns a number that is mostly near lo and seldom near hi. */
int64_t rng_skewed(struct rng *, int64_t lo, int64_t hi);
void config_draw(struct config *, struct history_rules *, struct rng *,
                 uint64_t seed);

/* heap.c */
void heap_push(struct heap *, struct event);
bool heap_pop(struct heap *, struct event *);

/* world.c */
int64_t clock_read(const struct clock *, int64_t real);
int64_t clock_real(const struct clock *, int64_t local); /* rounded up */
int64_t process_now(const struct process *);
void at_process(struct process *, int64_t at, int kind, uint32_t a, uint64_t b);
void note(struct world *, struct history_event);
void note_fault(struct world *, int64_t until);
void world_fail(struct world *, const char *check, const char *text);
void world_run(struct world *, uint64_t seed, uint64_t quota);
void world_fini(struct world *);
void trace(const struct world *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* process.c */
void process_spawn(struct process *);
void process_kill(struct process *);
void process_stop(struct process *, int64_t until);
void process_run(struct name *);
void process_timer(struct name *);
void process_deliver(struct process *, struct message *);
void process_landed(struct world *, struct message *);
void process_bell(struct name *);
void process_told(struct name *);
void process_session_over(struct process *);
/* Returns an unused line, which is then marked as used. */
struct name *process_line(struct process *, uint16_t lock, bool reads);
struct hf__reader *process_entry(struct process *, uint16_t lock);
void process_rest(struct name *);
/* Returns whether the owner has a hold on that line that is not lost. */
bool process_owns(const struct name *, uint64_t owner);

/* thread.c */
void thread_step(struct thread *);
void thread_timeout(struct thread *);
void thread_cancel(struct thread *);
void thread_woken(struct thread *);
void thread_released(struct thread *, int result);
void thread_renewed(struct thread *);
void thread_wrote(struct thread *);
void thread_start(struct thread *);
hf__wake_fn thread_wake;

/* net.c */
struct message *message_new(struct process *, int op, uint16_t lock);
void message_put(struct world *, struct message *);
void net_send(struct process *, struct message *);
void net_arrive(struct world *, struct message *);
void net_answer(struct world *, struct message *);
void net_reset(struct process *);
void net_up(struct process *);
void net_forget(struct process *); /* called when the process dies */
/* Settles every unanswered request. Called when the session has ended. */
void net_session_over(struct process *);
int64_t net_delay(struct world *);

/* session.c */
/* Returns true if the server may execute the request, which then keeps the
 * session alive. Otherwise sets the result. */
bool session_admits(struct world *, struct message *);

/* refusals.c */
void sulk_begin(struct world *);
void sulk_event(struct world *);
/* Returns whether the server refuses the request. */
bool sulk_refuses(const struct world *, const struct message *);
/* Checks that waiters of the line are answered in time. Must be called when
 * waiters may have been added or removed. */
void sulk_watch(struct name *);
/* Checks the result of an acquire. */
void sulk_judge(struct thread *, int result);
/* Checks the line after it has processed the answer to an attempt. */
void sulk_left(struct name *, const struct message *);

/* server.c */
void server_execute(struct world *, struct message *, bool late);
void server_restart(struct world *);
void server_reap(struct world *, uint32_t serial);
void server_left(struct world *);
int64_t server_now(const struct world *);
void server_latch(struct world *, uint16_t lock);
bool server_was_open(const struct world *, uint16_t lock, int64_t since);

#endif
