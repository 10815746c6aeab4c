/*
 * SQL: what the locks of a database do, and what they do not.
 *
 * The tutorial on MySQL's locks (lab/README.md) sells from a stock by `select
 * ... for update', by a version, and by one statement. It lists what a program
 * must consider: which rows are locked depends on the index and on the
 * condition; two rows must be locked in one order; a plain select does not
 * respect the lock; the ABA problem; no retry inside a transaction; and one
 * statement does not return the state before and after. This scenario shows
 * each of these, alongside the correct way.
 */
#include "../servers/sql.h"
#include "../actors/stage.h"
#include "../runner/lab.h"
#include "../runner/place.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "goods.h"

#include <mysqld_error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROW = 25, /* the row that is sold */
    OTHER = 100,
    REST_MS = 30, /* so that a wait is visible in the timeline */
};

struct play;

/* One row of the report. */
struct scene {
    const char *strategy, *variant;
    enum lab_outcome expected;
    void (*lead)(struct lab *lab, struct play *play, struct lab_row *row);
    const char *isolation; /* NULL: the default */
    const char *where;     /* the condition of "for update" */
    int other;             /* a row that the condition does not select */
    void (*a)(void *arg);  /* what A runs, if lead() does not decide that */
    bool careful;          /* the actor works in the correct way */
};

struct play {
    const struct scene *scene;
    const struct lab_place *place;
    char table[96];
    struct sql *sql; /* the runner's connection */
    int first;       /* the row that the next actor locks first */
};

/* What actors report, in addition to the values of goods.h. RESULT is the
 * number of rows that are locked, an error number, or whether a check
 * passed. */
enum { BEFORE = GOODS_VALUES, AFTER, RESULT };

static struct sql *sql_session(const struct play *play)
{
    return goods_session(play->place, play->scene->isolation);
}

/* What B runs if it only has to change the row. */
static void sql_sells_one(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);

    goods_sell(sql, play->table, ROW);
    actor_mark(false, "sells one");
    sql_close(sql);
}

static struct goods sql_tell_left(const struct play *play, struct lab_row *row,
                                  int sold)
{
    struct goods goods = goods_read(play->sql, play->table, ROW);

    lab_row_number(row, "sold", sold);
    lab_row_number(row, "left", (double)goods.count);
    return goods;
}

/* What A runs if it works correctly. */
static void sql_sells_for_update(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);
    int64_t count;

    sql_do(sql, "START TRANSACTION");
    count = goods_lock(sql, play->table, ROW).count;
    actor_holds("for update");
    actor_report(BEFORE, count);
    actor_report(AFTER, count - 1);
    goods_write(sql, play->table, ROW, count - 1);
    actor_step("pauses");
    goods_commit(sql);
    sql_close(sql);
}

/* Sells one item of a row in a transaction. Pauses at the step "has tried", and
 * then waits for the row if necessary. */
static void sql_sell_row(struct sql *sql, const struct play *play, int id)
{
    sql_do(sql, "START TRANSACTION");
    goods_await(sql, play->table, id, actor_shares, "");
    goods_sell(sql, play->table, id);
    goods_commit(sql);
}

/* Ends A, which pauses with its locks, and B, which has tried to lock a row. If
 * B is blocked, it waits until A has ended; otherwise B ends while A still
 * pauses. Returns whether B was blocked. */
static bool sql_end_both(struct lab *lab, struct actor *a, struct actor *b)
{
    bool blocked = actor_value(b, GOODS_BLOCKED);

    if (blocked) {
        actor_go(b);
        stage_rest(lab, REST_MS);
        actor_end(a);
    }
    actor_end(b);
    if (!blocked)
        actor_end(a);
    return blocked;
}

static void sql_locks_where(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);

    sql_do(sql, "START TRANSACTION");
    sql_do(sql, "SELECT * FROM %s WHERE %s FOR UPDATE", play->table,
           play->scene->where);
    actor_holds(play->scene->where);
    actor_step("pauses");
    goods_commit(sql);
    sql_close(sql);
}

static void sql_wants_other_row(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);
    int locked = 0;

    for (int id = 1; id <= GOODS; id++) /* each try is its own transaction */
        locked += !goods_try(sql, play->table, id);
    actor_report(RESULT, locked);
    sql_sell_row(sql, play, play->scene->other);
    sql_close(sql);
}

