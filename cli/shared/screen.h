/*
 * The terminal: colours, width, one line that is replaced, a question, and
 * bytes that must not control it. If there is no terminal it prints plain text.
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

/* Sequences for standard output; "" unless it is a terminal with colours
 * (NO_COLOR is not set, TERM is not dumb). CLI_PLAIN ends a colour. */
const char *cli_colour(enum cli_colour colour);
/* The width of the terminal on a descriptor; 80 if there is none. */
int cli_width(int fd);
/* Prints text on standard output, wrapped at the width. All lines begin at the
 * column where the cursor is now. */
void cli_wrap(FILE *out, int column, int width, const char *text);
/* Prints a line on standard error that the next one replaces. Without a
 * terminal it prints nothing. NULL removes the line; cli_say() removes it,
 * too. */
void cli_live(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool cli_is_live(void); /* Can cli_live() print? */
/* Asks on the terminal: true for yes. False if there is no terminal. */
bool cli_confirm(const char *question);

/* Bytes of a name or a text for people: control characters, what is not UTF-8
 * and backslashes are written as \xNN. */
void cli_print_bytes(FILE *out, const void *bytes, size_t len);
#endif
