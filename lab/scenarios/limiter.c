/*
 * Ten cars before a car park of three places: the RSemaphore of the documents
 * (tutorials; see lab/README.md). Each car drives in, parks for a while and
 * drives out. The cars count in shared memory how many of them are inside. The
 * first cars leave only after as many cars as possible have come in, and all
 * other cars have requested a place. Therefore the limit is reached in every
 * run, and a fourth car that is let in is noticed.
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/stage.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/client.h"
#include "../servers/places.h"
#include "../servers/redis.h"

#include <holdfast.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CARS = 10,
    PLACES = 3,
    PARK_MS = 25,
    KEPT_OUT_MS = 200, /* a pause in which no fourth car comes in */
    STUCK_MS = 50000,
};

/* What the cars share. */
struct park {
    _Atomic int arrived; /* cars that have reached the gate */
    _Atomic int read;    /* cars that have read the counter in Redis */
    _Atomic int inside, most;
    _Atomic int full; /* 1 once the required number was inside at once */
};

/* One row. */
struct gate {
    const struct lab_place *place;
    struct park *park;
    char name[96];
    int together; /* cars that must be inside at once before one leaves */
};

static void limiter_await(const _Atomic int *count, int at_least,
                          const char *what)
{
    int64_t until = lab_now() + STUCK_MS * 1000000LL;

    while (atomic_load(count) < at_least) {
        if (lab_now() > until)
            lab_die(CLI_FAILED, "%d %s, not %d, after %d seconds",
                    atomic_load(count), what, at_least, STUCK_MS / 1000);
        lab_sleep_ms(1);
    }
}

/* Parks. The car counts as inside only here: after it has passed the gate on
 * its way in, and before it passes the gate on its way out. */
static void limiter_park(const struct gate *gate)
{
    struct park *place = gate->park;
    int now = atomic_fetch_add(&place->inside, 1) + 1;
    int most = atomic_load(&place->most);

    while (now > most &&
           !atomic_compare_exchange_weak(&place->most, &most, now)) {
    }
    if (!atomic_load(&place->full)) {
        limiter_await(&place->most, gate->together, "cars are inside");
        limiter_await(&place->arrived, CARS, "cars are at the gate");
        if (gate->together < CARS)
            lab_sleep_ms(KEPT_OUT_MS);
        atomic_store(&place->full, 1);
    }
    lab_sleep_ms(PARK_MS);
    atomic_fetch_sub(&place->inside, 1);
}

static void limiter_arrive(const struct gate *gate)
{
    actor_step("arrives");
    actor_waits("");
    atomic_fetch_add(&gate->park->arrived, 1);
}

static void limiter_drive_in(void)
{
    actor_lets_go(); /* ends the span of the wait */
    actor_shares("inside");
}

static void limiter_car_without(void *arg)
{
    const struct gate *gate = arg;

    limiter_arrive(gate);
    limiter_drive_in();
    limiter_park(gate);
    actor_lets_go();
}

/* A car that is admitted by a counter in Redis, which the car reads and
 * increments in two steps. */
static void limiter_car_with_counter(void *arg)
{
    const struct gate *gate = arg;
    redisContext *redis = rd_open(gate->place);

    limiter_arrive(gate);
    while (rd_number(redis, "GET %s", gate->name) >= PLACES)
        lab_sleep_ms(PARK_MS);
    atomic_fetch_add(&gate->park->read, 1);
    limiter_await(&gate->park->read, CARS, "cars have read the counter");
    rd_number(redis, "INCR %s", gate->name);
    limiter_drive_in();
    limiter_park(gate);
    rd_number(redis, "DECR %s", gate->name);
    actor_lets_go();
    redisFree(redis);
}

static void limiter_car_with_semaphore(void *arg)
{
    const struct gate *gate = arg;
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = lab_open(gate->place, 0);
    hf_lock *permit;

    options.kind = HF_SEMAPHORE;
    options.permits = PLACES;
    permit = lab_lock(client, gate->name, &options);
    limiter_arrive(gate);
    lab_check(hf_lock_acquire(permit, NULL, &err), "acquire a permit", &err);
    limiter_drive_in();
    limiter_park(gate);
    actor_lets_go();
    lab_check(hf_lock_release(permit, &err), "release a permit", &err);
    hf_lock_free(permit);
    hf_close(client);
}

