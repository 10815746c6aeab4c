#include "lock_options.h"

#include "base/text.h"
#include "client.h"
#include "shared/args.h"
#include "shared/message.h"
#include "shared/values.h"

#include <string.h>

static int lock_options_take_exit_code(struct lock_options *w, const char *text)
{
    uint64_t number;

    if (cli_number(text, 0, 255, &number) < 0)
        return cli_misuse(w->verb, "-E takes 0 to 255, not `%s'", text);
    w->busy_exit = (int)number;
    return CLI_OK;
}

static int lock_options_take_permits(const struct lock_options *w,
                                     const char *option, const char *text,
                                     uint32_t *out)
{
    uint64_t number;

    if (cli_number(text, 1, UINT32_MAX, &number) < 0)
        return cli_misuse(w->verb, "%s takes 1 to %u permits, not `%s'", option,
                          UINT32_MAX, text);
    *out = (uint32_t)number;
    return CLI_OK;
}

int lock_options_name(struct lock_options *w, const char *name)
{
    for (size_t i = 0; i < w->len; i++)
        if (strcmp(w->names[i], name) == 0)
            return cli_misuse(w->verb, "the lock `%s' was given twice",
                              hf__show(name).text);
    if (w->len == LOCKS_MAX)
        return cli_misuse(w->verb, "more than %d locks", LOCKS_MAX);
    w->names[w->len++] = name;
    return CLI_OK;
}

int lock_options_take(struct lock_options *w, int option, const char *value)
{
    switch (option) {
    case 'b':
        w->url = value;
        return CLI_OK;
    case 'l':
        return lock_options_name(w, value);
    case 's':
        w->shared = true;
        return CLI_OK;
    case 'x':
    case 'e':
        w->exclusive = true;
        return CLI_OK;
    case 'n':
        w->nonblock = true;
        return CLI_OK;
    case 'w':
        return cli_duration(w->verb, "-w", value, 0, &w->wait_ms);
    case 't':
        return cli_duration(w->verb, "-t", value, HF_LEASE_MIN_MS, &w->ttl_ms);
    case 'E':
        return lock_options_take_exit_code(w, value);
    case 'q':
        w->quiet = true;
        return CLI_OK;
    case LOCK_OPTIONS_FAIR:
        w->fair = true;
        return CLI_OK;
    case LOCK_OPTIONS_UNFAIR:
        w->unfair = true;
        return CLI_OK;
    case LOCK_OPTIONS_LABEL:
        w->label = value;
        return CLI_OK;
    case LOCK_OPTIONS_PERMITS:
        return lock_options_take_permits(w, "--permits", value, &w->permits);
    case LOCK_OPTIONS_OF:
        return lock_options_take_permits(w, "--of", value, &w->of);
    default: /* cli_flag() has printed what is wrong */
        return CLI_USAGE;
    }
}

static int lock_options_check_semaphore(struct lock_options *w)
{
    if (!w->of)
        return cli_misuse(w->verb,
                          "--permits %u: of how many? Give --of N, "
                          "the size of the semaphore",
                          w->permits);
    if (w->shared || w->exclusive)
        return cli_misuse(w->verb,
                          "-s and -x are for read-write locks, and "
                          "--of is for semaphores; give only one of them");
    if (!w->permits)
        w->permits = 1;
    if (w->permits > w->of)
        return cli_misuse(w->verb, "--permits %u is more than --of %u",
                          w->permits, w->of);
    w->kind = HF_SEMAPHORE;
    return CLI_OK;
}

int lock_options_check(struct lock_options *w)
{
    for (size_t i = 0; i < w->len && !w->url; i++)
        if (cli_is_url(w->names[i])) /* not quoted: the URL may contain a
                                        password */
            return cli_misuse(w->verb, "the NAME is a URL; is a -b missing?");
    if (w->shared && w->exclusive)
        return cli_misuse(
            w->verb, "-s is shared and -x exclusive; give only one of them");
    if (w->fair && w->unfair)
        return cli_misuse(w->verb,
                          "--fair and --unfair; give only one of them");
    if (w->nonblock && w->wait_ms > 0)
        return cli_misuse(
            w->verb, "-n does not wait and -w does; give only one of them");
    if (w->nonblock)
        w->wait_ms = 0;
    if (w->shared || w->exclusive)
        w->kind = HF_RWLOCK;
    w->mode = w->shared ? HF_READ : HF_WRITE;
    if (w->fair || w->unfair)
        w->fairness = w->fair ? HF_FAIR : HF_UNFAIR;
    return w->permits || w->of ? lock_options_check_semaphore(w) : CLI_OK;
}
