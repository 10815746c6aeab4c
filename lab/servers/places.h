/*
 * Where the locks and stocks of this run live: --backends and --stores, and
 * what there is if neither is given. A temporary server is started when its
 * place is first asked for.
 */
#ifndef HF_LAB_PLACES_H
#define HF_LAB_PLACES_H

#include "../runner/place.h"
#include "../runner/report.h"
#include "../runner/scenario.h"

#include <stdbool.h>
#include <stddef.h>

struct lab;

/* A list as --backends and --stores take it. Both return an exit status,
 * after having said what is wrong. */
int places_take_backends(struct lab *lab, const char *list);
int places_take_stores(struct lab *lab, const char *list);
/* What was not given, by default. */
int places_complete(struct lab *lab, bool backends_given, bool stores_given);
/* Why the scenario cannot run here; false: it can. */
bool places_lack(const struct lab *lab, const struct lab_scenario *scenario,
                 char out[LAB_TEXT_MAX]);

/* In the runner, first: dies if a given server cannot be used, or if `all'
 * needs servers that are not installed. */
void places_check(struct lab *lab);
/* Are there neither servers nor databases? */
bool places_are_bare(const struct lab *lab);

/* Is it one of the backends that were asked for? Starts nothing. */
bool lab_uses(const struct lab *lab, enum lab_engine engine);
/* The backends that were asked for, NULL after the last: i = 0, 1, ... A
 * temporary server is started when its place is asked for first. */
const struct lab_place *lab_backend(struct lab *lab, size_t i);
/* The store of that kind, or NULL: there is none. Never NULL if the scenario
 * declares that it needs it. */
const struct lab_place *lab_store(struct lab *lab, enum lab_engine engine);

#endif
