/*
 * A semaphore and a latch. Eight workers on any number of machines share three
 * licences; the process that started them waits until the last worker has
 * finished. Here the workers are processes, each with its own client.
 *
 *     workers [URL]
 */
#include <holdfast.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 8, LICENCES = 3 };

static int work(hf_lock *licence, hf_latch *done, hf_error *err)
{
    int rc = hf_lock_acquire(licence, NULL, err); /* one permit */

    if (rc)
        return rc;
    /* At most three workers are here at a time. The licence of a worker that
     * dies is returned. */
    rc = hf_lock_release(licence, err);
    return rc ? rc : hf_latch_down(done, NULL, err);
}

static int worker(const char *url)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_lock *licence = NULL;
    hf_latch *done = NULL;
    int rc = hf_open(url, NULL, &client, &err);

    opt.kind = HF_SEMAPHORE;
    opt.permits = LICENCES;
    if (!rc)
        rc = hf_lock_new(client, "licences", HF_CSTRING, &opt, &licence, &err);
    if (!rc)
        rc = hf_latch_new(client, "done", HF_CSTRING, &done, &err);
    if (!rc)
        rc = work(licence, done, &err);
    if (rc)
        fprintf(stderr, "worker: %s\n", err.text);
    hf_latch_free(done);
    hf_lock_free(licence);
    hf_close(client);
    return rc ? 1 : 0;
}

static int supervise(const char *url)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_latch *done = NULL;
    int rc = hf_open(url, NULL, &client, &err);

    if (!rc)
        rc = hf_latch_new(client, "done", HF_CSTRING, &done, &err);
    if (!rc)
        rc = hf_latch_set(done, WORKERS, &err);
    for (int i = 0; !rc && i < WORKERS; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(worker(url)); /* opens its own client */
        rc = pid < 0;
    }
    if (!rc)
        rc = hf_latch_wait(done, 30000, NULL, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    else
        printf("all %d are done\n", WORKERS);
    hf_latch_free(done);
    hf_close(client);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = supervise(argc > 1 ? argv[1] : "shm:"), status;

    while (wait(&status) > 0)
        rc |= status;
    return rc ? 1 : 0;
}
