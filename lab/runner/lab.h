/*
 * The run, as scenarios, actors and servers see it: what was requested, and the
 * names and the directory that belong to this run only. struct lab is in
 * lab_state.h, for the files that fill it in.
 */
#ifndef HF_LAB_LAB_H
#define HF_LAB_LAB_H

#include "../../cli/shared/verb.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

/* "lab", for messages. */
extern const struct cli_verb lab_verb;

/* What was requested; the defaults are in main.c. */
struct lab_settings {
    uint64_t workers, stock, buyers, waiters, readers, trains;
    bool workers_given; /* otherwise a scenario may have its own number */
    int64_t seconds_ms, ttl_ms;
};

/* The settings of this run. */
const struct lab_settings *lab_settings(const struct lab *lab);
/* Was it requested, by name or by `all`? */
bool lab_wants(const struct lab *lab, const char *strategy);
/* Was it requested by name? Then what it needs must be there. */
bool lab_insists(const struct lab *lab, const char *strategy);

/* A name that no other run uses: "holdfast-lab-1234-abcd-WORD". It begins the
 * keys, tables (by lab_table) and locks of this run: cleanup processes find
 * them by it. */
void lab_name(const struct lab *lab, const char *word, char out[96]);
/* The same with underscores, for SQL. */
void lab_table(const struct lab *lab, const char *word, char out[96]);
/* The directory of this run, which is removed at its end. Servers are below
 * it. */
const char *lab_directory(struct lab *lab);

#endif
