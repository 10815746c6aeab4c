/*
 * What `run` and `hold` have in common: which locks are wanted, the wait for
 * them and for the server, and what is said if they are not acquired.
 */
#ifndef HF_CLI_CLAIM_H
#define HF_CLI_CLAIM_H

#include "cli.h"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

/* ---- what was asked for (lock_options.c)
 * ----------------------------------------
 */

enum { LOCKS_MAX = 64 }; /* of one -l each */

struct wanted {
    const struct cli_verb *verb;
    const char *url, *label;
    const char *names[LOCKS_MAX]; /* as they were typed */
    size_t len;
    int64_t wait_ms; /* HF_FOREVER: as long as it takes; 0: not at all */
    int64_t ttl_ms;  /* 0: as the URL says */
    enum hf_kind kind;
    enum hf_mode mode;
    enum hf_fairness fairness;
    uint32_t permits, of; /* 0: was not said */
    int busy_exit;
    bool quiet;
    bool shared, exclusive, nonblock, fair, unfair; /* was said */
};

enum {
    WANTED_FAIR = 256,
    WANTED_UNFAIR,
    WANTED_LABEL,
    WANTED_PERMITS,
    WANTED_OF,
    WANTED_OTHERS
};

/* Of struct cli_flag, in two parts between which a verb may put its own. */
/* clang-format off */
#define WANTED_FLAGS                                                           \
    CLI_FLAG_BACKEND,                                                          \
    {'l', "lock", "NAME",                                                      \
     "instead of the operand NAME; -l a -l b takes both"},                     \
    {'x', "exclusive", NULL, "write mode of a read-write lock (also -e)"},     \
    {'e', NULL, NULL, NULL},                                                   \
    {'s', "shared", NULL, "read mode; without -x and -s the lock is a mutex"}, \
    {WANTED_OF, "of", "N", "the lock is a semaphore of N permits"},            \
    {WANTED_PERMITS, "permits", "K", "take K of the N permits (1)"},           \
    {'n', "nonblock", NULL, "fail at once if the lock is not free"},           \
    {'n', "nb", NULL, NULL},                                                   \
    {'w', "wait", "DURATION",                                                  \
     "fail if the lock is not acquired within this time"},                     \
    {'w', "timeout", "DURATION", NULL},                                        \
    {'t', "ttl", "DURATION",                                                   \
     "how long it stays held if this machine dies (30s)"},                     \
    {WANTED_FAIR, "fair", NULL, "first come, first served"},                   \
    {WANTED_UNFAIR, "unfair", NULL, "the quickest client gets the lock"},      \
    {'E', "conflict-exit-code", "CODE", "exit status if not acquired (75)"},   \
    {'q', "quiet", NULL, "print nothing if not acquired or while waiting"},    \
    {WANTED_LABEL, "label", "TEXT",                                            \
     "shown to others who ask who holds the lock"}

#define WANTED_INIT(of_verb)                                                   \
    {.verb = (of_verb), .wait_ms = HF_FOREVER, .kind = HF_MUTEX,               \
     .mode = HF_WRITE, .busy_exit = CLI_BUSY}
/* clang-format on */

/* One of WANTED_FLAGS. CLI_OK; CLI_USAGE after having said why, or because it
 * is no option at all, which has been said. */
int wanted_take(struct wanted *wanted, int option, const char *value);
int wanted_name(struct wanted *wanted, const char *name);
/* After options and operands: do they fit together? CLI_OK or CLI_USAGE. */
int wanted_check(struct wanted *wanted);

/* ---- a lock that an ancestor holds (nested.c) ------------------------------
 */

/*
 * A command that `run' has started must not wait for the lock that is held on
 * its behalf. `run' exports which locks it holds in HOLDFAST_HELD; an entry
 * counts only while the process that wrote it is an ancestor of ours.
 */
struct nested {
    const char *name; /* which of ours; NULL: an ancestor holds none */
    pid_t pid;        /* of the ancestor */
    bool may_share;   /* both read: it may be granted all the same */
};

void nested_find(struct nested *nested, const struct wanted *wanted);
/* The same by what the server says of its holders: the place may be written in
 * another way. */
void nested_ask(struct nested *nested, const struct wanted *wanted,
                hf_client *client);
