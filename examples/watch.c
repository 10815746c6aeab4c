/*
 * Shows changes as they happen. A client watches a name, and another client,
 * which in practice would be another process, acquires and releases it. The
 * watch reports that something may have changed; hf_inspect() shows the current
 * state. Redis reports changes if its setting notify-keyspace-events has KA.
 * Shared memory, Redlock, MySQL and MariaDB do not report them (HF_ENOTSUP).
 *
 *     watch URL
 */
#include <holdfast.h>
#include <poll.h>
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

static void on_change(void *arg, hf_watch *watch, const char *name,
                      size_t name_len)
{
    bool *changed = arg;

    (void)watch, (void)name, (void)name_len;
    *changed = true;
}

static bool is_held(hf_client *client)
{
    hf_error err = HF_ERROR_INIT;
    hf_info *info;
    bool held;

    must(hf_inspect(client, "example", HF_CSTRING, &info, &err), &err);
    held = info->holders_len > 0;
    hf_info_free(info);
    return held;
}

/* Several changes may cause only one call of on_change(), and it may be called
 * without a change. */
static void wait_until(hf_client *client, bool *changed, bool held)
{
    struct pollfd news = {hf_client_fd(client), POLLIN, 0};

    for (;;) {
        while (!*changed) {
            poll(&news, 1, -1);
            hf_client_dispatch(client);
        }
        *changed = false;
        if (is_held(client) == held)
            break;
    }
    puts(held ? "it is held now" : "it is free now");
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "etcd://localhost";
    hf_error err = HF_ERROR_INIT;
    hf_client *watcher, *other;
    bool changed = false;
    hf_watch *watch;
    hf_lock *lock;

    must(hf_open(url, NULL, &watcher, &err), &err);
    must(hf_watch_new(watcher, "example", HF_CSTRING, 0, on_change, &changed,
                      &watch, &err),
         &err);
    must(hf_open(url, NULL, &other, &err), &err);
    must(hf_lock_new(other, "example", HF_CSTRING, NULL, &lock, &err), &err);
    must(hf_lock_acquire(lock, NULL, &err), &err);
    wait_until(watcher, &changed, true);
    must(hf_lock_release(lock, &err), &err);
    wait_until(watcher, &changed, false);
    hf_lock_free(lock);
    hf_close(other);
    hf_watch_free(watch);
    hf_close(watcher);
    return 0;
}
