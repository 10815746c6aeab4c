/* Faults of one MariaDB server. The cases of a group share a server. */
#ifndef MYSQL_FAULTS_H
#define MYSQL_FAULTS_H

#include "../../lib/mysql_server.h"
#include "../any/any_faults.h"

#include <string.h>

enum {
    SOON_MS = 1500,   /* a notification has come by then */
    REPEAT_MS = 2000, /* and without one, a waiter has looked by itself */
    /* So late is a waiter behind one that does not come: a fair lock may wait
     * for the turn of that one. */
    PASS_MS = 2000,
    FAIR_PASS_MS = 3000,
    WAIT_MS = 60000,
};

/* What is said of all locks, for people. */
#define MY_LABEL "it's a \"label\""

extern struct my_server my_one;

/* Starts and ends my_one. */
int my_start(void);
void my_end(void);

#define my_do(...) my_server_do(&my_one, __VA_ARGS__)
#define my_number(...) my_server_number(&my_one, __VA_ARGS__)
/* The URL of the server with these options, "?a=b". Valid until the next. */
const char *my_url(const char *options);
/* A client, and a lock of it, which end with the case. */
hf_client *my_open(struct world *, const char *url);
/* hf_open() is refused with that code, and the text has each of the words. */
void my_open_refused(struct world *, const char *url, int code,
                     const char *first, const char *second, bool may_pass);
hf_lock *my_lock(struct world *, hf_client *, const char *name);
/* A semaphore has one permit. */
hf_lock *my_lock_as(struct world *, hf_client *, const char *name,
                    enum hf_kind);
/* Every kind of lock excludes one client for the other, and they see it. */
void my_all_kinds_work(struct world *, hf_client *, hf_client *);

#define MY_TABLES 4
extern const char *const my_tables[MY_TABLES];
void my_drop_tables(void);

/* The server's number of the n-th connection of the worker, the oldest first;
 * of those that wait, or that do not. 0: there is none. */
long my_thread(bool waits, int n);
/* So many wait at the server, or soon will. */
void my_has_waiters(long n);
/* hf_diagnose() of the client has this word in its finding on waiting. */
void my_diagnosis_says(hf_client *, enum hf_level, const char *word);

/* Another client on a thread of its own, which acquires a lock. */
struct my_waiter {
    hf_client *client;
    hf_lock *lock;
    pthread_t thread;
    hf_cancel cancel;
    hf_error err;
    uint32_t place; /* atomic: how many were granted before it, from 1 on */
    uint32_t back;  /* atomic: rc is set */
    uint32_t done;  /* atomic: it may release */
    int rc, release_rc;
};

/* Waits for a lock of its own client, or of another one. */
void my_waiter_start(struct my_waiter *, hf_client *, hf_lock *);
bool my_waiter_back(struct my_waiter *);
/* It releases what it has; joins it. */
void my_waiter_end(struct my_waiter *);

#endif
