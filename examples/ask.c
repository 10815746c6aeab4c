/*
 * A lock that stays with whoever has it until somebody asks for it. The holder
 * hears HF_EVENT_WANTED from hf_client_dispatch(), finishes what it is at, and
 * lets go; nothing but its own good will makes it. For backends that have
 * HF_CAP_WANTED: ZooKeeper, where Curator's Revoker asks in the same way.
 *
 *     ask zk://HOST
 */
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct keeper {
    hf_client *client;
    hf_lock *lock;
    bool wanted;
    int result;
};

static void on_event(void *arg, const hf_event *event)
{
    struct keeper *k = arg;

    k->wanted = k->wanted || event->type == HF_EVENT_WANTED;
}

static void *keep_until_wanted(void *arg)
{
    struct keeper *k = arg;
    struct pollfd news = {hf_client_fd(k->client), POLLIN, 0};

    while (!k->wanted && hf_lock_check(k->lock) == 0) {
        poll(&news, 1, 1000); /* or a step of its work, and 0 for 1000 */
        hf_client_dispatch(k->client);
    }
    if (k->wanted)
        puts("somebody wants it: let go");
    k->result = hf_lock_release(k->lock, NULL);
    return NULL;
}

static int keep(const char *url, struct keeper *k, hf_error *err)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_lock_options by_handle = HF_LOCK_OPTIONS_INIT;
    int rc;

    opt.on_event = on_event;
    opt.event_arg = k;
    by_handle.flags = HF_OWNER_HANDLE; /* another thread releases it */
    rc = hf_open(url, &opt, &k->client, err);
    if (!rc)
        rc = hf_lock_new(k->client, "example", HF_CSTRING, &by_handle, &k->lock,
                         err);
    return rc ? rc : hf_lock_acquire(k->lock, NULL, err);
}

static int ask(const char *url, hf_error *err)
{
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    int rc = hf_open(url, NULL, &client, err);

    if (!rc)
        rc = hf_lock_new(client, "example", HF_CSTRING, NULL, &lock, err);
    if (!rc)
        rc = hf_lock_try(lock, err);
    if (rc == HF_EBUSY)
        rc = hf_ask(client, "example", HF_CSTRING, err);
    if (!rc)
        rc = hf_lock_timed(lock, 10000, err);
    if (!rc)
        puts("got it");
    hf_close(client); /* lets go of what is held */
    hf_lock_free(lock);
    return rc;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "zk://localhost";
    struct keeper k = {0};
    hf_error err = HF_ERROR_INIT;
    pthread_t thread;
    int rc = keep(url, &k, &err);

    if (!rc && pthread_create(&thread, NULL, keep_until_wanted, &k) == 0) {
        rc = ask(url, &err);
        if (rc)
            hf_lock_release(k.lock, NULL); /* it waits for nothing */
        pthread_join(thread, NULL);
    }
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_close(k.client);
    hf_lock_free(k.lock);
    return rc || !k.wanted || k.result;
}
