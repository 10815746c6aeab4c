#include "entry.h"

#include "path.h"

#include <stdio.h>
#include <string.h>

/* ---- forms ----------------------------------------------------- */

#define HEX "0123456789abcdefABCDEF"

/* Reads a uuid of that length. Returns a pointer to what follows it, or NULL if
 * s does not begin with such a uuid. */
static const char *entry_read_uuid(const char *s, size_t len,
                                   struct zk_entry *e)
{
    for (size_t i = 0; i < len; i++) {
        bool hyphen = len == 36 && (i == 8 || i == 13 || i == 18 || i == 23);

        if (!s[i] || !strchr(hyphen ? "-" : HEX, s[i]))
            return NULL;
    }
    e->uuid = s;
    e->uuid_len = len;
    return s + len;
}

/* Reads a sequence. The server writes it with %010d: at least ten characters,
 * one of which may be the sign. */
static bool entry_read_seq(const char *s, int64_t *seq)
{
    bool negative = *s == '-';
    size_t len = strlen(s);
    int64_t n = 0;

    if (len < 10 || len > 11 || (len == 11 && !negative))
        return false;
    for (s += negative; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        n = n * 10 + (*s - '0');
    }
    *seq = negative || n > ZK_SEQ_LAST ? ZK_SEQ_LAST : n;
    return true;
}

struct stem {
    const char *text;
    enum zk_form form;
};

static const struct stem stems[] = {
    {"lock-", ZK_FORM_LOCK},           {"__READ__", ZK_FORM_READ},
    {"__WRIT__", ZK_FORM_WRITE},       {"lease-", ZK_FORM_LEASE},
    {"latch-", ZK_FORM_LEADER},        {"__lock__", ZK_FORM_KAZOO_LOCK},
    {"__rlock__", ZK_FORM_KAZOO_READ},
};

#define LEN(a) (sizeof(a) / sizeof(*(a)))

static bool entry_is_kazoos(enum zk_form form)
{
    return form == ZK_FORM_KAZOO_LOCK || form == ZK_FORM_KAZOO_READ;
}

static bool entry_read_stem(const char *s, bool kazoo, struct zk_entry *e)
{
    for (size_t i = 0; i < LEN(stems); i++) {
        size_t n = strlen(stems[i].text);

        if (entry_is_kazoos(stems[i].form) == kazoo &&
            strncmp(s, stems[i].text, n) == 0 &&
            entry_read_seq(s + n, &e->seq)) {
            e->form = stems[i].form;
            return true;
        }
    }
    return false;
}

static bool entry_read_curators(const char *s, struct zk_entry *e)
{
    if (strncmp(s, "_c_", 3) == 0) {
        const char *end = entry_read_uuid(s + 3, 36, e);

        if (!end)
            end = entry_read_uuid(s + 3, 32, e);
        if (!end || *end != '-')
            return false;
        s = end + 1;
    }
    return entry_read_stem(s, false, e);
}

static bool entry_read_kazoos(const char *s, struct zk_entry *e)
{
    s = entry_read_uuid(s, 32, e);
    return s && entry_read_stem(s, true, e);
}

/* Reads the name of a holder of an unfair mutex, or of a mark of a latch. */
static bool entry_read_ours(const char *s, struct zk_entry *e)
{
    bool mark = strncmp(s, "_d_", 3) == 0;
    const char *end = mark || strncmp(s, "_h_", 3) == 0
                          ? entry_read_uuid(s + 3, 36, e)
                          : NULL;

    e->form = mark ? ZK_FORM_MARK : ZK_FORM_HOLDER;
    if (!end || !mark)
        return end && !*end;
    return *end == '-' && end[1] && !end[1 + strspn(end + 1, "0123456789")];
}

static bool entry_read_word(const char *s, struct zk_entry *e)
{
    if (strcmp(s, ZK_UNFAIR) == 0)
        e->form = ZK_FORM_UNFAIR;
    else if (strcmp(s, ZK_LOCKS) == 0 || strcmp(s, ZK_LEASES) == 0)
        e->form = ZK_FORM_SEMAPHORE;
    else if (strcmp(s, ZK_LATCH) == 0)
        e->form = ZK_FORM_LATCH;
    return e->form != ZK_FORM_NONE;
}

static struct zk_entry entry_nothing(const char *child)
{
    return (struct zk_entry){.name = child, .uuid = ""};
}

bool hf__zk_entry_parse(const char *child, struct zk_entry *e)
{
    *e = entry_nothing(child);
    if (entry_read_curators(child, e) || entry_read_kazoos(child, e) ||
        entry_read_word(child, e) || entry_read_ours(child, e))
        return true;
    *e = entry_nothing(child);
    return false;
}

