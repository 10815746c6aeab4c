/* Which rights the user lacks: what is asked of lua/rights.lua, and what it
 * answers. The commands are those of the scripts themselves. */
#include "redis.h"

#include <stdio.h>
#include <string.h>

#define COMMANDS 64
#define SCRATCH "holdfast-diagnose"

struct list {
    size_t len;
    struct command {
        char word[24];
    } all[COMMANDS];
};

static void add(struct list *l, const char *mark, const char *word, size_t len)
{
    struct command c = {""};

    if (l->len == COMMANDS || len + strlen(mark) >= sizeof(c.word))
        return;
    snprintf(c.word, sizeof(c.word), "%s%.*s", mark, (int)len, word);
    for (size_t i = 0; i < l->len; i++)
        if (strcmp(l->all[i].word, c.word) == 0)
            return;
    l->all[l->len++] = c;
}

static bool is(const char *word, size_t len, const char *text)
{
    return strlen(text) == len && memcmp(word, text, len) == 0;
}

static void add_call(struct list *l, const char *word, size_t len)
{
    if (is(word, len, "pubsub"))
        add(l, "", "pubsub numsub", 13);
    else if (is(word, len, "scan"))
        add(l, "", "scan 0", 6);
    else if (is(word, len, "time"))
        add(l, "", word, len);
    else
        add(l, is(word, len, "publish") ? "&" : "@", word, len);
}

static void add_script(struct list *l, const char *text)
{
    static const char call[] = "call('";

    while ((text = strstr(text, call))) {
        bool is_redis = text[-1] == '.' || text[-1] == 'p'; /* or a local */
        size_t len;

        text += sizeof(call) - 1;
        len = strcspn(text, "'");
        if (is_redis)
            add_call(l, text, len);
    }
}

/* Those of the scripts, and those that are sent without a script. */
static void list_commands(struct list *l, enum rd_rules_of of, bool wait)
{
    static const enum rd_script scripts[][2] = {
        [RD_RULES_REDISSON] = {RD_TAKE, RD_PROVE},
        [RD_RULES_STRING] = {RD_TAKE_S, RD_BREAK_S},
        [RD_RULES_REDLOCK] = {RD_VOTE, RD_VOTE},
    };

    add(l, "", "eval x 0", 8);
    add(l, "", "evalsha x 0", 11);
    for (unsigned i = scripts[of][0]; i <= scripts[of][1]; i++)
        add_script(l, hf__rd_script[i].text);
    if (of == RD_RULES_REDLOCK) {
        add(l, "", "time", 4);
        add(l, "", "info", 4);
        return;
    }
    add(l, "", "ping", 4);
    add(l, "&", "subscribe", 9);
    add(l, "", "unsubscribe", 11);
    if (of == RD_RULES_STRING)
        add_script(l, hf__rd_script[RD_PROVE].text);
    if (wait)
        add(l, "", "wait 1 1", 8);
}

static enum rd_rules_of rules_of(const struct redis *r)
{
    return r->string_dialect ? RD_RULES_STRING : RD_RULES_REDISSON;
}

/* ---- rules for ACL SETUSER ------------------------------------------------
 */

struct rules {
    char *to;
    size_t size, len;
    bool is_cut;
};

static void put_word(struct rules *to, const char *mark, const char *word,
                     size_t len)
{
    if (to->is_cut || to->len + len + 8 > to->size) {
        if (!to->is_cut)
            snprintf(to->to + to->len, to->size - to->len, " ...");
        to->is_cut = true;
        return;
    }
    to->len += (size_t)snprintf(to->to + to->len, to->size - to->len, " %s%.*s",
                                mark, (int)len, word);
}

static void put_command(struct rules *to, const char *command)
{
    size_t len;

    command += strspn(command, "@&");
    len = strcspn(command, " ");
    if (is(command, len, "pubsub"))
        put_word(to, "+", "pubsub|numsub", 13);
    else
        put_word(to, "+", command, len);
}

/* A key or a channel of the names that begin with a prefix; `head` matches what
 * is before the name in all keys of its sort. */
struct pattern {
    enum rd_key key;
    const char *before, *head;
};

static const struct pattern key_patterns[] = {
    {RD_KEY_LOCK, "", ""},
    {RD_KEY_PERMITS, "", ""},
    {RD_KEY_TOKEN, "redisson_lock_token:", "redisson_lock_*:"},
    {RD_KEY_INFO, "holdfast:info:", "holdfast:*:"},
};
static const struct pattern string_patterns[] = {
    {RD_KEY_LOCK, "", ""},
    {RD_KEY_INFO, "holdfast:info:", "holdfast:*:"},
};
static const struct pattern redlock_patterns[] = {
    {RD_KEY_LOCK, "", ""},
    {RD_KEY_RESERVE, "holdfast:reserve:", "holdfast:reserve:"},
};
static const struct pattern channel_patterns[] = {
    {RD_CHANNEL, "redisson_lock__channel:", "redisson_lock__channel:"},
    {RD_CHANNEL_RW, "redisson_rwlock:", "redisson_rwlock:"},
    {RD_CHANNEL_SEM, "redisson_sc:", "redisson_sc:"},
    {RD_CHANNEL_LATCH, "redisson_countdownlatch__channel__",
     "redisson_countdownlatch__channel__"},
    {RD_MARK, "holdfast:mark:", "holdfast:*mark:"},
};

