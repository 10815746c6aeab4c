/*
 * Queries: inspect, list, break, ask and downgrade.
 *
 * A list walks the whole keyspace, about a hundred keys per command, so that no
 * step blocks the server for longer than a millisecond. During a list,
 * query->count is the cursor, query->token the size of the names so far, and
 * op_timeout limits each step.
 *
 * Inspect, break and ask treat the name as a mutex first. If the reply says
 * that the name is in use as another kind, that kind is stored in query->count,
 * and the query is repeated.
 */
#include "query.h"

#include "backends/common/about.h"
#include "changes.h"
#include "diagnose.h"
#include "flights.h"
#include "keys.h"
#include "kinds.h"
#include "notify.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "requests.h"
#include "scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCAN_COUNT 100
/* Maximum total size of the names in a list. Without a limit, a hostile server
 * could send names until the memory is used up. */
#define LIST_MAX (256u << 20)

/* ---- sending ----------------------------------------------------------- */

static struct net_out *query_begin(struct redis *r, struct hf__query *q,
                                   enum rd_script s, size_t args)
{
    return hf__rd_begin(r, &q->req, s, q->name, q->name_len, args,
                        args * (RD_KEY_MAX + 16));
}

static void query_put_keys(struct net_out *o, const struct hf__query *q,
                           const enum rd_key *keys, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hf__rd_put_key(o, keys[i], q->name, q->name_len);
}

static const enum rd_key mutex_args[] = {RD_CHANNEL, RD_MARK};
static const enum rd_key rw_args[] = {RD_CHANNEL_RW, RD_MARK_RW, RD_KEY_BASE};
static const enum rd_key string_args[] = {RD_CHANNEL_SEM, RD_MARK_SEM,
                                          RD_CHANNEL_LATCH};

/* Encodes a downgrade, which does not change when the hold expires. If the hold
 * is renewed automatically, a renewal follows at once. */
static int query_encode_downgrade(struct redis *r, struct hf__query *q)
{
    struct net_out *o = query_begin(r, q, RD_DOWNGRADE, 4);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_owner(r, o, q->req.hold_id);
    query_put_keys(o, q, rw_args, 3);
    return 0;
}

/* Encodes a BREAK, or an INSPECT of any kind but the mutex. The arguments are
 * q->owner, then the channels and keys in `keys`, then two that only BREAK
 * uses: the time until which the request is valid, and the token of the hold to
 * break. */
static int query_encode_meant(struct redis *r, struct hf__query *q,
                              enum rd_script s, const enum rd_key *keys,
                              size_t len)
{
    struct net_out *o = query_begin(r, q, s, len + 3);
    char token[21];

    if (!o)
        return HF_ENOMEM;
    hf__rd_put(o, q->owner, strlen(q->owner));
    query_put_keys(o, q, keys, len);
    hf__rd_put_num(o, hf__rd_meant_until(r, &q->req));
    hf__rd_put(o, token, hf__rd_decimal(token, q->token));
    return 0;
}

static int query_encode_inspect(struct redis *r, struct hf__query *q)
{
    if (q->count == HF_RWLOCK)
        return query_encode_meant(r, q, RD_INSPECT_RW, rw_args, 3);
    if (q->count)
        return query_encode_meant(r, q, RD_INSPECT_STRING, string_args, 3);
    return query_begin(r, q, r->string_dialect ? RD_INSPECT_S : RD_INSPECT, 0)
               ? 0
               : HF_ENOMEM;
}

static int query_encode_break(struct redis *r, struct hf__query *q)
{
    if (q->count == HF_RWLOCK)
        return query_encode_meant(r, q, RD_BREAK_RW, rw_args, 3);
    if (q->count)
        return query_encode_meant(r, q, RD_BREAK_STRING, string_args, 3);
    return query_encode_meant(r, q, r->string_dialect ? RD_BREAK_S : RD_BREAK,
                              mutex_args, 2);
}

