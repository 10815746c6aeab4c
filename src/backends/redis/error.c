/* What the server's errors mean to us: the first word tells. */
#include "redis.h"

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
static const char *inner(const char *text)
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

static int code_of(const char *text)
{
    static const char *const auth[] = {"NOAUTH", "WRONGPASS", "NOPERM",
                                       "The user executing the script can't",
                                       "ACL failure in script:"};

    for (size_t i = 0; i < sizeof(auth) / sizeof(*auth); i++)
        if (begins(text, auth[i]))
            return HF_EAUTH;
    if (begins(text, "WRONGTYPE"))
        return HF_EMISMATCH;
    return HF_EBACKEND; /* LOADING READONLY OOM BUSY MISCONF MOVED ERR ... */
}

int hf__rd_error_code(const char *text)
{
    return code_of(inner(text));
}

bool hf__rd_is_replica(const char *text)
{
    return begins(inner(text), "READONLY") || begins(inner(text), "MASTERDOWN");
}

/* The server refuses for now: it starts, has too much to do, is out of memory
 * or disk, or changes its role. */
static bool refuses_for_now(const char *text)
{
    static const char *const words[] = {
        "LOADING", "BUSY",        "READONLY",   "MASTERDOWN", "OOM",
        "MISCONF", "CLUSTERDOWN", "NOREPLICAS", "TRYAGAIN"};

    text = inner(text);
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

/* What may be at the name, by the type of its key, if that is known. */
static int mismatch(struct redis *r, const char *text)
{
    static const char *const no_locks[] = {"list", "set", "zset", "stream"};
    const char *other_dialect = r->string_dialect ? "hash" : "string";
    const char *type = text + strlen("WRONGTYPE");

    type += *type == ' ';
    for (size_t i = 0; i < sizeof(no_locks) / sizeof(*no_locks); i++)
        if (strcmp(type, no_locks[i]) == 0)
            return r->core->why(r->client, HF_EMISMATCH,
                                "the key is a %s: the name is used by "
                                "something other than a lock",
                                type);
    return r->core->why(
        r->client, HF_EMISMATCH,
        "the key has another type: the name is used as another kind of lock, "
        "or by another program%s",
        strcmp(type, other_dialect) != 0 ? ""
        : r->string_dialect ? "; a lock of Redisson's has dialect=redisson"
                            : "; a lock of redis-py, redsync or node-redlock "
                              "has dialect=string");
}

int hf__rd_error(struct redis *r, const struct rd_node *reply, uint8_t op)
{
    const char *text = inner(reply->text);
    int code = code_of(text);

    if (code != HF_EMISMATCH)
        return (hf__rd_may_pass(text) ? r->core->why : r->core->lasts)(
            r->client, code, "%.150s", text);
    if (op == HF__RELEASE || op == HF__DOWNGRADE)
        return HF_ENOTOWNER; /* whatever is there, it is not ours */
    if (op == HF__ABANDON)
        return HF__DONE;
    return mismatch(r, text);
}
