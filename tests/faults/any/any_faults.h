/* What has to go well with any server: cases of a mutex in its world. */
#ifndef ANY_FAULTS_H
#define ANY_FAULTS_H

#include "../../lib/proc.h"
#include "../../lib/world.h"

/* What the program that runs them has. */
extern const struct any_faults {
    int64_t op_ms;  /* an op_timeout that the server keeps, and no more */
    int64_t ttl_ms; /* a lease that a lost answer does not end */
    int64_t tick_ms;
    int rounds; /* of two that take turns */
    /* How many bytes of an answer pass before the connection breaks: 0, step,
     * ... up to most. */
    long cut_most, cut_step;
    int64_t cut_op_ms; /* the op_timeout meanwhile */
    /* What is in every request about the lock, and in no greeting. */
    const char *request;
    bool fair_only;
    /* The number of holders, as the server knows them; does a client wait? */
    long (*holds)(struct world *);
    /* Ends the holds; NULL: by hf_break() */
    int (*take_away)(struct world *);
    /* Deletes what hf_lock_put() has written; was it that? NULL: there is no
     * such verb. */
    bool (*takes_value)(struct world *, const char *key, const char *value);
} any_faults;

/* How the server is brought to refuse what it is asked. */
struct any_refusal {
    const char *name; /* NULL: there are no more */
    int code;
    const char *says; /* part of the server's words */
    void (*begin)(struct world *);
    void (*end)(struct world *);
    bool acquires, releases, renewals; /* what it refuses */
    /* Before all of the case, and after it; or NULL. */
    void (*prepare)(struct world *);
    void (*tidy)(struct world *);
    bool leaves_some; /* a refused request may have been done in part */
    bool few;         /* it is tried with some kinds of lock only */
};
extern const struct any_refusal any_refusals[];
/* A lease that ends soon, where a refused request may leave something. */
extern const int64_t any_refused_ttl_ms;

/* loss.c: a process of its own, which holds the lock. */
void any_puppet(struct world *, struct proc *, int64_t ttl_ms);

/* A process that holds the lock is stopped until its lease has ended: another
 * client has the lock within that time, and the late holder knows it. */
void any_holder_stopped(struct world *, int64_t ttl_ms, int64_t within_ms);
/* The server is down for some time while a client acquires: it has the lock
 * within that time after. */
void any_restart_while_acquiring(struct world *, hf_lock *, int64_t down_ms,
                                 int64_t within_ms);
/* A server that goes and comes back is two lines of the log. */
void any_outage_is_two_lines(struct world *);

/* The connection is cut, and for so many ms there is no other: who wants the
 * lock meanwhile has it within that time after. */
void any_gone_for(struct world *, enum proxy_mode, int64_t ttl_ms, int64_t ms,
                  int64_t within_ms);

/* cuts.c: the lock, which is behind the proxy, is acquired and released
 * while connections break after 0, step, ... bytes of an answer. */
void any_cut_answers(struct world *, hf_lock *, enum proxy_mode, long most,
                     long step);
/* The waiter's, which is behind it, break while it waits. */
void any_cut_waiter(struct world *, hf_lock *holder, hf_lock *waiter);

/* load.c: clients at these URLs contend for the lock while its servers are
 * hurt, three times. Never are two inside, no token falls, nothing is left. */
#define ANY_LOAD 3
void any_load(struct world *, const char *const url[ANY_LOAD],
              bool (*hurt)(void));

/* names.c: the name that its resolver knows; the i-th of two addresses is
 * 127.0.0.host, or ::1 if that is 0; port 0: there is no more. */
#define ANY_NAME "moves.test"
void resolver_finds(int i, int host, int port);
/* To one address only, at which the proxy listens. */
void resolver_leads_to(int host, const struct proxy *);
/* Waits until the proxy has no connection. */
void any_proxy_gone(struct proxy *);

#endif
