/*
 * Output to a terminal: colours, the width, one line that is replaced, a
 * question, and bytes that must not control the terminal. Without a terminal,
 * text is printed without colours, and no line is replaced.
 */
#ifndef HF_CLI_SCREEN_H
#define HF_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cli_colour {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW
};

/* Returns the escape sequence of a colour. Returns "" if standard output is not
 * a terminal, or if the terminal has no colours (NO_COLOR is set, or TERM is
 * dumb). CLI_PLAIN ends a colour. */
const char *cli_colour(enum cli_colour colour);
/* Returns the width of the terminal on a descriptor, or 80 if it is not a
 * terminal. */
int cli_width(int fd);
/* Prints a text on `out', wrapped at `width'. All lines begin at `column',
 * where the cursor is now. */
void cli_wrap(FILE *out, int column, int width, const char *text);
/* Prints a line on standard error; the next call replaces the line. Prints
 * nothing if standard error is not a terminal. NULL removes the line; cli_say()
 * removes it, too. */
void cli_live(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool cli_is_live(void); /* returns whether cli_live() prints */
/* Asks on the terminal. Returns true for yes, and false if there is no
 * terminal. */
bool cli_confirm(const char *question);

/* Prints the bytes of a name, or of a text for people. Control characters,
 * backslashes and bytes that are not UTF-8 are written as \xNN. */
void cli_print_bytes(FILE *out, const void *bytes, size_t len);
#endif
