/*
 * struct lab, the state of a run: data only. main.c, supervisor.c and places.c
 * fill it in, and it contains the report. Scenarios do not see its members;
 * they call the functions of lab.h.
 */
#ifndef HF_LAB_LAB_STATE_H
#define HF_LAB_LAB_STATE_H

#include "lab.h"
#include "place.h"
#include "report.h"
#include "scenario.h"

#include <stdbool.h>
#include <stddef.h>

enum { PLACES_MAX = 8 };

/* A backend or store that was requested: a URL, or a server to be started. */
struct lab_wish {
    struct lab_place place;
    bool ready;      /* the place can be used */
    bool by_default; /* one of the defaults of --servers */
};

struct lab {
    struct lab_settings settings;
    const struct lab_scenario *scenario; /* the scenario that runs; NULL: none
                                            yet */
    const struct lab_scenario *chosen;   /* the only scenario to run; NULL:
                                            all */
    unsigned options;       /* the options that were given (enum lab_option) */
    const char *strategies; /* the list of --strategy; NULL: all */
    struct lab_wish backends[PLACES_MAX];
    size_t backends_len;
    struct lab_wish stores[LAB_ENGINES]; /* by engine; place.name is NULL if
                                            there is none */
    bool servers, json, all;
    const char *html;
    char id[32]; /* "1234-abcd" */
    char directory[96];
    struct lab_report report;
    bool as_expected; /* true while every row is as expected */
};

#endif
