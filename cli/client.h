/*
 * Opens a client for a verb, takes the name of a lock from its operands, and
 * puts the parties of a lock into words. Each function says what is wrong, and
 * returns the exit status for it.
 */
#ifndef HF_CLI_CLIENT_H
#define HF_CLI_CLIENT_H

#include "shared/verb.h"

#include <holdfast.h>
#include <stdbool.h>

/* Opens a client for a verb that sends one request and does not wait for a
 * server. CLI_OK, or the exit code after having said why. */
int cli_open(const struct cli_verb *verb, const char *url, hf_client **out);
int cli_open_with(const struct cli_verb *verb, const char *url,
                  const hf_client_options *opt, hf_client **out);
/* The same, but shared memory is not made: *out is NULL if it is not there, and
 * so no lock is held. */
int cli_open_existing(const struct cli_verb *verb, const char *url,
                      hf_client **out);
/* Says that hf_open() has failed; the exit code. */
int cli_cannot_open(const struct cli_verb *verb, const char *url, int rc,
                    const hf_error *err);
/* Takes the one NAME of a verb from its operands. CLI_OK or CLI_USAGE. */
int cli_name(const struct cli_verb *verb, int argc, char **argv, bool has_url,
             const char **name);
/* The same for a PREFIX, which may be missing: then it is NULL. */
int cli_prefix(const struct cli_verb *verb, int argc, char **argv, bool has_url,
               const char **prefix);
/* A URL of one of our backends: in place of a name it is a missing -b. */
bool cli_is_url(const char *word);
/* It is a process of this machine. */
bool cli_is_here(const hf_party *party);
/* "process 4711 on host (label)", or what else is known of it. */
struct cli_party {
    char text[224];
};
struct cli_party cli_party(const hf_party *party);
#endif
