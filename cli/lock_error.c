#include "lock_error.h"

#include "base/text.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/values.h"

#include <stdio.h>
#include <string.h>

int cli_failed_on(const struct cli_verb *verb, const char *name, int code,
                  const hf_error *err)
{
    struct hf__shown shown = hf__show(name);
    char quoted[sizeof shown.text + 2];

    snprintf(quoted, sizeof quoted, "\"%s\"", shown.text);
    if (!err || !strstr(err->text, quoted))
        return cli_failed(verb, shown.text, code, err);
    cli_say(verb, "%s", err->text);
    return cli_exit_of(code);
}

bool cli_is_redlock(const char *url)
{
    char scheme[16];

    cli_scheme(cli_url(url), scheme, sizeof scheme);
    return strcmp(scheme, "redlock") == 0;
}

int cli_not_held(const struct cli_verb *verb, const char *name)
{
    cli_say(verb, "\"%s\" is not held", hf__show(name).text);
    return CLI_FAILED;
}

int cli_lock_failed(const struct cli_verb *verb, const char *url,
                    const char *name, int rc, const hf_error *err)
{
    if (rc == HF_ENOTSUP && cli_is_redlock(url)) {
        cli_say(
            verb,
            "Redlock cannot tell who holds a lock, and cannot ask the holder "
            "or break the lock. To see the key on each server: redis-cli "
            "-h HOST get NAME");
        return cli_exit_of(rc);
    }
    return cli_failed_on(verb, name, rc, err);
}
