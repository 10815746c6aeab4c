/*
 * Latches in a loop: in each round all workers start together, and the next
 * round begins when the last worker has finished. Here the workers are
 * processes.
 *
 * A latch that was not set is 0, and a wait for it returns at once. Therefore
 * the start latch of the next round is set *before* this round starts: no
 * worker can then find it unset. Two names alternate, so that a latch is set
 * again only when all its waiters are known to have returned.
 *
 * rounds [URL]
 */
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 4 };

static hf_client *client;
static hf_latch *start[2], *done;
static hf_error err = HF_ERROR_INIT;

static void must(int rc)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
        exit(1);
    }
}

static void open_latches(const char *url)
{
    must(hf_open(url, NULL, &client, &err));
    must(hf_latch_new(client, "even", HF_CSTRING, &start[0], &err));
    must(hf_latch_new(client, "odd", HF_CSTRING, &start[1], &err));
    must(hf_latch_new(client, "done", HF_CSTRING, &done, &err));
}

static void close_latches(void)
{
    hf_latch_free(start[0]);
    hf_latch_free(start[1]);
    hf_latch_free(done);
    hf_close(client);
}

static void work(const char *url)
{
    open_latches(url); /* the parent's handles are unusable here */
    for (int i = 0; i < ROUNDS; i++) {
        must(hf_latch_wait(start[i % 2], 30000, NULL, &err));
        /* the work of this round goes here */
        must(hf_latch_down(done, NULL, &err));
    }
    close_latches();
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    int status, failed = 0;

    open_latches(url);
    must(hf_latch_set(start[0], 1, &err));
    for (int i = 0; i < WORKERS; i++)
        if (fork() == 0)
            work(url);
    for (int i = 0; i < ROUNDS; i++) {
        must(hf_latch_set(done, WORKERS, &err));
        if (i + 1 < ROUNDS)
            must(hf_latch_set(start[(i + 1) % 2], 1, &err));
        must(hf_latch_down(start[i % 2], NULL, &err)); /* the workers start */
        must(hf_latch_wait(done, 30000, NULL, &err));
        printf("round %d: all done\n", i);
    }
    close_latches();
    while (wait(&status) > 0)
        failed |= status;
    return failed ? 1 : 0;
}
