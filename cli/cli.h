/*
 * What the verbs of the command share: exit codes, the verb table, parsing
 * of what people type, and one way to say what went wrong.
 */
#ifndef HF_CLI_H
#define HF_CLI_H

#include <getopt.h>
#include <holdfast.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* sysexits.h where it has one; 79 is ours. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 64,
    CLI_UNAVAILABLE = 69, /* the backend cannot be used */
    CLI_OSERR = 71,       /* this machine is out of something */
    CLI_BUSY = 75,        /* not acquired */
    CLI_NOPERM = 77,      /* the backend refused our credentials */
    CLI_LOST = 79,
    CLI_CANNOT_RUN = 126, /* as shells do */
    CLI_NOT_FOUND = 127,
};

/* An option of a verb. All that the command knows of it: it is parsed by this,
 * shown by --help, corrected when it is misspelt, and completed. */
struct cli_flag {
    int id; /* what cli_flag() returns; below 256: the letter */
    const char
        *name; /* after the two dashes; NULL: there is the letter alone */
    const char *value; /* what --help calls its value; NULL: it takes none.
                          URL, NAME, FILE and A|B can be completed */
    const char *help;  /* NULL: another name of an option that has been shown */
};

/* Of all verbs. -h and -V are there by themselves. */
enum { CLI_JSON = 1000 };
#define CLI_FLAG_BACKEND                                                       \
    {                                                                          \
        'b', "backend", "URL", "where the locks are; see `holdfast help'"      \
    }
#define CLI_FLAG_JSON                                                          \
    {                                                                          \
        CLI_JSON, "json", NULL, "print JSON"                                   \
    }
#define CLI_FLAG_END                                                           \
    {                                                                          \
        0, NULL, NULL, NULL                                                    \
    }

/* What an operand of a verb is, for the completion. */
enum cli_operand {
    CLI_NOTHING,
    CLI_NAME,       /* of a lock or a latch, then nothing */
    CLI_LOCK_NAME,  /* of a lock alone, then nothing */
    CLI_COMMAND,    /* a NAME of a lock alone, then a command */
    CLI_LATCH_NAME, /* of a latch alone, then nothing */
};

struct cli_verb {
    const char *name;
    const char *summary;  /* one line of `holdfast help` */
    const char *synopsis; /* lines of "usage: holdfast ", without these words */
    const char *about;    /* what it does */
    const struct cli_flag *flags; /* ends with CLI_FLAG_END */
    const char *notes; /* what --help says after the options: examples */
    enum cli_operand operand;
    const char *const *words; /* first operands that are fixed, and NULL; NULL:
                                 there are none */
    bool is_program; /* of its own, which has its flags, help and completion */
    int (*main)(int argc, char **argv);
};

/* Ends with NULL, in the order of `holdfast help`. */
extern const struct cli_verb *const cli_verbs[];
extern const struct cli_verb cli_run, cli_hold;
extern const struct cli_verb cli_ls, cli_show, cli_break, cli_ask, cli_watch;
extern const struct cli_verb cli_latch;
extern const struct cli_verb cli_doctor, cli_bench, cli_lab;

/* ---- options and operands (args.c) ----------------------------------------
 */

/*
 * The next option: its id, with optarg; '?' after having said what is wrong
 * with it; -1 at the end, with optind at the first operand. Options may follow
 * operands, unless the verb runs a command. -h and -V print what they ask for
 * and end the program.
 */
int cli_flag(const struct cli_verb *verb, int argc, char **argv);
/* The same for a list of getopt_long(), whose short options have to begin with
 * a colon. -h is the caller's. */
int cli_option(const struct cli_verb *verb, int argc, char **argv,
               const char *brief, const struct option *options);
extern const struct cli_flag cli_flags_of_all[]; /* -h and -V */
/* All options of a verb that has -b and perhaps --json (json may be NULL).
 * CLI_OK or CLI_USAGE. */
int cli_few_flags(const struct cli_verb *verb, int argc, char **argv,
                  const char **url, bool *json);
