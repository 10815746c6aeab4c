/*
 * Several locks of different kinds at once, all or none. To write a report, a
 * thread needs three locks: the catalogue for reading, two of four processors,
 * and the report itself. Two threads name the locks in opposite orders and
 * cannot deadlock.
 *
 * mixed [URL]
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPORTS = 20 };

static hf_client *client;
static int reports; /* guarded by the mutex; in practice a file */

static void must(int rc, const hf_error *err)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err->text);
        exit(1);
    }
}

static hf_lock *make(const char *name, enum hf_kind kind, uint32_t permits)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;

    opt.kind = kind;
    opt.permits = permits;
    must(hf_lock_new(client, name, HF_CSTRING, &opt, &lock, &err), &err);
    return lock;
}

static void *work(void *is_second)
{
    hf_part catalogue = {make("catalogue", HF_RWLOCK, 0), HF_READ, 0};
    hf_part processors = {make("cpus", HF_SEMAPHORE, 4), HF_WRITE, 2};
    hf_part report = {make("report", HF_MUTEX, 0), HF_WRITE, 0};
    const hf_part orders[2][3] = {{catalogue, processors, report},
                                  {report, processors, catalogue}};
    const hf_part *parts = orders[is_second ? 1 : 0];
    hf_error err = HF_ERROR_INIT;

    for (int i = 0; i < REPORTS; i++) {
        must(hf_lock_acquire_all(parts, 3, NULL, &err), &err);
        reports++;
        must(hf_lock_release_all(parts, 3, &err), &err);
    }
    for (int i = 0; i < 3; i++)
        hf_lock_free(parts[i].lock);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    hf_error err = HF_ERROR_INIT;
    pthread_t second;

    must(hf_open(url, NULL, &client, &err), &err);
    if (pthread_create(&second, NULL, work, "second"))
        return 1;
    work(NULL);
    pthread_join(second, NULL);
    hf_close(client);
    printf("%d reports\n", reports);
    return reports != 2 * REPORTS;
}
