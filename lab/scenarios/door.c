/*
 * The latch of the documents (tutorials; see lab/README.md): "I am about to
 * lock the door, five people are still inside, please leave." The guard waits
 * at a latch of five. Each person counts the latch down on leaving, and the
 * last person lets the guard lock the door. A guard without a latch checks only
 * once, and locks a slow person in.
 */
#include "../actors/stage.h"
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
#include <stdbool.h>
#include <stdio.h>

enum {
    PEOPLE = 5,
    STAYS_MS = 200, /* time in which the guard must not lock the door */
};

/* What actors report. */
enum {
    GUARD_INSIDE,    /* people inside when it locked the door */
    PERSON_OPEN = 0, /* the latch was open although the person was inside */
};

/* What the actors share. */
struct door {
    _Atomic int inside; /* number of people inside */
    _Atomic bool locked;
};

/* One row. */
struct room {
    const struct lab_place *place; /* NULL: there is no latch */
    char name[96];
    struct door *door;
};

struct latch {
    hf_client *client;
    hf_latch *latch;
};

static struct latch door_latch_open(const struct room *room)
{
    struct latch latch = {lab_open(room->place, 0), NULL};
    hf_error err = HF_ERROR_INIT;

    lab_check(
        hf_latch_new(latch.client, room->name, HF_CSTRING, &latch.latch, &err),
        "make a latch", &err);
    return latch;
}

static void door_latch_close(struct latch *latch)
{
    hf_latch_free(latch->latch);
    hf_close(latch->client);
}

static void lock_door(const struct room *room)
{
    int inside = atomic_load(&room->door->inside);

    atomic_store(&room->door->locked, true);
    actor_report(GUARD_INSIDE, inside);
    actor_mark(inside > 0, "locks the door, %d inside", inside);
    actor_step("locks");
}

static void door_guard(void *arg)
{
    const struct room *room = arg;
    hf_error err = HF_ERROR_INIT;
    struct latch latch = door_latch_open(room);

    lab_check(hf_latch_set(latch.latch, PEOPLE, &err), "set the latch", &err);
    actor_step("tells them to leave");
    actor_waits("waits at the latch");
    lab_check(hf_latch_wait(latch.latch, HF_FOREVER, NULL, &err),
              "wait for the latch", &err);
    actor_lets_go();
    lock_door(room);
    door_latch_close(&latch);
}

static void door_guard_without(void *arg)
{
    const struct room *room = arg;
    int seen;

    actor_step("tells them to leave");
    seen = atomic_load(&room->door->inside);
    actor_mark(false, "looks once: %d inside", seen);
    actor_step("looks once");
    if (seen > 0) /* the people get time to leave, but are not counted again */
        actor_step("gives them time");
    lock_door(room);
}

/* Called by an actor that is inside. Reports whether the latch would let the
 * guard through now. */
static void door_ask(const struct latch *latch)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_latch_wait(latch->latch, 0, NULL, &err);

    if (rc != HF_EBUSY)
        lab_check(rc, "ask the latch", &err);
    actor_report(PERSON_OPEN, rc == HF_OK);
}

static void door_person(void *arg)
{
    const struct room *room = arg;
    hf_error err = HF_ERROR_INIT;
    struct latch latch = {NULL, NULL};

    if (room->place)
        latch = door_latch_open(room);
    atomic_fetch_add(&room->door->inside, 1);
    actor_shares("inside");
    actor_step("inside");
    if (atomic_load(&room->door->locked)) {
        actor_mark(true, "the door is locked");
        return;
    }
    if (room->place)
        door_ask(&latch);
    actor_lets_go();
    atomic_fetch_sub(&room->door->inside, 1);
    if (room->place) {
        lab_check(hf_latch_down(latch.latch, NULL, &err),
                  "count down the latch", &err);
        door_latch_close(&latch);
    }
}

