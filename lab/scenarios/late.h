/*
 * A late sale, for scenarios in which the lock is lost in the middle of a sale:
 * an actor takes the lock, reads the stock, pauses, and writes what is left.
 */
#ifndef HF_LAB_LATE_H
#define HF_LAB_LATE_H

#include "../actors/stage.h"
#include "../runner/place.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

/* A reads 10 and is about to write 9; in the meantime B sells three and writes
 * 7. */
enum { LATE_STOCK = 10, LATE_BY_A = 1, LATE_BY_B = 3 };

struct late {
    struct lab *lab;
    const struct lab_place *place; /* of the lock */
    const struct lab_place *store; /* where the stock is; NULL: in a file */
    const char *name, *who;
    int64_t amount;
    bool by_hand;             /* locks by SET NX PX on Redis, not by holdfast */
    bool token;               /* the store checks the token */
    bool deadline;            /* does not write if hf_lock_check() fails */
    bool tries;               /* tries once before it waits for the lock */
    bool learns;              /* at the end, waits until it notices that the
                                 hold is lost */
    int64_t ttl_ms, lease_ms; /* ttl_ms 0: by hand a long TTL, with holdfast the
                                 default; lease_ms 0: the hold is renewed */
};

/* What the actor reports. */
enum late_report {
    LATE_WROTE,
    LATE_REFUSED,
    LATE_CHECKED, /* result of hf_lock_check() before the write; 0 by hand */
    LATE_TOKEN,
    LATE_KNOWS_AT, /* lab_now() at which the actor noticed the loss */
    LATE_BUSY,     /* if `tries': another client had the lock */
};

/* The script of an actor; arg is a struct late. Its steps: "asked" (only with
 * holdfast and `tries': it has tried once), "read" (it has the lock and has
 * read), "done" (it has written, or has decided not to), and "knows" (only with
 * holdfast and `learns': it has noticed the loss). Then it releases the
 * lock. */
void late_play(void *arg);

struct late_result {
    bool came_in;            /* B got the lock before A was done */
    bool a_wrote, a_refused; /* the store accepted, or refused, A's write */
    int a_checked;           /* HF_OK: A believed that it held the lock when
                                about to write */
    uint64_t a_token, b_token;
    int64_t left; /* the stock */
};

/* Fills in what A and B have reported. The caller sets came_in and left. Call
 * it when both actors are done. */
void late_read(struct late_result *result, const struct actor *a,
               const struct actor *b);
/* Returns whether A's late write was accepted, and so overwrote B's. */
bool late_is_lost(const struct late_result *result);

#endif
