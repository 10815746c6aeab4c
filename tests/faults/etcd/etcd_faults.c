/* etcd_faults [GROUP [PATTERN]] */
#include "etcd_faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct etcd_server etcd_one;

int etcd_group(void **state)
{
    (void)state;
    return etcd_server_start(&etcd_one);
}

int etcd_group_end(void **state)
{
    (void)state;
    etcd_server_end(&etcd_one);
    return 0;
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

    assert_true(WAIT_FOR((!n || entry(n - 1, key, sizeof(key))) &&
                         !entry(n, key, sizeof(key))));
}

static int begin(struct world *w)
{
    w->port = etcd_one.port;
    snprintf(w->near_url, sizeof(w->near_url), "%s", etcd_one.url);
    return 0;
}

/* Every entry, but none of the keys that say who a client is. */
static int take_away(struct world *w)
{
    static char keys[65536];
    char command[400];
    int rc;

    (void)w;
    rc = etcd_server_ctl(&etcd_one, "get '' --prefix --keys-only", keys,
                         sizeof(keys));
    for (char *key = strtok(keys, "\n"); key && !rc; key = strtok(NULL, "\n")) {
        if (strstr(key, "holdfast:client/"))
            continue;
        snprintf(command, sizeof(command), "del '%.300s'", key);
        rc = etcd_server_ctl(&etcd_one, command, NULL, 0);
    }
    return rc;
}

static int go_on(struct world *w)
{
    (void)w;
    return etcd_server_continue(&etcd_one);
}

static int stop(struct world *w)
{
    (void)w;
    return etcd_server_stop(&etcd_one);
}

/* What a failed case has left behind must not fail the next. */
static int mend(struct world *w)
{
    if (etcd_one.pid > 0 ? go_on(w) : etcd_server_again(&etcd_one))
        return -1;
    return take_away(w);
}

static long left(struct world *w)
{
    (void)w;
    return etcd_server_keys(&etcd_one, false);
}

static void print_left(struct world *w)
{
    (void)w;
    etcd_server_keys(&etcd_one, true);
}

int etcd_setup(void **state)
{
    static const struct world_server kind = {"etcd", begin, mend, left,
                                             print_left};

    return world_begin(state, &kind);
}

/* The oldest entry has it. */
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

    (void)w;
    snprintf(args, sizeof(args), "get %s --print-value-only", key);
    snprintf(line, sizeof(line), "%s\n", value);
    return !etcd_server_ctl(&etcd_one, args, out, sizeof(out)) &&
           (ctl("del %s", key), strcmp(out, line) == 0);
}

/* ---- late -------------------------------------------------------------------
 */

static void try_it(struct world *w, hf_lock *lock)
{
    assert_true(WAIT_FOR(hf_lock_timed(lock, 1000, &w->err) == 0));
}

/* An entry that is asked for and given up, and the request comes to the server
 * after all that followed it. */
static void test_entry_is_not_made_late(void **state)
{
    struct world *w = *state;
    hf_lock *lock = world_far(w, 30000, 1000);

    world_free_for_all(w, lock);
    proxy_hoard(w->proxy);
    assert_int_not_equal(hf_lock_timed(lock, 500, &w->err), 0);
    assert_true(proxy_hoarded(w->proxy) > 0);
    try_it(w, lock); /* over another connection */
    assert_int_equal(hf_lock_release(lock, &w->err), 0);
    world_is_clean(w);
    proxy_deliver(w->proxy);
    assert_true(NEVER_MS(left(w) > 0, 1000));
    world_free_for_all(w, world_near(w));
}

/* A release is repeated, the lock is taken again, and then the first release
 * comes to the server. */
static void test_release_is_not_done_late(void **state)
{
    struct world *w = *state;
    hf_lock *lock = world_far(w, 30000, 1000);

    try_it(w, lock);
    proxy_hoard(w->proxy);
    hf_lock_release(lock, &w->err); /* it may have to be repeated */
    assert_true(proxy_hoarded(w->proxy) > 0);
    try_it(w, lock);
    proxy_deliver(w->proxy);
    assert_true(NEVER_MS(left(w) != 1, 1000));
    assert_int_equal(hf_lock_renew(lock, 0, &w->err), 0);
    assert_int_equal(hf_lock_check(lock), 0);
    assert_int_equal(hf_lock_release(lock, &w->err), 0);
    world_is_clean(w);
}

static int run_entry_faults(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_entry_is_not_made_late, etcd_setup,
                                        world_end),
        cmocka_unit_test_setup_teardown(test_release_is_not_done_late,
                                        etcd_setup, world_end),
    };

    return cmocka_run_group_tests_name("etcd: entries", tests, etcd_group,
                                       etcd_group_end);
}

const struct any_faults any_faults = {
    .setup = etcd_setup,
    .begin = etcd_group,
    .end = etcd_group_end,
    .op_ms = 1000,
    .ttl_ms = 6000,
    .tick_ms = ETCD_TICK_MS,
    .rounds = 200,
    .request = "n/",
    .holds = holds,
    .is_waited_for = is_waited_for,
    .take_away = take_away,
    .stop = stop,
    .go_on = go_on,
    .takes_value = takes_value,
};

int main(int argc, char **argv)
{
    static const struct world_group groups[] = {
        {"cuts", run_any_cuts},          {"any", run_any_faults},
        {"loss", run_any_loss},          {"late", run_any_late},
        {"entry", run_entry_faults},     {"names", run_any_names},
        {"hostile", run_hostile_faults}, {"lease", run_lease_faults},
        {"net", run_net_faults},         {"strangers", run_stranger_faults},
        {"watch", run_watch_faults},
    };

    return world_main(argc, argv, groups, sizeof(groups) / sizeof(*groups));
}