#define LEN(a) (sizeof(a) / sizeof(*(a)))

/* For a byte that a rule cannot have, or that redis-cli takes for a quote, the
 * pattern matches any byte. */
static void put_pattern(struct rules *to, const char *mark, const char *head,
                        const char *text, size_t len)
{
    char word[2 * RD_KEY_MAX + 64];
    char *end = hf__rd_glob(stpcpy(word, head), text, len);

    for (char *c = word; c < end; c++)
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\'')
            *c = '?';
    put_word(to, mark, word, (size_t)(end - word));
}

static void put_patterns(struct rules *to, const char *mark,
                         const struct pattern *p, size_t n, const char *prefix,
                         size_t len)
{
    char name[HF_NAME_MAX + 1], text[RD_KEY_MAX + 1], *from, *at;

    if (len >= HF_NAME_MAX)
        len = HF_NAME_MAX - 1; /* no name is possible */
    snprintf(name, sizeof(name), "%.*sx", (int)len, prefix);
    for (; n; n--, p++) {
        size_t key_len = hf__rd_key(text, p->key, name, len + 1);

        from = text + strlen(p->before);
        at = memmem(from, key_len - strlen(p->before), prefix, len);
        put_pattern(to, mark, p->head, from,
                    len && at ? (size_t)(at - from) + len : 0);
        if (!len && p->key == RD_KEY_LOCK)
            return; /* it matches all keys */
    }
}

static void put_keys(struct rules *to, enum rd_rules_of of, const char *prefix,
                     size_t len)
{
    static const struct {
        const struct pattern *all;
        size_t len;
    } of_set[] = {
        [RD_RULES_REDISSON] = {key_patterns, LEN(key_patterns)},
        [RD_RULES_STRING] = {string_patterns, LEN(string_patterns)},
        [RD_RULES_REDLOCK] = {redlock_patterns, LEN(redlock_patterns)},
    };

    put_patterns(to, "~", of_set[of].all, of_set[of].len, prefix, len);
    /* What ask.lua keeps for a client; without a brace this is matched. */
    if (of == RD_RULES_REDISSON && memchr(prefix, '{', len))
        put_pattern(to, "~", "holdfast:wake:{", prefix, len);
}

static void put_channels(struct rules *to, enum rd_rules_of of,
                         const char *prefix, size_t len)
{
    if (of == RD_RULES_REDISSON)
        put_patterns(to, "&", channel_patterns, LEN(channel_patterns), prefix,
                     len);
    put_pattern(to, "&", "holdfast:wake:{", prefix, len);
}

const char *hf__rd_rules(char *buffer, size_t size, enum rd_rules_of of,
                         const char *prefix, bool wait)
{
    struct rules to = {.to = buffer, .size = size};
    struct list l = {0};

    buffer[0] = '\0';
    if (prefix)
        put_keys(&to, of, prefix, strlen(prefix));
    list_commands(&l, of, wait);
    for (size_t i = 0; i < l.len; i++)
        put_command(&to, l.all[i].word);
    return buffer;
}

/* ---- what is asked --------------------------------------------------------
 */

static const enum rd_key keys[] = {
    RD_KEY_LOCK,  RD_KEY_INFO,    RD_KEY_WAITERS, RD_KEY_CROWD, RD_KEY_TOKEN,
    RD_KEY_QUEUE, RD_KEY_TIMEOUT, RD_KEY_SEEN,    RD_KEY_HOLDS, RD_KEY_LINE,
    RD_KEY_PARTY, RD_KEY_KIND,    RD_KEY_PERMITS};
static const enum rd_key string_keys[] = {
    RD_KEY_LOCK, RD_KEY_INFO, RD_KEY_WAITERS, RD_KEY_CROWD, RD_KEY_TOKEN_S};
static const enum rd_key channels[] = {
    RD_CHANNEL,     RD_MARK,     RD_CHANNEL_RW,   RD_MARK_RW,
    RD_CHANNEL_SEM, RD_MARK_SEM, RD_CHANNEL_LATCH};

