/*
 * The verbs, of every kind, and the statements of the mutex.
 *
 * A mutex is acquired by one INSERT .. ON DUPLICATE KEY UPDATE, which is
 * answered by an OK packet: its insert id is the token, or says what is in the
 * way. Assignments run from left to right, so that `owner` and `hold` say in
 * all later ones whether the hold is ours; lease_until comes last. A row stays
 * when it is released: the token is in it, and deleting rows makes deadlocks.
 *
 * A lease that ends later than its own length from now (MY_ODD) counts as one
 * from now. That is asked of sysdate(), because utc_timestamp() is when the
 * statement began: a holder may have renewed since.
 */
#include "mysql.h"

#include "backends/common/chance.h"

#include <openssl/sha.h>
#include <string.h>

/* Insert ids from here on are no tokens. */
#define REFUSED "4611686018427387904"
#define REFUSED_FROM (1ULL << 62)
/* What follows are the bits of one. */
enum {
    HOLDER_RINGS = 1, /* whoever holds it has the bell */
    HAVE_BELL = 2,    /* we got it, which is of no use now */
    OTHER_KIND = 4,
    IS_FREE = 8,    /* but others are to go first */
    LEFT_SHIFT = 4, /* us until the lease ends */
};

#define NOW "utc_timestamp(6)"
#define FREE "'1970-01-02'" /* 0 is refused by some sql_modes */

/* ---- lines -------------------------------------------------------------- */

void hf__my_hash(const struct mysql *m, const char *name, size_t len,
                 uint8_t to[MY_HASH_LEN])
{
    char text[64 + 1 + HF_NAME_MAX];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    size_t used = strlen(m->login.database) + 1; /* user locks know none */

    memcpy(text, m->login.database, used);
    memcpy(text + used, name, len);
    SHA256((const unsigned char *)text, used + len, digest);
    memcpy(to, digest, MY_HASH_LEN);
}

/* If it naps. */
static void end_nap(struct mysql *m, struct my_line *line)
{
    struct my_line **at = &m->naps;

    while (*at && *at != line)
        at = &(*at)->next_nap;
    if (*at)
        *at = line->next_nap;
    line->napping = NULL;
}

int hf__my_attach(void *self, struct hf__remote *remote)
{
    struct mysql *m = self;
    struct my_line *line;

    if (remote->name_len > HF_NAME_MAX)
        return HF_EINVAL;
    line = m->core->alloc(m->client, sizeof(*line));
    if (!line)
        return HF_ENOMEM;
    line->remote = remote;
    hf__my_hash(m, remote->name, remote->name_len, line->hash);
    remote->impl = line;
    return 0;
}

void hf__my_detach(void *self, struct hf__remote *remote)
{
    struct mysql *m = self;

    if (!remote->impl)
        return;
    end_nap(m, remote->impl);
    hf__my_wait_end(m, remote->impl);
    m->core->free(m->client, remote->impl);
    remote->impl = NULL;
}

/* ---- slots -------------------------------------------------------------- */

/* A fair one goes before nobody who waits, unless these do not come. Nor does
 * any reader: writers would never have their turn. */
static bool must_queue(const struct mysql *m, const struct my_line *line)
{
    const struct hf__remote *r = line->remote;
    bool reads = r->kind == HF_RWLOCK && r->mode == HF_READ;

    return (r->fair || reads) && !m->polls && !hf__my_is_first(line) &&
           !line->seen_free && !(line->looks && !line->wait);
}

/* Who had to wait the last time asks nothing, and stands in line at once: that
 * is one trip less where many want it. */
static bool goes_to_the_queue(struct mysql *m, struct hf__req *req)
{
    struct my_line *line = req->remote->impl;
    hf__time now;

    if (!line->crowded || line->wait || line->sent || !req->may_queue ||
        !must_queue(m, line) || m->put_off || m->cmd.link.state != NET_UP)
        return false;
    now = m->core->now();
    req->sent_at = now;
    req->look_at = now + MY_FREE_MS * HF__MS;
    return hf__my_wait(m, line, true, req->permits);
}

int hf__my_attempt(void *self, struct hf__req *req)
{
    struct mysql *m = self;
    struct my_line *line = req->remote->impl;
    int rc;

    if (line->asked_id != req->hold_id) {
        line->sent = line->seen_free = false;
        line->converting = line->converted = false;
        line->looks = line->naps = 0;
        line->round = 0;
    }
    line->asked_id = req->hold_id;
    if (goes_to_the_queue(m, req))
        return HF__QUEUED;
    line->asking = true;
    line->rang = false;
    line->step = line->wait ? !hf__my_is_first(line) : line->crowded;
    line->tries = 0;
    rc = hf__my_submit(m, req);
    if (rc != HF__PENDING)
        line->asking = false;
    return rc;
}

