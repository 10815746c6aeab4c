/* etcd_faults [GROUP [PATTERN]] */
#include "etcd_faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

GROUP("entry");

struct etcd_server etcd_one;

static int start(void)
{
    return etcd_server_start(&etcd_one);
}

static void end(void)
{
    etcd_server_end(&etcd_one);
}

void ctl(const char *fmt, ...)
{
    char args[400], out[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(args, sizeof(args), fmt, ap);
    va_end(ap);
    if (etcd_server_ctl(&etcd_one, args, out, sizeof(out)))
        fail_msg("etcdctl %s: %s", args, out);
}

bool entry(unsigned n, char *key, size_t size)
{
    static char keys[65536];
    char *at;

    if (etcd_server_ctl(&etcd_one,
                        "get n/ --prefix --keys-only --sort-by=CREATE", keys,
                        sizeof(keys)))
        return false;
    for (at = strtok(keys, "\n"); at && n; at = strtok(NULL, "\n"))
        n--;
    snprintf(key, size, "%s", at ? at : "");
    return at;
}

void has_entries(unsigned n)
{
    char key[300];

    COMES((!n || entry(n - 1, key, sizeof(key))) &&
          !entry(n, key, sizeof(key)));
}

static int begin(struct world *w)
{
    w->process = &etcd_one.process;
    w->port = etcd_one.port;
    snprintf(w->near_url, sizeof(w->near_url), "%s", etcd_one.url);
    return 0;
}

/* Deletes every entry, but none of the keys that identify clients. */
static int take_away(struct world *w)
{
    static char keys[65536];
    int rc = etcd_server_ctl(&etcd_one, "get '' --prefix --keys-only", keys,
                             sizeof(keys));

    for (char *key = strtok(keys, "\n"); key && !rc; key = strtok(NULL, "\n")) {
        if (strstr(key, "holdfast:client/"))
            continue;
        rc = etcd_server_ctl(&etcd_one, text_of("del '%.300s'", key), NULL, 0);
    }
    return rc;
}

static int mend(struct world *w)
{
    if (etcd_one.pid > 0 ? server_continue(w->process)
                         : etcd_server_again(&etcd_one))
        return -1;
    return take_away(w);
}

static long left(struct world *w)
{
    return etcd_server_keys(&etcd_one, false);
}

static void print_left(struct world *w)
{
    etcd_server_keys(&etcd_one, true);
}

/* Returns 1 if the lock has an entry: the oldest entry holds it. */
static long holds(struct world *w)
{
    return left(w) > 0;
}

static bool is_waited_for(struct world *w)
{
    return left(w) == 2;
}

static bool takes_value(struct world *w, const char *key, const char *value)
{
    char args[64], out[64] = "", line[64];

    snprintf(args, sizeof(args), "get %s --print-value-only", key);
    snprintf(line, sizeof(line), "%s\n", value);
    return !etcd_server_ctl(&etcd_one, args, out, sizeof(out)) &&
           (ctl("del %s", key), strcmp(out, line) == 0);
}

static void try_it(struct world *w, hf_lock *lock)
{
    COMES(hf_lock_timed(lock, 1000, &w->err) == 0);
}

/* The client gives up creating an entry, and that request reaches the server
 * after all later ones: it must not create the entry. */
CASE(test_entry_is_not_made_late)
{
    hf_lock *lock = world_far(w, 30000, 1000);

    world_free_for_all(w, lock);
    proxy_hoard(w->proxy);
    FAILS(hf_lock_timed(lock, 500, &w->err));
    assert_true(proxy_hoarded(w->proxy) > 0);
    try_it(w, lock); /* uses another connection */
    OK(hf_lock_release(lock, &w->err));
    world_is_clean(w);
    proxy_deliver(w->proxy);
    assert_true(NEVER_MS(left(w) > 0, 1000));
    world_free_for_all(w, world_near(w));
}

/* A release is retried and the lock acquired again. Then the first release
 * reaches the server: it must not end the new hold. */
CASE(test_release_is_not_done_late)
{
    hf_lock *lock = world_far(w, 30000, 1000);

    try_it(w, lock);
    proxy_hoard(w->proxy);
    hf_lock_release(lock, &w->err); /* may fail and be retried later */
    assert_true(proxy_hoarded(w->proxy) > 0);
    try_it(w, lock);
    proxy_deliver(w->proxy);
    assert_true(NEVER_MS(left(w) != 1, 1000));
    OK(hf_lock_renew(lock, 0, &w->err));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, &w->err));
}

const struct any_faults any_faults = {
    .op_ms = 1000,
    .ttl_ms = 6000,
    .tick_ms = ETCD_TICK_MS,
    .rounds = 200,
    .cut_most = 200,
    .cut_step = 9,
    .cut_op_ms = 5000,
    .request = "n/",
    .holds = holds,
    .take_away = take_away,
    .takes_value = takes_value,
};

static const struct world_server etcd = {
    "etcd", start, end, begin, mend, left, print_left, is_waited_for};

int main(int argc, char **argv)
{
    return world_main(argc, argv, &etcd);
}
