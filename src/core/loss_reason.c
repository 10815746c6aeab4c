#include "core/loss_reason.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/text.h"
#include "base/time.h"
#include "core/client.h"
#include "core/line.h"
#include "core/name_text.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- notes; why_mu is held ----------------------------------------------- */

/* Returns the note about the state `why` that applied at that time. If there
 * are several, returns the one whose text was the newest at that time. If all
 * texts of that time have been overwritten, returns the oldest note. */
static struct hf__note *reason_find(hf_client *c, enum hf__loss_why why,
                                    hf__time at)
{
    struct hf__note *found = NULL;

    for (int i = 0; i < HF__NOTES; i++) {
        struct hf__note *n = &c->notes[i];

        if (!n->since || n->why != why || n->since > at || n->until < at)
            continue;
        if (!found || (n->from <= at ? n->from > found->from || found->from > at
                                     : n->from < found->from))
            found = n;
    }
    return found;
}

/* Returns whether note b, and not note a, should make room for a new note. A
 * note that has explained a loss is kept longer than one that has not;
 * otherwise the older note makes room. */
static bool reason_is_dearer(const struct hf__note *a, const struct hf__note *b)
{
    return a->explained != b->explained ? a->explained : b->from < a->from;
}

static struct hf__note *reason_room(hf_client *c)
{
    struct hf__note *to = c->notes;

    for (int i = 1; i < HF__NOTES; i++)
        if (reason_is_dearer(to, &c->notes[i]))
            to = &c->notes[i];
    return to;
}

void hf__note(hf_client *c, enum hf__loss_why why, const char *text)
{
    HF__HOLDING(&c->why_mu);
    struct hf__note *n = reason_find(c, why, HF__NEVER);
    /* An outage causes several errors. The last error before a loss explains
     * the loss best, so a new text replaces the previous one, unless the
     * previous one has explained a loss already. The first error tells when the
     * outage began, so `since` stays. */
    bool goes_on = n && why == HF__LOSS_SILENT;
    hf__time now = hf__now();
    char shown[sizeof(n->text)];

    snprintf(shown, sizeof(shown), "%s", text);
    hf__printable(shown, sizeof(shown)); /* the text may come from a server */
    if (n && strcmp(n->text, shown) == 0)
        return;
    if (!goes_on || n->explained) {
        hf__time since = goes_on ? n->since : now;

        n = reason_room(c);
        *n = (struct hf__note){
            .since = since, .from = now, .until = HF__NEVER, .why = why};
    }
    strcpy(n->text, shown);
}

void hf__note_over(hf_client *c, enum hf__loss_why why)
{
    hf__time now = hf__now();

    HF__HOLDING(&c->why_mu);
    for (int i = 0; i < HF__NOTES; i++)
        if (c->notes[i].why == why && c->notes[i].until == HF__NEVER)
            c->notes[i].until = now;
}

void hf__note_refusal(hf_client *c, int code, const hf_error *word)
{
    size_t skip = strlen(c->be->name) + 2; /* "redis: " */

    hf__note(c, HF__LOSS_REFUSED,
             word->code == code && strlen(word->text) > skip
                 ? word->text + skip
                 : hf_error_text(code));
}

/* ---- texts ----------------------------------------------------------------
 */

struct moment {
    char text[32];
};

/* Formats a time by the wall clock. The kept difference between the wall clock
 * and hf__now() is replaced only if it has changed by more than 500 ms (the
 * wall clock was set), so that the same moment is otherwise always written the
 * same way. */
static struct moment reason_moment(hf_client *c, hf__time at)
{
    struct timespec wall;
    struct moment m = {"?"};
    struct tm tm;
    int64_t offset;
    time_t s;

    clock_gettime(CLOCK_REALTIME, &wall);
    offset = wall.tv_sec * 1000000000LL + wall.tv_nsec - hf__now();
    if (llabs(offset - c->wall_offset) > 500 * HF__MS)
        c->wall_offset = offset;
    s = (time_t)((at + c->wall_offset) / 1000000000);
    if (gmtime_r(&s, &tm))
        strftime(m.text, sizeof(m.text), "%Y-%m-%d %H:%M:%S UTC", &tm);
    return m;
}

__attribute__((format(printf, 2, 3))) static void
reason_append(struct hf__reason *r, const char *format, ...)
{
    size_t len = strlen(r->text);
    va_list ap;

    va_start(ap, format);
    vsnprintf(r->text + len, sizeof(r->text) - len, format, ap);
    va_end(ap);
}

