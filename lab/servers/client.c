#include "client.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/progress.h"

#include <stdio.h>
#include <sys/types.h>

enum { WARM_TIMES = 2000 };

void lab_check(int rc, const char *what, const hf_error *err)
{
    const char *text = err && err->text[0] ? err->text : hf_error_text(rc);

    if (rc != HF_OK)
        lab_die(cli_exit_of(rc), "cannot %s: %s", what, text);
}

hf_client *lab_open(const struct lab_place *place, int64_t ttl_ms)
{
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    char what[32];

    options.ttl_ms = ttl_ms;
    /* The timeouts for a temporary server are long, because many workers
     * connect to it at the same time, on few processors. */
    options.connect_timeout_ms = place->given ? 5000 : 30000;
    options.op_timeout_ms = options.connect_timeout_ms;
    snprintf(what, sizeof what, "open %s", place->name);
    lab_check(hf_open(place->url, &options, &client, &err), what, &err);
    return client;
}

int lab_caps(const struct lab_place *place, enum hf_kind kind)
{
    hf_client *client = lab_open(place, 0);
    int caps = hf_client_caps(client, kind);

    hf_close(client);
    return caps;
}

hf_lock *lab_lock(hf_client *client, const char *name,
                  const hf_lock_options *opt)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock = NULL;

    lab_check(hf_lock_new(client, name, HF_CSTRING, opt, &lock, &err),
              "make a lock", &err);
    return lock;
}

/* Acquires a lock repeatedly, because a JVM that has just started is ten times
 * slower than later. */
void lab_warm(struct lab *lab, const struct lab_place *place)
{
    static pid_t warm; /* pid of the ZooKeeper that is warm; a run has no other
                          ZooKeeper as a place */
    hf_client *client;
    hf_lock *lock;
    char name[96];

    if (place->engine != LAB_ZOOKEEPER || !place->pid || place->pid == warm)
        return;
    warm = place->pid;
    client = lab_open(place, 0);
    lab_name(lab, "warm", name);
    lock = lab_lock(client, name, NULL);
    for (int i = 0; i < WARM_TIMES; i++) {
        hf_error err = HF_ERROR_INIT;

        lab_check(hf_lock_acquire(lock, NULL, &err), "acquire", &err);
        lab_check(hf_lock_release(lock, &err), "release", &err);
        lab_tick(lab);
    }
    hf_lock_free(lock);
    hf_close(client);
}
