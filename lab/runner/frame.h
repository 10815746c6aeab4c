/* Between the files of the frame; scenarios do not see it. */
#ifndef HF_LAB_FRAME_H
#define HF_LAB_FRAME_H

#include "../lab.h"

#include <stdatomic.h>

enum { PLACES_MAX = 8 };

/* A backend or store that was asked for: a URL, or one to be started. */
struct lab_wish {
    struct lab_place place;
    bool ready;      /* the place can be used */
    bool by_default; /* it was not named */
};

struct lab {
    struct lab_settings settings;
    const struct lab_scenario *scenario; /* that runs; NULL: none yet */
    const struct lab_scenario *chosen;   /* NULL: all */
    unsigned options;                    /* enum lab_option, those given */
    const char *strategies;              /* a list; NULL: all */
    struct lab_wish backends[PLACES_MAX];
    size_t backends_len;
    struct lab_wish stores[LAB_ENGINES]; /* by engine; name NULL: none */
    bool servers, json, all;
    const char *html;
    char id[32]; /* "1234-abcd" */
    char directory[96];
    struct lab_report report;
    bool as_expected; /* every row so far */
};

/* "lab", for messages. */
extern const struct cli_verb lab_verb;

/* ---- run.c --------------------------------------------------------------- */

/* For the page: what was typed, and where it runs. */
void lab_describe(struct lab *lab, int argc, char **argv);
/* Runs it in the runner, then the page is written; returns the exit status when
 * all that was forked is gone. */
int lab_supervise(struct lab *lab, void (*run)(struct lab *lab));

/* INT, TERM and HUP, unless they are ignored. */
void lab_catch(void (*handler)(int number));

/* ---- places.c ------------------------------------------------------------ */

/* A list as --backends and --stores take it. Both return an exit status,
 * after having said what is wrong. */
int places_take_backends(struct lab *lab, const char *list);
int places_take_stores(struct lab *lab, const char *list);
/* What was not given, by default. */
int places_complete(struct lab *lab, bool backends_given, bool stores_given);
/* Why the scenario cannot run here; false: it can. */
bool places_lack(const struct lab *lab, const struct lab_scenario *scenario,
                 char out[LAB_TEXT_MAX]);

/* In the runner, first: dies if a given server cannot be used, or if `all'
 * needs servers that are not installed. */
void places_check(struct lab *lab);
/* Has a temporary server of that kind to be started? */
bool places_need(const struct lab *lab, enum lab_engine engine);
/* Are there neither servers nor databases? */
bool places_are_bare(const struct lab *lab);
/* A temporary server, before its speed is measured. */
void lab_warm(struct lab *lab, const struct lab_place *place);

/* ---- report.c ------------------------------------------------------------ */

void report_begin(struct lab *lab, const struct lab_scenario *scenario);
void report_skip(struct lab *lab, const char *why);
/* Prints the table of what there is. Does so once. */
void report_end(struct lab *lab);
/* A string of JSON, valid whatever the bytes are. */
void report_json_text(const char *text);
/* Dies if what was printed cannot be written; silently if its reader is gone.
 */
void report_flush(void);
/* How many bytes the character at s has, 0 if it is none of UTF-8. */
size_t report_character(const unsigned char *s);

/* ---- progress.c ---------------------------------------------------------- */

void progress_init(struct lab *lab);
void progress_clear(void);
void progress_hide_after_fork(void); /* a child draws nothing */

/* ---- die.c ------------------------------------------------------------- */

enum { LAB_DEATH_MAX = 1024 };

/* Where an actor or worker leaves its last words, in shared memory. */
struct lab_death {
    _Atomic int status; /* 0: it lives */
    char text[LAB_DEATH_MAX];
};

/* In a new actor or worker: it dies with the runner, and lab_die() goes there.
 */
void death_in_child(struct lab_death *death, pid_t runner);
/* In the runner: dies as the child said, or as its wait status says. */
_Noreturn void death_of_child(const struct lab_death *death, const char *who,
                              int wait_status);
/* In the runner: ends it, with what there is so far; the supervisor tells. */
_Noreturn void death_by_signal(int number);
/* For lab_die() in the runner: prints what there is before the text. */
void death_in_runner(struct lab *lab);

#endif
