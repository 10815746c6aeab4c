/*
 * Latches in a loop: in each round all workers start together, and the next
 * round begins when the last one is done. Here they are processes.
 *
 * A latch that nobody has set counts 0, and whoever waits for it goes on. So
 * the start of the next round is set *before* this round starts: no worker can
 * be there too early. Two names take turns, so that one is set again only when
 * all who waited for it are known to have gone on.
 *
 *     rounds [URL]
 */
#include <holdfast.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 4 };

struct latches {
    hf_client *client;
    hf_latch *start[2], *done;
};

static int open_latches(struct latches *l, const char *url, hf_error *err)
{
    int rc = hf_open(url, NULL, &l->client, err);

    if (!rc)
        rc = hf_latch_new(l->client, "even", HF_CSTRING, &l->start[0], err);
    if (!rc)
        rc = hf_latch_new(l->client, "odd", HF_CSTRING, &l->start[1], err);
    if (!rc)
        rc = hf_latch_new(l->client, "done", HF_CSTRING, &l->done, err);
    return rc;
}

static int finish(struct latches *l, int rc, const hf_error *err)
{
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err->text);
    hf_latch_free(l->start[0]);
    hf_latch_free(l->start[1]);
    hf_latch_free(l->done);
    hf_close(l->client);
    return rc ? 1 : 0;
}

static int worker(const char *url)
{
    hf_error err = HF_ERROR_INIT;
    struct latches l = {NULL};
    int rc = open_latches(&l, url, &err);

    for (int round = 0; !rc && round < ROUNDS; round++) {
        rc = hf_latch_wait(l.start[round % 2], 30000, NULL, &err);
        /* the work of this round */
        if (!rc)
            rc = hf_latch_down(l.done, NULL, &err);
    }
    return finish(&l, rc, &err);
}

static int lead(const struct latches *l, int round, hf_error *err)
{
    int rc = hf_latch_set(l->done, WORKERS, err);

    if (!rc && round + 1 < ROUNDS)
        rc = hf_latch_set(l->start[(round + 1) % 2], 1, err);
    if (!rc)
        rc = hf_latch_down(l->start[round % 2], NULL, err); /* they go */
    return rc ? rc : hf_latch_wait(l->done, 30000, NULL, err);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    hf_error err = HF_ERROR_INIT;
    struct latches l = {NULL};
    int rc = open_latches(&l, url, &err), status;

    if (!rc)
        rc = hf_latch_set(l.start[0], 1, &err);
    for (int i = 0; !rc && i < WORKERS; i++) {
        if (fork() == 0)
            _exit(worker(url)); /* it opens a client of its own */
    }
    for (int round = 0; !rc && round < ROUNDS; round++) {
        rc = lead(&l, round, &err);
        printf("round %d: %s\n", round, rc ? "failed" : "all done");
    }
    rc = finish(&l, rc, &err);
    while (wait(&status) > 0)
        rc |= status;
    return rc ? 1 : 0;
}
