/*
 * Several locks at once. Two threads move money between the same two accounts
 * in opposite directions. Each thread names the locks in its own order, and the
 * threads still cannot deadlock.
 *
 *     many [URL]
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>

enum { TRANSFERS = 500, MONEY = 1000 };

static const char *const names[2] = {"account/anna", "account/ben"};
static int balance[2] = {MONEY, MONEY}; /* in practice a database table */

struct clerk {
    hf_client *client;
    int from;
    int result;
    hf_error err;
};

static int transfer(const hf_part *parts, struct clerk *c)
{
    int rc = hf_lock_acquire_all(parts, 2, NULL, &c->err);

    if (rc)
        return rc;
    balance[c->from]--;
    balance[!c->from]++;
    return hf_lock_release_all(parts, 2, &c->err);
}

static void *work(void *arg)
{
    struct clerk *c = arg;
    hf_part parts[2] = {{NULL}, {NULL}};
    int rc = 0;

    for (int i = 0; !rc && i < 2; i++)
        rc = hf_lock_new(c->client, names[i ? !c->from : c->from], HF_CSTRING,
                         NULL, &parts[i].lock, &c->err);
    for (int i = 0; !rc && i < TRANSFERS; i++)
        rc = transfer(parts, c);
    c->result = rc;
    hf_lock_free(parts[0].lock);
    hf_lock_free(parts[1].lock);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    struct clerk clerks[2] = {{.from = 0}, {.from = 1}};
    pthread_t threads[2];
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    int status = 0;

    if (hf_open(url, NULL, &client, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        clerks[i].client = client;
        if (pthread_create(&threads[i], NULL, work, &clerks[i]))
            return 1;
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        if (clerks[i].result) {
            fprintf(stderr, "%s\n", clerks[i].err.text);
            status = 1;
        }
    }
    hf_close(client);
    printf("%s %d, %s %d\n", names[0], balance[0], names[1], balance[1]);
    return status || balance[0] != MONEY || balance[1] != MONEY;
}
