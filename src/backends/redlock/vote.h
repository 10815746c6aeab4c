/*
 * Attempts, renewals and releases are sent to all servers, whose votes decide.
 * The first six functions are slots of the backend's table; server.c passes
 * replies and failures on by struct rl_calls. A slot reports nothing to the
 * core: hf__rl_vote_move() reports what a slot has decided.
 */
#ifndef HF_RL_VOTE_H
#define HF_RL_VOTE_H

#include "server.h"

#define RL_PAUSE_MIN_MS 1
#define RL_PAUSE_MAX_MS 250
/* After a failed attempt, further attempts that may queue ask one server first.
 * When the holder has been the same for at least this long, every fourth of
 * them goes to all servers at once. */
#define RL_ALL_MS 400

/* The backend's state of a lock of this client (remote->impl). */
struct rl_lock {
    struct rl_hold *holds; /* the newest hold, and those being released */
    bool careful;          /* the last attempt failed: ask one server first */
    uint16_t lacks;        /* servers that lack the holder's key */
    uint8_t polls;         /* number of attempts that asked one server first */
    /* Hold id of an attempt on which no majority has voted, and since when; 0
     * if there is none. */
    uint64_t unheard;
    hf__time unheard_at;
    hf__time seen_at;        /* since when the holder has been the same */
    int64_t seen[HF__HOSTS]; /* each server's hash of the holder's value */
};

int hf__rl_attach(void *, struct hf__remote *);
void hf__rl_detach(void *, struct hf__remote *);
int hf__rl_attempt(void *, struct hf__req *);
int hf__rl_release(void *, struct hf__req *);
int hf__rl_abandon(void *, struct hf__req *);
int hf__rl_renew(void *, struct hf__batch *);

/* Handles a reply: `what` is its first number, `base` its last. */
void hf__rl_voted(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
/* Handles a command that was answered with an error, or to which no reply will
 * arrive. `lost` says that the command may have been executed. */
void hf__rl_failed(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);

/* Counts servers that have not replied in time as SLOW, and reports what is
 * decided. */
void hf__rl_vote_move(struct redlock *, hf__time now);

/* Returns when hf__rl_vote_move() must be called next. */
hf__time hf__rl_vote_timeout(const struct redlock *);

#endif
