/*
 * A stage for tests of the shared-memory backend: processes that execute
 * commands (actors), a process that is killed or stopped (the victim), and
 * access to the file. The backend's sources are compiled with HF__SHM_POINTS,
 * which adds a call between any two steps that other processes can see. The
 * n-th of these calls in the victim runs stage_at_point(), or kills the victim.
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

/* By the contract, a waiting client must be granted the lock within this time
 * after a holder or another waiter has been killed. Instrumented code gets more
 * time. */
enum { STAGE_LIMIT_MS = SANITIZED ? 2000 : 100 };
/* An actor that has not answered within this time is stuck. */
enum { STAGE_STUCK_MS = 25000 };
enum { STAGE_PLACES = 512, STAGE_HOLDS = 16 };

struct stage_place {
    char file[24];
    int line;
    int visits;
};

/* Memory that all processes of the test share. */
struct stage {
    struct stage_place at; /* where the victim was killed or paused */
    struct stage_place place[STAGE_PLACES];
    _Atomic int phase;      /* the phase of the scenario */
    _Atomic int paused, go; /* the victim is paused; it may go on */
    struct stage_hold {
        _Atomic int pid, permits;
    } inside[STAGE_HOLDS]; /* the holders; no holder if pid is 0 */
    _Atomic int overlaps;
};

/* The roles of the processes. A cast determines what each of them acquires: all
 * of a mutex, one or all permits of a read-write lock, some or all of a
 * semaphore. */
enum stage_role { VICTIM, HOLDER, WAITER, PROBER, DEAD, ROLES };