int hf__my_release(void *self, struct hf__req *req)
{
    if (req->remote->kind == HF_LATCH)
        return HF__DONE; /* nothing is held */
    return hf__my_submit(self, req);
}

int hf__my_abandon(void *self, struct hf__req *req)
{
    struct mysql *m = self;
    struct my_line *line = req->remote->impl;
    bool is_latch = req->remote->kind == HF_LATCH;

    /* Sent again, it may be about an earlier hold id than the ask now is. */
    if (line->asked_id != req->hold_id)
        return is_latch ? HF__DONE : hf__my_submit(m, req);
    if (req->remote->ask)
        hf__my_forget(m, req->remote->ask);
    end_nap(m, line);
    line->asking = false;
    hf__my_wait_end(m, line);
    if (!line->sent || is_latch)
        return HF__DONE; /* the server has never heard of it */
    return hf__my_submit(m, req);
}

/* ---- statements --------------------------------------------------------- */

size_t hf__my_label_len(const struct hf__remote *remote)
{
    size_t len = strlen(remote->label);

    return len < 255 ? len : 255;
}

/* What can be had without waiting is had once, however often it is asked for:
 * user locks count. The queue may be ours already, and we not know it. */
#define HAVE_IT "is_used_lock('hfb:%h')<=>connection_id()"
#define OUR_TURN "ifnull(is_used_lock('hfq:%h'),%u)=%u"
#define HASH line->hash, MY_HASH_LEN

static uint64_t thread_of(const struct my_line *line)
{
    return line->wait ? line->wait->conn.thread : 0;
}

void hf__my_put_turn(struct mysql *m, const struct my_line *line, bool bell)
{
    uint64_t thread = thread_of(line);
    struct my_conn *c = &m->cmd;

    if (must_queue(m, line) && bell)
        hf__my_sql(c,
                   "set @b=if(" HAVE_IT ",1,if(" OUR_TURN
                   ",get_lock('hfb:%h',0),null));",
                   HASH, HASH, thread, thread, HASH);
    else if (must_queue(m, line))
        hf__my_sql(c, "set @b=if(" OUR_TURN ",1,null);", HASH, thread, thread);
    else if (bell && !m->polls)
        hf__my_sql(c, "set @b=if(" HAVE_IT ",1,get_lock('hfb:%h',0));", HASH,
                   HASH);
    else
        hf__my_sql(c, "set @b=0;");
}

/* The row is there and free, which is usual: that costs half of an INSERT that
 * finds it there. */
static void put_take_free(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;
    uint64_t us = req->lease_ms * 1000ULL;

    hf__my_put_turn(m, r->impl, true);
    hf__my_sql(&m->cmd,
               "update holdfast_locks set token=last_insert_id(token+1),"
               "owner=%x,hold=%u,rings=@b,fair=%u,host=%x,pid=%u,label=%x,"
               "asks=0,since=" NOW ",lease_us=%u,lease_until=" NOW
               "+interval %u microsecond where name=%x and kind=1 and "
               "lease_until<=" NOW " and @b is not null",
               m->owner, MY_OWNER_LEN, req->hold_id, (uint64_t)r->fair, m->host,
               strlen(m->host), m->pid, r->label, hf__my_label_len(r), us, us,
               r->name, (size_t)r->name_len);
}

enum {
    IS_MUTEX,
    IS_OURS_NOW,
    IS_OVER,
    RINGS,
    IS_ODD,
    LEFT_US,
    TURN,
    HAVE,
    LOOK_COLUMNS
};

/* What is in the way, without a lock on the row. */
static void put_look(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;
    const struct my_line *line = r->impl;
    uint64_t thread = thread_of(line);

    hf__my_sql(&m->cmd,
               "select kind=1,owner=%x and hold=%u and "
               "lease_until>" NOW ",lease_until<=" NOW ",rings," MY_ODD ","
               "greatest(0,timestampdiff(microsecond," NOW
               ",lease_until))," OUR_TURN "," HAVE_IT
               " from holdfast_locks where name=%x",
               m->owner, MY_OWNER_LEN, req->hold_id, HASH, thread, thread, HASH,
               r->name, (size_t)r->name_len);
}

