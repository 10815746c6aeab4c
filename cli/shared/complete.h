/*
 * Completes a command line that is being typed in a shell. Prints the
 * candidates to standard output, in the form that complete.c describes. May ask
 * a server for names, for a short time. Prints nothing on standard error.
 */
#ifndef HF_CLI_COMPLETE_H
#define HF_CLI_COMPLETE_H

#include "verb.h"

/* Prints the candidates for the last of the n words that follow the verb. n is
 * at least 1. */
void cli_complete(const struct cli_verb *verb, int n, char **words);
/* Does the same for the words that follow `holdfast'. Returns the exit
 * status. */
int cli_complete_all(const struct cli_verb *const *verbs, int n, char **words);
#endif
