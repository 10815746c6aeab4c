/* Removes everything that a run has left in a database that was given by a
 * URL. */
#ifndef HF_LAB_TIDY_H
#define HF_LAB_TIDY_H

#include "../runner/place.h"

struct lab;

/* Called in the runner before anything is written to the place. Starts a
 * cleanup process for each server of the place. When the run has ended, the
 * cleanup process removes the run's tables and keys, and the keys and rows of
 * its locks. Dies if the rights for that are missing. Does nothing in a second
 * call for a place, for a temporary server, and for engines other than Redis,
 * Redlock and MariaDB. */
void lab_place_tidy(struct lab *lab, const struct lab_place *place);

#endif
