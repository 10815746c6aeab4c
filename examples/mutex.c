/*
 * Acquires a lock, works, and releases it.
 *
 *     cc mutex.c $(pkg-config --cflags --libs holdfast) && ./a.out [URL]
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

static int work(hf_lock *lock, hf_error *err)
{
    uint64_t token;
    int rc = hf_lock_timed(lock, 10000, err);

    if (rc)
        return rc;
    /* Send the token with every request to the resource. */
    if (hf_lock_token(lock, &token) == 0)
        printf("held, token %" PRIu64 "\n", token);
    /* HF_ELOST here means that the lock was lost during the work, and another
     * holder may have worked in the meantime. Then only those changes count
     * whose token the resource has accepted. */
    return hf_lock_release(lock, err);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    int rc = hf_open(url, NULL, &client, &err);

    if (!rc)
        rc = hf_lock_new(client, "example", HF_CSTRING, NULL, &lock, &err);
    if (!rc)
        rc = work(lock, &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_lock_free(lock);
    hf_close(client);
    return rc ? 1 : 0;
}
