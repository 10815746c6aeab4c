/*
 * Looks up the addresses of host names. A lookup blocks and cannot be ended. If
 * the backend's open needs a lookup, that lookup runs on the helper thread,
 * before there is any hold to keep. Every other lookup runs on its own thread,
 * which no thread waits for. That thread uses nothing of the client, which may
 * be freed before the lookup ends.
 */
#include "loop/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for the plugins that a name lookup may load. */
#define STACK_SIZE (256 * 1024)

/* A lookup, shared by its thread and the client. The last of the two to leave
 * frees it. It is not allocated with the client's hooks, which might not exist
 * after the client. */
struct job {
    struct hf__lookup found;
    uint32_t left; /* atomic: 1 once the thread has finished or the client has
                      given the job up */
    char hosts[];
};

static int resolve_look_up(const char *host, const char *port,
                           struct addrinfo **list)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    int rc = getaddrinfo(host, port, &hints, list);

    if (rc != EAI_NONAME && rc != EAI_ADDRFAMILY && rc != EAI_NODATA)
        return rc;
    /* AI_ADDRCONFIG finds no address on a machine that has only loopback, so
     * the lookup is repeated without it. */
    hints.ai_flags = AI_NUMERICSERV;
    return getaddrinfo(host, port, &hints, list);
}

/* Looks up all hosts of the job. They are separated by commas; the part after
 * the last colon is the port. */
static void resolve_look_up_all(struct job *job)
{
    struct hf__lookup *l = &job->found;
    bool any = false, no_memory = false;
    char *next, *port;

    for (char *host = job->hosts; host && l->len < HF__HOSTS; host = next) {
        int rc = EAI_NONAME;

        next = strchr(host, ',');
        if (next)
            *next++ = '\0';
        port = strrchr(host, ':');
        if (port) {
            *port++ = '\0';
            rc = resolve_look_up(host, port, &l->list[l->len]);
        }
        if (rc)
            snprintf(l->why, sizeof(l->why), "%.80s: %s", host,
                     gai_strerror(rc));
        any = any || !rc;
        no_memory = no_memory || rc == EAI_MEMORY;
        l->may_pass = l->may_pass || rc == EAI_AGAIN;
        l->len++;
    }
    l->code = any ? 0 : no_memory ? HF_ENOMEM : HF_EBACKEND;
}

static void *resolve_job_main(void *arg)
{
    struct job *job = arg;

    pthread_setname_np(pthread_self(), "hf-lookup");
    resolve_look_up_all(job);
    hf__lookup_leave(&job->found);
    return NULL;
}

/* Starts the thread of a job. All signals are blocked, because the program's
 * handlers must not run on it. */
static int resolve_start_thread(struct job *job)
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
    rc = pthread_create(&thread, &attr, resolve_job_main, job);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

struct hf__lookup *hf__lookup(const char *hosts, bool here)
{
    size_t size = strlen(hosts) + 1;
    struct job *job = calloc(1, sizeof(*job) + size);

    if (!job)
        return NULL;
    memcpy(job->hosts, hosts, size);
    if (here) {
        resolve_look_up_all(job);
        job->left = 1;
    } else if (resolve_start_thread(job)) {
        free(job);
        return NULL;
    }
    return &job->found;
}

bool hf__lookup_over(const struct hf__lookup *l)
{
    return __atomic_load_n(&((const struct job *)l)->left, __ATOMIC_ACQUIRE);
}

void hf__lookup_leave(struct hf__lookup *l)
{
    struct job *job = (struct job *)l;

    if (!job || !__atomic_exchange_n(&job->left, 1, __ATOMIC_ACQ_REL))
        return;
    for (size_t i = 0; i < l->len; i++)
        if (l->list[i])
            freeaddrinfo(l->list[i]);
    free(job);
}