static void put_take(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;
    uint64_t us = req->lease_ms * 1000ULL, id = req->hold_id, fair = r->fair;
    size_t host_len = strlen(m->host), label_len = hf__my_label_len(r);
    struct my_conn *c = &m->cmd;

    hf__my_put_turn(m, r->impl, true);
    hf__my_sql(c,
               "insert into holdfast_locks(name,kind,size,token,owner,hold,"
               "rings,fair,host,pid,label,since,lease_us,lease_until) "
               "values(%x,1,0,"
               "if(@b is null,0*last_insert_id(" REFUSED "+8),"
               "last_insert_id(1)),%x,if(@b is null,0,%u),ifnull(@b,0),%u,"
               "%x,%u,"
               "%x," NOW ",%u,if(@b is null," FREE "," NOW
               "+interval %u microsecond)) on duplicate key update ",
               r->name, (size_t)r->name_len, m->owner, MY_OWNER_LEN, id, fair,
               m->host, host_len, m->pid, r->label, label_len, us, us);
    hf__my_sql(
        c,
        "hold=if(kind=1 and lease_until<=" NOW ",if(@b is null,0,%u),hold),"
        "owner=if(kind=1 and hold=%u and lease_until<=" NOW ",%x,owner),"
        "token=if(kind=1 and hold=%u and owner=%x,"
        "last_insert_id(token+(lease_until<=" NOW ")),"
        "token+0*last_insert_id(" REFUSED
        "+rings+2*ifnull(@b,0)+4*(kind<>1)+8*(lease_until<=" NOW
        ")+16*greatest(0,timestampdiff(microsecond," NOW ",lease_until)))),",
        id, id, m->owner, MY_OWNER_LEN, id, m->owner, MY_OWNER_LEN);
#define OURS "if(hold=%u and owner=%x and kind=1,"
#define IS_OURS id, m->owner, MY_OWNER_LEN
    hf__my_sql(c,
               "rings=" OURS "ifnull(@b,0),rings),fair=" OURS
               "%u,fair),host=" OURS "%x,host),pid=" OURS "%u,pid),label=" OURS
               "%x,label),asks=if(lease_until<=" NOW ",0,asks),since=" OURS
               "if(lease_until<=" NOW "," NOW ",since),since),lease_us=" OURS
               "%u,lease_us),lease_until=" OURS NOW
               "+interval %u microsecond,if(" MY_ODD ",sysdate(6)+"
               "interval lease_us microsecond,lease_until))",
               IS_OURS, IS_OURS, fair, IS_OURS, m->host, host_len, IS_OURS,
               m->pid, IS_OURS, r->label, label_len, IS_OURS, IS_OURS, us,
               IS_OURS, us);
}

/* The bell behind the row: who is woken finds it free. If it is not with us any
 * more the last result is the thread to ring for. */
static void put_drop(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;
    const struct my_line *line = r->impl;

    hf__my_sql(&m->cmd,
               "update holdfast_locks set lease_until=" FREE
               " where name=%x and kind=1 and owner=%x and hold=%u and "
               "lease_until>" NOW,
               r->name, (size_t)r->name_len, m->owner, MY_OWNER_LEN,
               req->hold_id);
    if (line->asked_id == req->hold_id) /* else the next hold has it */
        hf__my_sql(&m->cmd,
                   ";select if(release_lock('hfb:%h')=1,0,"
                   "is_used_lock('hfq:%h'))",
                   HASH, HASH);
}

/* A name that nobody uses may become one of any kind and size. */
static void put_convert(struct mysql *m, const struct hf__req *req)
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

static void (*const put_step[])(struct mysql *, const struct hf__req *) = {
    [MY_GUESS] = put_take_free, [MY_LOOK] = put_look, [MY_SURE] = put_take};

int hf__my_verb_encode(struct mysql *m, struct hf__req *req)
{
    struct my_line *line = req->remote->impl;
    bool takes = req->op == HF__ATTEMPT;
    struct my_flight *f;

    hf__my_start(m, req);
    if (takes && line->converting) {
        put_convert(m, req);
    } else if (req->remote->kind == HF_LATCH) {
        hf__my_latch_take(m, req);
    } else if (req->remote->kind == HF_MUTEX) {
        (takes ? put_step[line->step] : put_drop)(m, req);
    } else {
        (takes ? hf__my_share_take : hf__my_share_drop)(m, req);
    }
    f = hf__my_sent(m, req);
    if (!f)
        return HF_ENOMEM;
    f->fresh = takes && !line->sent;
    line->sent = line->sent || takes;
    return 0;
}

void hf__my_attempt_failed(struct mysql *m, const struct my_line *line)
{
    if (line->remote->kind == HF_MUTEX)
        hf__my_aside(m, "do release_lock('hfb:%h')", line->hash, MY_HASH_LEN);
}

