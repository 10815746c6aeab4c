/*
 * Renews holds. Holds in the same table, of the same mode and lease length, are
 * renewed by one UPDATE, which finds them by their keys; a SELECT in the same
 * packet shows which of them exist. The server locks rows in the order of the
 * key, no matter in which order the statement lists them.
 *
 * The row of a hold also counts how often other clients have asked for the
 * hold. my_lock.reported is how many of these asks were reported to the
 * program. The holder never resets the counter in the row, so that no ask is
 * lost if an answer is lost.
 */
#include "renew.h"

#include "clock.h"
#include "cmd.h"
#include "wire.h"

#define CHUNK 256
/* The minimum time to wait for an answer, however short the TTLs are. A
 * connection that needs more time is too slow for so short a TTL. */
#define PATIENCE_MIN_MS 200

/* Limits the time to wait for an answer, so that a renewal can be repeated more
 * than once before the hold expires. */
static void renew_hurry(struct mysql *m)
{
    uint32_t ms = m->renew_ms / 6, most = m->cmd.link.silence_ms;

    ms = ms > PATIENCE_MIN_MS ? ms : PATIENCE_MIN_MS;
    hf__link_hurry(&m->cmd.link, m->renewing ? (ms < most ? ms : most) : 0,
                   m->core->now());
}

int hf__my_renew(void *self, struct hf__batch *b)
{
    struct mysql *m = self;
    int rc;

    b->chunks = 0;
    for (size_t i = 0; i < b->len; i++)
        b->item[i].result = HF_EUNKNOWN;
    b->req.result = HF__DONE;
    if (!b->len)
        return HF__DONE;
    rc = hf__my_submit(m, &b->req);
    if (rc != HF__PENDING)
        return rc;
    m->renew_ms = m->renewing ? m->renew_ms : UINT32_MAX;
    for (size_t i = 0; i < b->len; i++)
        if (b->item[i].lease_ms < m->renew_ms)
            m->renew_ms = b->item[i].lease_ms;
    m->renewing++;
    renew_hurry(m);
    return rc;
}

static bool renew_go_together(const struct hf__renewal *a,
                              const struct hf__renewal *b)
{
    return (a->remote->kind == HF_MUTEX) == (b->remote->kind == HF_MUTEX) &&
           a->remote->mode == b->remote->mode && a->lease_ms == b->lease_ms;
}

static void renew_put_which(struct mysql *m, const struct hf__renewal *item,
                            uint32_t len)
{
    bool is_mutex = item->remote->kind == HF_MUTEX;

    hf__my_sql(&m->cmd,
               " where owner=%O and lease_until>" MY_NOW
               "%s and (name,hold) in (",
               is_mutex ? " and kind=1" : "");
    for (uint32_t i = 0; i < len; i++)
        hf__my_sql(&m->cmd, "%s(%x,%u)", i ? "," : "", item[i].remote->name,
                   (size_t)item[i].remote->name_len, item[i].hold_id);
    hf__my_sql(&m->cmd, ")");
}

/* If the answer to a downgrade was lost, the hold may still be a write hold at
 * the server. The renewal of a read hold therefore also sets the mode. */
static int renew_send_chunk(struct mysql *m, struct hf__batch *b,
                            uint32_t first, uint32_t len)
{
    const struct hf__renewal *item = &b->item[first];
    bool is_mutex = item->remote->kind == HF_MUTEX;
    const char *table = is_mutex ? "holdfast_locks" : "holdfast_holds";
    bool reads = !is_mutex && item->remote->mode == HF_READ;
    uint64_t us = item->lease_ms * 1000ULL;
    hf__time before = b->req.sent_at;
    struct my_flight *f;

    hf__my_start(m, &b->req);
    hf__my_sql(&m->cmd,
               "update %s set %slease_us=%u,lease_until=" MY_NOW
               "+interval %u microsecond",
               table, reads ? "mode=0," : "", us, us);
    renew_put_which(m, item, len);
    hf__my_sql(&m->cmd, " and " MY_CLOCK "<%E;select hold%s from %s",
               m->listens ? ",asks,token" : "", table);
    renew_put_which(m, item, len);
    hf__my_sql(&m->cmd, ";select " MY_CLOCK);
    f = hf__my_sent(m, &b->req);
    if (!f)
        return HF_ENOMEM;
    f->first = first;
    f->len = len;
    /* The deadlines of all holds count from the time of the first packet. */
    if (b->chunks)
        b->req.sent_at = before;
    return 0;
}

