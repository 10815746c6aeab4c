/*
 * Attempts, renewals and releases: each is sent to all servers, and their votes
 * decide. The first six functions are slots of the backend's table; the servers
 * report answers and failures (struct rl_calls). A slot reports nothing itself:
 * what is decided at once is reported by hf__rl_vote_move().
 */
#ifndef HF_RL_VOTE_H
#define HF_RL_VOTE_H

#include "server.h"

#define RL_PAUSE_MIN_MS 1
#define RL_PAUSE_MAX_MS 250
#define RL_ALL_MS 400 /* held for longer: now and then all get the attempt */

/* What is kept of each line of the core (remote->impl). */
struct rl_lock {
    struct rl_hold *holds;   /* the newest, and those that are being released */
    bool careful;            /* the last try has failed: one server first */
    uint16_t lacks;          /* servers without the key of the holder */
    uint8_t polls;           /* how many attempts there were */
    uint64_t unheard;        /* the hold id that no majority has answered, 0; */
    hf__time unheard_at;     /* since when */
    hf__time seen_at;        /* since when the same one holds it, */
    int64_t seen[HF__HOSTS]; /* by the numbers of its values */
};

int hf__rl_attach(void *, struct hf__remote *);
void hf__rl_detach(void *, struct hf__remote *);
int hf__rl_attempt(void *, struct hf__req *);
int hf__rl_release(void *, struct hf__req *);
int hf__rl_abandon(void *, struct hf__req *);
int hf__rl_renew(void *, struct hf__batch *);

/* The answer of a server has come: its first number, and the last. */
void hf__rl_voted(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
/* An error, or no answer will come; lost: the server may have done it. */
void hf__rl_failed(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);

void hf__rl_vote_move(struct redlock *, hf__time now);
hf__time hf__rl_vote_timeout(const struct redlock *);

#endif