static void reason_put_unreachable(hf_client *c, struct hf__reason *r,
                                   const struct hf__note *n)
{
    reason_append(r, "the server could not be used since %s (%s)",
                  reason_moment(c, n->since).text, n->text);
}

static void reason_put_refused(struct hf__reason *r, const struct hf__note *n)
{
    reason_append(r, "the server refused to renew it%s%s%s", n ? " (" : "",
                  n ? n->text : "", n ? ")" : "");
}

/* The reasons whose text is always the same. */
static const char *const reason_texts[] = {
    [HF__LOSS_NONE] = "it is no longer held",
    [HF__LOSS_MAX] = "it was held for max_hold_ms, and no hold lasts longer",
    [HF__LOSS_ORPHAN] = "the thread that held it exited, so it was not renewed",
    [HF__LOSS_RELEASE] = "it was no longer held when the release arrived",
};

static void reason_put(hf_client *c, struct hf__loss loss, struct hf__reason *r)
{
    hf__time at = (hf__time)loss.at;
    struct hf__note *n = reason_find(c, (enum hf__loss_why)loss.why, at);
    struct hf__note *down = reason_find(c, HF__LOSS_SILENT, at);

    if (down)
        down->explained = true;
    switch ((enum hf__loss_why)loss.why) {
    case HF__LOSS_TAKEN:
        reason_append(
            r, "%s", c->be->taken ? c->be->taken : reason_texts[HF__LOSS_NONE]);
        break;
    case HF__LOSS_SESSION:
        reason_append(r, "%s", n ? n->text : "its session has ended");
        break;
    case HF__LOSS_LEASE:
        reason_append(r, "its fixed lease of %s ended",
                      hf__span((int64_t)loss.at).text);
        break;
    case HF__LOSS_STOPPED:
        reason_append(r,
                      "its deadline passed while this process was stopped or "
                      "suspended (the process did not run at %s)%s",
                      reason_moment(c, at).text,
                      down || loss.refused ? "; also " : "");
        if (down)
            reason_put_unreachable(c, r, down);
        else if (loss.refused)
            reason_put_refused(r, reason_find(c, HF__LOSS_REFUSED, at));
        break;
    case HF__LOSS_REFUSED:
        reason_put_refused(r, n);
        break;
    case HF__LOSS_SILENT:
        if (down)
            reason_put_unreachable(c, r, down);
        else
            reason_append(r,
                          "the server answered no renewal before its deadline");
        break;
    case HF__LOSS_NONE:
    case HF__LOSS_MAX:
    case HF__LOSS_ORPHAN:
    case HF__LOSS_RELEASE:
        reason_append(r, "%s", reason_texts[loss.why]);
        break;
    }
}

struct hf__reason hf__reason(hf_client *c, struct hf__loss loss)
{
    HF__HOLDING(&c->why_mu);
    struct hf__reason r = {""};

    reason_put(c, loss, &r);
    return r;
}

struct hf__reason hf__doubt(hf_client *c, bool refused)
{
    HF__HOLDING(&c->why_mu);
    struct hf__reason r = {""};
    const struct hf__note *n = reason_find(c, HF__LOSS_SILENT, HF__NEVER);

    if (n)
        reason_put_unreachable(c, &r, n);
    else if (refused)
        reason_put_refused(&r, reason_find(c, HF__LOSS_REFUSED, HF__NEVER));
    return r;
}

int hf__fail_loss(struct hf__line *line, struct hf__loss loss, hf_error *err)
{
    hf_client *c = line->client;

    if (!err)
        return HF_ELOST;
    return hf__fail(err, HF_ELOST, "lost the lock \"%s\": %s",
                    hf__line_shown(line).text, hf__reason(c, loss).text);
}

int hf__fail_lost(struct hf__line *line, uint64_t owner, hf_error *err)
{
    return hf__fail_loss(line, hf__queue_loss(&line->queue, owner), err);
}

int hf__fail_unreleased(struct hf__line *line, uint64_t owner, hf_error *err)
{
    struct hf__loss loss = hf__queue_loss(&line->queue, owner);

    if (!err)
        return HF_ELOST;
    return hf__fail(
        err, HF_ELOST,
        "the caller lost the lock \"%s\" and must release it first: %s",
        hf__line_shown(line).text, hf__reason(line->client, loss).text);
}

int hf__fail_hold(struct hf__line *line, uint64_t owner, int code,
                  hf_error *err)
{
    if (code == HF_ELOST)
        return hf__fail_lost(line, owner, err);
    return hf__fail(err, code, "\"%s\": %s", hf__line_shown(line).text,
                    hf_error_text(code));
}
