/*
 * What the command knows about a verb and about its options. Data alone: args.c
 * parses by these tables and prints --help from them, complete.c completes by
 * them.
 */
#ifndef HF_CLI_VERB_H
#define HF_CLI_VERB_H

#include <stdbool.h>

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
#endif
