/* What the server's errors mean to us: the first word tells. */
#include "pipe.h"

#include <string.h>

static bool begins(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 &&
           (text[len] == ' ' || text[len] == '\0');
}

/* Redis 6 quotes what went wrong inside a script: "ERR Error running script
 * (call to f_...): @user_script:3: @user_script: 3: -READONLY ...". Redis 7
 * puts the same words in front of "script: ..., on @user_script:3.", those
 * about rights behind "ERR". */
const char *hf__rd_error_text(const char *text)
{
    static const char place[] = "@user_script:";
    const char *at =
        begins(text, "ERR Error running script") ? strstr(text, place) : NULL;

    if (!at)
        return begins(text, "ERR The user executing the script can't") ||
                       begins(text, "ERR ACL failure in script:")
                   ? text + 4
                   : text;
    while (strncmp(at, place, sizeof(place) - 1) == 0) {
        at += sizeof(place) - 1;
        at += strspn(at, " 0123456789:");
    }
    return at + (*at == '-');
}

/* Redis 7: "READONLY You can't write... script: 9f2c..., on @user_script:3." */
int hf__rd_error_len(const char *text)
{
    static const char script[] = " script: ";
    const char *at = strstr(text, script);

    if (at && strspn(at + strlen(script), "0123456789abcdef") == 40)
        return (int)(at - text);
    return (int)strlen(text);
}

int hf__rd_error_code(const char *text)
{
    static const char *const auth[] = {"NOAUTH", "WRONGPASS", "NOPERM",
                                       "The user executing the script can't",
                                       "ACL failure in script:"};

    text = hf__rd_error_text(text);
    for (size_t i = 0; i < sizeof(auth) / sizeof(*auth); i++)
        if (begins(text, auth[i]))
            return HF_EAUTH;
    if (begins(text, "WRONGTYPE"))
        return HF_EMISMATCH;
    return HF_EBACKEND; /* LOADING READONLY OOM BUSY MISCONF MOVED ERR ... */
}

bool hf__rd_is_replica(const char *text)
{
    text = hf__rd_error_text(text);
    return begins(text, "READONLY") || begins(text, "MASTERDOWN") ||
           begins(text, "NOREPLICAS");
}

/* The server refuses for now: it starts, has too much to do, is out of memory
 * or disk, or changes its role. */
static bool refuses_for_now(const char *text)
{
    static const char *const words[] = {
        "LOADING", "BUSY",        "READONLY",   "MASTERDOWN", "OOM",
        "MISCONF", "CLUSTERDOWN", "NOREPLICAS", "TRYAGAIN"};

    text = hf__rd_error_text(text);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (begins(text, words[i]))
            return true;
    return false;
}

bool hf__rd_may_pass(const char *text)
{
    return refuses_for_now(text) ||
           strstr(text, "max number of clients") != NULL;
}

bool hf__rd_is_forbidden(const char *text)
{
    return hf__rd_error_code(text) == HF_EAUTH ||
           begins(text, "ERR unknown command");
}

/*
 * Of a script this holds for what refuses writes, too: the server refuses the
 * first one, and what allows the first allows the others. Rights are looked at
 * for each command anew, so a script that lacks one may have done a part.
 */
bool hf__rd_did_nothing(const char *text)
{
    if (begins(text, "NOPERM"))
        return !strstr(text, "script");
    return refuses_for_now(text) || begins(text, "NOAUTH") ||
           begins(text, "MOVED");
}
