/*
 * Describes a scenario: data only.
 *
 * A scenario is a file in scenarios/ and a line in scenarios/list.h. It makes
 * something go wrong (or right) on real servers, and writes a row for each way
 * that it tries: some fields, and a verdict in one sentence (report.h).
 */
#ifndef HF_LAB_SCENARIO_H
#define HF_LAB_SCENARIO_H

#include "report.h"

struct lab;

/* Options that only some scenarios have. */
enum lab_option {
    LAB_STRATEGY = 1 << 0, /* --strategy LIST */
    LAB_STOCK = 1 << 1,    /* --stock N */
    LAB_BUYERS = 1 << 2,   /* --buyers N */
    LAB_WAITERS = 1 << 3,  /* --waiters N */
    LAB_READERS = 1 << 4,  /* --readers N */
    LAB_TRAINS = 1 << 5,   /* --trains N */
    LAB_SECONDS = 1 << 6,  /* --seconds S: duration of each measurement */
    LAB_TTL = 1 << 7,      /* --ttl DURATION: TTL of locks and sessions */
};

/* What a scenario needs. */
enum lab_need {
    LAB_NEEDS_MARIADB = 1 << 0, /* as a store */
    LAB_NEEDS_SERVERS = 1 << 1, /* servers that it breaks: needs --servers */
    /* Not a need: by default, the scenario has rows for Redlock. In other
     * scenarios such rows would repeat the rows of Redis. */
    LAB_HAS_REDLOCK = 1 << 2,
    /* Not a need either: by default, the scenario has rows for the lock on
     * MariaDB. */
    LAB_HAS_MARIADB = 1 << 3,
};

/* Why the rows of a strategy have their results: one line below the table. */
struct lab_note {
    const char *strategy, *text;
};

struct lab_scenario {
    const char *name;
    const char *summary; /* its line in `holdfast lab list' */
    const char *text;    /* what it does and shows, in some lines */
    const struct lab_column *columns; /* the last column has the key NULL */
    unsigned options;                 /* enum lab_option */
    unsigned needs;                   /* enum lab_need */
    /* The names that --strategy takes, with NULL at the end; NULL if there are
     * none. */
    const char *const *strategies;
    /* For rows with a column "strategy". The last note has the strategy NULL.
     * `notes' is NULL if there are none. */
    const struct lab_note *notes;
    void (*run)(struct lab *lab);
};

#endif