static size_t query_pattern_of(const struct redis *r, const struct hf__query *q,
                               char to[2 * HF_NAME_MAX + 32])
{
    char *p = to;

    /* Our own keys have "{" or ":" in front of the name (keys.c). */
    if (r->string_dialect)
        p = stpcpy(p, "holdfast:info:[{:]");
    return (size_t)(hf__rd_glob(p, q->name, q->name_len) - to);
}

static int query_encode_list(struct redis *r, struct hf__query *q)
{
    char pattern[2 * HF_NAME_MAX + 32], cursor[21];
    struct net_out *o =
        hf__rd_call(r, &q->req, r->string_dialect ? RD_LIST_S : RD_LIST, 0, 3,
                    sizeof(pattern) + 128);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put(o, cursor, hf__rd_decimal(cursor, q->count));
    hf__rd_put(o, pattern, query_pattern_of(r, q, pattern));
    hf__rd_put_num(o, SCAN_COUNT);
    return 0;
}

static int query_encode(struct redis *r, struct hf__req *req)
{
    return hf__rd_query_encode(r, (struct hf__query *)req);
}

int hf__rd_query(void *self, struct hf__query *q)
{
    if (q->name_len > HF_NAME_MAX)
        return HF_EINVAL;
    if (q->req.op == HF__LISTEN)
        return hf__rd_listen(self, q);
    if (q->req.op == HF__DOWNGRADE)
        hf__rd_held_move(self, q);
    return hf__rd_submit(self, &q->req, query_encode);
}

/* Sends the query again after a reply. Returns HF__PENDING or an error code. */
static int query_again(struct redis *r, struct hf__query *q)
{
    int rc = hf__rd_query_encode(r, q);

    return rc ? rc : HF__PENDING;
}

/* ---- inspect ----------------------------------------------------------- */

/* Reads "<length of the prefix>[k] <pid>\n<host>\n<label>". */
static void query_add_about(hf_party *p, const char *at, const char *end)
{
    size_t len;
    const char *s = hf__cut(&at, end, '\n', &len), *space = memchr(s, ' ', len);

    p->pid = space ? strtoll(space, NULL, 10) : 0;
    hf__about_read(p, at, end);
}

/* Reads a string that lua/pieces/give.lua wrote: "owner\nu|f\nsince
 * token\nabout". Older versions of holdfast wrote no token there. */
static void query_add_info(hf_party *p, hf_info *info,
                           const struct rd_node *text)
{
    const char *at = text->text, *end = at + text->len, *s;
    char *since_end;
    size_t len;

    s = hf__cut(&at, end, '\n', &len);
    if (len != strlen(p->owner) || memcmp(s, p->owner, len) != 0)
        return; /* the string describes an earlier holder */
    s = hf__cut(&at, end, '\n', &len);
    info->fairness = len && *s == 'f' ? HF_FAIR : HF_UNFAIR;
    p->since_unix_ms = strtoll(hf__cut(&at, end, '\n', &len), &since_end, 10);
    /* The token is written here because the counter that INSPECT has read
     * (info->token) may have expired. It is missing if an older holdfast wrote
     * the string. */
    if (*since_end == ' ')
        p->token = strtoull(since_end, NULL, 10);
    if (p->token > info->token)
        info->token = p->token;
    query_add_about(p, at, end);
}

/* Reads a string that lua/pieces/note.lua wrote:
 * "u|f\nwant\ntoken\nsince\nabout". */
static void query_add_note(hf_party *p, hf_info *info,
                           const struct rd_node *text)
{
    const char *at = text->text, *end = at + text->len, *s;
    size_t len;

    if (!text->len)
        return; /* the holder is not a holdfast client */
    s = hf__cut(&at, end, '\n', &len);
    info->fairness = len && *s == 'f' ? HF_FAIR : HF_UNFAIR;
    hf__cut(&at, end, '\n', &len);
    p->token = strtoull(hf__cut(&at, end, '\n', &len), NULL, 10);
    p->since_unix_ms = strtoll(hf__cut(&at, end, '\n', &len), NULL, 10);
    query_add_about(p, at, end);
}

