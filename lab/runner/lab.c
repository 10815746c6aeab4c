#include "lab.h"

#include "lab_state.h"

#include <stdio.h>
#include <string.h>

const struct cli_verb lab_verb = {.name = "lab"};

const char *lab_directory(struct lab *lab)
{
    return lab->directory;
}

const struct lab_settings *lab_settings(const struct lab *lab)
{
    return &lab->settings;
}

static bool lab_is_in_list(const char *list, const char *word, size_t len)
{
    for (;;) {
        size_t n = strcspn(list, ",");

        if (n == len && strncmp(list, word, n) == 0)
            return true;
        if (!list[n])
            return false;
        list += n + 1;
    }
}

bool lab_insists(const struct lab *lab, const char *strategy)
{
    return lab->strategies &&
           lab_is_in_list(lab->strategies, strategy, strlen(strategy));
}

bool lab_wants(const struct lab *lab, const char *strategy)
{
    return !lab->strategies || lab_is_in_list(lab->strategies, "all", 3) ||
           lab_insists(lab, strategy);
}

void lab_name(const struct lab *lab, const char *word, char out[96])
{
    snprintf(out, 96, "holdfast-lab-%s-%s", lab->id, word);
}

void lab_table(const struct lab *lab, const char *word, char out[96])
{
    lab_name(lab, word, out);
    for (char *p = out; *p; p++)
        if (*p == '-')
            *p = '_';
}