static void sql_lead_where(struct lab *lab, struct play *play,
                           struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", sql_locks_where, play), *b;
    bool blocked;
    int locked, selected;

    actor_until(a, "pauses");
    b = stage_enter(stage, "B", sql_wants_other_row, play);
    actor_until(b, "has tried");
    blocked = sql_end_both(lab, a, b);
    locked = (int)actor_value(b, RESULT);
    stage_close(stage, row);
    selected = (int)sql_number(play->sql, "SELECT COUNT(*) FROM %s WHERE %s",
                               play->table, play->scene->where);
    lab_row_number(row, "selected", selected);
    lab_row_number(row, "locked", locked);
    lab_row_done(lab, row, blocked ? LAB_FAILS : LAB_OK,
                 "%d selected, %d of %d locked: another row %s", selected,
                 locked, GOODS,
                 blocked ? "had to wait" : "did not have to wait");
}

static void sql_sells_two_rows(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);
    unsigned error;

    sql_do(sql, "START TRANSACTION");
    goods_await(sql, play->table, play->first, actor_shares,
                play->first == ROW ? "row 1" : "row 2");
    actor_waits(play->first == ROW ? "wants row 2" : "wants row 1");
    error = sql_try(sql, "SELECT count FROM %s WHERE id = %d FOR UPDATE",
                    play->table, ROW + OTHER - play->first);
    actor_report(RESULT, error);
    actor_lets_go();
    if (error) {
        actor_mark(true, "rolled back: %u", error);
        actor_lets_go();
        sql_do(sql, "ROLLBACK");
    } else {
        goods_sell(sql, play->table, ROW);
        goods_sell(sql, play->table, OTHER);
        goods_commit(sql);
    }
    sql_close(sql);
}

static void sql_judge_two(struct lab *lab, struct lab_row *row,
                          const int errors[2])
{
    int failed = (errors[0] != 0) + (errors[1] != 0);
    int error = errors[0] ? errors[0] : errors[1];

    if (failed)
        lab_row_done(
            lab, row, LAB_FAILS, "%d of 2 was rolled back: %s (%d)", failed,
            error == ER_LOCK_DEADLOCK ? "deadlock" : "an error", error);
    else
        lab_row_done(lab, row, LAB_OK, "both went through, one after another");
}

static void sql_lead_two(struct lab *lab, struct play *play,
                         struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *actors[2];
    int errors[2];

    for (int i = 0; i < 2; i++) {
        play->first = i && !play->scene->careful ? OTHER : ROW;
        actors[i] = stage_enter(stage, i ? "B" : "A", sql_sells_two_rows, play);
        actor_until(actors[i], "has tried");
    }
    /* Now each actor has its first row, or B must wait for A's first row. */
    actor_go(actors[1]);
    stage_rest(lab, REST_MS);
    actor_go(actors[0]);
    for (int i = 0; i < 2; i++) {
        actor_end(actors[i]);
        errors[i] = (int)actor_value(actors[i], RESULT);
    }
    stage_close(stage, row);
    sql_tell_left(play, row, !errors[0] + !errors[1]);
    sql_judge_two(lab, row, errors);
}

static void sql_sells_beside(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);
    int64_t count;

    sql_do(sql, "START TRANSACTION");
    if (play->scene->careful) {
        count =
            goods_await(sql, play->table, ROW, actor_holds, "for update").count;
    } else {
        count = goods_read(sql, play->table, ROW).count;
        actor_holds("plain select");
        actor_step("has tried");
    }
    actor_report(BEFORE, count);
    goods_write(sql, play->table, ROW, count - 1);
    goods_commit(sql);
    sql_close(sql);
}

static void sql_lead_beside(struct lab *lab, struct play *play,
                            struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", sql_sells_for_update, play), *b;
    int64_t lost, count;

    actor_until(a, "pauses");
    b = stage_enter(stage, "B", sql_sells_beside, play);
    actor_until(b, "has tried");
    if (actor_value(b, GOODS_BLOCKED)) {
        sql_end_both(lab, a, b);
    } else { /* B has read without a wait, and writes after A */
        stage_rest(lab, REST_MS);
        actor_end(a);
        actor_end(b);
    }
    count = actor_value(b, BEFORE);
    stage_close(stage, row);
    lost = sql_tell_left(play, row, 2).count - (GOODS_COUNT - 2);
    if (lost)
        lab_row_done(lab, row, LAB_FAILS,
                     "%lld sale lost: B did not wait, and read %lld",
                     (long long)lost, (long long)count);
    else
        lab_row_done(lab, row, LAB_OK, "no sale lost: B waited, and read %lld",
                     (long long)count);
}

