/*
 * Threads compete for a lock. Then the client's metrics are written as text for
 * Prometheus. The textfile collector of its node exporter can read this text
 * from a file.
 *
 * metrics [URL]
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, TIMES = 100 };

static hf_lock *lock;

static void *work(void *arg)
{
    hf_error err = HF_ERROR_INIT;
    int rc = 0;

    (void)arg;
    for (int i = 0; i < TIMES && !rc; i++) {
        rc = hf_lock_acquire(lock, NULL, &err);
        if (!rc)
            rc = hf_lock_release(lock, &err);
    }
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    return NULL;
}

/* There is one client here. With several clients, pass a series for each of
 * them in one call. */
static int print(hf_client *client, hf_error *err)
{
    const hf_label labels[] = {{"program", "example"}};
    hf_metrics metrics = HF_METRICS_INIT;
    const hf_series series = {&metrics, labels, 1};
    char *text;
    int rc = hf_client_metrics(client, &metrics, err), len;

    if (rc)
        return rc;
    len = hf_metrics_text(&series, 1, NULL, 0, err);
    if (len < 0)
        return len;
    text = malloc((size_t)len + 1);
    if (!text)
        return HF_ENOMEM;
    hf_metrics_text(&series, 1, text, (size_t)len + 1, NULL);
    fputs(text, stdout);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    pthread_t threads[THREADS];
    int started = 0, rc = hf_open(url, NULL, &client, &err);

    if (!rc)
        rc = hf_lock_new(client, "example-metrics", HF_CSTRING, NULL, &lock,
                         &err);
    while (!rc && started < THREADS &&
           !pthread_create(&threads[started], NULL, work, NULL))
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (!rc)
        rc = print(client, &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_lock_free(lock);
    hf_close(client);
    return rc ? 1 : 0;
}