int hf__rd_rights_encode(struct redis *r, struct hf__query *q)
{
    const enum rd_key *k = r->string_dialect ? string_keys : keys;
    size_t keys_len = r->string_dialect ? LEN(string_keys) : LEN(keys);
    size_t channels_len = r->string_dialect ? 0 : LEN(channels);
    size_t len = q->name_len + sizeof(SCRATCH) - 1, more;
    char name[HF_NAME_MAX + sizeof(SCRATCH)];
    struct list l = {0};
    struct net_out *o;

    if (len > HF_NAME_MAX)
        len = HF_NAME_MAX; /* the prefix is that long: no lock is possible */
    snprintf(name, sizeof(name), "%.*s" SCRATCH, (int)q->name_len, q->name);
    list_commands(&l, rules_of(r), r->doubts.need > 0);
    more = (keys_len + channels_len + 1) * (RD_KEY_MAX + 32) +
           l.len * (sizeof(struct command) + 16) + 64;
    r->by_text[RD_RIGHTS] = true; /* once: not worth a digest */
    o = hf__rd_call(r, &q->req, RD_RIGHTS, 0,
                    2 + keys_len + channels_len + 1 + l.len, more);
    if (!o)
        return HF_ENOMEM;
    hf__rd_put_num(o, (int64_t)keys_len);
    hf__rd_put_num(o, (int64_t)channels_len + 1);
    for (size_t i = 0; i < keys_len; i++)
        hf__rd_put_key(o, k[i], name, len);
    for (size_t i = 0; i < channels_len; i++)
        hf__rd_put_key(o, channels[i], name, len);
    hf__rd_put(o, r->wake, r->wake_len);
    for (size_t i = 0; i < l.len; i++)
        hf__rd_put_text(o, l.all[i].word);
    return 0;
}

/* Without these waiters poll, or names cannot be listed; locks work. */
static bool is_needed(const char *command)
{
    static const char *const spare[] = {"subscribe", "unsubscribe", "pubsub",
                                        "scan", "type"};

    for (size_t i = 0; i < LEN(spare); i++)
        if (strcmp(command, spare[i]) == 0)
            return false;
    return true;
}

#define FIND(level, ...)                                                       \
    r->core->find(r->client, q, level, "rights", __VA_ARGS__)

static void find_none_missing(struct redis *r, struct hf__query *q)
{
    if (!r->login.user[0] && !r->login.password[0])
        FIND(HF_LEVEL_OK,
             "this client has every right that it needs, without a password: "
             "every client that can reach the server can break locks");
    else
        FIND(HF_LEVEL_OK, "the user %s has every right that it needs",
             r->login.user[0] ? r->login.user : "default");
}

/* One rule for each command that is missing. */
static enum hf_level find_commands(const struct rd_node *missing,
                                   struct rules *to)
{
    enum hf_level level = HF_LEVEL_WARNING;

    for (const struct rd_node *n = missing->first; n; n = n->next) {
        if (!n->text)
            continue;
        if (is_needed(n->text))
            level = HF_LEVEL_ERROR;
        put_command(to, n->text);
    }
    return level;
}

/* What is missing, {commands, keys, channels}: how to allow it. */
static void find_missing(struct redis *r, struct hf__query *q,
                         const struct rd_node *const list[3])
{
    const char *user = r->login.user[0] ? r->login.user : "default";
    char text[600] = "";
    struct rules to = {.to = text, .size = sizeof(text)};
    enum hf_level level;

    if (list[0]->first) {
        level = find_commands(list[0], &to);
        FIND(level, "the user %s lacks commands%s. " RD_RUN "%s%s", user,
             level == HF_LEVEL_ERROR
                 ? ", without which some locks do not work"
                 : "; locks work, but waiters may poll, and names may not be "
                   "listed",
             user, text);
    }
    if (list[1]->first) {
        to = (struct rules){.to = text, .size = sizeof(text)};
        put_keys(&to, rules_of(r), q->name, q->name_len);
        FIND(HF_LEVEL_ERROR,
             "the user %s may not use the keys of locks. " RD_RUN "%s%s", user,
             user, text);
    }
    if (list[2]->first) {
        to = (struct rules){.to = text, .size = sizeof(text)};
        put_channels(&to, rules_of(r), q->name, q->name_len);
        FIND(HF_LEVEL_WARNING,
             "the user %s may not use the channels of locks, so that waiters "
             "poll. " RD_RUN "%s%s",
             user, user, text);
    }
}

int hf__rd_rights_found(struct redis *r, struct hf__query *q,
                        const struct rd_node *reply)
{
    const struct rd_node *list[3];

    if (reply->type == REDIS_REPLY_NIL) {
        FIND(HF_LEVEL_OK,
             "Redis before 7.0 does not tell which rights are missing: "
             "holdfast-url(7) lists them, and \"locking\" shows whether a "
             "mutex works");
        return 0;
    }
    for (size_t i = 0; i < 3; i++) {
        list[i] = hf__rd_at(reply, i);
        if (!list[i] || list[i]->type != REDIS_REPLY_ARRAY)
            return HF_EPROTO;
    }
    if (list[0]->first || list[1]->first || list[2]->first)
        find_missing(r, q, list);
    else
        find_none_missing(r, q);
    return 0;
}
