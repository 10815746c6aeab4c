/* Nothing of a run is left in a database that somebody has lent to it. */
#ifndef HF_LAB_TIDY_H
#define HF_LAB_TIDY_H

#include "../runner/place.h"

struct lab;

/* In the runner, before anything is written to the place: starts a cleanup
 * process, once per place, that removes this run's tables and keys, and the
 * keys and rows of its locks, when the run is over. Dies if it could not: no
 * rights. For a temporary server, and for engines other than Redis and MariaDB,
 * there is nothing to do. */
void lab_place_tidy(struct lab *lab, const struct lab_place *place);

#endif
