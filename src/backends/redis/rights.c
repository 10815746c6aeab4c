/* Encodes the call of lua/rights.lua. Its reply lists the rights that the user
 * lacks; this file converts the list into findings. */
#include "rights.h"

#include "flights.h"
#include "keys.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "rules.h"
#include "scripts.h"

#include <stdio.h>
#include <string.h>

#define SCRATCH "holdfast-diagnose"
#define LEN(a) (sizeof(a) / sizeof(*(a)))

static enum rd_rules_of rights_rules_of(const struct redis *r)
{
    return r->string_dialect ? RD_RULES_STRING : RD_RULES_REDISSON;
}

/* ---- the request ---------------------------------------------------------
 */

static const enum rd_key keys[] = {
    RD_KEY_LOCK,  RD_KEY_INFO,    RD_KEY_WAITERS, RD_KEY_CROWD, RD_KEY_TOKEN,
    RD_KEY_QUEUE, RD_KEY_TIMEOUT, RD_KEY_SEEN,    RD_KEY_HOLDS, RD_KEY_LINE,
    RD_KEY_PARTY, RD_KEY_KIND,    RD_KEY_PERMITS};
static const enum rd_key string_keys[] = {
    RD_KEY_LOCK, RD_KEY_INFO, RD_KEY_WAITERS, RD_KEY_CROWD, RD_KEY_TOKEN_S};

int hf__rd_rights_encode(struct redis *r, struct hf__query *q)
{
    const enum rd_key *k = r->string_dialect ? string_keys : keys;
    size_t keys_len = r->string_dialect ? LEN(string_keys) : LEN(keys);
    size_t channels_len =
        r->string_dialect ? 0 : RD_CHANNEL_LATCH - RD_CHANNEL + 1;
    size_t len = q->name_len + sizeof(SCRATCH) - 1, more;
    char name[HF_NAME_MAX + sizeof(SCRATCH)];
    struct rd_commands l = {0};
    struct net_out *o;

    if (len > HF_NAME_MAX)
        len = HF_NAME_MAX; /* no name can have such a long prefix */
    snprintf(name, sizeof(name), "%.*s" SCRATCH, (int)q->name_len, q->name);
    hf__rd_rules_commands(&l, rights_rules_of(r), r->doubts.need > 0);
    more = (keys_len + channels_len + 1) * (RD_KEY_MAX + 32) +
           l.len * (sizeof(struct rd_command) + 16) + 64;
    /* The script runs only once, so sending its digest first would not help. */
    r->by_text[RD_RIGHTS] = true;
    o = hf__rd_call(r, &q->req, RD_RIGHTS, 0,
                    2 + keys_len + channels_len + 1 + l.len, more);
    if (!o)
        return HF_ENOMEM;
    hf__rd_put_num(o, (int64_t)keys_len);
    hf__rd_put_num(o, (int64_t)channels_len + 1);
    for (size_t i = 0; i < keys_len; i++)
        hf__rd_put_key(o, k[i], name, len);
    for (size_t i = 0; i < channels_len; i++)
        hf__rd_put_key(o, RD_CHANNEL + (enum rd_key)i, name, len);
    hf__rd_put(o, r->wake, r->wake_len);
    for (size_t i = 0; i < l.len; i++)
        hf__rd_put_text(o, l.all[i].word);
    return 0;
}

/* Returns whether locks need the command. If one of the other commands is
 * missing, waiters poll, or names cannot be listed. */
static bool rights_is_needed(const char *command)
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

static void rights_find_none_missing(struct redis *r, struct hf__query *q)
{
    if (!r->login.user[0] && !r->login.password[0])
        FIND(HF_LEVEL_OK,
             "this client has every right that it needs, without a password: "
             "every client that can reach the server can break locks");
    else
        FIND(HF_LEVEL_OK, "the user %s has every right that it needs",
             r->login.user[0] ? r->login.user : "default");
}

/* Appends a rule for each missing command. Returns the level of the finding. */
static enum hf_level rights_find_commands(const struct rd_node *missing,
                                          struct rd_rules *to)
{
    enum hf_level level = HF_LEVEL_WARNING;

    for (const struct rd_node *n = missing->first; n; n = n->next) {
        if (!n->text)
            continue;
        if (rights_is_needed(n->text))
            level = HF_LEVEL_ERROR;
        hf__rd_rules_put(to, n->text);
    }
    return level;
}

/* Adds findings about the missing commands, keys and channels, which are in
 * list[0], list[1] and list[2], with the rules that allow them. */
static void rights_find_missing(struct redis *r, struct hf__query *q,
                                const struct rd_node *const list[3])
{
    const char *user = r->login.user[0] ? r->login.user : "default";
    char text[600] = "";
    struct rd_rules to = {.to = text, .size = sizeof(text)};
    enum hf_level level;

    if (list[0]->first) {
        level = rights_find_commands(list[0], &to);
        FIND(level, "the user %s lacks commands%s. " RD_RUN "%s%s", user,
             level == HF_LEVEL_ERROR
                 ? ", without which some locks do not work"
                 : "; locks work, but waiters may poll, and names may not be "
                   "listed",
             user, text);
    }
    if (list[1]->first) {
        to = (struct rd_rules){.to = text, .size = sizeof(text)};
        hf__rd_rules_put_keys(&to, rights_rules_of(r), q->name, q->name_len);
        FIND(HF_LEVEL_ERROR,
             "the user %s may not use the keys of locks. " RD_RUN "%s%s", user,
             user, text);
    }
    if (list[2]->first) {
        to = (struct rd_rules){.to = text, .size = sizeof(text)};
        hf__rd_rules_put_channels(&to, rights_rules_of(r), q->name,
                                  q->name_len);
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
        rights_find_missing(r, q, list);
    else
        rights_find_none_missing(r, q);
    return 0;
}