/* ---- strangers ------------------------------------------------- */

/* Returns the start of the sequence at the end of the name and stores its
 * value, or returns NULL if the name has none. */
static const char *entry_sequence_of(const char *child, int64_t *seq)
{
    size_t len = strlen(child);
    const char *last = len < 10 ? NULL : child + len - 10;

    if (len > 10 && last[-1] == '-' && entry_read_seq(last - 1, seq) &&
        (len == 11 || strchr("-_", last[-2])))
        return last - 1;
    return last && entry_read_seq(last, seq) ? last : NULL;
}

static bool entry_ends_with(const char *child, const char *end,
                            const char *text)
{
    size_t len = strlen(text);

    return (size_t)(end - child) >= len && memcmp(end - len, text, len) == 0;
}

/* Recognizes a name that ends with a known stem and a sequence, whatever is
 * before the stem. */
static bool entry_guess_stem(struct zk_entry *e)
{
    const char *end = entry_sequence_of(e->name, &e->seq);

    for (size_t i = 0; end && i < LEN(stems); i++)
        if (entry_ends_with(e->name, end, stems[i].text)) {
            e->form = stems[i].form;
            return true;
        }
    return false;
}

static bool entry_guess_recipe(struct zk_entry *e)
{
    const char *s = e->name + 2, *end = entry_sequence_of(e->name, &e->seq);

    if (!end || strncmp(e->name, "x-", 2) != 0)
        return false;
    s += *s == '-'; /* Java writes the session id as a signed number */
    s += strspn(s, HEX);
    e->form = ZK_FORM_LOCK;
    return s + 1 == end && *s == '-';
}

static const char *entry_behind_last(const char *s, const char *stem)
{
    for (const char *at; (at = strstr(s, stem)) != NULL;)
        s = at + strlen(stem);
    return s;
}

/* Recognizes a child that Curator, which compares names as strings, sorts
 * before our sequence. A reader of Curator waits for writers only, so for
 * ZK_RULE_READ only the names of writers count. */
static bool entry_guess_sorted(enum zk_rule rule, int64_t seq,
                               struct zk_entry *e)
{
    const char *key = e->name;
    char mine[24];

    if (rule == ZK_RULE_UNFAIR ||
        (rule == ZK_RULE_READ && !strstr(key, "__WRIT__")))
        return false;
    if (rule == ZK_RULE_MUTEX)
        key = entry_behind_last(key, "lock-");
    else
        key = entry_behind_last(entry_behind_last(key, "__READ__"), "__WRIT__");
    snprintf(mine, sizeof(mine), "%010lld", (long long)seq);
    if (strcmp(key, mine) >= 0)
        return false;
    e->form = ZK_FORM_SORTED;
    if (!entry_read_seq(key, &e->seq))
        e->seq = -1;
    return true;
}

bool hf__zk_entry_guess(const char *child, enum zk_rule rule, int64_t seq,
                        struct zk_entry *e)
{
    *e = entry_nothing(child);
    if (strspn(child, HEX) == 32 && !child[32]) {
        e->form = ZK_FORM_KAZOO_LEASE;
        return true;
    }
    if (entry_guess_stem(e) || entry_guess_recipe(e) ||
        entry_guess_sorted(rule, seq, e))
        return true;
    *e = entry_nothing(child);
    return false;
}

/* ---- names of ours --------------------------------------------- */

void hf__zk_entry_prefix(enum zk_form form, const char *uuid,
                         char out[ZK_PREFIX_MAX])
{
    const struct stem *stem = stems;

    if (form == ZK_FORM_HOLDER) {
        stpcpy(stpcpy(out, "_h_"), uuid);
        return;
    }
    if (!entry_is_kazoos(form))
        out = stpcpy(stpcpy(stpcpy(out, "_c_"), uuid), "-");
    for (; entry_is_kazoos(form) && *uuid; uuid++)
        if (*uuid != '-')
            *out++ = *uuid;
    while (stem->form != form)
        stem++;
    stpcpy(out, stem->text);
}

/* ---- the queue -------------------------------------------------- */

int hf__zk_entry_order(const struct zk_entry *a, const struct zk_entry *b)
{
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    if (!a->czxid || !b->czxid || a->czxid == b->czxid)
        return 0;
    return a->czxid < b->czxid ? -1 : 1;
}

enum effect {
    FREE,    /* does not exclude our entry */
    BLOCKS,  /* excludes our entry if it is before ours */
    DIFFERS, /* is of another kind of lock: a mismatch if it is before ours */
    CLASHES, /* is of another kind of lock: a mismatch wherever it is */
};

