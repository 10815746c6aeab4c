/*
 * The places for locks and stocks in this run: --backends and --stores, and the
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

/* Parse a list of --backends or --stores. Both return an exit status; if it is
 * not CLI_OK, they have printed what is wrong. */
int places_take_backends(struct lab *lab, const char *list);
int places_take_stores(struct lab *lab, const char *list);
/* Fills in the defaults of lists that were not given. Returns an exit
 * status. */
int places_complete(struct lab *lab, bool backends_given, bool stores_given);
/* Returns whether something that the scenario needs is missing, and says in
 * `out' what. */
bool places_lack(const struct lab *lab, const struct lab_scenario *scenario,
                 char out[LAB_TEXT_MAX]);

/* Call it first in the runner. Dies if a server that was given by a URL cannot
 * be used. Also dies if all scenarios run with --servers, and a server that
 * they need is not installed. */
void places_check(struct lab *lab);
/* Returns whether every backend is shared memory and there is no store. */
bool places_are_bare(const struct lab *lab);

/* Returns whether a backend of that engine was requested. Starts no server. */
bool lab_uses(const struct lab *lab, enum lab_engine engine);
/* Returns the i-th backend for the current scenario, or NULL after the last. Of
 * the defaults of --servers, Redlock and MariaDB are left out if the scenario
 * has no rows for them (LAB_HAS_REDLOCK, LAB_HAS_MARIADB). Starts the temporary
 * server of a place when the place is first requested. */
const struct lab_place *lab_backend(struct lab *lab, size_t i);
/* Returns the store of that kind, or NULL if there is none. Never returns NULL
 * if the scenario declares that it needs the store. */
const struct lab_place *lab_store(struct lab *lab, enum lab_engine engine);

#endif