/* Reads what a client requests: "r", "w", or the number of permits. */
static void query_add_want(hf_party *p, const char *want)
{
    p->mode = *want == 'r' ? HF_READ : HF_WRITE;
    p->permits = (uint32_t)strtoul(want, NULL, 10);
}

/* Adds a holder or a waiter to the reply. Returns NULL if there is no
 * memory. */
static hf_party *query_add_party(struct redis *r, struct hf__query *q,
                                 bool holds, const struct rd_node *owner,
                                 int64_t left_ms)
{
    hf_party *p = r->core->add_party(r->client, q, holds);

    if (!p)
        return NULL;
    hf__copy_text(p->owner, sizeof(p->owner), owner->text, owner->len);
    p->left_ms = left_ms < 0 ? -1 : left_ms;
    return p;
}

/* Adds the holders. Each item of the list is {owner, want, ms left, note}. */
static int query_add_others(struct redis *r, struct hf__query *q,
                            const struct rd_node *list)
{
    for (const struct rd_node *n = list->first; n; n = n->next) {
        const struct rd_node *owner = hf__rd_at(n, 0), *want = hf__rd_at(n, 1);
        const struct rd_node *note = hf__rd_at(n, 3);
        int64_t left_ms;
        hf_party *p;

        if (!note || !note->text || !owner->text || !want->text ||
            !hf__rd_int(hf__rd_at(n, 2), &left_ms))
            return HF_EPROTO;
        p = query_add_party(r, q, true, owner, left_ms);
        if (!p)
            return HF_ENOMEM;
        query_add_want(p, want->text);
        query_add_note(p, q->info, note);
    }
    return 0;
}

/* Adds the waiters. The list alternates between owners and their notes. A note
 * has `numbers` words before its about part: "until seen hand_ms about" for an
 * unfair waiter, "until seen ear hand_ms about" for a fair one, "until seen ear
 * fair want hand_ms size about" for the other kinds. The note of a Redisson
 * waiter is empty. (`ear` says whether the waiter listens.) */
static int query_add_waiters(struct redis *r, struct hf__query *q,
                             const struct rd_node *list, int numbers)
{
    const struct rd_node *n, *about;

    for (n = list->first; n; n = about->next) {
        hf_party *p;
        const char *at, *end;
        size_t len;

        about = n->next;
        if (!n->text || !about || !about->text)
            return HF_EPROTO;
        p = query_add_party(r, q, false, n, -1);
        if (!p)
            return HF_ENOMEM;
        at = about->text;
        end = at + about->len;
        for (int i = 0; i < numbers; i++) {
            const char *word = hf__cut(&at, end, ' ', &len);

            if (i == 4)
                query_add_want(p, word);
        }
        query_add_about(p, at, end);
    }
    return 0;
}

static int query_add_holder(struct redis *r, struct hf__query *q,
                            const struct rd_node *owner, int64_t left_ms,
                            const struct rd_node *about)
{
    hf_party *p = query_add_party(r, q, true, owner, left_ms);

    if (!p)
        return HF_ENOMEM;
    p->token = q->info->token;
    if (about && about->type == REDIS_REPLY_STRING)
        query_add_info(p, q->info, about);
    return 0;
}

static int query_unknown(struct redis *r)
{
    return r->core->why(r->client, HF_EMISMATCH,
                        "the key is not a lock of dialect=%s; try dialect=%s",
                        r->string_dialect ? "string" : "redisson",
                        r->string_dialect ? "redisson" : "string");
}

static enum hf_kind query_kind_of(char c)
{
    return c == 'r'   ? HF_RWLOCK
           : c == 's' ? HF_SEMAPHORE
           : c == 'l' ? HF_LATCH
                      : 0; /* the name is not in use */
}

