/* Faults of one MariaDB server, which the cases of a group share. */
#ifndef MYSQL_FAULTS_H
#define MYSQL_FAULTS_H

#include "../../lib/mysql_server.h"
#include "../any/any_faults.h"

#include <string.h>

enum {
    SOON_MS = 1500,   /* a waiter that is notified acquires within this time */
    REPEAT_MS = 2000, /* a waiter that is not notified polls within this time */
    /* The time within which a waiter passes another waiter that does not take
     * its turn. With a fair lock that turn is longer. */
    PASS_MS = 2000,
    FAIR_PASS_MS = 3000,
    WAIT_MS = 60000,
};

/* The label of all locks; its characters need quoting. */
#define MY_LABEL "it's a \"label\""

extern struct my_server my_one;

/* Starts and ends my_one. */
int my_start(void);
void my_end(void);

#define my_do(...) my_server_do(&my_one, __VA_ARGS__)
#define my_number(...) my_server_number(&my_one, __VA_ARGS__)
/* Returns the server's URL with these options, written as "?a=b&c=d". Valid
 * until the next call. */
const char *my_url(const char *options);
/* my_open() opens a client, and my_lock() creates a lock of it; client and lock
 * end with the case. */
hf_client *my_open(struct world *, const char *url);
/* Asserts that hf_open() fails with this code and this may_pass, and with an
 * error message that contains both words. */
void my_open_refused(struct world *, const char *url, int code,
                     const char *first, const char *second, bool may_pass);
hf_lock *my_lock(struct world *, hf_client *, const char *name);
/* As my_lock(), for any kind of lock; a semaphore has one permit. */
hf_lock *my_lock_as(struct world *, hf_client *, const char *name,
                    enum hf_kind);
/* Asserts that each kind of lock works between the two clients. */
void my_all_kinds_work(struct world *, hf_client *, hf_client *);

#define MY_TABLES 4
extern const char *const my_tables[MY_TABLES];
void my_drop_tables(void);

/* Returns the thread id of the n-th oldest connection of the user
 * MY_SERVER_USER, counted from 0, among the connections that wait at the server
 * or, if `waits` is false, among the others; 0 if there is none. */
long my_thread(bool waits, int n);
/* Waits until n clients wait at the server. */
void my_has_waiters(long n);
/* Asserts that hf_diagnose() of the client has a finding named "waiting" that
 * has this level and contains this word. */
void my_diagnosis_says(hf_client *, enum hf_level, const char *word);

/* A thread that acquires a lock. */
struct my_waiter {
    hf_client *client;
    hf_lock *lock;
    pthread_t thread;
    hf_cancel cancel;
    hf_error err;
    uint32_t place; /* atomic: place in the order of grants, from 1 */
    uint32_t back;  /* atomic: rc is set */
    uint32_t done;  /* atomic: the thread may release */
    int rc, release_rc;
};

/* Starts a thread that acquires the lock. The client is only stored, and may be
 * NULL. */
void my_waiter_start(struct my_waiter *, hf_client *, hf_lock *);
bool my_waiter_back(struct my_waiter *);
/* Lets the thread release what it holds, and joins it. */
void my_waiter_end(struct my_waiter *);

#endif
