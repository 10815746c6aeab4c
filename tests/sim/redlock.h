/*
 * A model of the Redlock token protocol, explored exhaustively.
 *
 * Three servers keep the key of one lock name (owner and expiry) and two
 * numbers, base and top. Every attempt to lock is a client of its own with its
 * own value. Time is a small integer and advances at any moment up to a
 * horizon.
 *
 * A message that was sent may be executed at any later moment, in any order,
 * or never: this covers delay and loss. A reply is not a step of its own:
 * a client that decides picks any set of the replies that exist. A client that
 * takes no further step has crashed. No request is refused for being late; a
 * restarted server executes none while it stays out.
 *
 * Why a server keeps two numbers: a model with top only, where the client
 * says what it becomes, let a token be used twice. A late renewal lowered top
 * after a newer one had set the key again (mutant renew-exact), and a release
 * or undo that did not know the base left the reservation, so that top ran
 * ahead of the clock by B per attempt and a restart forgot it (drop-leaves-top,
 * undo-leaves-top).
 *
 * A raise is sent only to servers whose grant was counted, and a server refuses
 * it unless base < t. Either is enough here: raise-any-base breaks both.
 *
 * Bounds: 3 servers, 2 or 3 attempts, leases of 1 or 2 ticks, at most 4 ticks,
 * 2 restarts and 2 renewal rounds, one after the other, and never all of them
 * in one configuration. Clocks do not drift. Nothing is proved beyond them. The
 * reductions are checked on the configurations of --compare only: two attempts,
 * at most one renewal, no renewal together with a restart.
 */
#ifndef HF_TESTS_SIM_REDLOCK_H
#define HF_TESTS_SIM_REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SERVERS = 3, CLIENTS = 3, OFFSETS = 3, ROUNDS = 2, STEPS_MAX = 256 };

/* The state of one client at one server: pending requests and their replies. */
enum mail {
    GRANTED = 1, /* the grant was executed: the key was set */
    RAISE = 2,   /* a raise is pending */
    RENEW = 4,   /* the first round's renewal is pending; << 1: the second's */
    RENEWALS = RENEW | RENEW << 1,
    RELEASE = 16, /* a release is pending */
    UNDO = 32,    /* an undo is pending */
    ACK = 64,     /* the raise or renewal of the current round succeeded */
};

enum phase { IDLE, TRYING, RAISING, HOLDING, RENEWING, ENDED };

/* Only bytes, since states are compared and hashed as memory. */
struct server {
    uint8_t owner; /* client + 1; 0: no key */
    uint8_t expiry, base, top;
    uint8_t out; /* no request is sent to it before this time; 0: in service */
    uint8_t mail[CLIENTS];
    uint8_t answer[CLIENTS]; /* the base that the grant's reply carries */
};

struct client {
    uint8_t phase;
    uint8_t deadline; /* 0: not started, or expired */
    uint8_t renewed;  /* the deadline if the current renewal succeeds */
    uint8_t rounds;   /* renewal rounds started */
    uint8_t token;
    uint8_t seen; /* the highest token used before the attempt began */
};

struct state {
    struct server server[SERVERS];
    struct client client[CLIENTS];
    uint8_t now, used, restarts;
};

/* The protocol, and ways to break it. */
enum broken {
    RIGHT,
    NO_RESERVATION,
    RAISE_ANY_OWNER,
    RAISE_ANY_BASE,
    RAISE_MINORITY,
    RAISE_DEADLINE,
    VALUE_REUSED,
    GRANT_TWICE,
    UNDO_AFTER_USE,
    UNDO_ANY_OWNER,
    UNDO_BELOW_BASE,
    RELEASE_ANY_OWNER,
    RELEASE_SETS_TOKEN,
    DROP_LEAVES_TOP,
    DEADLINE_FROM_REPLY,
    RENEW_FROM_REPLY,
    RENEW_TWO_ROUNDS,
    RENEW_SETS_BASE,
    RENEW_EXACT,
    NO_STAY_OUT,
    SHORT_STAY_OUT,
    OWN_STAY_OUT,
    MAJORITY_ONE,
    RESERVE_TOO_MUCH,
    CLOCKS_APART,
};

/* The number of states of a model: below a million; up to STATES_MAX; more. */
enum size { SMALL, NORMAL, DEEP };

struct model {
    const char *name, *about;
    enum broken broken;
    enum size size;
    uint8_t clients, horizon;
    uint8_t lease[CLIENTS], max_lease; /* in ticks */
    uint8_t unit;                      /* clock units per tick */
    uint8_t reserve;                   /* B, in clock units */
    uint8_t offset[OFFSETS];           /* of the servers' clocks; ends at a 0 */
    uint8_t restarts, renewals;
    bool revives; /* a renewal may succeed after the old deadline */
    bool jumps;   /* a key may expire early; only tokens are checked */
    bool plain;   /* without the reductions */
    bool no_undo, no_release;
};

enum action {
    NOTHING,
    TICK,
    EXPIRE_EARLY,
    RESTART,
    START,
    GIVE_UP,
    USE,
    SECOND_ROUND,
    USE_RAISED,
    START_RENEWAL,
    RENEWED,
    LET_GO,
    RUN_GRANT,
    RUN_RAISE,
    RUN_RENEW,
    RUN_RELEASE,
    RUN_UNDO,
};

struct step {
    struct state after;
    enum action lead, action; /* lead: what the client did just before */
    uint8_t client, server, majority; /* majority: one bit per server */
    const char *violation;            /* NULL: both properties hold */
};

/* Writes every possible step from s; returns the number of steps. */
size_t model_steps(const struct model *m, const struct state *s,
                   struct step *steps);
struct state model_first(const struct model *m);
bool model_believes(const struct state *s, const struct client *c);

struct outcome {
    uint32_t states;
    size_t depth;          /* of the deepest state, or of the violation */
    const char *violation; /* NULL: none found */
    bool full;             /* the states did not fit: nothing is proved */
};

/* Searches breadth first, so that the violation found is a shortest one. Prints
 * the steps that lead to it if trace is set. */
struct outcome model_search(const struct model *m, bool trace);

/* Explores m with and without the reductions. *lost: the number of unreduced
 * states that differ, in what other clients can observe, from every reduced
 * state. */
struct outcome model_compare(const struct model *m, uint32_t *lost);

/* Prints a step in words. */
void model_tell(const struct state *before, const struct step *step);

#endif
