#include "client.h"

#include "schemes.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

int cli_open(const struct cli_verb *verb, const char *url, hf_client **out)
{
    return cli_open_with(verb, url, NULL, out);
}

int cli_open_with(const struct cli_verb *verb, const char *url,
                  const hf_client_options *opt, hf_client **out)
{
    hf_error err = HF_ERROR_INIT;
    const char *place = cli_url(url);
    int rc = hf_open(place, opt, out, &err);

    return rc == HF_OK ? CLI_OK : cli_cannot_open(verb, place, rc, &err);
}

int cli_open_existing(const struct cli_verb *verb, const char *url,
                      hf_client **out)
{
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    const char *place = cli_url(url);
    int rc;

    options.flags = HF_OPEN_EXISTING;
    rc = hf_open(place, &options, out, &err);
    return rc == HF_OK || rc == HF_ENOTOWNER
               ? CLI_OK
               : cli_cannot_open(verb, place, rc, &err);
}

int cli_cannot_open(const struct cli_verb *verb, const char *url, int rc,
                    const hf_error *err)
{
    return cli_failed(verb,
                      url == getenv("HOLDFAST_URL")
                          ? "cannot open the backend of HOLDFAST_URL"
                          : "cannot open the backend",
                      rc, err);
}

/* Recognizes only the schemes of the backends, because the name of a lock may
 * be the URL of the resource that the lock guards. */
bool cli_is_url(const char *word)
{
    static const char *const begins[] = {CLI_SCHEMES};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncasecmp(word, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static int client_one_operand(const struct cli_verb *verb, const char *what,
                              int argc, char **argv, bool has_url,
                              const char **operand)
{
    /* The message does not quote the URL, which may contain a password. */
    if (!has_url && cli_is_url(argv[0]))
        return cli_misuse(verb, "the %s is a URL; is a -b missing?", what);
    if (argc > 1)
        return cli_misuse(verb, "`%s' after the %s: %s takes one %s", argv[1],
                          what, verb->name, what);
    *operand = argv[0];
    return CLI_OK;
}

int cli_name(const struct cli_verb *verb, int argc, char **argv, bool has_url,
             const char **name)
{
    if (argc < 1)
        return cli_misuse(verb, "which lock? A NAME is missing");
    return client_one_operand(verb, "NAME", argc, argv, has_url, name);
}

int cli_prefix(const struct cli_verb *verb, int argc, char **argv, bool has_url,
               const char **prefix)
{
    *prefix = NULL;
    if (argc < 1)
        return CLI_OK;
    return client_one_operand(verb, "PREFIX", argc, argv, has_url, prefix);
}

bool cli_is_here(const hf_party *p)
{
    char host[sizeof p->host] = "";

    gethostname(host, sizeof host - 1);
    return p->pid > 0 && strcmp(p->host, host) == 0;
}

struct cli_party cli_party(const hf_party *p)
{
    struct cli_party out = {"another client"};

    if (p->pid > 0)
        snprintf(out.text, sizeof out.text, "process %lld on %s%s%s%s",
                 (long long)p->pid, p->host, p->label[0] ? " (" : "", p->label,
                 p->label[0] ? ")" : "");
    else if (p->owner[0])
        snprintf(out.text, sizeof out.text, "%s", p->owner);
    return out;
}