static bool sql_swap_by_count(struct sql *sql, const struct play *play,
                              const struct goods *had)
{
    sql_do(sql,
           "UPDATE %s SET count = %lld, version = version + 1 "
           "WHERE id = %d AND count = %lld",
           play->table, (long long)had->count - 1, ROW, (long long)had->count);
    return sql_changed(sql) == 1;
}

static void sql_compares(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);
    struct goods had = goods_read(sql, play->table, ROW);
    bool passed;

    actor_mark(false, "reads %lld", (long long)had.count);
    actor_step("has read");
    if (play->scene->careful)
        passed = goods_swap(sql, play->table, ROW, &had);
    else
        passed = sql_swap_by_count(sql, play, &had);
    actor_report(RESULT, passed);
    actor_mark(passed, passed ? "the check passes" : "refused");
    sql_close(sql);
}

static void sql_sells_and_takes_back(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);

    goods_write(sql, play->table, ROW, GOODS_COUNT - 1);
    actor_mark(false, "sells one: %d", GOODS_COUNT - 1);
    goods_write(sql, play->table, ROW, GOODS_COUNT);
    actor_mark(false, "takes it back: %d", GOODS_COUNT);
    sql_close(sql);
}

static void sql_lead_aba(struct lab *lab, struct play *play,
                         struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", sql_compares, play);
    int64_t changes;
    bool passed;

    actor_until(a, "has read");
    actor_end(stage_enter(stage, "B", sql_sells_and_takes_back, play));
    changes = goods_read(play->sql, play->table, ROW).version;
    actor_end(a);
    passed = actor_value(a, RESULT);
    stage_close(stage, row);
    sql_tell_left(play, row, passed);
    lab_row_done(lab, row, passed && changes ? LAB_FAILS : LAB_OK,
                 "%s the row had been changed %lld times",
                 passed ? "the check passed, though" : "refused, as",
                 (long long)changes);
}

static void sql_begin_again(void *arg)
{
    sql_do(arg, "ROLLBACK");
    sql_do(arg, "START TRANSACTION");
}

static void sql_retries(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);

    sql_do(sql, "START TRANSACTION");
    goods_sell_by_version(sql, sql, play->table, ROW,
                          play->scene->careful ? sql_begin_again : NULL, sql);
    sql_do(sql, "COMMIT");
    sql_close(sql);
}

static void sql_lead_retry(struct lab *lab, struct play *play,
                           struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", sql_retries, play);
    long long version, retried;
    bool sold;

    actor_until(a, "has read");
    actor_end(stage_enter(stage, "B", sql_sells_one, play));
    actor_end(a);
    sold = actor_value(a, GOODS_SOLD);
    version = actor_value(a, GOODS_VERSION);
    retried = actor_value(a, GOODS_RETRIED);
    stage_close(stage, row);
    sql_tell_left(play, row, 1 + sold);
    lab_row_number(row, "retries", (double)retried);
    if (sold)
        lab_row_done(lab, row, LAB_OK, "sold by retry %lld, with version %lld",
                     retried, version);
    else
        lab_row_done(lab, row, LAB_FAILS,
                     "%lld retries, all refused: still reads version %lld",
                     retried, version);
}

/* Sells by one statement, and then selects the result. */
static void sql_updates_and_selects(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);
    int64_t after;

    if (play->scene->careful)
        sql_do(sql, "START TRANSACTION");
    goods_sell(sql, play->table, ROW);
    actor_mark(false, "sells one");
    actor_step("pauses");
    after = goods_read(sql, play->table, ROW).count;
    actor_mark(false, "reads %lld", (long long)after);
    actor_report(BEFORE, after + 1);
    actor_report(AFTER, after);
    if (play->scene->careful)
        sql_do(sql, "COMMIT");
    sql_close(sql);
}

static void sql_sells_too(void *arg)
{
    const struct play *play = arg;
    struct sql *sql = sql_session(play);

    sql_sell_row(sql, play, ROW);
    actor_mark(false, "sells one");
    sql_close(sql);
}

/* A sells before B does, so A must see the original count before its sale, and
 * one less after it. */