/* The effect that an entry of each form has on a client with each rule. Forms
 * without a row are FREE. An entry in the form of kazoo's lock may be a mutex
 * or a writer, because its name does not tell which. */
static const uint8_t effects[][ZK_RULE_UNFAIR + 1] = {
    /*                  MUTEX, WRITE, READ, UNFAIR */
    [ZK_FORM_LOCK] = {BLOCKS, DIFFERS, DIFFERS, DIFFERS},
    [ZK_FORM_KAZOO_LOCK] = {BLOCKS, BLOCKS, BLOCKS, DIFFERS},
    [ZK_FORM_WRITE] = {DIFFERS, BLOCKS, BLOCKS, DIFFERS},
    [ZK_FORM_READ] = {DIFFERS, BLOCKS, FREE, DIFFERS},
    [ZK_FORM_KAZOO_READ] = {DIFFERS, BLOCKS, FREE, DIFFERS},
    [ZK_FORM_LEASE] = {DIFFERS, DIFFERS, DIFFERS, DIFFERS},
    [ZK_FORM_LEADER] = {DIFFERS, DIFFERS, DIFFERS, DIFFERS},
    [ZK_FORM_UNFAIR] = {CLASHES, CLASHES, CLASHES, FREE},
    [ZK_FORM_HOLDER] = {CLASHES, CLASHES, CLASHES, BLOCKS},
    [ZK_FORM_SEMAPHORE] = {CLASHES, CLASHES, CLASHES, CLASHES},
    [ZK_FORM_LATCH] = {CLASHES, CLASHES, CLASHES, CLASHES},
    [ZK_FORM_KAZOO_LEASE] = {CLASHES, CLASHES, CLASHES, CLASHES},
    [ZK_FORM_SORTED] = {BLOCKS, BLOCKS, BLOCKS, BLOCKS},
};

static void entry_note(size_t *which, size_t i)
{
    if (*which == ZK_NOBODY)
        *which = i;
}

/* Returns whether `e` is before `mine`. If `mine` has no place in a queue (yet,
 * or because the mutex is unfair), every entry is before it. Sets *tied if the
 * order is unknown. */
static bool entry_is_before(const struct zk_entry *e,
                            const struct zk_entry *mine, enum zk_rule rule,
                            bool *tied)
{
    bool placed = mine->name && rule != ZK_RULE_UNFAIR;
    int order = placed ? hf__zk_entry_order(e, mine) : -1;

    *tied = order == 0;
    return order <= 0;
}

/* Returns whether the child counts as an entry for the client that has the
 * entry `mine`. Sets *unknown if only a request for the child's stat can
 * tell. */
static bool entry_counts(const char *child, int64_t czxid,
                         const struct zk_entry *mine, enum zk_rule rule,
                         struct zk_entry *e, bool *unknown)
{
    int64_t seq = mine->name ? mine->seq : ZK_SEQ_LAST;
    bool counts = hf__zk_entry_parse(child, e);

    *unknown = false;
    if (!counts && hf__zk_entry_guess(child, rule, seq, e)) {
        *unknown = !czxid;
        counts = czxid > 0;
    }
    e->czxid = czxid < 0 ? -czxid : czxid;
    return counts;
}

void hf__zk_place(char *const *child, size_t len, const struct zk_entry *mine,
                  enum zk_rule rule, zk_czxid_fn *czxid, const void *arg,
                  struct zk_place *p)
{
    struct zk_entry last = {0};

    *p = (struct zk_place){.watch = ZK_NOBODY,
                           .mismatch = ZK_NOBODY,
                           .stranger = ZK_NOBODY,
                           .tied = ZK_NOBODY};
    for (size_t i = 0; i < len; i++) {
        struct zk_entry e;
        enum effect effect;
        bool tied, unknown;

        if (mine->name && strcmp(child[i], mine->name) == 0) {
            p->here = true;
            continue;
        }
        if (!entry_counts(child[i], czxid ? czxid(arg, child[i]) : 0, mine,
                          rule, &e, &unknown)) {
            if (unknown)
                entry_note(&p->stranger, i);
            continue;
        }
        effect = effects[e.form][rule];
        if (effect == CLASHES)
            entry_note(&p->mismatch, i);
        if (effect == FREE || effect == CLASHES ||
            !entry_is_before(&e, mine, rule, &tied))
            continue;
        if (tied)
            entry_note(&p->tied, i);
        if (effect == DIFFERS) {
            entry_note(&p->mismatch, i);
            continue;
        }
        if (!p->ahead++ || hf__zk_entry_order(&e, &last) >= 0) {
            last = e;
            p->watch = i;
        }
    }
}
