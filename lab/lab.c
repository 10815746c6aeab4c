/* holdfast lab: shows what a lock is worth. Finds the scenario. */
#include "lab.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: holdfast lab SCENARIO [OPTION...]\n"
    "\n"
    "  oversell   a stock is sold by several processes: with no lock, with a "
    "lock\n"
    "             private to each process, with holdfast\n"
    "\n"
    "`holdfast help lab SCENARIO' says more.\n";

static const struct cli_verb *const scenarios[] = {&lab_oversell};

static int lab_main(int argc, char **argv)
{
    if (argc < 2)
        return cli_misuse(&cli_lab, "which scenario? There is oversell");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cli_help(&cli_lab);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i]->name + strlen("lab "), argv[1]) == 0)
            return scenarios[i]->main(argc - 1, argv + 1);
    }
    return cli_misuse(&cli_lab, "no scenario is called `%s'; there is oversell",
                      argv[1]);
}

const struct cli_verb cli_lab = {"lab", "shows what a lock is worth", usage,
                                 lab_main};
