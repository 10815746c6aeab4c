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

static void list_commands(const struct redis *r, struct list *l)
{
    enum rd_script first = r->string_dialect ? RD_TAKE_S : RD_TAKE;
    enum rd_script last = r->string_dialect ? RD_BREAK_S : RD_PROVE;

    for (unsigned i = first; i <= last; i++)
        add_script(l, hf__rd_script[i].text);
    add(l, "", "evalsha x 0", 11);
    add(l, "", "unsubscribe", 11);
    add(l, "&", "subscribe", 9);
    if (r->doubts.need)
        add(l, "", "wait 1 1", 8);
}

static const enum rd_key keys[] = {
    RD_KEY_LOCK,  RD_KEY_INFO,    RD_KEY_WAITERS, RD_KEY_CROWD, RD_KEY_TOKEN,
    RD_KEY_QUEUE, RD_KEY_TIMEOUT, RD_KEY_SEEN,    RD_KEY_HOLDS, RD_KEY_LINE,
    RD_KEY_PARTY, RD_KEY_KIND,    RD_KEY_PERMITS};
static const enum rd_key string_keys[] = {
    RD_KEY_LOCK, RD_KEY_INFO, RD_KEY_WAITERS, RD_KEY_CROWD, RD_KEY_TOKEN_S};
static const enum rd_key channels[] = {
    RD_CHANNEL,     RD_MARK,     RD_CHANNEL_RW,   RD_MARK_RW,
    RD_CHANNEL_SEM, RD_MARK_SEM, RD_CHANNEL_LATCH};

#define LEN(a) (sizeof(a) / sizeof(*(a)))

int hf__rd_rights_encode(struct redis *r, struct hf__query *q)
{
    const enum rd_key *k = r->string_dialect ? string_keys : keys;
    size_t keys_len = r->string_dialect ? LEN(string_keys) : LEN(keys);
    size_t channels_len = r->string_dialect ? 2 : LEN(channels);
    size_t len = q->name_len + sizeof(SCRATCH) - 1, more;
    char name[HF_NAME_MAX + sizeof(SCRATCH)];
    struct list l = {0};
    struct net_out *o;

    if (len > HF_NAME_MAX)
        len = HF_NAME_MAX; /* the prefix is that long: no lock is possible */
    snprintf(name, sizeof(name), "%.*s" SCRATCH, (int)q->name_len, q->name);
    list_commands(r, &l);
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

/* " +get +set": cut behind a word where it is too long. */
static void join(char *to, size_t size, const struct rd_node *list,
                 const char *mark)
{
    size_t at = 0;

    to[0] = '\0';
    for (const struct rd_node *n = list->first; n; n = n->next) {
        const char *word = n->text ? n->text : "";
        const char *sub = strcmp(word, "pubsub") == 0 ? "|numsub" : "";

        if (at + strlen(word) + 16 > size) {
            snprintf(to + at, size - at, " ...");
            return;
        }
        at += (size_t)snprintf(to + at, size - at, " %s%s%s", mark, word, sub);
    }
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

int hf__rd_rights_found(struct redis *r, struct hf__query *q,
                        const struct rd_node *reply)
{
    const struct rd_node *list[3];
    const char *user = r->login.user[0] ? r->login.user : "default";
    char text[3][400];
    enum hf_level level = HF_LEVEL_WARNING;

    if (reply->type == REDIS_REPLY_NIL) {
        FIND(HF_LEVEL_OK, "Redis before 7.0 does not tell which rights are "
                          "missing: see \"locking\"");
        return 0;
    }
    for (size_t i = 0; i < 3; i++) {
        list[i] = hf__rd_at(reply, i);
        if (!list[i] || list[i]->type != REDIS_REPLY_ARRAY)
            return HF_EPROTO;
        join(text[i], sizeof(text[i]), list[i], &"+\0~\0&"[2 * i]);
    }
    for (const struct rd_node *n = list[0]->first; n; n = n->next)
        if (n->text && is_needed(n->text))
            level = HF_LEVEL_ERROR;
    if (list[0]->first)
        FIND(level, "%s. Run: ACL SETUSER %s%s",
             level == HF_LEVEL_ERROR
                 ? "the user lacks commands, without which some locks do not "
                   "work"
                 : "the user lacks commands; locks work, but waiters may poll, "
                   "and names may not be listed",
             user, text[0]);
    if (list[1]->first)
        FIND(HF_LEVEL_ERROR,
             "the user %s may not use these keys. Run: ACL SETUSER %s with "
             "patterns that match these:%s",
             user, user, text[1]);
    if (list[2]->first)
        FIND(HF_LEVEL_WARNING,
             "the user %s may not use these channels, so that waiters poll. "
             "Run: ACL SETUSER %s with patterns that match them:%s",
             user, user, text[2]);
    if (!list[0]->first && !list[1]->first && !list[2]->first)
        find_none_missing(r, q);
    return 0;
}
