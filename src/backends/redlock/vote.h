/*
 * Attempts, renewals and releases are sent to all servers, whose votes decide.
 * The first six functions are slots of the backend's table; struct rl_calls
 * brings replies and failures. A slot reports nothing itself:
 * hf__rl_vote_move() reports what is decided at once.
 */
#ifndef HF_RL_VOTE_H
#define HF_RL_VOTE_H

#include "server.h"

#define RL_PAUSE_MIN_MS 1
#define RL_PAUSE_MAX_MS 250
/* If the holder is the same for so long, every fourth attempt goes to all. */
#define RL_ALL_MS 400

/* The backend's state of a line (remote->impl). */
struct rl_lock {
    struct rl_hold *holds;   /* the newest, and those being released */
    bool careful;            /* the last attempt failed: ask one server first */
    uint16_t lacks;          /* servers without the holder's key */
    uint8_t polls;           /* number of careful attempts */
    uint64_t unheard;        /* hold id without a majority of votes; 0: none */
    hf__time unheard_at;     /* since when */
    hf__time seen_at;        /* since when the holder is the same */
    int64_t seen[HF__HOSTS]; /* numbers of its values */
};

int hf__rl_attach(void *, struct hf__remote *);
void hf__rl_detach(void *, struct hf__remote *);
int hf__rl_attempt(void *, struct hf__req *);
int hf__rl_release(void *, struct hf__req *);
int hf__rl_abandon(void *, struct hf__req *);
int hf__rl_renew(void *, struct hf__batch *);

/* Handles a reply: its first number, and its last. */
void hf__rl_voted(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
/* An error, or no reply will come. lost: the command may have been executed. */
void hf__rl_failed(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);

void hf__rl_vote_move(struct redlock *, hf__time now);
hf__time hf__rl_vote_timeout(const struct redlock *);

#endif
