/*
 * Locks in a program with its own event loop: no call blocks, no thread waits.
 * A few workers, which are handles and not threads, take turns on one lock.
 *
 *     epoll [URL]
 */
#include <errno.h>
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { WORKERS = 3 };

struct worker {
    int number;
    int *left; /* workers that have not finished */
    hf_lock *lock;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Callbacks run inside hf_client_dispatch(), on its thread, and may call
 * holdfast again. */
static void on_released(void *arg, hf_lock *lock, int result)
{
    struct worker *w = arg;

    (void)lock;
    if (result)
        fail("release", hf_error_text(result));
    (*w->left)--;
}

static void on_acquired(void *arg, hf_lock *lock, int result)
{
    struct worker *w = arg;
    hf_error err = HF_ERROR_INIT;

    if (result)
        fail("acquire", hf_error_text(result));
    printf("worker %d has it\n", w->number);
    /* A real worker would start its work here and release afterwards. */
    if (hf_lock_release_async(lock, on_released, w, &err))
        fail("release", err.text);
}

static void start(hf_client *client, struct worker *w)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;

    opt.flags = HF_OWNER_HANDLE; /* the handle owns the lock, not a thread */
    if (hf_lock_new(client, "example", HF_CSTRING, &opt, &w->lock, &err) ||
        hf_lock_acquire_async(w->lock, NULL, on_acquired, w, &err))
        fail("start", err.text);
}

/* The event loop: the client's descriptor is one among the program's own. */
static void loop(hf_client *client, const int *left)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = client};
    int epfd = epoll_create1(EPOLL_CLOEXEC), fd = hf_client_fd(client), n;

    if (fd < 0)
        fail("hf_client_fd", hf_error_text(fd));
    if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
        fail("epoll", "cannot be set up");
    while (*left) {
        n = epoll_wait(epfd, &ev, 1, -1);
        if (n < 0 && errno != EINTR)
            fail("epoll", "cannot wait");
        if (n == 1 && ev.data.ptr == client)
            hf_client_dispatch(client);
    }
    close(epfd);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    struct worker workers[WORKERS];
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    int left = WORKERS;

    if (hf_open(url, NULL, &client, &err))
        fail("open", err.text);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.number = i, .left = &left};
        start(client, &workers[i]);
    }
    loop(client, &left);
    for (int i = 0; i < WORKERS; i++)
        hf_lock_free(workers[i].lock);
    hf_close(client);
    return 0;
}
