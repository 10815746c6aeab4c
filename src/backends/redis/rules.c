/* Rules for ACL SETUSER. The names of the commands that scripts call are
 * extracted from the sources of the scripts. */
#include "rules.h"

#include "keys.h"
#include "scripts.h"

#include <stdio.h>
#include <string.h>

static void rules_add(struct rd_commands *l, const char *mark, const char *word,
                      size_t len)
{
    struct rd_command c = {""};

    if (l->len == RD_COMMANDS_MAX || len + strlen(mark) >= sizeof(c.word))
        return;
    snprintf(c.word, sizeof(c.word), "%s%.*s", mark, (int)len, word);
    for (size_t i = 0; i < l->len; i++)
        if (strcmp(l->all[i].word, c.word) == 0)
            return;
    l->all[l->len++] = c;
}

static bool rules_is(const char *word, size_t len, const char *text)
{
    return strlen(text) == len && memcmp(word, text, len) == 0;
}

static void rules_add_call(struct rd_commands *l, const char *word, size_t len)
{
    if (rules_is(word, len, "pubsub"))
        rules_add(l, "", "pubsub numsub", 13);
    else if (rules_is(word, len, "scan"))
        rules_add(l, "", "scan 0", 6);
    else if (rules_is(word, len, "time"))
        rules_add(l, "", word, len);
    else
        rules_add(l, rules_is(word, len, "publish") ? "&" : "@", word, len);
}

static void rules_add_script(struct rd_commands *l, const char *text)
{
    static const char call[] = "call('";

    while ((text = strstr(text, call))) {
        bool is_redis = text[-1] == '.' ||
                        text[-1] == 'p'; /* redis.call(), redis.pcall() */
        size_t len;

        text += sizeof(call) - 1;
        len = strcspn(text, "'");
        if (is_redis)
            rules_add_call(l, text, len);
    }
}

void hf__rd_rules_commands(struct rd_commands *l, enum rd_rules_of of,
                           bool wait)
{
    static const enum rd_script scripts[][2] = {
        [RD_RULES_REDISSON] = {RD_TAKE, RD_PROVE},
        [RD_RULES_STRING] = {RD_TAKE_S, RD_BREAK_S},
        [RD_RULES_REDLOCK] = {RD_VOTE, RD_VOTE},
    };

    rules_add(l, "", "eval x 0", 8);
    rules_add(l, "", "evalsha x 0", 11);
    for (unsigned i = scripts[of][0]; i <= scripts[of][1]; i++)
        rules_add_script(l, hf__rd_script[i].text);
    if (of == RD_RULES_REDLOCK) {
        rules_add(l, "", "time", 4);
        rules_add(l, "", "info", 4);
        return;
    }
    rules_add(l, "", "ping", 4);
    rules_add(l, "&", "subscribe", 9);
    rules_add(l, "", "unsubscribe", 11);
    if (of == RD_RULES_STRING)
        rules_add_script(l, hf__rd_script[RD_PROVE].text);
    if (wait)
        rules_add(l, "", "wait 1 1", 8);
}

/* ---- rules for ACL SETUSER ------------------------------------------------
 */

static void rules_put_word(struct rd_rules *to, char mark, const char *word,
                           size_t len)
{
    if (to->is_cut || to->len + len + 8 > to->size) {
        if (!to->is_cut)
            snprintf(to->to + to->len, to->size - to->len, " ...");
        to->is_cut = true;
        return;
    }
    to->len += (size_t)snprintf(to->to + to->len, to->size - to->len, " %c%.*s",
                                mark, (int)len, word);
}

void hf__rd_rules_put(struct rd_rules *to, const char *command)
{
    size_t len;

    command += strspn(command, "@&");
    len = strcspn(command, " ");
    if (rules_is(command, len, "pubsub"))
        rules_put_word(to, '+', "pubsub|numsub", 13);
    else
        rules_put_word(to, '+', command, len);
}

/* Patterns for the keys and channels of names that begin with a prefix. `head`
 * matches what precedes the name in all keys or channels that the pattern
 * covers. */
