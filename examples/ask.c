/*
 * A holder keeps its lock until another client asks for it. Then
 * hf_client_dispatch() reports HF_EVENT_WANTED, and the holder finishes its
 * work and releases the lock, although nothing forces it to. Every backend
 * except Redlock supports this (HF_CAP_WANTED). On ZooKeeper, Curator's Revoker
 * asks in the same way.
 *
 *     ask zk://HOST
 */
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int rc, const hf_error *err)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err->text);
        exit(1);
    }
}

static void on_event(void *arg, const hf_event *event)
{
    bool *wanted = arg;

    *wanted = *wanted || event->type == HF_EVENT_WANTED;
}

/* Another client; in practice it would run on another machine. */
static void *ask_for_it(void *url)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    hf_lock *lock;

    must(hf_open(url, NULL, &client, &err), &err);
    must(hf_lock_new(client, "example", HF_CSTRING, NULL, &lock, &err), &err);
    if (hf_lock_try(lock, &err) == HF_EBUSY) {
        must(hf_ask(client, "example", HF_CSTRING, &err), &err);
        must(hf_lock_timed(lock, 60000, &err), &err);
    }
    puts("got it");
    must(hf_lock_release(lock, &err), &err);
    hf_lock_free(lock);
    hf_close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    char *url = argc > 1 ? argv[1] : "zk://localhost";
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    struct pollfd news = {-1, POLLIN, 0};
    bool wanted = false;
    hf_client *client;
    hf_lock *lock;
    pthread_t other;

    opt.on_event = on_event;
    opt.event_arg = &wanted;
    must(hf_open(url, &opt, &client, &err), &err);
    if (!(hf_client_caps(client, HF_MUTEX) & HF_CAP_WANTED)) {
        fputs("holders cannot be asked here\n", stderr);
        hf_close(client);
        return 1;
    }
    must(hf_lock_new(client, "example", HF_CSTRING, NULL, &lock, &err), &err);
    must(hf_lock_acquire(lock, NULL, &err), &err);
    if (pthread_create(&other, NULL, ask_for_it, url))
        return 1;
    news.fd = hf_client_fd(client);
    while (!wanted) {
        poll(&news, 1, -1); /* or do a step of work and call poll with 0 */
        hf_client_dispatch(client);
    }
    puts("another client wants it: released");
    must(hf_lock_release(lock, &err), &err);
    pthread_join(other, NULL);
    hf_lock_free(lock);
    hf_close(client);
    return 0;
}