/* Reads {kind, token, size, count, holders, waiters}. */
static int query_inspected_other(struct redis *r, struct hf__query *q,
                                 const struct rd_node *reply)
{
    const struct rd_node *kind = hf__rd_at(reply, 0);
    const struct rd_node *holders = hf__rd_at(reply, 4);
    const struct rd_node *waiters = hf__rd_at(reply, 5);
    int64_t token, size, count;
    int rc;

    if (!hf__rd_int(hf__rd_at(reply, 1), &token) ||
        !hf__rd_int(hf__rd_at(reply, 2), &size) ||
        !hf__rd_int(hf__rd_at(reply, 3), &count) || !waiters || !kind->text ||
        holders->type != REDIS_REPLY_ARRAY ||
        waiters->type != REDIS_REPLY_ARRAY || token < 0 || size < 0)
        return HF_EPROTO;
    if (kind->len != 1)
        return query_unknown(r);
    q->info->kind = query_kind_of(*kind->text);
    q->info->waiters_unknown = q->info->kind == HF_LATCH;
    if (q->info->kind == HF_LATCH)
        q->info->count = count > 0 ? (uint64_t)count : 0;
    q->info->token = (uint64_t)token;
    q->info->permits = (uint32_t)size;
    rc = query_add_others(r, q, holders);
    return rc ? rc : query_add_waiters(r, q, waiters, 7);
}

/* Sends the query again, now for the other kind that the reply named. Returns
 * HF__PENDING or an error code. */
static int query_again_as(struct redis *r, struct hf__query *q, int64_t kind)
{
    if (q->count || (kind != HF_RWLOCK && kind != HF_SEMAPHORE))
        return query_unknown(r);
    q->count = (uint64_t)kind;
    return query_again(r, q);
}

static int query_inspected(struct redis *r, struct hf__query *q,
                           const struct rd_node *reply)
{
    const struct rd_node *owner = hf__rd_at(reply, 1);
    const struct rd_node *queue = hf__rd_at(reply, 5);
    const struct rd_node *waiters = hf__rd_at(reply, 6);
    int64_t kind, left_ms, token = 0;
    int rc;

    if (q->count)
        return query_inspected_other(r, q, reply);
    if (!hf__rd_int(hf__rd_at(reply, 0), &kind) ||
        !hf__rd_int(hf__rd_at(reply, 2), &left_ms) || !waiters ||
        queue->type != REDIS_REPLY_ARRAY ||
        waiters->type != REDIS_REPLY_ARRAY || (kind == 1 && !owner->text))
        return HF_EPROTO;
    if (kind > 1)
        return query_again_as(r, q, kind - RD_OTHER);
    hf__rd_int(hf__rd_at(reply, 3), &token);
    q->info->token = token > 0 ? (uint64_t)token : 0;
    if (kind == 1 || queue->first || waiters->first)
        q->info->kind = HF_MUTEX;
    rc = kind == 1 ? query_add_holder(r, q, owner, left_ms, hf__rd_at(reply, 4))
                   : 0;
    if (queue->first)
        q->info->fairness = HF_FAIR;
    if (!rc)
        rc = query_add_waiters(r, q, queue, 4);
    return rc ? rc : query_add_waiters(r, q, waiters, 3);
}

/* ---- ask --------------------------------------------------------------- */

/* If the holder is a holdfast client, appends `owner` and the length of the
 * client's prefix to the command. Returns whether the holder is a holdfast
 * client. `lines` is the number of lines of the note that precede the about
 * part. If o is NULL, nothing is appended. */
static bool query_put_holder(struct net_out *o, const struct rd_node *owner,
                             const struct rd_node *note, int lines)
{
    const char *at, *end, *prefix;
    size_t len;

    if (owner->len >= RD_OWNER_MAX || !note || !note->text || !note->len)
        return false;
    at = note->text;
    end = at + note->len;
    while (lines-- > 0)
        hf__cut(&at, end, '\n', &len);
    prefix = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    len = (size_t)(at - prefix);
    if (!len || len > 4)
        return false;
    if (o) {
        hf__rd_put(o, owner->text, owner->len);
        hf__rd_put(o, prefix, len);
    }
    return true;
}

static bool query_is_about(const struct rd_node *info,
                           const struct rd_node *owner)
{
    return info && info->text && info->len > owner->len &&
           memcmp(info->text, owner->text, owner->len) == 0 &&
           info->text[owner->len] == '\n';
}

