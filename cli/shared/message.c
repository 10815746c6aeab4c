#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_LEN = 1024 };

/* Set by screen.c, to remove the line of cli_live(). Programs without such a
 * line leave it NULL. */
void (*cli_before_a_line)(void);

/* Prints the line by one write, so that lines of several processes do not
 * mix. */
static void message_say(const struct cli_verb *verb, const char *line)
{
    if (cli_before_a_line)
        cli_before_a_line();
    if (verb)
        fprintf(stderr, "holdfast %s: %s\n", verb->name, line);
    else
        fprintf(stderr, "holdfast: %s\n", line);
}

void cli_say(const struct cli_verb *verb, const char *fmt, ...)
{
    char line[LINE_MAX_LEN];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    message_say(verb, line);
}

/* Removes what follows the first colon in the quoted word, because it may be a
 * password. */
static void message_hide_secret(char *line)
{
    char *colon = strchr(line + strcspn(line, "`"), ':');
    const char *end = strrchr(line, '\'');

    if (colon && !end)
        colon[1] = '\0'; /* the line was too long and ends within the word */
    else if (colon && colon < end)
        memmove(colon + 1, end, strlen(end) + 1);
}

void cli_misused(const struct cli_verb *verb, const char *fmt, ...)
{
    char line[LINE_MAX_LEN];
    size_t len;
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line - 64, fmt, args);
    va_end(args);
    message_hide_secret(line);
    len = strlen(line);
    snprintf(line + len, sizeof line - len, " (see `holdfast help%s%s')",
             verb ? " " : "", verb ? verb->name : "");
    message_say(verb, line);
}

int cli_failed(const struct cli_verb *verb, const char *what, int code,
               const hf_error *err)
{
    const char *text = err && err->text[0] ? err->text : hf_error_text(code);

    cli_say(verb, "%s: %s", what, text);
    return cli_exit_of(code);
}
