/*
 * A stage for tests of the shared-memory backend: processes that obey commands
 * (actors), one that is killed or stopped (the victim), and access to the file.
 * The backend's sources are compiled with HF__SHM_POINTS, which adds a call
 * between any two steps that others can see; the n-th of these calls in the
 * victim does what the test says.
 */
#ifndef SHM_STAGE_H
#define SHM_STAGE_H

#include "../../lib/canary.h"
#include "../../lib/options.h"
#include "../../lib/sanitized.h"
#include "../../lib/shm_dir.h"
#include "backends/shm/layout.h"
#include "helpers.h"

#include <holdfast.h>
#include <stdbool.h>
#include <sys/types.h>

/* The contract's limit; instrumented code gets more time. */
enum { STAGE_LIMIT_MS = SANITIZED ? 2000 : 100 };
/* An actor that has not answered by then is stuck. */
enum { STAGE_STUCK_MS = 25000 };
enum { STAGE_PLACES = 512, STAGE_HOLDS = 16 };

struct stage_place {
    char file[24];
    int line;
    int visits;
};

/* Shared by all processes of the test. */
struct stage {
    struct stage_place at; /* where the victim was stopped */
    struct stage_place place[STAGE_PLACES];
    _Atomic int phase;      /* of the scenario */
    _Atomic int paused, go; /* the victim's */
    struct stage_hold {
        _Atomic int pid, permits;
    } inside[STAGE_HOLDS]; /* the holders; pid 0: no holder */
    _Atomic int overlaps;
};

/* The roles. A cast says what each of them acquires: all of a mutex, one or all
 * permits of a read-write lock, some of a semaphore. */
enum stage_role { VICTIM, HOLDER, WAITER, PROBER, DEAD, ROLES };

struct stage_cast {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
    /* All permits; roles that need more together exclude each other. */
    uint32_t size;
    uint32_t permits[ROLES]; /* 0: all, to write */
};

struct answer {
    int rc;
    uint64_t token;
    int64_t at;
    char text[160];
};

struct actor {
    pid_t pid;
    int fd;
    enum stage_role role;
};

struct seat { /* a client and its lock or latch */
    hf_client *client;
    hf_lock *lock;
    enum stage_role role;
    hf_latch *latch;
};

extern struct stage *stage;
extern struct canary stage_canary;
extern struct shm_file *stage_file; /* read-only */
extern const struct stage_cast *stage_cast;
extern char stage_fault[200]; /* the first fault, or "" */
extern struct locks_place stage_shm;
/* The usual actors; pid 0: not there. */
extern struct actor holder, waiter, prober;
extern int64_t stage_worst_ns; /* longest time until a grant */
extern uint64_t stage_last_token;
/* What the victim does at its point; NULL: it is killed. */
extern void (*stage_at_point)(void);
void stage_pause(void); /* until `go` */

void stage_build(const char *name);
/* Prints how many steps there were ("kills"), at how many places and for how
 * long, and the plan after the last case. Returns the exit status, 0 or 1. */
int stage_end(int steps, const char *what);
void stage_map(void);
/* Before a victim starts: there is no holder, and nothing has happened. */
void stage_reset(void);
void stage_blame(const char *what); /* notes a fault */
void stage_note_place(void);

/* Prints one line of TAP for what was tried since the last one; it passed
 * unless there were faults. All other output begins with "# ". */
