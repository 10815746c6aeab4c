/* The lab: one file a scenario. */
#ifndef HF_LAB_H
#define HF_LAB_H

#include "../cli/cli.h"

/* Named "lab SCENARIO", for messages. */
extern const struct cli_verb lab_oversell;

#endif