/* The value of an option that is a duration. CLI_OK, or CLI_USAGE after having
 * said what is wrong. */
int cli_duration(const struct cli_verb *verb, const char *option,
                 const char *text, int64_t least_ms, int64_t *ms);
/* The text of --help on standard output. */
void cli_help(const struct cli_verb *verb);
_Noreturn void cli_print_version(void);
/* "; did you mean `WORD'?", or "" if no word is similar. */
struct cli_hint {
    char text[64];
};
struct cli_hint cli_similar(const char *typed, const char *before,
                            const char *const *words, size_t n);
/* Flushes standard output; the exit status, CLI_FAILED if that fails. */
int cli_finish(int status);

/* ---- completion (complete.c) -----------------------------------------------
 */

/* Prints what may stand in place of the last of n words: after the verb, or
 * after `holdfast'. n is at least 1. */
void cli_complete(const struct cli_verb *verb, int n, char **words);
int cli_complete_all(const struct cli_verb *const *verbs, int n, char **words);

/* ---- messages and numbers (util.c) ----------------------------------------
 */

/* Called before a line is written to standard error, if it is set. */
extern void (*cli_before_a_line)(void);

/* "holdfast VERB: text" on standard error. */
void cli_say(const struct cli_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same and a word on how to get help. Is CLI_USAGE, for all to see. Of a
 * word of the user's, quoted `so', nothing is shown after a colon: it may be a
 * URL in the wrong place, with a password in it. */
#define cli_misuse(...) (cli_misused(__VA_ARGS__), CLI_USAGE)
void cli_misused(const struct cli_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Says what holdfast answered; returns the exit code that stands for it. */
int cli_failed(const struct cli_verb *verb, const char *what, int code,
               const hf_error *err);
/* The same about a lock, whose name is said once: not if the text has it. */
int cli_failed_on(const struct cli_verb *verb, const char *name, int code,
                  const hf_error *err);
int cli_exit_of(int code);

/* Dies of a signal that was caught, as if it had not been. */
void cli_die_of(int number);

/* A decimal number in [min, max]. 0 or -1. */
int cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* The URL to use: the option's, else HOLDFAST_URL, else shared memory. */
const char *cli_url(const char *option);
/* What stands before the URL's first colon: safe to print, unlike the rest. */
void cli_scheme(const char *url, char *out, size_t size);

int64_t cli_now_ns(int clock); /* a clockid_t */

/* ---- a client (client.c) ---------------------------------------------------
 */

/* Opens a client for a verb that asks once and does not wait for a server.
 * CLI_OK, or the exit code after having said why. */
int cli_open(const struct cli_verb *verb, const char *url, hf_client **out);
int cli_open_with(const struct cli_verb *verb, const char *url,
                  const hf_client_options *opt, hf_client **out);
/* The same, but shared memory is not made: *out is NULL if it is not there, and
 * so no lock is held. */
int cli_open_to_look(const struct cli_verb *verb, const char *url,
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

/* ---- the terminal (screen.c) -----------------------------------------------
 */

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

/* ---- JSON (json.c) ----------------------------------------------------------
 */

/*
 * Writes to standard output, and knows where a comma belongs:
 *
 *     json_open('{'); json_text("a", "b"); json_number("n", 1);
 * json_close('}');
 *
 * A key is NULL in an array and at the top. json_end() ends the line.
 */
void json_open(const char *key, char bracket);
void json_close(char bracket);
void json_text(const char *key, const char *text);
void json_number(const char *key, int64_t number);
void json_unsigned(const char *key, uint64_t number);
void json_real(const char *key, double number, int digits);
void json_bool(const char *key, bool value);
void json_null(const char *key);
/* Bytes of a name. What is not UTF-8 becomes U+FFFD, and then all bytes follow
 * in hexadecimal digits under the key "KEY_hex". */
void json_name(const char *key, const void *bytes, size_t len);
void json_end(void);

#endif