static void limiter_let_in(struct lab *lab, struct lab_row *row,
                           struct gate *gate, void (*car)(void *arg))
{
    struct stage *stage = stage_new(lab);
    struct actor *cars[CARS];
    int most;

    gate->park = lab_share(sizeof *gate->park);
    for (int i = 0; i < CARS; i++) {
        char name[24];

        snprintf(name, sizeof name, "car %d", i + 1);
        cars[i] = stage_enter(stage, name, car, gate);
    }
    for (int i = 0; i < CARS; i++)
        actor_until(cars[i], "arrives");
    for (int i = 0; i < CARS; i++)
        actor_go(cars[i]);
    for (int i = 0; i < CARS; i++)
        actor_end(cars[i]);
    stage_close(stage, row);
    most = atomic_load(&gate->park->most);
    lab_unshare(gate->park, sizeof *gate->park);
    lab_row_number(row, "cars", CARS);
    lab_row_number(row, "places", PLACES);
    lab_row_number(row, "most", most);
    if (most > PLACES)
        lab_row_done(lab, row, LAB_FAILS, "%d cars in %d places", most, PLACES);
    else
        lab_row_done(lab, row, most == PLACES ? LAB_OK : LAB_FAILS,
                     "%d cars, at most %d inside", CARS, most);
}

static void limiter_without(struct lab *lab)
{
    struct lab_row *row = lab_row(lab, LAB_FAILS);
    struct gate gate = {.together = CARS};

    lab_progress(lab, "no limit");
    lab_row_text(row, "strategy", "none");
    limiter_let_in(lab, row, &gate, limiter_car_without);
}

static void limiter_by_counter(struct lab *lab)
{
    struct gate gate = {.together = CARS};
    struct lab_row *row;

    gate.place = lab_store(lab, LAB_REDIS);
    if (!gate.place)
        return;
    row = lab_row(lab, LAB_FAILS);
    lab_progress(lab, "a counter by hand on %s", gate.place->name);
    lab_name(lab, "limiter-counter", gate.name);
    lab_row_text(row, "strategy", "redis-counter");
    lab_row_text(row, "store", "%s", gate.place->name);
    limiter_let_in(lab, row, &gate, limiter_car_with_counter);
}

static void limiter_by_semaphore(struct lab *lab,
                                 const struct lab_place *backend)
{
    struct gate gate = {.place = backend, .together = PLACES};
    struct lab_row *row;

    if (lab_caps(backend, HF_SEMAPHORE) <= 0)
        return;
    row = lab_row(lab, LAB_OK);
    lab_progress(lab, "a semaphore on %s", backend->name);
    lab_name(lab, "limiter", gate.name);
    lab_row_text(row, "strategy", "semaphore");
    lab_row_text(row, "backend", "%s", backend->name);
    limiter_let_in(lab, row, &gate, limiter_car_with_semaphore);
}

static void limiter_run(struct lab *lab)
{
    const struct lab_place *backend;

    limiter_without(lab);
    limiter_by_counter(lab);
    for (size_t i = 0; (backend = lab_backend(lab, i)); i++)
        limiter_by_semaphore(lab, backend);
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 14, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"cars", "cars", 5, 0},
    {"places", "places", 6, 0},
    {"most", "most inside", 11, LAB_BAR},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_limiter = {
    .name = "limiter",
    .summary = "a semaphore of 3 before 10 cars",
    .text =
        "Ten cars want to park in three places. Each counts how many cars are\n"
        "inside. Without a limit all of them are inside at once. A counter in\n"
        "Redis that is read and then incremented lets all of them in as well:\n"
        "they pause between the two steps until all have read. A semaphore "
        "of\n"
        "three permits lets in three at a time.\n",
    .columns = columns,
    .run = limiter_run,
};