void stage_case(int faults, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A scenario that is run for n = 1, 2, 3 ... as long as the victim has an n-th
 * step. */
struct stage_walk {
    const char *name, *meanwhile; /* for the faults; meanwhile may be NULL */
    bool (*run)(const void *scenario, int n); /* false: there is no n-th step */
    const void *scenario;
    int only;  /* the only n; 0: all */
    bool once; /* end with the first fault, which leaves an unknown state */
};
/* Prints the faults and adds their number; returns the number of steps. */
int stage_walk(const struct stage_walk *, int *faults);

int64_t now_ns(void);

/* A time, and how long until then each role and this process had waited for a
 * CPU, any thread had waited for one, and the machine had stalled. */
struct moment {
    int64_t at, stalled, stood;
    pid_t pid_of[ROLES];
    int64_t cpu_waits[ROLES + 1];
};
struct moment moment_now(void);
void stage_victim_is(pid_t); /* pid of the victim; 0: it has ended */
/* Returns the time that passed, without waits for a CPU or stalls of the
 * machine. */
int64_t moment_until(const struct moment *since, int64_t at);

/* The next cast of that kind (mutex, rwlock, semaphore, latch) after that one,
 * or the first. NULL: there is none. */
const struct stage_cast *stage_next_cast(const char *kind,
                                         const struct stage_cast *);

/* Arms the countdown to the n-th point in the victim; 0 disarms it. */
void stage_arm(int n);

/* Starts a victim that runs `play` and dies at its n-th point. With `sits` its
 * client is open before. */
pid_t victim_begin(void (*play)(struct seat *), bool sits, int n);
/* Waits until the victim has ended. False if it survived. */
bool victim_was_killed(pid_t);
/* Ends a victim that was to be paused: it closes its client and exits when `go`
 * is 2, because its death would repair things. The phase is 3 meanwhile. */
_Noreturn void victim_stays(struct seat *);
/* Walks with `run`, which says whether the victim was killed, and prints one
 * case. Returns the number of kills. */
int stage_kill_at_each(const char *name, int only,
                       bool (*run)(const void *scenario, int n),
                       const void *scenario);

/* The permits that role acquires. */
uint32_t stage_permits(enum stage_role);
/* True if the two roles can hold it together. */
bool stage_is_shared(enum stage_role, enum stage_role);
void stage_nobody_inside(void);

int sit(struct seat *, enum stage_role, hf_error *);
void stand_up(struct seat *);
/* Acquires, and checks which others are inside; releases. */
int enter(struct seat *, int64_t wait_ms, int64_t lease_ms, hf_error *);
int leave(struct seat *, hf_error *);
int go_down(struct seat *, hf_error *); /* from writing to reading */

void actor_begin(struct actor *, enum stage_role);
void actor_end(struct actor *, int sig); /* 0: it closes and exits */
/* Begins the holder, the waiter and the prober, and maps the file. */
void actors_begin(void);
/* Ends those that are there. */
void actors_end(void);
/* Verbs: a acquire or wait for the latch (SIGUSR1 cancels, SIGUSR2 makes a
 * waiter poll), r release, o reopen, b break, q quit; m acquire the least of
 * "y", with one more handle each time, n release all of that; for a latch: s
 * set to lease_ms, d count down. */
void actor_tell(struct actor *, char verb, int64_t wait_ms, int64_t lease_ms);
bool actor_hear(struct actor *, struct answer *, int timeout_ms);
/* Tells and hears; any rc but 0 is a fault. */
struct answer actor_ask(struct actor *, char verb, int64_t wait_ms,
                        int64_t lease_ms);
/* Checks that the grant came within the limit. */
bool check_in_time(const struct answer *, const struct moment *since,
                   int limit_ms, const char *who);
/* Also checks that it has a higher token. */
void check_grant(const struct actor *, const struct answer *,
                 const struct moment *since, int limit_ms, const char *who);
/* Waits for the answer, and checks it as a grant. */
void check_gets_it(struct actor *, const struct moment *since, int limit_ms,
                   const char *who);

int queued(void);
bool has_ended(pid_t);
void await_end(pid_t);
/* Waits until n actors wait, or the victim has ended or is paused. */
void await_queue(int n, pid_t victim);
/* Also waits until each of them sleeps and acquires only when notified. */
void await_settled(int n, pid_t victim);
/* Checks that the file contains only what that many idle clients have. */
void check_leaks(int clients);

#endif
