/* Faults of one MariaDB server, which the cases of a group share. */
#ifndef MYSQL_FAULTS_H
#define MYSQL_FAULTS_H

#include "../../lib/mysql_server.h"
#include "../any/any_faults.h"

#include <string.h>

enum {
    SOON_MS = 1500,   /* a notification has arrived by then */
    REPEAT_MS = 2000, /* a waiter without one has polled by then */
    /* How late a waiter is behind one that does not take its turn; a fair lock
     * may wait for that turn. */
    PASS_MS = 2000,
    FAIR_PASS_MS = 3000,
    WAIT_MS = 60000,
};

/* The label of all locks, with characters that need quoting. */
#define MY_LABEL "it's a \"label\""

extern struct my_server my_one;

/* Starts and ends my_one. */
int my_start(void);
void my_end(void);

#define my_do(...) my_server_do(&my_one, __VA_ARGS__)
#define my_number(...) my_server_number(&my_one, __VA_ARGS__)
/* The URL of the server with these options, "?a=b". Valid until the next
 * call. */
const char *my_url(const char *options);
/* A client, and a lock of it, which end with the case. */
hf_client *my_open(struct world *, const char *url);
/* Asserts that hf_open() fails with that code and a text that has both
 * words. */
void my_open_refused(struct world *, const char *url, int code,
                     const char *first, const char *second, bool may_pass);
hf_lock *my_lock(struct world *, hf_client *, const char *name);
/* A semaphore has one permit. */
hf_lock *my_lock_as(struct world *, hf_client *, const char *name,
                    enum hf_kind);
/* Asserts that each kind of lock works between the two clients. */
void my_all_kinds_work(struct world *, hf_client *, hf_client *);

#define MY_TABLES 4
extern const char *const my_tables[MY_TABLES];
void my_drop_tables(void);

/* The thread id of the worker's n-th oldest connection, among those that wait
 * or those that do not. 0: there is none. */
long my_thread(bool waits, int n);
/* Waits until n clients wait at the server. */
void my_has_waiters(long n);
/* Asserts that hf_diagnose() of the client has this word in its finding on
 * waiting. */
void my_diagnosis_says(hf_client *, enum hf_level, const char *word);

/* A thread that acquires a lock. */
struct my_waiter {
    hf_client *client;
    hf_lock *lock;
    pthread_t thread;
    hf_cancel cancel;
    hf_error err;
    uint32_t place; /* atomic: its place in the order of grants, from 1 */
    uint32_t back;  /* atomic: rc is set */
    uint32_t done;  /* atomic: it may release */
    int rc, release_rc;
};

/* Waits for the lock of that client, or of another one if it is NULL. */
void my_waiter_start(struct my_waiter *, hf_client *, hf_lock *);
bool my_waiter_back(struct my_waiter *);
/* Lets the thread release what it holds, and joins it. */
void my_waiter_end(struct my_waiter *);

#endif
