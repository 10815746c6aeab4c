/*
 * A catalogue that many clients read and one rewrites. After the rewrite the
 * writer becomes a reader, with no other writer in between, to check what it
 * wrote.
 *
 *     rwlock [URL]
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>

enum { READERS = 4, ROUNDS = 50 };

static int price[2] = {1, 1}; /* always equal; in practice a file */

struct job {
    hf_client *client;
    hf_error err;
    int result, torn;
};

static int open_lock(struct job *j, hf_lock **lock)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    opt.kind = HF_RWLOCK;
    return hf_lock_new(j->client, "catalogue", HF_CSTRING, &opt, lock, &j->err);
}

static void *read_it(void *arg)
{
    struct job *j = arg;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock *lock = NULL;
    int rc = open_lock(j, &lock);

    opt.mode = HF_READ;
    for (int i = 0; !rc && i < ROUNDS; i++) {
        rc = hf_lock_acquire(lock, &opt, &j->err);
        if (rc)
            break;
        j->torn += price[0] != price[1];
        rc = hf_lock_release(lock, &j->err);
    }
    j->result = rc;
    hf_lock_free(lock);
    return NULL;
}

static int rewrite(hf_lock *lock, struct job *j)
{
    int rc = hf_lock_acquire(lock, NULL, &j->err); /* HF_WRITE */

    if (rc)
        return rc;
    price[0]++;
    price[1]++;
    rc = hf_lock_downgrade(lock, &j->err);
    j->torn += price[0] != price[1];
    return rc ? rc : hf_lock_release(lock, &j->err);
}

static void *write_it(void *arg)
{
    struct job *j = arg;
    hf_lock *lock = NULL;
    int rc = open_lock(j, &lock);

    for (int i = 0; !rc && i < ROUNDS; i++)
        rc = rewrite(lock, j);
    j->result = rc;
    hf_lock_free(lock);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    struct job jobs[READERS + 1] = {{0}};
    pthread_t threads[READERS + 1];
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    int bad = 0;

    if (hf_open(url, NULL, &client, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i <= READERS; i++) {
        jobs[i].client = client;
        if (pthread_create(&threads[i], NULL, i ? read_it : write_it, &jobs[i]))
            return 1;
    }
    for (int i = 0; i <= READERS; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].result)
            fprintf(stderr, "%s\n", jobs[i].err.text);
        bad += jobs[i].result != 0 || jobs[i].torn;
    }
    hf_close(client);
    printf("price %d after %d rewrites, read by %d: %s\n", price[0], ROUNDS,
           READERS, bad ? "torn" : "never torn");
    return bad || price[0] != 1 + ROUNDS;
}
