/*
 * A guarded write. The server that keeps the lock writes the value only if the
 * caller still has its hold at that moment. Check and write are one step, so no
 * token is needed. The server refuses the write of a holder that was stopped
 * for too long, even if the holder does not know that it has lost the lock.
 * Three backends support this (HF_CAP_PUT): ZooKeeper, where the key is a
 * node's path, etcd, and MySQL or MariaDB, where the key is a row of
 * holdfast_values.
 *
 * put zk://HOST, or etcd://HOST, or mysql://USER@HOST/DATABASE
 */
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>

static hf_error err = HF_ERROR_INIT;

static void must(int rc)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
        exit(1);
    }
}

static int write_stock(hf_lock *lock, const char *stock)
{
    return hf_lock_put(lock, "shop-stock", HF_CSTRING, stock, 1, &err);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "zk://localhost";
    hf_client *a, *b;
    hf_lock *first, *second;
    int rc;

    must(hf_open(url, NULL, &a, &err));
    if (!(hf_client_caps(a, HF_MUTEX) & HF_CAP_PUT)) {
        fputs("there are no guarded writes here\n", stderr);
        hf_close(a);
        return 1;
    }
    must(hf_lock_new(a, "shop", HF_CSTRING, NULL, &first, &err));
    must(hf_open(url, NULL, &b, &err));
    must(hf_lock_new(b, "shop", HF_CSTRING, NULL, &second, &err));

    must(hf_lock_timed(first, 10000, &err));
    must(write_stock(first, "3"));
    /* In practice the first client is stopped, its session ends, and the second
     * client acquires the lock. Here the lock is broken instead; the first
     * client does not notice that, either. */
    must(hf_break(b, "shop", HF_CSTRING, &err));
    must(hf_lock_timed(second, 10000, &err));
    must(write_stock(second, "2"));
    rc = write_stock(first, "9"); /* the first client continues */
    printf("a late write: %s, %s\n", hf_error_name(rc), err.text);

    hf_lock_release(first, NULL); /* returns HF_ELOST, too */
    must(hf_lock_release(second, &err));
    hf_lock_free(first);
    hf_lock_free(second);
    hf_close(a);
    hf_close(b);
    return rc != HF_ELOST;
}
