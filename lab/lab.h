/*
 * The lab: what a scenario sees of it.
 *
 * A scenario is a file in scenarios/ and a line in scenarios/list.h. It makes
 * something go wrong (or right), for real, and writes a row for each way that
 * it tries: some fields, and a verdict in one sentence.
 *
 * Processes. `holdfast lab` is a supervisor (main.c) and its child, the
 * runner, in which scenarios run. The runner forks actors (stage.h: led step
 * by step) and workers (workers.h: as fast as they can), which die with it.
 * Each temporary server, and each given database, has a keeper (keeper.h): a
 * process that stops the server, or removes what the lab put into the
 * database, when the runner is gone, for whatever reason. The supervisor waits
 * for all of them. So nothing here has to clean up: whatever fails calls
 * lab_die().
 */
#ifndef HF_LAB_H
#define HF_LAB_H

#include "../cli/shared/args.h"
#include "../cli/shared/complete.h"
#include "../cli/shared/message.h"
#include "../cli/shared/screen.h"
#include "../cli/shared/values.h"
#include "runner/report.h"

#include <sys/types.h>

struct lab;

/* ---- scenarios ---------------------------------------------------------- */

/* What a scenario can be told, besides what all can be. */
enum lab_option {
    LAB_STRATEGY = 1 << 0, /* --strategy LIST */
    LAB_STOCK = 1 << 1,    /* --stock N */
    LAB_BUYERS = 1 << 2,   /* --buyers N */
    LAB_WAITERS = 1 << 3,  /* --waiters N */
    LAB_READERS = 1 << 4,  /* --readers N */
    LAB_TRAINS = 1 << 5,   /* --trains N */
    LAB_SECONDS = 1 << 6,  /* --seconds S: of each measurement */
    LAB_TTL = 1 << 7,      /* --ttl DURATION: of leases and sessions */
};

/* What a scenario cannot do without. */
enum lab_need {
    LAB_NEEDS_MARIADB = 1 << 0, /* as a store */
    LAB_NEEDS_SERVERS = 1 << 1, /* it kills them: --servers alone */
    /* Not needed: it has rows for Redlock without being asked for them. In the
     * other scenarios they would say the same as those of Redis. */
    LAB_HAS_REDLOCK = 1 << 2,
    /* The same for the lock on MariaDB. */
    LAB_HAS_MARIADB = 1 << 3,
};

/* Why the rows of a strategy come out as they do: one line below the table. */
struct lab_note {
    const char *strategy, *text;
};

struct lab_scenario {
    const char *name;
    const char *summary;              /* one line of `holdfast lab list` */
    const char *text;                 /* what it does and shows; some lines */
    const struct lab_column *columns; /* ends with a key that is NULL */
    unsigned options;                 /* enum lab_option */
    unsigned needs;                   /* enum lab_need */
    /* Names that --strategy takes, ends with NULL; NULL: none. */
    const char *const *strategies;
    /* For rows with a column "strategy"; ends with NULL; NULL: none. */
    const struct lab_note *notes;
    void (*run)(struct lab *lab);
};

/* What was asked for; the defaults are in main.c. */
struct lab_settings {
    uint64_t workers, stock, buyers, waiters, readers, trains;
    bool workers_given; /* else a scenario may have a number of its own */
    int64_t seconds_ms, ttl_ms;
};

const struct lab_settings *lab_settings(const struct lab *lab);
/* Was it asked for, by name or by `all`? */
bool lab_wants(const struct lab *lab, const char *strategy);
/* Was it asked for by name? Then what it needs has to be there. */
bool lab_insists(const struct lab *lab, const char *strategy);

/* ---- places ------------------------------------------------------------- */

enum lab_engine {
    LAB_SHM,
    LAB_FILE,
    LAB_REDIS,
    LAB_REDLOCK, /* several servers of Redis */
    LAB_ZOOKEEPER,
    LAB_ETCD,
    LAB_MARIADB,
    LAB_ENGINES,
};

/* Where locks or a stock live: given by a URL, or a temporary server. */
enum { LAB_REDLOCK_SERVERS = 5 };

struct lab_place {
    enum lab_engine engine;
    const char *name; /* "redis": as rows say it */
    char url[256];    /* may have a password in it: never print it */
    pid_t pid;        /* of a temporary server, else 0 */
    pid_t others[LAB_REDLOCK_SERVERS - 1]; /* of Redlock, beside pid */
    bool given; /* by a URL: nothing may be left in it */
};

/* Is it one of the backends that were asked for? Starts nothing. */
bool lab_uses(const struct lab *lab, enum lab_engine engine);
/* The backends that were asked for, NULL after the last: i = 0, 1, ... A
 * temporary server is started when its place is asked for first. */
const struct lab_place *lab_backend(struct lab *lab, size_t i);
/* The store of that kind, or NULL: there is none. Never NULL if the scenario
 * declares that it needs it. */
const struct lab_place *lab_store(struct lab *lab, enum lab_engine engine);

/* A name that no other run uses: "holdfast-lab-1234-abcd-WORD". It begins the
 * keys, tables (by lab_table) and locks of this run: keepers remove by it. */
void lab_name(const struct lab *lab, const char *word, char out[96]);
/* The same with underscores, for SQL. */
void lab_table(const struct lab *lab, const char *word, char out[96]);
/* The directory of this run, removed at its end. Servers are below it. */
const char *lab_directory(struct lab *lab);

/* ---- locks, by holdfast -------------------------------------------------- */

/* hf_open and hf_lock_new, or lab_die(). ttl_ms 0: the default. Clients belong
 * to a process: open them in the actor or worker. */
hf_client *lab_open(const struct lab_place *place, int64_t ttl_ms);
hf_lock *lab_lock(hf_client *client, const char *name,
                  const hf_lock_options *opt);
/* hf_client_caps() of that backend: 0 if it does not have the kind. */
int lab_caps(const struct lab_place *place, enum hf_kind kind);
/* Dies unless rc is HF_OK: what is "acquire", for the text. */
void lab_check(int rc, const char *what, const hf_error *err);

/* ---- the end, and the way there ------------------------------------------ */

/* In the runner: says the text, ends with that exit status (enum cli_exit). In
 * an actor or worker: the runner does. */
void lab_die(int status, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* The live line on a terminal: what is being tried now. */
void lab_progress(struct lab *lab, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* To be called now and then by what waits in the runner: moves the line on. */
void lab_tick(struct lab *lab);

/* ---- memory -------------------------------------------------------------- */

/* Zeroed memory that is shared with actors and workers that are forked later.
 * Dies if there is none. */
void *lab_share(size_t size);
void lab_unshare(void *memory, size_t size);

/* Allocations that do not fail: lab_die(). */
void *lab_alloc(size_t size);
void *lab_grow(void *memory, size_t count, size_t size);

/* ---- time ---------------------------------------------------------------- */

int64_t lab_now(void); /* CLOCK_MONOTONIC, ns: of rows' times and timelines */
void lab_sleep_ms(int64_t ms);

#endif
