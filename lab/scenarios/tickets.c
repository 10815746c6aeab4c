/*
 * The ticket office of the documents (tutorials; see lab/README.md): several
 * servers sell tickets of many trains, and the key of the lock is the number of
 * the train. Buyers choose a train at random. With one lock for all trains
 * every sale waits for every other sale; with one lock per train only sales of
 * the same train wait for each other.
 */
#include "../actors/workers.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/client.h"
#include "../servers/places.h"

#include <holdfast.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SEATS = 1000000,     /* of a train: more than can be sold in the time */
    DATABASE_NS = 300000 /* duration of a sale, which holds the lock */
};

/* A train, in memory that all sellers share. Reading and writing `left' are two
 * steps, which the lock must guard. Sold tickets are counted separately. */
struct train {
    _Atomic int64_t left, sold;
};

/* One row. */
struct office {
    struct lab *lab;
    const struct lab_place *backend;
    struct train *trains;
    unsigned trains_len, locks_len;
};

/* The state of a worker. */
struct seller {
    hf_client *client;
    uint64_t random;
    hf_lock *locks[];
};

static void *tickets_begin(struct worker *worker)
{
    const struct office *office = worker->arg;
    struct seller *seller =
        lab_alloc(sizeof *seller + office->locks_len * sizeof *seller->locks);

    seller->client = lab_open(office->backend, 0);
    seller->random = 0x9e3779b97f4a7c15 * (worker->number + 1);
    for (unsigned i = 0; i < office->locks_len; i++) {
        char word[32], name[96];

        snprintf(word, sizeof word, "tickets-%u-%u", office->locks_len, i + 1);
        lab_name(office->lab, word, name);
        seller->locks[i] = lab_lock(seller->client, name, NULL);
    }
    return seller;
}

static void tickets_end(struct worker *worker)
{
    const struct office *office = worker->arg;
    struct seller *seller = worker->mine;

    for (unsigned i = 0; i < office->locks_len; i++)
        hf_lock_free(seller->locks[i]);
    hf_close(seller->client);
    free(seller);
}

/* Returns a random number below n, by xorshift64. Each seller has its own
 * sequence, which is the same in each run. */
static unsigned tickets_choose(struct seller *seller, unsigned n)
{
    seller->random ^= seller->random << 13;
    seller->random ^= seller->random >> 7;
    seller->random ^= seller->random << 17;
    return (unsigned)(seller->random % n);
}

static enum work tickets_sell(struct train *train)
{
    struct timespec database = {0, DATABASE_NS};
    int64_t left = atomic_load(&train->left);

    if (left <= 0)
        return WORK_NOTHING;
    nanosleep(&database, NULL);
    atomic_store(&train->left, left - 1);
    atomic_fetch_add(&train->sold, 1);
    return WORK_DONE;
}

static enum work tickets_work(struct worker *worker)
{
    const struct office *office = worker->arg;
    struct seller *seller = worker->mine;
    unsigned train = tickets_choose(seller, office->trains_len);
    hf_lock *lock = seller->locks[train % office->locks_len];
    hf_error err = HF_ERROR_INIT;
    enum work sold;

    lab_check(hf_lock_acquire(lock, NULL, &err), "acquire", &err);
    sold = tickets_sell(&office->trains[train]);
    lab_check(hf_lock_release(lock, &err), "release", &err);
    return sold;
}

/* Returns the number of trains whose sold and remaining tickets do not add up
 * to SEATS. */
static unsigned tickets_wrong_trains(const struct office *office)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < office->trains_len; i++) {
        const struct train *train = &office->trains[i];

        wrong += atomic_load(&train->sold) + atomic_load(&train->left) != SEATS;
    }
    return wrong;
}