/* What our own command finds. Before there are threads. CLI_OK or CLI_OSERR. */
int nested_export(const struct wanted *wanted);
/* Does the ancestor hold it still? True if the server does not tell. */
bool nested_is_held(const struct nested *nested, hf_client *client);

/* ---- waiting (server_wait.c, wait_message.c)
 * ---------------------------------------
 */

/* Locks that are held together, in the order in which they were typed. */
struct holds {
    const struct wanted *wanted;
    hf_client *client;
    hf_part parts[LOCKS_MAX];
    size_t len;
};

/* hf_lock_explain() of the first that is lost; which one. HF_OK: all are held,
 * and why->text tells of trouble with the server, if there is any. */
int holds_explain(const struct holds *holds, size_t *which, hf_error *why);
/* The first deadline of all, and whose it is. As hf_lock_deadline(). */
int holds_deadline(const struct holds *holds, size_t *which, int64_t *deadline);
void holds_release_nowait(const struct holds *holds);
/* A descriptor that is readable when another client may have asked for a lock
 * (`holdfast ask'), which the second then says; -1 where the backend cannot
 * ask.
 */
int holds_asked_fd(const struct holds *holds);
void holds_say_asked(const struct holds *holds);

/* While hf_lock_acquire() waits: a thread says who holds the lock. */
struct waiting {
    const struct holds *holds;
    hf_client *client;
    int64_t begun_at; /* CLOCK_BOOTTIME */

    pthread_t thread;
    bool started;
    pthread_mutex_t mu; /* of the rest, and of standard error meanwhile */
    pthread_cond_t changed;
    bool active, over, said;
    int look_after_s; /* between two questions to the server; -1: none */
};

/* Around each call of hf_lock_acquire(): nothing is written after the second.
 * Both may be called with nothing to do (-q, -n). */
void waiting_begin(struct waiting *waiting);
void waiting_pause(struct waiting *waiting);
void waiting_end(struct waiting *waiting); /* after the last one */
/* After hf_close(), which ends what it asks. */
void waiting_join(struct waiting *waiting);

/*
 * Waiting for the server, then for the locks. A failure that may pass
 * (hf_error.may_pass) does not end the wait: both functions try again as long
 * as -w allows, for ever without it, not at all with -n. One line on standard
 * error says what they wait for.
 */
struct patience {
    const struct wanted *wanted;
    int64_t begun_at; /* CLOCK_BOOTTIME: the time of -w begins */
    int64_t pause_ms; /* the last one */
    hf_error said;    /* what it waits for; its text is empty: nothing yet */
    bool only_try;    /* as with -n */
};

/* The signal that ended the wait, or 0. */
extern volatile sig_atomic_t patience_caught;

/* The time of -w is over, and this was said when the wait began. */
bool patience_has_said(const struct patience *patience, const hf_error *err);
/* hf_open(). Signals keep their usual effect: there is nothing to undo yet. */
int patience_open(struct patience *patience, const char *url,
                  hf_client_options *options, hf_client **out, hf_error *err);
/* hf_lock_acquire_all(). A signal that would have ended us ends the wait first,
 * so that we leave the queue. The signals are blocked when it returns. */
int patience_acquire(struct patience *patience, const struct holds *holds,
                     struct waiting *waiting, hf_error *err);
/* The signals that are blocked while a lock is held. */
void patience_signals(sigset_t *set);

/* ---- a name that is another kind of lock (mismatch.c) ----------------------
 */

/* After HF_EMISMATCH: says what the name is in use as, and which options ask
 * for that. False: the server does not tell, and nothing was said. */
bool mismatch_say(const struct wanted *wanted, hf_client *client,
                  const char *name);

/* ---- all of it (lock_set.c)
 * ---------------------------------------------------
 */

struct claim {
    const struct wanted *wanted;
    struct nested nested; /* by nested_find() */
    sigset_t mask;        /* what was blocked when we were started */
    hf_client *client;
    struct holds holds;
    struct patience patience;
    struct waiting waiting;
};

/* Connects and acquires. True: all locks are held, and patience_signals() are
 * blocked. False: *status is the exit status, and it was said why. Call
 * claim_close() in both cases. */
bool claim_take(struct claim *claim, int *status);
/* Releases the locks. The exit status: `status', or CLI_LOST (not if only_warn)
 * if they turn out to be lost. Says what went wrong. */
int claim_release(struct claim *claim, int status, bool only_warn);
void claim_close(struct claim *claim);

#endif
