/*
 * A model of the Redlock token protocol, explored exhaustively. The README of
 * src/backends/redlock describes the protocol.
 *
 * Three servers keep the key of one lock name (its owner and its expiry) and
 * two numbers, base and top. In the comments of the model, B is the amount by
 * which a grant raises top above base, and t is the token of an attempt. Every
 * attempt to lock is a client of its own, and sends its own value as the owner
 * of the key. Time is a small integer, and may advance at any moment up to a
 * horizon.
 *
 * A message that was sent may be executed at any later moment, in any order, or
 * never: this covers delay and loss. A reply is not a step of its own: a client
 * that decides picks any set of the replies that exist. A client that takes no
 * further step has crashed. No request is refused for being late. A restarted
 * server executes no request while it stays out.
 *
 * A server keeps two numbers for the following reason. In a model with top
 * only, where the client says what top becomes, a token could be used twice:
 * - A late renewal lowered top after a newer renewal had set the key again
 *   (mutant renew-exact).
 * - A release or undo that did not know base left top as the grant had raised
 *   it. Each attempt then moved top ahead of the clock by another B. A restart
 *   forgot top, so later grants began at the clock again, below the tokens
 *   already used (mutants drop-leaves-top, undo-leaves-top).
 *
 * A client sends a raise only to servers whose grant it counted, and a server
 * refuses a raise unless base < t. Either rule is enough by itself: the mutant
 * raise-any-base breaks both.
 *
 * Bounds: 3 servers, 2 or 3 attempts, leases of 1 or 2 ticks, at most 4 ticks,
 * 2 restarts, and 2 renewal rounds, one after the other. No configuration has
 * all of these maxima at once. Clocks do not drift. Nothing is proved beyond
 * these bounds. The reductions are checked only on the configurations of
 * --compare: two attempts, at most one renewal, no renewal together with a
 * restart.
 */
#ifndef HF_TESTS_SIM_REDLOCK_H
#define HF_TESTS_SIM_REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SERVERS = 3, CLIENTS = 3, OFFSETS = 3, ROUNDS = 2, STEPS_MAX = 256 };

/* The state of one client at one server, as bits: pending requests, and the
 * replies to executed ones. */
enum mail {
    GRANTED = 1, /* the grant was executed: the key was set */
    RAISE = 2,   /* a raise is pending */
    RENEW = 4,   /* the first round's renewal is pending; RENEW << 1: the second
                    round's */
    RENEWALS = RENEW | RENEW << 1,
    RELEASE = 16, /* a release is pending */
    UNDO = 32,    /* an undo is pending */
    ACK = 64,     /* the raise or renewal of the current round succeeded */
};

enum phase { IDLE, TRYING, RAISING, HOLDING, RENEWING, ENDED };

/* All fields are bytes, so that there is no padding: states are compared and
 * hashed as memory. */
struct server {
    uint8_t owner; /* client + 1, or 0 if the server has no key */
    uint8_t expiry, base, top;
    uint8_t out; /* when its stay-out ends, or 0 if it is in service */
    uint8_t mail[CLIENTS];
    uint8_t answer[CLIENTS]; /* the base that the grant's reply carries */
};

struct client {
    uint8_t phase;
    uint8_t deadline; /* 0 before the attempt starts and after expiry */
    uint8_t renewed;  /* the deadline if the current renewal succeeds */
    uint8_t rounds;   /* renewal rounds started */
    uint8_t token;
    uint8_t seen; /* the highest token that was used before the attempt began */
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

/* How many states a model has: below a million, at most STATES_MAX, or more. */
enum size { SMALL, NORMAL, DEEP };

struct model {
    const char *name, *about;
    enum broken broken;
    enum size size;
    uint8_t clients, horizon;
    uint8_t lease[CLIENTS], max_lease; /* in ticks */
    uint8_t unit;                      /* clock units per tick */
    uint8_t reserve;                   /* B, in clock units */
    uint8_t offset[OFFSETS];           /* the servers' clocks may be ahead by
                                          these; a 0 ends the list */
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
    enum action lead, action; /* lead: what the client did just before action */
    uint8_t client, server, majority; /* majority: one bit per server */
    const char *violation;            /* NULL if both properties hold */
};

/* Writes every possible step from s; returns the number of steps. */
size_t model_steps(const struct model *m, const struct state *s,
                   struct step *steps);
struct state model_first(const struct model *m);
bool model_believes(const struct state *s, const struct client *c);

struct outcome {
    uint32_t states;
    size_t depth;          /* of the deepest state, or of the violation */
    const char *violation; /* NULL if none was found */
    bool full;             /* the states did not fit, so nothing is proved */
};

/* Searches breadth first, so that no shorter sequence of steps leads to a
 * violation than the one found. Prints the steps that lead to the violation if
 * trace is set. */
struct outcome model_search(const struct model *m, bool trace);

/* Explores m with and without the reductions. Sets *lost to the number of
 * unreduced states that differ from every reduced state in what other clients
 * can observe. */
struct outcome model_compare(const struct model *m, uint32_t *lost);

/* Prints a step in words. */
void model_tell(const struct state *before, const struct step *step);

#endif
