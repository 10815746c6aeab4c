/* holdfast ask: asks the holder of a lock to release it. */
#include "client.h"
#include "lock_error.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/verb.h"
#include "verbs.h"

#include <getopt.h>
#include <holdfast.h>

static const struct cli_flag ask_flags[] = {
    CLI_FLAG_BACKEND,
    CLI_FLAG_END,
};

static int send_ask(hf_client *client, const char *url, const char *name)
{
    hf_error err = HF_ERROR_INIT;
    int rc;

    if (!client)
        return cli_not_held(&cli_ask, name);
    rc = hf_ask(client, name, HF_CSTRING, &err);
    if (rc == HF_OK)
        return CLI_OK;
    if (rc != HF_ENOTSUP || cli_is_redlock(url))
        return cli_lock_failed(&cli_ask, url, name, rc, &err);
    cli_say(&cli_ask,
            "%s; see who holds it with `holdfast show', or take it away with "
            "`holdfast break'",
            err.text);
    return CLI_USAGE;
}

static int ask_main(int argc, char **argv)
{
    const char *url = NULL, *name;
    hf_client *client;
    int status = cli_few_flags(&cli_ask, argc, argv, &url, NULL);

    if (status == CLI_OK)
        status = cli_name(&cli_ask, argc - optind, argv + optind, url, &name);
    if (status == CLI_OK)
        status = cli_open_existing(&cli_ask, url, &client);
    if (status != CLI_OK)
        return status;
    status = send_ask(client, url, name);
    hf_close(client);
    return status;
}

const struct cli_verb cli_ask = {
    .name = "ask",
    .summary = "asks the holder of a lock to release it",
    .synopsis = "ask [OPTION...] NAME",
    .about = "Asks the holder of the lock NAME to release it. A program that "
             "listens gets HF_EVENT_WANTED and decides by itself; `holdfast "
             "run' and `hold' print a message.",
    .flags = ask_flags,
    .notes = "Exit status 0: the holder was asked, and may or may not listen. "
             "1: the lock is\nnot held. 64: the backend (Redlock) or the "
             "holder's program cannot be asked.\n"
             "\n"
             "  holdfast ask nightly\n"
             "  holdfast ask -b zk://zk1,zk2,zk3/app nightly\n",
    .operand = CLI_NAME,
    .main = ask_main,
};
