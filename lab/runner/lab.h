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

/* What was requested; main.c has the defaults. */
struct lab_settings {
    uint64_t workers, stock, buyers, waiters, readers, trains;
    bool workers_given; /* otherwise a scenario may use its own number */
    int64_t seconds_ms, ttl_ms;
};

/* Returns the settings of this run. */
const struct lab_settings *lab_settings(const struct lab *lab);
/* Returns whether the strategy was requested: by name, by `all', or because
 * --strategy was not given. */
bool lab_wants(const struct lab *lab, const char *strategy);
/* Returns whether the strategy was requested by name. In that case it is an
 * error if something that the strategy needs is missing. */
bool lab_insists(const struct lab *lab, const char *strategy);

/* Writes a name that no other run uses: "holdfast-lab-1234-abcd-WORD". The
 * names of this run's keys, tables (lab_table()) and locks begin with the part
 * before WORD, by which cleanup processes find them. */
void lab_name(const struct lab *lab, const char *word, char out[96]);
/* Writes the same name with underscores, for SQL. */
void lab_table(const struct lab *lab, const char *word, char out[96]);
/* Returns the directory of this run, which contains the directories of its
 * servers and is removed at the end. */
const char *lab_directory(struct lab *lab);

#endif
