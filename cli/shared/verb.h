/*
 * What the command knows about a verb and its options. It is only data: args.c
 * parses the command line and prints --help from these tables, and complete.c
 * completes words from them.
 */
#ifndef HF_CLI_VERB_H
#define HF_CLI_VERB_H

#include <stdbool.h>

/* An option of a verb. From this entry the option is parsed, shown by --help,
 * suggested in place of a misspelt option, and completed. */
struct cli_flag {
    int id;            /* what cli_flag() returns; below 256: the letter */
    const char *name;  /* after the two dashes; NULL: it has only the letter */
    const char *value; /* the name of its value in --help; NULL: it has no
                          value. URL, NAME, FILE and A|B can be completed */
    const char *help;  /* NULL: --help does not show the option */
};

/* Options that several verbs have. -h and -V are added to all verbs. */
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
    CLI_NAME,       /* the NAME of a lock or a latch */
    CLI_LOCK_NAME,  /* the NAME of a lock */
    CLI_COMMAND,    /* the NAME of a lock, then a command */
    CLI_LATCH_NAME, /* the NAME of a latch */
};

struct cli_verb {
    const char *name;
    const char *summary;          /* one line of `holdfast help` */
    const char *synopsis;         /* lines after "usage: holdfast " */
    const char *about;            /* what it does */
    const struct cli_flag *flags; /* ends with CLI_FLAG_END */
    const char *notes; /* what --help prints after the options: examples */
    enum cli_operand operand;
    /* the fixed words of the first operand, then NULL; or NULL */
    const char *const *words;
    /* the verb is a separate program, which has the flags, the help and the
     * completion */
    bool is_program;
    int (*main)(int argc, char **argv);
};
#endif