/* Returns how many holders in the reply to INSPECT are holdfast clients, or -1
 * if the reply makes no sense. Appends these holders to the command unless o is
 * NULL. */
static int query_put_holders(struct net_out *o, const struct hf__query *q,
                             const struct rd_node *reply)
{
    const struct rd_node *owner = hf__rd_at(reply, 1);
    const struct rd_node *info = hf__rd_at(reply, 4);
    int found = 0;

    if (!q->count)
        return owner && owner->text && query_is_about(info, owner) &&
               query_put_holder(o, owner, info, 3);
    for (const struct rd_node *n = info ? info->first : NULL; n; n = n->next) {
        owner = hf__rd_at(n, 0);
        if (!owner || !owner->text)
            return -1;
        found += query_put_holder(o, owner, hf__rd_at(n, 3), 4);
    }
    return found;
}

/* Sends a command that notifies the holders. Returns HF__PENDING or an error
 * code. */
static int query_notify_holders(struct redis *r, struct hf__query *q,
                                const struct rd_node *reply)
{
    int found = query_put_holders(NULL, q, reply);
    struct net_out *o;

    if (found < 0)
        return HF_EPROTO;
    if (!found)
        return r->core->why(r->client, HF_ENOTSUP,
                            "it is held by another program, which cannot be "
                            "asked");
    o = hf__rd_begin(r, &q->req, RD_ASK, q->name, q->name_len,
                     1 + 2 * (size_t)found,
                     64 + (size_t)found * (RD_OWNER_MAX + 32));
    if (!o)
        return HF_ENOMEM;
    hf__rd_put_num(o, hf__rd_meant_until(r, &q->req));
    query_put_holders(o, q, reply);
    return HF__PENDING;
}

/* Handles a reply to an ASK. The replies to one or two INSPECTs come first,
 * then the reply to the command that notifies the holders. If the server
 * refused that command as too late, the query begins again with an INSPECT. */
static int query_asked(struct redis *r, struct hf__query *q,
                       const struct rd_node *reply)
{
    const struct rd_node *kind = hf__rd_at(reply, 0);
    const struct rd_node *holders = hf__rd_at(reply, 4);
    int64_t what = 0;

    if (reply->type == REDIS_REPLY_INTEGER)
        return HF__DONE;
    if (!holders)
        return hf__rd_clock(r, hf__rd_at(reply, 1), q->req.sent_at)
                   ? query_again(r, q)
                   : HF_EPROTO;
    if (q->count ? !kind->text : !hf__rd_int(kind, &what))
        return HF_EPROTO;
    if (what > 1)
        return query_again_as(r, q, what - RD_OTHER);
    if (q->count && kind->len != 1)
        return query_unknown(r);
    if (q->count ? !holders->first : !what)
        return r->core->why(r->client, HF_ENOTOWNER, "it is not held");
    return query_notify_holders(r, q, reply);
}

/* ---- list -------------------------------------------------------------- */

static int query_add_name(struct redis *r, struct hf__query *q, const char *key,
                          size_t len)
{
    static const char prefix[] = "holdfast:info:";
    size_t skip = sizeof(prefix) - 1;

    if (!r->string_dialect)
        return hf__rd_reserved(key, len)
                   ? 0
                   : r->core->add_name(r->client, q, key, len);
    if (len < skip + 2 || memcmp(key, prefix, skip) != 0)
        return HF_EPROTO;
    return r->core->add_name(r->client, q, key + skip + 1,
                             len - skip - 1 - (key[skip] == '{'));
}

/* Returns HF__PENDING if the list is not complete and the next command is under
 * way; otherwise the result of the query. */
