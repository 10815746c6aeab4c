/*
 * The terminal: colours, width, one line that is replaced, a question, and
 * bytes that must not control it. Elsewhere than on a terminal it prints plain
 * text.
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
/* Text on standard output, wrapped at the width: the first line goes on at the
 * column where the cursor is, others begin there as well. */
void cli_wrap(FILE *out, int column, int width, const char *text);
/* A line on standard error that the next one replaces, on a terminal; elsewhere
 * nothing. NULL removes it; cli_say() does so by itself. */
void cli_live(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool cli_is_live(void); /* standard error is a terminal */
/* Asks on the terminal: true for yes. False without one. */
bool cli_confirm(const char *question);

/* Bytes of a name or a text for people: control characters, what is not UTF-8
 * and backslashes are written as \xNN. */
void cli_print_bytes(FILE *out, const void *bytes, size_t len);
#endif
