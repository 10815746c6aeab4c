/*
 * Opens a client for a verb, takes the name of a lock from the operands, and
 * describes the parties of a lock. A function that fails prints what is wrong
 * and returns the exit status for it.
 */
#ifndef HF_CLI_CLIENT_H
#define HF_CLI_CLIENT_H

#include "shared/verb.h"

#include <holdfast.h>
#include <stdbool.h>

/* Opens a client for a verb that sends one request. Unlike server_wait_open(),
 * does not try again if the server cannot be reached. cli_open_with() does the
 * same with the given options. Returns CLI_OK, or the exit status after
 * printing the reason. */
int cli_open(const struct cli_verb *verb, const char *url, hf_client **out);
int cli_open_with(const struct cli_verb *verb, const char *url,
                  const hf_client_options *opt, hf_client **out);
/* Does the same as cli_open(), but does not create shared memory. If the shared
 * memory does not exist, no lock is held; then returns CLI_OK and sets *out to
 * NULL. */
int cli_open_existing(const struct cli_verb *verb, const char *url,
                      hf_client **out);
/* Prints why hf_open() failed, and returns the exit status. */
int cli_cannot_open(const struct cli_verb *verb, const char *url, int rc,
                    const hf_error *err);
/* Takes NAME, which must be the only operand of the verb. Returns CLI_OK, or
 * CLI_USAGE after printing the reason. */
int cli_name(const struct cli_verb *verb, int argc, char **argv, bool has_url,
             const char **name);
/* Takes PREFIX, which is optional, as the only operand of the verb. Without it,
 * sets *prefix to NULL. Returns the same as cli_name(). */
int cli_prefix(const struct cli_verb *verb, int argc, char **argv, bool has_url,
               const char **prefix);
/* Returns whether the word is a URL of one of the backends. A URL in the place
 * of a name means that -b was forgotten. */
bool cli_is_url(const char *word);
/* Returns whether the party is a process of this machine. */
bool cli_is_here(const hf_party *party);
/* Describes a party: "process 4711 on host (label)", else the owner's id, else
 * "another client". */
struct cli_party {
    char text[224];
};
struct cli_party cli_party(const hf_party *party);
#endif