static void sql_lead_state(struct lab *lab, struct play *play,
                           struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", play->scene->a, play), *b;
    int before, after;

    actor_until(a, "pauses");
    b = stage_enter(stage, "B", sql_sells_too, play);
    actor_until(b, "has tried");
    sql_end_both(lab, a, b);
    before = (int)actor_value(a, BEFORE);
    after = (int)actor_value(a, AFTER);
    stage_close(stage, row);
    sql_tell_left(play, row, 2);
    if (before == GOODS_COUNT && after == GOODS_COUNT - 1)
        lab_row_done(lab, row, LAB_OK, "A knows its sale: from %d to %d",
                     before, after);
    else
        lab_row_done(lab, row, LAB_FAILS,
                     "A sees B's sale: from %d to %d, not from %d to %d",
                     before, after, GOODS_COUNT, GOODS_COUNT - 1);
}

static const struct scene scenes[] = {
    {"for-update", "no index", LAB_FAILS, sql_lead_where,
     .where = "name = 'p-25'", .other = OTHER},
    {"for-update", "no index, READ COMMITTED", LAB_OK, sql_lead_where,
     .where = "name = 'p-25'", .isolation = "READ COMMITTED", .other = OTHER},
    {"for-update", "index", LAB_OK, sql_lead_where, .where = "code = 'p-25'",
     .other = OTHER},
    {"for-update", "index, its beginning", LAB_OK, sql_lead_where,
     .where = "code LIKE 'p-25%'", .other = OTHER},
    {"for-update", "index, its end", LAB_FAILS, sql_lead_where,
     .where = "code LIKE '%-25'", .other = OTHER},
    {"for-update", "index, not equal", LAB_FAILS, sql_lead_where,
     .where = "code <> 'p-25'", .other = ROW},
    {"two-rows", "opposite order", LAB_FAILS, sql_lead_two, .careful = false},
    {"two-rows", "same order", LAB_OK, sql_lead_two, .careful = true},
    {"beside-for-update", "plain select", LAB_FAILS, sql_lead_beside,
     .careful = false},
    {"beside-for-update", "for update", LAB_OK, sql_lead_beside,
     .careful = true},
    {"aba", "by value", LAB_FAILS, sql_lead_aba, .careful = false},
    {"aba", "by version", LAB_OK, sql_lead_aba, .careful = true},
    {"retry", "same transaction", LAB_FAILS, sql_lead_retry, .careful = false},
    {"retry", "new transaction", LAB_OK, sql_lead_retry, .careful = true},
    {"retry", "READ COMMITTED", LAB_OK, sql_lead_retry,
     .isolation = "READ COMMITTED"},
    {"before-and-after", "one statement", LAB_FAILS, sql_lead_state,
     .a = sql_updates_and_selects},
    {"before-and-after", "transaction", LAB_OK, sql_lead_state,
     .a = sql_updates_and_selects, .careful = true},
    {"before-and-after", "for update", LAB_OK, sql_lead_state,
     .a = sql_sells_for_update},
};

static void sql_run(struct lab *lab)
{
    struct play play = {.place = lab_store(lab, LAB_MARIADB)};

    lab_table(lab, "goods", play.table);
    play.sql = goods_session(play.place, NULL);
    goods_make(play.sql, play.table);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const struct scene *scene = play.scene = &scenes[i];
        struct lab_row *row;

        if (!lab_wants(lab, scene->strategy))
            continue;
        row = goods_row(lab, play.place, scene->strategy, scene->variant,
                        scene->expected);
        goods_reset(play.sql, play.table);
        scene->lead(lab, &play, row);
    }
    sql_close(play.sql);
}

static const char *const strategies[] = {
    "for-update",       "two-rows", "beside-for-update", "aba", "retry",
    "before-and-after", NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 17, LAB_LEFT},
    {"variant", "variant", 24, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT | LAB_JSON_ONLY},
    {"selected", "selected", 8, 0},
    {"locked", "locked", 6, 0},
    {"sold", "sold", 4, 0},
    {"left", "left", 4, 0},
    {"retries", "retries", 7, LAB_JSON_ONLY},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_sql = {
    .name = "sql",
    .summary = "what a database locks, and what it does not",
    .text =
        "A and B sell from a table of 256 goods, 10 of each. for-update:\n"
        "which rows are locked, by index and by condition. two-rows: each\n"
        "locks two. beside-for-update: B reads while A holds the row. aba: B\n"
        "sells an item and takes it back while A is about to write. retry:\n"
        "A's write is refused because the version has changed, and A tries\n"
        "again. before-and-after: A sells, then B does; does A know the count\n"
        "before and after its own sale?\n",
    .columns = columns,
    .options = LAB_STRATEGY,
    .needs = LAB_NEEDS_MARIADB,
    .strategies = strategies,
    .run = sql_run,
};
