/*
 * Host names to addresses. The library gets addresses alone: of names it would
 * look up each of them again before each attempt to connect, with the client's
 * mutex held.
 *
 * A lookup blocks and cannot be ended. The first is the keeper's, before there
 * is anything to keep. Later ones have a thread of their own, for which nobody
 * waits: it knows nothing of the client, who may be gone before.
 */
#include "zookeeper.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STACK_SIZE (256 * 1024) /* name services come as plugins */

static int look_up(const char *host, const char *port, struct addrinfo **list)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    int rc = getaddrinfo(host, port, &hints, list);

    if (rc != EAI_NONAME && rc != EAI_ADDRFAMILY && rc != EAI_NODATA)
        return rc;
    /* A machine with loopback alone has no "configured" address. */
    hints.ai_flags = AI_NUMERICSERV;
    return getaddrinfo(host, port, &hints, list);
}

/* As the library takes them: no brackets, the last colon is the port's. */
static void append(struct zk_addrs *out, const struct addrinfo *a)
{
    char host[64], port[8];
    size_t len = strlen(out->text);
    int n;

    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    n = snprintf(out->text + len, sizeof(out->text) - len, "%s%s:%s",
                 len ? "," : "", host, port);
    if ((size_t)n >= sizeof(out->text) - len)
        out->text[len] = '\0'; /* enough of them */
    else
        out->len++;
}

/* The library goes two steps on after each failure: of an even number it would
 * never come to half of them. */
static void make_odd(struct zk_addrs *out)
{
    size_t len = strlen(out->text), first = strcspn(out->text, ",");

    if (out->len % 2)
        return;
    if (len + 1 + first < sizeof(out->text)) {
        out->text[len] = ',';
        memcpy(out->text + len + 1, out->text, first);
        out->text[len + 1 + first] = '\0';
    } else {
        *strrchr(out->text, ',') = '\0';
        out->len--;
    }
}

int hf__zk_lookup(const char *hosts, struct zk_addrs *out)
{
    bool no_memory = false;
    char host[300], *port;

    *out = (struct zk_addrs){0};
    for (size_t len; *hosts; hosts += len + (hosts[len] == ',')) {
        struct addrinfo *list = NULL;
        int rc = EAI_NONAME;

        len = strcspn(hosts, ",");
        if ((size_t)snprintf(host, sizeof(host), "%.*s", (int)len, hosts) <
                sizeof(host) &&
            (port = strrchr(host, ':'))) {
            *port++ = '\0';
            rc = look_up(host, port, &list);
        }
        if (rc)
            snprintf(out->why, sizeof(out->why), "%.80s: %s", host,
                     gai_strerror(rc));
        no_memory = no_memory || rc == EAI_MEMORY;
        for (const struct addrinfo *a = list; a; a = a->ai_next)
            append(out, a);
        if (list)
            freeaddrinfo(list);
    }
    if (!out->len)
        return no_memory ? HF_ENOMEM : HF_EBACKEND;
    make_odd(out);
    return 0;
}

/* ---- without waiting ----------------------------------------------------- */

/* Shared by its thread and the client; the one who finds that the other has
 * left frees it. Not of the client's memory, whose hooks end with it. */
struct zk_job {
    uint32_t left; /* atomic: one of them has, the thread with a result */
    struct zk_addrs addrs;
    char hosts[];
};

void hf__zk_lookup_leave(struct zk_job *job)
{
    if (job && __atomic_exchange_n(&job->left, 1, __ATOMIC_ACQ_REL))
        free(job);
}

static void *job_main(void *arg)
{
    struct zk_job *job = arg;

    pthread_setname_np(pthread_self(), "hf-lookup");
    hf__zk_lookup(job->hosts, &job->addrs);
    hf__zk_lookup_leave(job);
    return NULL;
}

/* The program's signals are not for it. */
static int start_thread(struct zk_job *job)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;
    int rc = pthread_attr_init(&attr);

    if (rc)
        return rc;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, &attr, job_main, job);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

struct zk_job *hf__zk_lookup_begin(const char *hosts)
{
    size_t size = strlen(hosts) + 1;
    struct zk_job *job = calloc(1, sizeof(*job) + size);

    if (!job)
        return NULL;
    memcpy(job->hosts, hosts, size);
    if (start_thread(job) == 0)
        return job;
    free(job);
    return NULL;
}

const struct zk_addrs *hf__zk_lookup_found(const struct zk_job *job)
{
    if (!job || !__atomic_load_n(&job->left, __ATOMIC_ACQUIRE))
        return NULL;
    return &job->addrs;
}
