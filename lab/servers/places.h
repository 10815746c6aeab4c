/*
 * Where the locks and stocks of this run are: --backends and --stores, and the
 * defaults. A temporary server is started when its place is first requested.
 */
#ifndef HF_LAB_PLACES_H
#define HF_LAB_PLACES_H

#include "../runner/place.h"
#include "../runner/report.h"
#include "../runner/scenario.h"

#include <stdbool.h>
#include <stddef.h>

struct lab;

/* Parses a list of --backends or --stores. Both return an exit status, after
 * printing what is wrong. */
int places_take_backends(struct lab *lab, const char *list);
int places_take_stores(struct lab *lab, const char *list);
/* Fills in the defaults. Returns an exit status. */
int places_complete(struct lab *lab, bool backends_given, bool stores_given);
/* Why the scenario cannot run here; false: it can. */
bool places_lack(const struct lab *lab, const struct lab_scenario *scenario,
                 char out[LAB_TEXT_MAX]);

/* In the runner, first: dies if a given server cannot be used, or if `all'
 * needs servers that are not installed. */
void places_check(struct lab *lab);
/* True if no place is a server or a database. */
bool places_are_bare(const struct lab *lab);

/* Is it one of the backends that were requested? Starts no server. */
bool lab_uses(const struct lab *lab, enum lab_engine engine);
/* The backends that were requested, for i = 0, 1, ...; NULL after the last.
 * Starts the temporary server of a place when it is first requested. */
const struct lab_place *lab_backend(struct lab *lab, size_t i);
/* The store of that kind, or NULL if there is none. Never NULL if the scenario
 * declares that it needs it. */
const struct lab_place *lab_store(struct lab *lab, enum lab_engine engine);

#endif
