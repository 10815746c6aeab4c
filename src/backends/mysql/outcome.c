#include "mysql.h"

#include "backends/common/chance.h"

#define NOW "utc_timestamp(6)"
#define FREE "'1970-01-02'" /* 0 is refused by some sql_modes */

void hf__my_attempt_again(struct mysql *m, struct hf__req *req)
{
    int rc = hf__my_resend(m, req);

    if (rc != HF__PENDING)
        hf__my_finish(m, req, rc);
}

/* ---- naps --------------------------------------------------------------- */

/* Looks once more after a pause, which is ours: one of the server would delay
 * all requests behind it. */
static void nap(struct mysql *m, struct hf__req *req, hf__time now)
{
    struct my_line *line = req->remote->impl;

    line->naps++;
    line->step = MY_LOOK;
    line->napping = req;
    line->nap_until = now + MY_NAP_MS * HF__MS;
    line->next_nap = m->naps;
    m->naps = line;
    m->core->due(m->client, line->nap_until);
}

/* If it naps. */
void hf__my_nap_end(struct mysql *m, struct my_line *line)
{
    struct my_line **at = &m->naps;

    while (*at && *at != line)
        at = &(*at)->next_nap;
    if (*at)
        *at = line->next_nap;
    line->napping = NULL;
}

void hf__my_naps_advance(struct mysql *m, hf__time now)
{
    for (struct my_line **at = &m->naps, *line; (line = *at);) {
        struct hf__req *req = line->napping;

        if (now < line->nap_until) {
            at = &line->next_nap;
            continue;
        }
        *at = line->next_nap;
        line->napping = NULL;
        hf__my_attempt_again(m, req);
    }
}

hf__time hf__my_naps_timeout(const struct mysql *m)
{
    hf__time at = HF__NEVER;

    for (const struct my_line *line = m->naps; line; line = line->next_nap)
        at = hf__min_time(at, line->nap_until);
    return at;
}

void hf__my_granted(struct mysql *m, struct hf__req *req, uint64_t token)
{
    struct my_line *line = req->remote->impl;

    line->crowded = hf__my_waited(line, m->core->now());
    hf__my_wait_end(m, line);
    req->token = token;
    hf__my_finish(m, req, HF__GRANTED);
}

/* Every 50 ms at first, then ever less often. */
static int64_t poll_ms(struct mysql *m, struct my_line *line)
{
    uint32_t most = 2 * MY_POLL_MS << (line->looks < 4 ? line->looks : 4);

    most = most < MY_POLL_MAX_MS ? most : MY_POLL_MAX_MS;
    if (line->looks < 4)
        line->looks++;
    return MY_POLL_MS + hf__chance(&m->chance, most - MY_POLL_MS + 1);
}

/* The first one looks when the lease ends, too: who has the bell may be
 * stopped. */
static int64_t look_ms(struct mysql *m, struct my_line *line,
                       const struct my_place *p)
{
    int64_t ms = p->free && !line->seen_free
                     ? MY_FREE_MS
                     : MY_LOOK_MS + hf__chance(&m->chance, MY_LOOK_SPREAD_MS);
    uint64_t end = p->left_us / 1000 + MY_EXPIRY_SLACK_MS;

    return hf__my_is_first(line) && p->rings && end < (uint64_t)ms
               ? (int64_t)end
               : ms;
}

/* Who finds it free, and somebody in the queue, looks again before it says that
 * it is busy: the last holder, who has waited, may have left the queue, and the
 * server not done it yet. */
void hf__my_refused(struct mysql *m, struct hf__req *req,
                    const struct my_place *p, hf__time now)
{
    struct my_line *line = req->remote->impl;
    bool rang = line->rang;
    int64_t ms;

    if (!req->may_queue && p->free && line->naps < MY_NAPS) {
        nap(m, req, now);
        return;
    }
    if (!req->may_queue) {
        hf__my_wait_end(m, line);
        hf__my_finish(m, req, HF__BUSY);
        return;
    }
    if (hf__my_wait(m, line, p->rings, req->permits))
        ms = look_ms(m, line, p);
    else
        ms = poll_ms(m, line);
    line->seen_free = p->free && line->wait && !hf__my_is_first(line);
    line->rang = false;
    req->look_at = now + ms * HF__MS;
    hf__my_finish(m, req, HF__QUEUED);
    if (rang)
        m->core->bell(m->client, req->remote);
}

/* ---- another kind ------------------------------------------------------- */

/* A name that nobody uses may become one of any kind and size. */
void hf__my_convert(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;

    hf__my_sql(&m->cmd,
               "start transaction;select kind into @k from holdfast_locks "
               "where name=%x for update;delete from holdfast_holds where "
               "name=%x and lease_until<=" NOW
               ";update holdfast_locks set kind=%u,size=%u,hold=0,"
               "lease_until=" FREE " where name=%x and (kind<>1 or "
               "lease_until<=" NOW
               ") and (kind<>4 or size=0) and not exists(select 1 from "
               "holdfast_holds where name=%x);commit;select count(*) from "
               "holdfast_locks where name=%x and kind=%u and size=%u",
               r->name, (size_t)r->name_len, r->name, (size_t)r->name_len,
               (uint64_t)r->kind, (uint64_t)r->permits, r->name,
               (size_t)r->name_len, r->name, (size_t)r->name_len, r->name,
               (size_t)r->name_len, (uint64_t)r->kind, (uint64_t)r->permits);
}

static void mismatched(struct mysql *m, struct hf__req *req)
{
    m->core->why(
        m->client, HF_EMISMATCH,
        req->remote->kind == HF_SEMAPHORE
            ? "the name is in use as another kind of lock, or as a semaphore "
              "of another size"
            : "the name is in use as another kind of lock");
    hf__my_wait_end(m, req->remote->impl);
    hf__my_finish(m, req, HF_EMISMATCH);
}

void hf__my_other_kind(struct mysql *m, struct hf__req *req)
{
    struct my_line *line = req->remote->impl;

    if (line->converted) {
        mismatched(m, req);
        return;
    }
    line->converting = line->converted = true;
    hf__my_attempt_again(m, req);
}

int hf__my_converted(struct mysql *m, struct hf__req *req,
                     const struct my_result *last)
{
    struct my_line *line = req->remote->impl;

    line->converting = false;
    line->step = MY_SURE;
    if (last->columns != 1 || !last->rows)
        return HF_EPROTO;
    if (hf__my_num(last->rows, 0))
        hf__my_attempt_again(m, req);
    else
        mismatched(m, req);
    return 0;
}