static void send_again(struct mysql *m, struct hf__req *req)
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
        send_again(m, req);
    }
}

hf__time hf__my_naps_timeout(const struct mysql *m)
{
    hf__time at = HF__NEVER;

    for (const struct my_line *line = m->naps; line; line = line->next_nap)
        at = hf__min_time(at, line->nap_until);
    return at;
}

/* ---- another kind ------------------------------------------------------- */

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
    send_again(m, req);
}

static int converted(struct mysql *m, struct hf__req *req,
                     const struct my_result *last)
{
    struct my_line *line = req->remote->impl;

    line->converting = false;
    line->step = MY_SURE;
    if (last->columns != 1 || !last->rows)
        return HF_EPROTO;
    if (hf__my_num(last->rows, 0))
        send_again(m, req);
    else
        mismatched(m, req);
    return 0;
}

/* ---- answers ------------------------------------------------------------ */

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

static int step_on(struct mysql *m, struct hf__req *req, enum my_step step)
{
    ((struct my_line *)req->remote->impl)->step = step;
    send_again(m, req);
    return 0;
}

/* It may become free, and be taken again, between each two. */
static int looked(struct mysql *m, struct hf__req *req,
                  const struct my_result *last, hf__time now)
{
    struct my_line *line = req->remote->impl;
    const struct my_row *row = last->rows;
    struct my_place place;

    if (last->columns != LOOK_COLUMNS)
        return HF_EPROTO;
    if (!row)
        return step_on(m, req, MY_SURE);
    place = (struct my_place){.left_us = hf__my_num(row, LEFT_US),
                              .free = hf__my_num(row, IS_OVER),
                              .rings = hf__my_num(row, RINGS) &&
                                       !hf__my_num(row, HAVE)};
    if (hf__my_num(row, IS_OURS_NOW) || hf__my_num(row, IS_ODD) ||
        line->tries > MY_TRIES)
        return step_on(m, req, MY_SURE);
    if (hf__my_num(row, IS_MUTEX) && place.free &&
        (hf__my_num(row, TURN) || !must_queue(m, line))) {
        line->tries++;
        return step_on(m, req, MY_GUESS);
    }
    if (hf__my_num(row, HAVE))
        hf__my_attempt_failed(m, line);
    if (hf__my_num(row, IS_MUTEX))
        hf__my_refused(m, req, &place, now);
    else
        hf__my_other_kind(m, req);
    return 0;
}

static int taken(struct mysql *m, struct hf__req *req,
                 const struct my_result *last, hf__time now)
{
    struct my_line *line = req->remote->impl;
    uint64_t id = last->insert_id, bits = id - REFUSED_FROM;
    struct my_place place = {.left_us = bits >> LEFT_SHIFT,
                             .free = bits & IS_FREE,
                             .rings =
                                 (bits & HOLDER_RINGS) && !(bits & HAVE_BELL)};

    if (line->step == MY_LOOK)
        return looked(m, req, last, now);
    if (line->step == MY_GUESS && !last->columns && !last->affected)
        return step_on(m, req, MY_LOOK);
    if (last->columns || !id)
        return HF_EPROTO;
    if (id < REFUSED_FROM) {
        hf__my_granted(m, req, id);
        return 0;
    }
    if (bits & HAVE_BELL)
        hf__my_attempt_failed(m, line);
    if (bits & OTHER_KIND)
        hf__my_other_kind(m, req);
    else
        hf__my_refused(m, req, &place, now);
    return 0;
}

static int attempt_answer(struct mysql *m, struct hf__req *req,
                          const struct my_result *first, hf__time now)
{
    const struct my_line *line = req->remote->impl;
    const struct my_result *last = hf__my_last(first);

    if (line->converting)
        return converted(m, req, last);
    if (req->remote->kind == HF_MUTEX)
        return taken(m, req, last, now);
    if (req->remote->kind == HF_LATCH)
        return hf__my_latch_taken(m, req, last, now);
    return hf__my_share_taken(m, req, last, now);
}

int hf__my_verb_answer(struct mysql *m, const struct my_flight *f,
                       const struct my_result *first, hf__time now)
{
    const struct my_result *last = hf__my_last(first);

    if (f->op == HF__ATTEMPT)
        return f->req ? attempt_answer(m, f->req, first, now) : 0;
    if (last->columns)
        hf__my_ring(m, hf__my_num(last->rows, 0));
    if (f->req)
        hf__my_finish(m, f->req,
                      first->affected || f->op == HF__ABANDON ? HF__DONE
                                                              : HF_ENOTOWNER);
    return 0;
}
