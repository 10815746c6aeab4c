/*
 * Messages on standard error: "holdfast VERB: text", one line in one write. If
 * the verb is NULL the message is about the command itself.
 */
#ifndef HF_CLI_MESSAGE_H
#define HF_CLI_MESSAGE_H

#include "exit_code.h"
#include "verb.h"

#include <holdfast.h>

/* Called before a line is written to standard error, if it is set. */
extern void (*cli_before_a_line)(void);

/* Prints "holdfast VERB: text" on standard error. */
void cli_say(const struct cli_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the same message as cli_say(), and how to get help. It is a macro, so
 * that the compiler sees its value, CLI_USAGE. If the message quotes a word of
 * the user as `WORD', nothing that follows a colon in the word is printed,
 * because the word may be a URL in the wrong place, with a password. */
#define cli_misuse(...) (cli_misused(__VA_ARGS__), CLI_USAGE)
void cli_misused(const struct cli_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the library's error, and returns the exit status for it. */
int cli_failed(const struct cli_verb *verb, const char *what, int code,
               const hf_error *err);
#endif
