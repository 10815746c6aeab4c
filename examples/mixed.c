/*
 * Several locks of different kinds at once, all or none: a report reads the
 * catalogue, takes two of four processors, and is written by one at a time.
 * Two threads name them in opposite orders; neither waits for ever.
 *
 *     mixed [URL]
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>

enum { CATALOGUE, PROCESSORS, REPORT, PARTS };
enum { REPORTS = 20 };

static int reports; /* elsewhere a file: the mutex is for it */

struct clerk {
    hf_client *client;
    int backwards;
    int result;
    hf_error err;
};

static int make(struct clerk *c, hf_part parts[PARTS])
{
    static const char *const names[PARTS] = {"catalogue", "cpus", "report"};
    hf_lock_options opt[PARTS] = {HF_LOCK_OPTIONS_INIT, HF_LOCK_OPTIONS_INIT,
                                  HF_LOCK_OPTIONS_INIT};
    int rc = 0;

    opt[CATALOGUE].kind = HF_RWLOCK;
    opt[PROCESSORS].kind = HF_SEMAPHORE;
    opt[PROCESSORS].permits = 4;
    for (int i = 0; !rc && i < PARTS; i++) {
        hf_part *part = &parts[c->backwards ? PARTS - 1 - i : i];

        part->mode = i == CATALOGUE ? HF_READ : HF_WRITE;
        part->permits = i == PROCESSORS ? 2 : 0;
        rc = hf_lock_new(c->client, names[i], HF_CSTRING, &opt[i], &part->lock,
                         &c->err);
    }
    return rc;
}

static void *work(void *arg)
{
    hf_part parts[PARTS] = {{NULL}};
    struct clerk *c = arg;
    int rc = make(c, parts);

    for (int i = 0; !rc && i < REPORTS; i++) {
        rc = hf_lock_acquire_all(parts, PARTS, NULL, &c->err);
        if (rc)
            break;
        reports++;
        rc = hf_lock_release_all(parts, PARTS, &c->err);
    }
    c->result = rc;
    for (int i = 0; i < PARTS; i++)
        hf_lock_free(parts[i].lock);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    struct clerk clerks[2] = {{.backwards = 0}, {.backwards = 1}};
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    pthread_t thread;

    if (hf_open(url, NULL, &client, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    clerks[0].client = clerks[1].client = client;
    if (pthread_create(&thread, NULL, work, &clerks[1]))
        return 1;
    work(&clerks[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        if (clerks[i].result)
            fprintf(stderr, "%s\n", clerks[i].err.text);
    hf_close(client);
    printf("%d reports\n", reports);
    return reports != 2 * REPORTS;
}
