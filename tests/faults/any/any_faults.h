/* Cases of a mutex that must pass with any server. */
#ifndef ANY_FAULTS_H
#define ANY_FAULTS_H

#include "../../lib/proc.h"
#include "../../lib/world.h"

/* The parameters of a server, defined by the program that runs the cases. */
extern const struct any_faults {
    int64_t op_ms;  /* the shortest op_timeout that the server can meet */
    int64_t ttl_ms; /* a lease that outlasts a lost reply */
    int64_t tick_ms;
    int rounds; /* how often two clients take turns */
    /* A reply is cut after 0, cut_step, 2 * cut_step ... bytes, always after
     * fewer than cut_most. */
    long cut_most, cut_step;
    int64_t cut_op_ms; /* op_timeout while replies are cut */
    /* A string that occurs in every request about the lock and in no
     * greeting. */
    const char *request;
    bool fair_only;
    /* Returns the number of holders that the server knows. */
    long (*holds)(struct world *);
    /* Ends the holds at the server. NULL if hf_break() must be used. */
    int (*take_away)(struct world *);
    /* Deletes what hf_lock_put() has written; returns whether that was `value`.
     * NULL if the server does not support it. */
    bool (*takes_value)(struct world *, const char *key, const char *value);
} any_faults;

/* A way to make the server refuse requests. */
struct any_refusal {
    const char *name; /* NULL at the end of the list */
    int code;
    const char *says; /* a part of the server's error message */
    void (*begin)(struct world *);
    void (*end)(struct world *);
    bool acquires, releases, renewals; /* what the server refuses */
    /* Run before and after the whole case, or NULL. */
    void (*prepare)(struct world *);
    void (*tidy)(struct world *);
    bool leaves_some; /* a refused request may have been executed partly */
    bool few;         /* runs with only some kinds of lock */
};
extern const struct any_refusal any_refusals[];
/* The TTL of clients in these cases: short, in case a refused request leaves
 * something at the server. */
extern const int64_t any_refused_ttl_ms;

/* loss.c: starts a process that holds the lock. */
void any_puppet(struct world *, struct proc *, int64_t ttl_ms);

/* A process that holds the lock is stopped until its lease has ended: another
 * client must get the lock within within_ms, and the old holder must learn of
 * its loss. */
void any_holder_stopped(struct world *, int64_t ttl_ms, int64_t within_ms);
/* The server is down for down_ms while a client acquires: the client must get
 * the lock within within_ms of the server's return. */
void any_restart_while_acquiring(struct world *, hf_lock *, int64_t down_ms,
                                 int64_t within_ms);
/* Asserts that a server that fails and returns causes exactly two lines in the
 * log. */
void any_outage_is_two_lines(struct world *);

/* The connection is cut and new ones are impossible for `ms`. A client that
 * acquires during that time must get the lock within within_ms after it. */
void any_gone_for(struct world *, enum proxy_mode, int64_t ttl_ms, int64_t ms,
                  int64_t within_ms);

/* cuts.c: acquires and releases the lock, whose client connects through the
 * proxy, while connections break after 0, step, 2 * step ... bytes of a reply,
 * always fewer than `most`. */
void any_cut_answers(struct world *, hf_lock *, enum proxy_mode, long most,
                     long step);
/* Cuts the connections of the waiter while it waits. Its client connects
 * through the proxy. */
void any_cut_waiter(struct world *, hf_lock *holder, hf_lock *waiter);

/* load.c: clients at these URLs contend for the lock while hurt() damages the
 * servers three times. Two clients must never hold the lock at once, tokens
 * must never decrease, and nothing may be left at the servers. */
#define ANY_LOAD 3
void any_load(struct world *, const char *const url[ANY_LOAD],
              bool (*hurt)(void));

/* names.c: ANY_NAME is a host name that only the test's resolver knows, with up
 * to two addresses. Sets the i-th of them to 127.0.0.host, or to ::1 if `host`
 * is 0. If `port` is 0 the name has no such address. */
#define ANY_NAME "moves.test"
void resolver_finds(int i, int host, int port);
/* Gives ANY_NAME only one address, at which the proxy listens. */
void resolver_leads_to(int host, const struct proxy *);
/* Cuts the proxy's connections and refuses new ones. */
void any_proxy_gone(struct proxy *);

#endif
