/* Removes everything of a run from a database that was given to it. */
#ifndef HF_LAB_TIDY_H
#define HF_LAB_TIDY_H

#include "../runner/place.h"

struct lab;

/* Called in the runner before anything is written to the place. Starts a
 * cleanup process for each server of the place that removes this run's tables
 * and keys, and the keys and rows of its locks, when the run has ended. Dies if
 * the rights for that are missing. A second call for a place does nothing. Nor
 * is anything done for a temporary server, or for engines other than Redis,
 * Redlock and MariaDB. */
void lab_place_tidy(struct lab *lab, const struct lab_place *place);

#endif
