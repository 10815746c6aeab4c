/* What the server's errors mean to us: the first word tells. */
#include "redis.h"

#include <string.h>

static bool begins(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 &&
           (text[len] == ' ' || text[len] == '\0');
}

int hf__rd_error_code(const char *text)
{
    static const char *const auth[] = {"NOAUTH", "WRONGPASS", "NOPERM"};

    for (size_t i = 0; i < sizeof(auth) / sizeof(*auth); i++)
        if (begins(text, auth[i]))
            return HF_EAUTH;
    return HF_EBACKEND; /* LOADING READONLY OOM BUSY MISCONF MOVED ERR ... */
}

bool hf__rd_is_replica(const char *text)
{
    return begins(text, "READONLY") || begins(text, "MASTERDOWN");
}

int hf__rd_error(struct redis *r, const struct rd_node *reply, uint8_t op)
{
    int code = hf__rd_error_code(reply->text);

    if (begins(reply->text, "WRONGTYPE")) {
        if (op == HF__RELEASE || op == HF__DOWNGRADE)
            return HF_ENOTOWNER; /* whatever is there, it is not ours */
        if (op == HF__ABANDON)
            return HF__DONE;
        return r->core->why(r->client, HF_EMISMATCH,
                            "the key has another type: the name is used as "
                            "another kind of lock, or by another program");
    }
    return r->core->why(r->client, code, "%.150s", reply->text);
}