enum { REDISSON = 1 << RD_RULES_REDISSON, STRING = 1 << RD_RULES_STRING };
enum { REDLOCK = 1 << RD_RULES_REDLOCK };

static const struct pattern {
    char mark;  /* '~' for keys, '&' for channels */
    uint8_t of; /* who needs it: a bit for each enum rd_rules_of */
    enum rd_key key;
    const char *head;
} patterns[] = {
    {'~', REDISSON | STRING | REDLOCK, RD_KEY_LOCK, ""},
    {'~', REDISSON, RD_KEY_PERMITS, ""},
    {'~', REDISSON, RD_KEY_TOKEN, "redisson_lock_*:"},
    {'~', REDISSON | STRING, RD_KEY_INFO, "holdfast:*:"},
    {'~', REDLOCK, RD_KEY_RESERVE, "holdfast:reserve:"},
    {'&', REDISSON, RD_CHANNEL, "redisson_lock__channel:"},
    {'&', REDISSON, RD_CHANNEL_RW, "redisson_rwlock:"},
    {'&', REDISSON, RD_CHANNEL_SEM, "redisson_sc:"},
    {'&', REDISSON, RD_CHANNEL_LATCH, "redisson_countdownlatch__channel__"},
    {'&', REDISSON, RD_MARK, "holdfast:*mark:"},
};

/* Appends a pattern: `head`, then `text`. A byte that rules cannot contain, or
 * that redis-cli treats as a quote, is replaced by "?", which matches any
 * byte. */
static void rules_put_pattern(struct rd_rules *to, char mark, const char *head,
                              const char *text, size_t len)
{
    char word[2 * RD_KEY_MAX + 64];
    char *end = hf__rd_glob(stpcpy(word, head), text, len);

    for (char *c = word; c < end; c++)
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\'')
            *c = '?';
    rules_put_word(to, mark, word, (size_t)(end - word));
}

static void rules_put_patterns(struct rd_rules *to, char mark,
                               enum rd_rules_of of, const char *prefix,
                               size_t len)
{
    char name[HF_NAME_MAX + 1], text[RD_KEY_MAX + 1], *from, *at;

    if (len >= HF_NAME_MAX)
        len = HF_NAME_MAX - 1; /* no name can have such a long prefix */
    snprintf(name, sizeof(name), "%.*sx", (int)len, prefix);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        const struct pattern *p = &patterns[i];
        size_t key_len = hf__rd_key(text, p->key, name, len + 1);

        if (p->mark != mark || !(p->of & 1u << of))
            continue;
        from = text + strlen(hf__rd_prefix(p->key));
        at = memmem(from, key_len - (size_t)(from - text), prefix, len);
        rules_put_pattern(to, mark, p->head, from,
                          len && at ? (size_t)(at - from) + len : 0);
        if (!len && p->key == RD_KEY_LOCK)
            return; /* this pattern matches all keys */
    }
}

void hf__rd_rules_put_keys(struct rd_rules *to, enum rd_rules_of of,
                           const char *prefix, size_t len)
{
    rules_put_patterns(to, '~', of, prefix, len);
    /* This rule allows the key in which ask.lua stores wishes. If the prefix
     * contains no brace, another pattern matches that key. */
    if (of == RD_RULES_REDISSON && memchr(prefix, '{', len))
        rules_put_pattern(to, '~', "holdfast:wake:{", prefix, len);
}

void hf__rd_rules_put_channels(struct rd_rules *to, enum rd_rules_of of,
                               const char *prefix, size_t len)
{
    rules_put_patterns(to, '&', of, prefix, len);
    rules_put_pattern(to, '&', "holdfast:wake:{", prefix, len);
}

const char *hf__rd_rules(char *buffer, size_t size, enum rd_rules_of of,
                         const char *prefix, bool wait)
{
    struct rd_rules to = {.to = buffer, .size = size};
    struct rd_commands l = {0};

    buffer[0] = '\0';
    if (prefix)
        hf__rd_rules_put_keys(&to, of, prefix, strlen(prefix));
    hf__rd_rules_commands(&l, of, wait);
    for (size_t i = 0; i < l.len; i++)
        hf__rd_rules_put(&to, l.all[i].word);
    return buffer;
}
