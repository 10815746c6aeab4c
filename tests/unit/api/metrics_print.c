/* metrics_print URL: prints the metrics of two clients that have each acquired
 * and released a lock, for metrics_text.py. It runs in a locale with a decimal
 * comma, if the machine has one. */
#include <holdfast.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const hf_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void use(hf_client *c, int times, hf_error *err)
{
    hf_lock *lock;

    if (hf_lock_new(c, "print", HF_CSTRING, NULL, &lock, err))
        fail(err);
    for (int i = 0; i < times; i++)
        if (hf_lock_acquire(lock, NULL, err) || hf_lock_release(lock, err))
            fail(err);
    hf_lock_free(lock);
}

int main(int argc, char **argv)
{
    static char text[65536];
    static const hf_label first[] = {
        {"backend", "shm"},
        {"name", "a\\b \"c\"\nd\te \xc3\xa4 \xff {x=\"y\"}"}};
    static const hf_label second[] = {{"backend", "shm"}, {"name", ""}};
    hf_metrics m[2] = {HF_METRICS_INIT, HF_METRICS_INIT};
    const hf_series series[] = {{&m[0], first, 2}, {&m[1], second, 2}};
    hf_error err = HF_ERROR_INIT;

    if (argc != 2)
        return 2;
    setlocale(LC_ALL, "de_DE.UTF-8");
    for (int i = 0; i < 2; i++) {
        hf_client *c;

        if (hf_open(argv[1], NULL, &c, &err))
            fail(&err);
        use(c, i + 1, &err);
        if (hf_client_metrics(c, &m[i], &err))
            fail(&err);
        hf_close(c);
    }
    /* Each field gets a different number. The histogram is made up too. */
    m[0].busy = 3;
    m[0].timed_out = 4;
    m[0].cancelled = 5;
    m[0].failed = 6;
    m[0].lost = 7;
    m[0].renewed = 8;
    m[0].renewals_failed = 9;
    m[0].disconnects = 10;
    m[0].reconnects = 11;
    m[0].held = 12;
    m[0].waiting = UINT64_MAX;
    m[0].granted = 1000;
    for (unsigned i = 0; i < HF_WAIT_BUCKETS; i++)
        m[0].wait[i].count = 10 * i;
    m[0].wait_sum_ns = 1500000001;
    if (hf_metrics_text(series, 2, text, sizeof(text), &err) < 0)
        fail(&err);
    return fputs(text, stdout) < 0;
}
