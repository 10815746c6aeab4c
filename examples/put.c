/*
 * A guarded write. The server that keeps the lock writes the value if, at that
 * moment, it still has our hold: one step, and no token is needed. A holder
 * that was stopped for too long is refused there, whatever it believes. For
 * backends that have HF_CAP_PUT: ZooKeeper, where the key is a node's path.
 *
 *     put zk://HOST
 */
#include <holdfast.h>
#include <stdio.h>

struct seller {
    hf_client *client;
    hf_lock *lock;
};

static int enter(struct seller *s, const char *url, hf_error *err)
{
    int rc = hf_open(url, NULL, &s->client, err);

    return rc ? rc
              : hf_lock_new(s->client, "shop", HF_CSTRING, NULL, &s->lock, err);
}

static int write_stock(const struct seller *s, const char *stock, hf_error *err)
{
    return hf_lock_put(s->lock, "shop-stock", HF_CSTRING, stock, 1, err);
}

static void leave(struct seller *s)
{
    hf_close(s->client); /* lets go of what it holds */
    hf_lock_free(s->lock);
}

/* The lock goes from the first to the second, and the first does not know. */
static int take_over(struct seller *second, hf_error *err)
{
    int rc = hf_break(second->client, "shop", HF_CSTRING, err);

    return rc ? rc : hf_lock_timed(second->lock, 10000, err);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "zk://localhost";
    struct seller first = {NULL}, second = {NULL};
    hf_error err = HF_ERROR_INIT;
    int rc = enter(&first, url, &err), late = 0;

    if (!rc)
        rc = enter(&second, url, &err);
    if (!rc)
        rc = hf_lock_timed(first.lock, 10000, &err);
    if (!rc)
        rc = write_stock(&first, "3", &err);
    if (!rc)
        rc = take_over(&second, &err);
    if (!rc)
        rc = write_stock(&second, "2", &err);
    if (!rc) {
        late = write_stock(&first, "9", &err);
        printf("a late write: %s, %s\n", hf_error_name(late), err.text);
    } else {
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    }
    leave(&first);
    leave(&second);
    return rc || late != HF_ELOST;
}