struct found {
    int locked_in; /* people inside when the guard locked the door */
    int open;      /* people who found the latch open while inside */
};

static void door_finish(struct lab *lab, struct lab_row *row,
                        const struct found *found)
{
    lab_row_number(row, "people", PEOPLE);
    lab_row_number(row, "locked_in", found->locked_in);
    if (found->locked_in > 0)
        lab_row_done(lab, row, LAB_FAILS, "%d of %d locked in",
                     found->locked_in, PEOPLE);
    else if (found->open > 0)
        lab_row_done(lab, row, LAB_FAILS,
                     "the latch was open, with people inside, %d times",
                     found->open);
    else
        lab_row_done(lab, row, LAB_OK, "locked after the last of %d had left",
                     PEOPLE);
}

/* Lets all but the last person leave. Waits for a while, in which a guard with
 * a latch must not lock the door, or until a guard without a latch has locked
 * it. Then lets the last person leave. */
static void door_leave(const struct room *room, struct actor *guard_actor,
                       struct actor *people[PEOPLE])
{
    bool early;

    for (int i = 0; i < PEOPLE - 1; i++)
        actor_end(people[i]);
    if (!room->place)
        actor_go(guard_actor);
    early = actor_comes(guard_actor, "locks", room->place ? STAYS_MS : 60000);
    actor_end(people[PEOPLE - 1]);
    if (!early)
        actor_until(guard_actor, "locks");
    actor_end(guard_actor);
}

static void door_play(struct lab *lab, struct lab_row *row, struct room *room)
{
    struct stage *stage = stage_new(lab);
    struct actor *people[PEOPLE], *guard_actor;
    struct found found = {0};

    room->door = lab_share(sizeof *room->door);
    guard_actor = stage_enter(
        stage, "guard", room->place ? door_guard : door_guard_without, room);
    actor_until(guard_actor, "tells them to leave");
    for (int i = 0; i < PEOPLE; i++) {
        char name[24];

        snprintf(name, sizeof name, "person %d", i + 1);
        people[i] = stage_enter(stage, name, door_person, room);
        actor_until(people[i], "inside");
    }
    actor_go(guard_actor);
    if (!room->place) {
        actor_until(guard_actor, "looks once");
        actor_go(guard_actor);
        actor_until(guard_actor, "gives them time");
    }
    door_leave(room, guard_actor, people);
    found.locked_in = (int)actor_value(guard_actor, GUARD_INSIDE);
    for (int i = 0; i < PEOPLE; i++)
        found.open += (int)actor_value(people[i], PERSON_OPEN);
    stage_close(stage, row);
    lab_unshare(room->door, sizeof *room->door);
    door_finish(lab, row, &found);
}

static void door_run(struct lab *lab)
{
    struct room room = {.place = NULL};
    struct lab_row *row = lab_row(lab, LAB_FAILS);

    lab_progress(lab, "no latch");
    lab_row_text(row, "strategy", "none");
    door_play(lab, row, &room);
    lab_name(lab, "door", room.name);
    for (size_t i = 0; (room.place = lab_backend(lab, i)); i++) {
        if (lab_caps(room.place, HF_LATCH) <= 0)
            continue;
        row = lab_row(lab, LAB_OK);
        lab_progress(lab, "a latch on %s", room.place->name);
        lab_row_text(row, "strategy", "latch");
        lab_row_text(row, "backend", "%s", room.place->name);
        door_play(lab, row, &room);
    }
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 10, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"people", "people", 6, 0},
    {"locked_in", "locked in", 9, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_door = {
    .name = "door",
    .summary = "a latch of 5: the last person lets the guard lock the door",
    .text =
        "A guard is about to lock a door, and five people are still inside.\n"
        "With a latch of five, each person counts it down on leaving, and the\n"
        "guard waits until it is 0. Without one the guard looks once, and "
        "locks\n"
        "the door while one person is still inside.\n",
    .columns = columns,
    .run = door_run,
};