struct stage_cast {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
    /* The permits of the lock; roles that need more than this together exclude
     * each other. */
    uint32_t size;
    uint32_t permits[ROLES]; /* 0 means all, for writing */
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
extern struct shm_file *stage_file; /* mapped read-only */
extern const struct stage_cast *stage_cast;
extern char stage_fault[200]; /* the first fault, or "" */
extern struct locks_place stage_shm;
/* The usual actors; an actor whose pid is 0 is not running. */
extern struct actor holder, waiter, prober;
extern int64_t stage_worst_ns; /* the longest time until a grant */
extern uint64_t stage_last_token;
/* What the victim does at its n-th point; NULL kills the victim there. */
extern void (*stage_at_point)(void);
void stage_pause(void); /* pauses the victim until `go` */

void stage_build(const char *name);
/* Must be called after the last case. Prints how many steps there were (`what`
 * names them, for example "kills"), at how many places in the code, the
 * duration of the test, and the TAP plan. Returns the exit status, 0 or 1. */
int stage_end(int steps, const char *what);
void stage_map(void);
/* Resets the stage before a victim starts: there is no holder, and nothing has
 * happened. */
void stage_reset(void);
void stage_blame(const char *what); /* notes a fault */
void stage_note_place(void);

/* Prints one TAP line for everything that was tried since the last such line.
 * The case passes if there were no faults. All other output begins with "#
 * ". */
void stage_case(int faults, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A scenario that is run for n = 1, 2, 3 ... until the victim ends before its
 * n-th step. */
struct stage_walk {
    const char *name, *meanwhile; /* for messages; meanwhile may be NULL */
    bool (*run)(const void *scenario, int n); /* false after the last step */
    const void *scenario;
    int only;  /* the only n, or 0 for all */
    bool once; /* the first fault leaves an unknown state and ends the walk */
};
/* Runs the scenario, prints its faults and adds their number to *faults;
 * returns the number of steps. */
int stage_walk(const struct stage_walk *, int *faults);

int64_t now_ns(void);

/* A point in time, and the delays up to that point: how long each role and this
 * process had waited for a CPU, how long any thread had, and how long the
 * machine had stalled. */
struct moment {
    int64_t at, stalled, stood;
    pid_t pid_of[ROLES];
    int64_t cpu_waits[ROLES + 1];
};
struct moment moment_now(void);
void stage_victim_is(pid_t); /* the victim's pid, or 0 when it has ended */
/* Returns the time from `since` to `at`, less the waits for a CPU and the
 * stalls of the machine. */
int64_t moment_until(const struct moment *since, int64_t at);

/* Returns the cast of that kind (mutex, rwlock, semaphore, latch) that follows
 * the given cast, or the first if NULL is given. Returns NULL if no cast is
 * left. */
const struct stage_cast *stage_next_cast(const char *kind,
                                         const struct stage_cast *);

/* Arms the countdown to the n-th point in the victim; 0 disarms it. */
void stage_arm(int n);

/* Starts a victim that runs play() and is killed at its n-th point. If `sits`
 * is set, its client is opened first. */
pid_t victim_begin(void (*play)(struct seat *), bool sits, int n);
/* Waits until the victim has ended; returns false if it survived. */
bool victim_was_killed(pid_t);
/* Called by a victim that was to be paused, when its part is over. Sets the
 * phase to 3, and waits until `go` is 2 before it closes the client and exits:
 * if the victim ended earlier, the cleanup after it would repair what must be
 * checked. */
_Noreturn void victim_stays(struct seat *);
/* Runs the scenario for n = 1, 2, 3 ... until run() returns false, which means
 * that the victim survived. Prints one case and returns the number of kills. */
int stage_kill_at_each(const char *name, int only,
                       bool (*run)(const void *scenario, int n),
                       const void *scenario);

/* Returns the permits that this role acquires. */
uint32_t stage_permits(enum stage_role);
/* Returns whether the two roles can hold the lock together. */
bool stage_is_shared(enum stage_role, enum stage_role);
void stage_nobody_inside(void);

int sit(struct seat *, enum stage_role, hf_error *);
void stand_up(struct seat *);
/* enter() acquires and checks that the permits of all holders do not exceed
 * those of the lock; leave() releases. */
int enter(struct seat *, int64_t wait_ms, int64_t lease_ms, hf_error *);
int leave(struct seat *, hf_error *);
int go_down(struct seat *, hf_error *); /* downgrades from writing to reading */

void actor_begin(struct actor *, enum stage_role);
void actor_end(struct actor *, int sig); /* sig 0: it exits by itself */
/* Begins the holder, the waiter and the prober, and maps the file. */
void actors_begin(void);
/* Ends these actors, if they are running. */
void actors_end(void);
/* Sends a command. The verbs:
 *   a  acquire, or wait for the latch; SIGUSR1 cancels this, and SIGUSR2
 *      makes a waiter poll
 *   r  release
 *   o  reopen the client
 *   b  break
 *   q  quit
 *   m  acquire the smallest share of "y", each time with a new handle
 *   n  release all of these shares
 *   s  set the latch to lease_ms
 *   d  count the latch down */
void actor_tell(struct actor *, char verb, int64_t wait_ms, int64_t lease_ms);
bool actor_hear(struct actor *, struct answer *, int timeout_ms);
/* Sends a command and waits for the answer; any rc except 0 is a fault. */
struct answer actor_ask(struct actor *, char verb, int64_t wait_ms,
                        int64_t lease_ms);
/* Checks that the grant came within the limit. */
bool check_in_time(const struct answer *, const struct moment *since,
                   int limit_ms, const char *who);
/* Checks that the grant came within the limit and has a higher token than the
 * last grant, or at least the same token if the actor does not acquire the
 * whole lock. */
void check_grant(const struct actor *, const struct answer *,
                 const struct moment *since, int limit_ms, const char *who);
/* Waits for the answer, and checks it like check_grant(). */
void check_gets_it(struct actor *, const struct moment *since, int limit_ms,
                   const char *who);

int queued(void);
bool has_ended(pid_t);
void await_end(pid_t);
/* Waits until n actors wait in the queue, or the victim has ended or is
 * paused. */
void await_queue(int n, pid_t victim);
/* Like await_queue(), but also waits until each of the actors sleeps and
 * acquires only when it is notified. */
void await_settled(int n, pid_t victim);
/* Checks that the file contains only what it must contain for this number of
 * idle clients. */
void check_leaks(int clients);

#endif
