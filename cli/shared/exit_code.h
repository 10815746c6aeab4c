/*
 * The exit statuses of the command and of the lab, and which of them represents
 * an error of the library. The manual lists the numbers, so a number never
 * changes.
 */
#ifndef HF_CLI_EXIT_CODE_H
#define HF_CLI_EXIT_CODE_H

/* The numbers are those of sysexits.h where it defines a suitable number; 79 is
 * holdfast's own. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 64,
    CLI_UNAVAILABLE = 69, /* the backend cannot be used */
    CLI_OSERR = 71,  /* this machine lacks memory, processes or descriptors */
    CLI_BUSY = 75,   /* not acquired */
    CLI_NOPERM = 77, /* authentication or authorization failed */
    CLI_LOST = 79,
    CLI_CANNOT_RUN = 126, /* the convention of shells */
    CLI_NOT_FOUND = 127,
};

/* Returns the exit status for an enum hf_code. */
int cli_exit_of(int code);

/* Ends the process by a signal that was caught or blocked. The signal must have
 * its default action again. */
void cli_die_of(int number);
#endif
