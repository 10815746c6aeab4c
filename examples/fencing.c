/*
 * A counter in a file, guarded twice: by the lock, so that one process at a
 * time works on it, and by the token, so that the file refuses a process that
 * has lost the lock and does not know it yet. docs/fencing.md explains
 * fence_enter().
 *
 *     fencing [URL [FILE]]
 */
#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/*
 * Begins an access to the resource that token_path belongs to. Waits until the
 * current access ends. Returns -1 and ESTALE if the token is lower than the
 * highest seen. Otherwise records the token and returns a descriptor: read or
 * write the resource, then close the descriptor. Until then other processes
 * wait here.
 */
static int fence_enter(const char *token_path, uint64_t token)
{
    char text[24] = "";
    uint64_t seen;
    ssize_t len;
    int saved, fd = open(token_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    while (flock(fd, LOCK_EX)) {
        if (errno != EINTR)
            goto fail;
    }
    len = pread(fd, text, sizeof(text) - 1, 0);
    if (len < 0)
        goto fail;
    if (len > 0 && (len != 21 || strspn(text, "0123456789") != 20)) {
        errno = EBADMSG; /* damaged, or another file: refuse */
        goto fail;
    }
    seen = strtoull(text, NULL, 10); /* 0 if the file is new */
    if (token < seen) {
        errno = ESTALE;
        goto fail;
    }
    /* Always 21 bytes in one sector: a crash leaves the old or new token. */
    snprintf(text, sizeof(text), "%020" PRIu64 "\n", token);
    if (token > seen && (pwrite(fd, text, 21, 0) != 21 || fdatasync(fd)))
        goto fail;
    return fd;

fail:
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

struct counter {
    const char *file;
    char token_file[512];
};

/* Reads the counter as the holder of that token. Returns 0, or -1 with errno;
 * ESTALE says that the token was refused. */
static int read_counter(const struct counter *c, uint64_t token, long *count)
{
    int fence = fence_enter(c->token_file, token);
    char text[32];
    FILE *f;

    if (fence < 0)
        return -1;
    *count = 0; /* used if there is no file yet */
    f = fopen(c->file, "re");
    if (f && fgets(text, sizeof(text), f))
        *count = strtol(text, NULL, 10);
    if (f)
        fclose(f);
    close(fence);
    return 0;
}

static int write_counter(const struct counter *c, uint64_t token, long count)
{
    int fence = fence_enter(c->token_file, token), rc = -1;
    FILE *f;

    if (fence < 0)
        return -1;
    f = fopen(c->file, "we");
    if (f) {
        fprintf(f, "%ld\n", count);
        rc = fclose(f);
    }
    close(fence);
    return rc;
}

static void complain(const struct counter *c, uint64_t token)
{
    if (errno == ESTALE)
        fprintf(stderr,
                "token %" PRIu64 ": %s has seen a higher one; if it came from "
                "another server, remove the file\n",
                token, c->token_file);
    else
        perror(c->file);
}

/* Adds one to the counter under the lock. *token is 0 if that has failed.
 * Returns 0 or an error code. */
static int count_up(hf_lock *lock, const struct counter *c, uint64_t *token,
                    hf_error *err)
{
    long count;
    int rc = hf_lock_acquire(lock, NULL, err);

    *token = 0;
    if (rc)
        return rc;
    /* Reading records the token, too: from here on, no earlier holder can
     * change the value that was read. */
    hf_lock_token(lock, token);
    if (read_counter(c, *token, &count) ||
        write_counter(c, *token, count + 1)) {
        complain(c, *token);
        *token = 0;
    } else {
        printf("token %" PRIu64 ": %s is %ld now\n", *token, c->file,
               count + 1);
    }
    return hf_lock_release(lock, err);
}

/* Writes with the token of an earlier hold, as a holder would that was stopped
 * while another client had the lock. Returns whether the write was refused. */
static bool is_refused(const struct counter *c, uint64_t old_token)
{
    if (write_counter(c, old_token, 1000000) == 0 || errno != ESTALE)
        return false;
    printf("token %" PRIu64 ": refused, it is lower than the highest seen\n",
           old_token);
    return true;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    struct counter counter = {.file = argc > 2 ? argv[2] : "counter"};
    uint64_t first = 0, second = 0;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    int rc = hf_open(url, NULL, &client, &err);

    snprintf(counter.token_file, sizeof(counter.token_file), "%s.token",
             counter.file);
    if (!rc)
        rc = hf_lock_new(client, "example", HF_CSTRING, NULL, &lock, &err);
    if (!rc)
        rc = count_up(lock, &counter, &first, &err);
    if (!rc && first)
        rc = count_up(lock, &counter, &second, &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_lock_free(lock);
    hf_close(client);
    return rc || !second || !is_refused(&counter, first);
}