static void tickets_judge(const struct office *office, struct lab_row *row,
                          const struct workers_result *result,
                          double alone_per_s)
{
    unsigned wrong = tickets_wrong_trains(office);
    long long sold = (long long)result->done;

    lab_row_number(row, "wrong", wrong);
    if (wrong)
        lab_row_done(office->lab, row, LAB_FAILS,
                     "%u of %u trains are oversold", wrong, office->trains_len);
    else if (sold == 0)
        lab_row_done(office->lab, row, LAB_FAILS, "nothing was sold");
    else if (alone_per_s > 0)
        lab_row_done(office->lab, row, LAB_OK,
                     "%lld sold exactly: %.1f times as many as with one lock",
                     sold, result->per_s / alone_per_s);
    else
        lab_row_done(office->lab, row, LAB_OK, "%lld sold exactly", sold);
}

/* Returns the sales per second. */
static double tickets_sell_for_a_while(struct office *office,
                                       double alone_per_s)
{
    const struct lab_settings *settings = lab_settings(office->lab);
    struct workers_plan plan = {.workers = (unsigned)settings->workers,
                                .run_ms = settings->seconds_ms,
                                .begin = tickets_begin,
                                .work = tickets_work,
                                .end = tickets_end,
                                .arg = office,
                                .places = {office->backend}};
    struct workers_result *result = lab_alloc(sizeof *result);
    struct lab_row *row = lab_row(office->lab, LAB_OK);
    const char *locks = office->locks_len > 1 ? "one per train" : "one for all";
    size_t size = office->trains_len * sizeof *office->trains;
    double per_s;

    lab_progress(office->lab, "%s on %s", locks, office->backend->name);
    office->trains = lab_share(size);
    for (unsigned i = 0; i < office->trains_len; i++)
        atomic_store(&office->trains[i].left, SEATS);
    workers_run(office->lab, &plan, result, NULL);
    lab_row_text(row, "strategy", "lock");
    lab_row_text(row, "backend", "%s", office->backend->name);
    lab_row_text(row, "locks", "%s", locks);
    lab_row_number(row, "trains", office->trains_len);
    lab_row_number(row, "sold", (double)result->done);
    workers_report(result, row);
    tickets_judge(office, row, result, alone_per_s);
    lab_unshare(office->trains, size);
    per_s = result->per_s;
    free(result);
    return per_s;
}

static void tickets_run(struct lab *lab)
{
    struct office office = {.lab = lab,
                            .trains_len = (unsigned)lab_settings(lab)->trains};

    for (size_t i = 0; (office.backend = lab_backend(lab, i)); i++) {
        char claim[LAB_TEXT_MAX];
        double one, each;

        office.locks_len = 1;
        one = tickets_sell_for_a_while(&office, 0);
        if (office.trains_len == 1)
            continue;
        office.locks_len = office.trains_len;
        each = tickets_sell_for_a_while(&office, one);
        snprintf(claim, sizeof claim,
                 "on %s one lock per train sells more than one lock for all",
                 office.backend->name);
        lab_claim(lab, each > one, claim, "%.0f and %.0f sales per second",
                  each, one);
    }
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 8, LAB_LEFT | LAB_WIDE},
    {"backend", "backend", 7, LAB_LEFT},
    {"locks", "locks", 13, LAB_LEFT},
    {"trains", "trains", 6, 0},
    {"sold", "sold", 6, LAB_WIDE},
    {"wrong", "wrong", 6, LAB_WIDE},
    {"per_s", "sales/s", 7, LAB_BAR},
    {"p50_us", "p50 us", 8, LAB_WIDE},
    {"p99_us", "p99 us", 8, 0},
    {"cpu_ms", "CPU ms", 8, LAB_WIDE},
    {"server_cpu_ms", "server CPU ms", 8, LAB_WIDE},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_tickets = {
    .name = "tickets",
    .summary = "many trains: one lock each, against one lock for all",
    .text =
        "Workers sell tickets of many trains (--trains) for a while "
        "(--seconds);\n"
        "each buyer chooses a train at random, and a sale takes 0.3 ms while "
        "the\n"
        "lock is held. First one lock guards all trains, then each train has "
        "its\n"
        "own. In both cases no train may be oversold.\n",
    .columns = columns,
    .options = LAB_TRAINS | LAB_SECONDS,
    .run = tickets_run,
};
