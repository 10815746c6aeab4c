/* holdfast break: takes a lock away from its holder. */
#include "client.h"
#include "lock_error.h"
#include "lock_print.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/screen.h"
#include "shared/values.h"
#include "shared/verb.h"
#include "verbs.h"

#include <getopt.h>
#include <holdfast.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_TOKEN = 256, OPT_OWNER };

struct options {
    const char *url, *name, *owner;
    uint64_t token;
    bool yes;
};

static const struct cli_flag break_flags[] = {
    CLI_FLAG_BACKEND,
    {OPT_TOKEN, "token", "T",
     "break only the hold with this token; does not ask"},
    {OPT_OWNER, "owner", "O",
     "break only the hold of this owner, as `holdfast show' prints it; does "
     "not ask"},
    {'y', "yes", NULL, "do not ask"},
    CLI_FLAG_END,
};

/* Returns "NAME: held by ...", which the caller frees. */
static char *break_describe(const char *name, const hf_info *info)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    cli_print_bytes(out, name, strlen(name));
    fputs(": ", out);
    lock_print_state(out, info);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static bool break_is_meant(const struct options *o, const hf_party *p)
{
    return (!o->token || o->token == p->token) &&
           (!o->owner || strcmp(o->owner, p->owner) == 0);
}

static int break_confirm(const struct options *o, const hf_info *info)
{
    char *state = break_describe(o->name, info), question[640];
    bool said_yes;

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        free(state);
        return cli_misuse(&cli_break,
                          "there is no terminal to ask on: give "
                          "--yes, or --token or --owner of the hold to break");
    }
    for (size_t i = 0; info->holders_len > 1 && i < info->holders_len; i++)
        fprintf(stderr, "%s\n", cli_party(&info->holders[i]).text);
    snprintf(question, sizeof question, "%.512s\n%s", state ? state : o->name,
             info->kind == HF_LATCH ? "Set the count to 0?"
                                    : "Break the lock? Its holder may still "
                                      "be working.");
    said_yes = cli_confirm(question);
    free(state);
    if (said_yes)
        return CLI_OK;
    cli_say(&cli_break, "nothing was broken");
    return CLI_FAILED;
}

/* Breaks one of the holds that were shown, but no hold that was granted
 * afterwards. Uses the token only if the hold has a pid: on Redis, a hold of
 * another program has no pid, and no token of its own. */
static int break_one(hf_client *client, const char *name, const hf_party *p,
                     hf_error *err)
{
    uint64_t token = p->pid > 0 ? p->token : 0;

    if (!p->owner[0] && !token)
        return HF_ENOTSUP;
    return hf_break_hold(client, name, HF_CSTRING, token,
                         p->owner[0] ? p->owner : NULL, err);
}

/* Breaks the holds that were shown. If the lock is a latch, or the backend
 * cannot tell holds apart, breaks whatever holds the lock now. Some of the
 * holds may have ended in the meantime. Returns HF_ENOTOWNER if all of them
 * have ended. */
static int break_shown(hf_client *client, const char *name, const hf_info *info,
                       hf_error *err)
{
    int rc = HF_ENOTOWNER, one;

    if (info->kind == HF_LATCH)
        return hf_break(client, name, HF_CSTRING, err);
    for (size_t i = 0; i < info->holders_len; i++) {
        one = break_one(client, name, &info->holders[i], err);
        if (one == HF_ENOTSUP)
            return hf_break(client, name, HF_CSTRING, err);
        if (one == HF_OK)
            rc = HF_OK;
        else if (one != HF_ENOTOWNER)
            return one;
    }
    return rc;
}

static void break_say_broken(const struct options *o, hf_info *info)
{
    char *state;
    size_t n = 0;

    /* Prints only the holders that the options select, and no waiters. */
    for (size_t i = 0; i < info->holders_len; i++)
        if (break_is_meant(o, &info->holders[i]))
            info->holders[n++] = info->holders[i];
    info->holders_len = n;
    info->waiters_len = 0;
    state = break_describe(o->name, info);
    if (n > 0 || info->kind == HF_LATCH)
        printf("broken: %s\n", state ? state : "");
    else /* a hold that was granted after the inspection was broken */
        puts("broken");
    free(state);
}

static int break_it(hf_client *client, const struct options *o, hf_info *info)
{
    hf_error err = HF_ERROR_INIT;
    bool is_held = info->holders_len > 0 || info->count > 0;
    int rc, status = CLI_OK;

    if (o->token || o->owner) {
        rc = hf_break_hold(client, o->name, HF_CSTRING, o->token, o->owner,
                           &err);
    } else if (o->yes) {
        rc = hf_break(client, o->name, HF_CSTRING, &err);
    } else if (!is_held) { /* there is no hold, so nothing is sent */
        return cli_not_held(&cli_break, o->name);
    } else {
        status = break_confirm(o, info);
        if (status != CLI_OK)
            return status;
        rc = break_shown(client, o->name, info, &err);
    }
    if (rc != HF_OK)
        return cli_lock_failed(&cli_break, o->url, o->name, rc, &err);
    break_say_broken(o, info);
    return CLI_OK;
}

static int run_break(hf_client *client, const struct options *o)
{
    hf_error err = HF_ERROR_INIT;
    hf_info *info = NULL;
    int rc, status;

    if (!client)
        return cli_not_held(&cli_break, o->name);
    rc = hf_inspect(client, o->name, HF_CSTRING, &info, &err);
    if (rc != HF_OK)
        return cli_lock_failed(&cli_break, o->url, o->name, rc, &err);
    status = break_it(client, o, info);
    hf_info_free(info);
    return status;
}

static int break_take_option(struct options *o, int option)
{
    switch (option) {
    case 'b':
        o->url = optarg;
        return CLI_OK;
    case 'y':
        o->yes = true;
        return CLI_OK;
    case OPT_OWNER:
        o->owner = optarg;
        return CLI_OK;
    case OPT_TOKEN:
        if (cli_number(optarg, 1, UINT64_MAX, &o->token) == 0)
            return CLI_OK;
        return cli_misuse(&cli_break,
                          "--token takes a number, as `holdfast show' prints "
                          "it, not `%s'",
                          optarg);
    default:
        return CLI_USAGE;
    }
}

static int break_main(int argc, char **argv)
{
    struct options o = {0};
    hf_client *client;
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_flag(&cli_break, argc, argv)) != -1)
        status = break_take_option(&o, option);
    if (status == CLI_OK)
        status =
            cli_name(&cli_break, argc - optind, argv + optind, o.url, &o.name);
    if (status == CLI_OK)
        status = cli_open_existing(&cli_break, o.url, &client);
    if (status != CLI_OK)
        return status;
    status = run_break(client, &o);
    hf_close(client);
    return status;
}

const struct cli_verb cli_break = {
    .name = "break",
    .summary = "takes a lock away from its holder",
    .synopsis = "break [OPTION...] NAME",
    .about = "Takes the lock NAME away from its holder and gives it to the "
             "next waiter. It shows the holder and asks first. A latch is set "
             "to 0.",
    .flags = break_flags,
    .notes =
        "The holder is not stopped: `holdfast run' notices that the lock is "
        "lost and ends\nits command; on MySQL and MariaDB at its next "
        "renewal.\n"
        "Exit status 1: the lock is not held, or another hold has taken its "
        "place.\n"
        "\n"
        "  holdfast break nightly               shows the holder and asks\n"
        "  holdfast break --token 12 nightly    only if that hold is still "
        "there\n",
    .operand = CLI_NAME,
    .main = break_main,
};