/* Returns HF_ENOMEM only if no chunk was sent. (An error would end the batch,
 * but the answers to chunks that were sent need the batch.) If memory runs out
 * later, returns 0, and the holds of the remaining chunks are not renewed this
 * time. */
int hf__my_renew_encode(struct mysql *m, struct hf__req *req)
{
    struct hf__batch *b = (struct hf__batch *)req;
    uint32_t len;

    for (uint32_t i = 0; i < b->len; i += len) {
        for (len = 1; len < CHUNK && i + len < b->len &&
                      renew_go_together(&b->item[i], &b->item[i + len]);)
            len++;
        if (renew_send_chunk(m, b, i, len))
            return b->chunks ? 0 : HF_ENOMEM;
        b->chunks++;
    }
    return 0;
}

static void renew_landed(struct mysql *m, struct hf__batch *b)
{
    if (--b->chunks)
        return;
    m->renewing--;
    renew_hurry(m);
    m->core->done(m->client, &b->req);
}

enum { HOLD, ASKS, TOKEN, ROW };

/* Makes one report of all asks that were not reported before. */
static void renew_report_asks(struct mysql *m, const struct hf__renewal *item,
                              const struct my_row *row)
{
    struct my_lock *lock = item->remote->impl;
    uint64_t asks = hf__my_num(row, ASKS);

    if (asks > (lock->reported_id == item->hold_id ? lock->reported : 0))
        m->core->wanted(m->client, item->remote, hf__my_num(row, TOKEN));
    lock->reported_id = item->hold_id;
    lock->reported = asks;
}

static void renew_mark(struct mysql *m, struct hf__batch *b,
                       const struct my_flight *f, const struct my_row *row)
{
    uint64_t hold = hf__my_num(row, HOLD);

    for (uint32_t i = f->first; i < f->first + f->len; i++) {
        if (b->item[i].hold_id != hold)
            continue;
        b->item[i].result = HF__DONE;
        if (m->listens)
            renew_report_asks(m, &b->item[i], row);
    }
}

int hf__my_renew_answer(struct mysql *m, const struct my_flight *f,
                        const struct my_answer *a)
{
    struct hf__batch *b = (struct hf__batch *)f->req;
    const struct my_result *there = hf__my_at(a->first, 1);
    const struct my_result *clock = hf__my_at(a->first, 2);

    if (!clock || there->columns != (m->listens ? ROW : 1) ||
        clock->columns != 1 || !clock->rows)
        return HF_EPROTO;
    hf__my_clock(m, hf__my_num(clock->rows, 0));
    if (!b)
        return 0;
    if (hf__my_num(clock->rows, 0) < f->late_us) {
        for (uint32_t i = f->first; i < f->first + f->len; i++)
            b->item[i].result = HF_ENOTOWNER;
        for (const struct my_row *row = there->rows; row; row = row->next)
            renew_mark(m, b, f, row);
    }
    renew_landed(m, b);
    return 0;
}

void hf__my_renew_failed(struct mysql *m, const struct my_flight *f, int code)
{
    struct hf__batch *b = (struct hf__batch *)f->req;

    for (uint32_t i = f->first; i < f->first + f->len; i++)
        b->item[i].result = (int16_t)code;
    renew_landed(m, b);
}