static int query_listed(struct redis *r, struct hf__query *q,
                        const struct rd_node *reply)
{
    const struct rd_node *cursor = hf__rd_at(reply, 0);
    hf__time now = r->core->now();
    int rc = 0;

    if (!cursor || !cursor->text || !cursor->len)
        return HF_EPROTO;
    for (const struct rd_node *n = cursor->next; n && !rc; n = n->next) {
        rc = n->text ? query_add_name(r, q, n->text, n->len) : HF_EPROTO;
        q->token += sizeof(*n) + n->len;
    }
    if (!rc && q->token > LIST_MAX)
        rc = r->core->why(r->client, HF_EBACKEND,
                          "the names take more than %u MiB; list a longer "
                          "prefix",
                          LIST_MAX >> 20);
    if (rc)
        return rc;
    q->count = strtoull(cursor->text, NULL, 10);
    if (q->count && q->req.meant_until > now) /* the caller is still waiting */
        q->req.meant_until = now + r->op_timeout_ms * HF__MS;
    return q->count ? query_again(r, q) : 0;
}

/* ---- answers ----------------------------------------------------------- */

static int query_broken(struct redis *r, struct hf__query *q,
                        const struct rd_node *reply)
{
    int64_t was_held;

    /* The reply is an array if the command was refused as too late: its time
     * limit came from our old estimate of the server's clock. */
    if (reply->type == REDIS_REPLY_ARRAY) {
        if (!hf__rd_clock(r, hf__rd_at(reply, 1), q->req.sent_at))
            return HF_EPROTO;
        return query_again(r, q);
    }
    if (reply->type == REDIS_REPLY_STRING) { /* held with a different token */
        q->count = strtoull(reply->text, NULL, 10);
        return HF_EBUSY;
    }
    if (!hf__rd_int(reply, &was_held))
        return HF_EPROTO;
    if (was_held > 1)
        return query_again_as(r, q, was_held - RD_OTHER);
    if (was_held == 0)
        return r->core->why(r->client, HF_ENOTOWNER, "it is not held");
    return was_held == 1 ? 0 : HF_EPROTO;
}

static int query_gone_down(struct redis *r, struct hf__query *q,
                           const struct rd_node *reply)
{
    int64_t was_ours;

    (void)r;
    (void)q;
    if (!hf__rd_int(reply, &was_ours))
        return HF_EPROTO;
    return was_ours ? 0 : HF_ENOTOWNER;
}

/* ---- handlers of each query ---------------------------------------------- */

static const struct {
    int (*encode)(struct redis *, struct hf__query *);
    int (*answered)(struct redis *, struct hf__query *, const struct rd_node *);
} query_ops[] = {
    [HF__INSPECT] = {query_encode_inspect, query_inspected},
    [HF__LIST] = {query_encode_list, query_listed},
    [HF__BREAK] = {query_encode_break, query_broken},
    [HF__DOWNGRADE] = {query_encode_downgrade, query_gone_down},
    [HF__LATCH_SET] = {hf__rd_count_encode, hf__rd_count_reply},
    [HF__LATCH_DOWN] = {hf__rd_count_encode, hf__rd_count_reply},
    [HF__LATCH_GET] = {hf__rd_count_encode, hf__rd_count_reply},
    [HF__ASK] = {query_encode_inspect, query_asked}, /* to find the holders */
    [HF__DIAGNOSE] = {hf__rd_diagnose_encode, hf__rd_diagnosed},
};

int hf__rd_query_encode(struct redis *r, struct hf__query *q)
{
    if (r->core->now() >= q->req.meant_until)
        return r->core->why(r->client, HF_EUNKNOWN, "not sent in time");
    return q->req.op <= HF__DIAGNOSE && query_ops[q->req.op].encode
               ? query_ops[q->req.op].encode(r, q)
               : HF_ENOTSUP;
}

int hf__rd_query_reply(struct redis *r, struct hf__query *q,
                       const struct rd_node *reply)
{
    int rc = query_ops[q->req.op].answered(r, q, reply);

    if (rc == RD_AGAIN)
        rc = query_again(r, q);
    if (rc == HF_EPROTO || rc == HF__PENDING)
        return rc == HF_EPROTO ? rc : 0;
    hf__rd_finish(r, &q->req, rc);
    return 0;
}
