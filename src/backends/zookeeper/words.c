#include "words.h"

#include "zookeeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread struct zk *speaking;

void hf__zk_speak_for(struct zk *z)
{
    speaking = z;
}

/* Shortens a message of the library: "Socket 127.0.0.1:1 zk retcode=-4,
 * errno=111(Connection refused): server refused to accept the client" becomes
 * "127.0.0.1:1: Connection refused". */
static void words_shorten(const char *text, const char *cause, char *out,
                          size_t size)
{
    const char *error = strstr(text, "errno="), *open, *close;
    long number = error ? strtol(error + 6, NULL, 10) : 0;

    open = error ? strchr(error, '(') : NULL;
    close = open ? strstr(open, "):") : NULL;
    if (strncmp(text, "Socket ", 7) != 0 || !close) {
        snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
        return;
    }
    if (!cause && number == EHOSTDOWN) /* the server has closed the stream */
        cause = "the server closed the connection";
    else if (!cause &&
             number == EAGAIN) /* errno is left over from an earlier call */
        cause = close + 3;
    snprintf(out, size, "%.*s: %.*s", (int)strcspn(text + 7, " "), text + 7,
             cause ? (int)strlen(cause) : (int)(close - open - 1),
             cause ? cause : open + 1);
}

/* Keeps the reason that a line of the library's log contains. The line consists
 * of time, thread, level, function and message, but does not name the
 * client. */
void hf__zk_on_log(const char *line)
{
    struct zk *z = speaking;
    const char *error = strstr(line, ":ZOO_ERROR"), *text;

    text = error ? strstr(error, ": ") : NULL;
    if (!z || !text)
        return;
    words_shorten(text + 2, z->cause[0] ? z->cause : NULL, z->text,
                  sizeof(z->text));
    z->said = true;
}

const char *hf__zk_why_down(struct zk *z, char *out, size_t size)
{
    size_t len = strlen(z->hosts);

    /* The library names only an address, but users know the hosts of the
     * URL. */
    if (!z->text[0])
        snprintf(out, size, "%s", z->hosts);
    else if (strncmp(z->text, z->hosts, len) == 0 && z->text[len] == ':')
        snprintf(out, size, "%s", z->text);
    else
        snprintf(out, size, "%.60s (%s)", z->hosts, z->text);
    return out;
}
