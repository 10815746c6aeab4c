/*
 * A stage for tests of the shared-memory backend: processes that obey commands
 * (actors), one that is killed or stopped (the victim), and a look into the
 * file. The backend's sources are compiled with HF__SHM_POINTS, which
 * puts a call between any two steps that others can see; in the victim the
 * n-th of these calls does what the test says.
 */
#ifndef SHM_STAGE_H
#define SHM_STAGE_H

#include "../../lib/canary.h"
#include "../../lib/options.h"
#include "../../lib/sanitized.h"
#include "backends/shm/layout.h"

#include <holdfast.h>
#include <stdbool.h>
#include <sys/types.h>

/* The bound of the contract; instrumented code is not held to it. */
enum { STAGE_LIMIT_MS = SANITIZED ? 2000 : 100 };
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
    } inside[STAGE_HOLDS]; /* the holders; pid 0: none */
    _Atomic int overlaps;
};

/* The roles; a cast says what each acquires: all of a mutex, one or all of a
 * read-write lock, some of a semaphore. */
enum stage_role { VICTIM, HOLDER, WAITER, PROBER, DEAD, ROLES };

struct stage_cast {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
    uint32_t size;           /* permits that there are; more: never together */
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

struct seat { /* a client and its lock, or its latch */
    hf_client *client;
    hf_lock *lock;
    enum stage_role role;
    hf_latch *latch;
};

extern struct stage *stage;
extern struct canary stage_canary;
extern struct shm_file *stage_file; /* read-only */
extern const struct stage_cast *stage_cast;
extern char stage_fault[200]; /* the first that was found, or "" */
extern char stage_path[96];   /* of the file */
extern char stage_url[80];
extern int64_t stage_worst_ns; /* wait for a grant */
extern uint64_t stage_last_token;
/* What the victim does at its point: dies, if NULL. */
extern void (*stage_at_point)(void);
void stage_pause(void); /* until `go` */

void stage_build(const char *name);
void stage_clear(void);
void stage_map(void);
void stage_blame(const char *what); /* notes a fault */
void stage_note_place(void);
int stage_count_places(bool show);

/* One line of TAP for what was tried since the last one: passed unless there
 * were faults. What is printed besides begins with "# ". */
void stage_case(int faults, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The plan, after the last case. How to exit: 0 or 1. */
int stage_plan(void);

int64_t now_ns(void);
void nap_us(long us);

/* A time, and how long each role, and we, had waited for a processor until
 * then; how long any thread had, and the machine had stood still. */
struct moment {
    int64_t at, stalled, stood;
    pid_t pid_of[ROLES];
    int64_t cpu_waits[ROLES + 1];
};
struct moment moment_now(void);
void stage_victim_is(pid_t); /* one who plays, too; 0: gone */
/* How long that took, but for waiting for a processor, or the machine. */
int64_t moment_until(const struct moment *since, int64_t at);

/* The next that plays that kind (mutex, rwlock, semaphore, latch) after that
 * one, or the first. NULL: there is none. */
const struct stage_cast *stage_next_cast(const char *kind,
                                         const struct stage_cast *);

/* Arms the countdown to the n-th point; 0 disarms it. In the victim. */
void stage_arm(int n);

/* Starts a victim, which plays that and at its n-th point dies. It has a seat
 * already, unless it is to sit down itself. */
pid_t victim_begin(void (*play)(struct seat *), bool sits, int n);
/* Until it is gone. False: it came through. */
bool victim_was_killed(pid_t);
/* For n = 1, 2, 3 ... (or just the one) until `run` says that the victim came
 * through; one case of the test. How many were killed. */
int stage_kill_at_each(const char *name, int only,
                       bool (*run)(const void *scenario, int n),
                       const void *scenario);

/* What that role takes. */
uint32_t stage_permits(enum stage_role);
/* Can the two hold it together? */
bool stage_is_shared(enum stage_role, enum stage_role);
void stage_nobody_inside(void);

int sit(struct seat *, enum stage_role, hf_error *);
void stand_up(struct seat *);
/* Acquire and release, with a look at who else is inside. */
int enter(struct seat *, int64_t wait_ms, int64_t lease_ms, hf_error *);
int leave(struct seat *, hf_error *);
int go_down(struct seat *, hf_error *); /* from writing to reading */

void actor_begin(struct actor *, enum stage_role);
void actor_end(struct actor *, int sig); /* 0: it closes and exits */
/* a acquire or wait for the latch (ended by SIGUSR1; a waiter looks again at
 * SIGUSR2), r release, o open again, b break, q quit; m take the least of "y",
 * with one handle more each time, n let go of all that; of a latch: s set to
 * that lease, d count down */
void actor_tell(struct actor *, char verb, int64_t wait_ms, int64_t lease_ms);
bool actor_hear(struct actor *, struct answer *, int timeout_ms);
/* Tells and hears; what is not 0 is a fault. */
struct answer actor_ask(struct actor *, char verb, int64_t wait_ms,
                        int64_t lease_ms);
/* A grant that was awaited since then: in time? */
bool check_in_time(const struct answer *, const struct moment *since,
                   int limit_ms, const char *who);
/* And with a higher token? */
void check_grant(const struct actor *, const struct answer *,
                 const struct moment *since, int limit_ms, const char *who);

int queued(void);
bool has_ended(pid_t);
/* Until so many wait, or the victim is gone or paused. */
void await_queue(int n, pid_t victim);
/* And until each of them sleeps and takes nothing unless it is rung. */
void await_settled(int n, pid_t victim);
/* What is in the file is what so many clients have that do nothing. */
void check_leaks(int clients);

#endif
