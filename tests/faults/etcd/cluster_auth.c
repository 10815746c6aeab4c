/* Users, tokens, rights, certificates. */
#include "cluster.h"

#include "../../lib/diagnosis.h"
#include "../../lib/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void ctl(const char *args)
{
    char out[400];

    if (etcd_server_ctl(etcd_locked, args, out, sizeof(out)))
        fail_msg("etcdctl %s: %s", args, out);
}

/* ---- what the server refuses (refusals.c) -------------------------------
 */

const int64_t any_refused_ttl_ms = 10000;

static void forbid(struct world *w)
{
    (void)w;
    ctl("role revoke-permission work p/ --prefix=true");
}

static void allow(struct world *w)
{
    (void)w;
    ctl("role grant-permission work --prefix=true readwrite p/");
}

static void forbid_writing(struct world *w)
{
    (void)w;
    ctl("role grant-permission work --prefix=true read p/");
}

static bool is_full(void)
{
    return etcd_server_ctl(etcd_locked, "put full x", NULL, 0) != 0;
}

static void fill(struct world *w)
{
    char args[96];
    int fd;

    (void)w;
    snprintf(args, sizeof(args), "put full < %s/full", etcd_locked->dir);
    fd = open(strchr(args, '/'), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, 1200000), 0);
    close(fd);
    for (int i = 0; i < 4; i++)
        etcd_server_ctl(etcd_locked, args, NULL, 0);
    assert_true(WAIT_FOR(is_full()));
}

/* What it has deleted takes room until it is told to forget it. */
static void relieve(struct world *w)
{
    char out[400], args[64];
    const char *at;

    (void)w;
    ctl("del full");
    assert_int_equal(
        etcd_server_ctl(etcd_locked, "get x -w json", out, sizeof(out)), 0);
    at = strstr(out, "\"revision\":");
    assert_non_null(at);
    snprintf(args, sizeof(args), "compact --physical %lld", atoll(at + 11));
    ctl(args);
    ctl("defrag");
    ctl("alarm disarm");
    assert_true(WAIT_FOR(!is_full()));
    ctl("del full");
}

const struct any_refusal any_refusals[] = {
    {"no right to the keys", HF_EAUTH, "permission denied", forbid, allow,
     .acquires = true, .releases = true, .renewals = true},
    {"no right to write", HF_EAUTH, "permission denied", forbid_writing, allow,
     .acquires = true, .releases = true, .few = true},
    {"no space", HF_EBACKEND, "database space exceeded", fill, relieve,
     .acquires = true, .few = true},
    {NULL},
};

/* ---- open
 * --------------------------------------------------------------------
 */

/* '#' stands for the server's port, '$' for its directory. */
static void expand(char *to, size_t size, const char *from)
{
    size_t len = 0;

    for (; *from && len < size; from++)
        if (*from == '#')
            len +=
                (size_t)snprintf(to + len, size - len, "%d", etcd_locked->port);
        else
            len += (size_t)snprintf(to + len, size - len, "%.*s",
                                    *from == '$' ? (int)size : 1,
                                    *from == '$' ? etcd_locked->dir : from);
}

static void opens(const char *url, const char *password, int code,
                  const char *says)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *c = NULL;
    char text[400];
    int rc;

    expand(text, sizeof(text), url);
    opt.password = password;
    rc = hf_open(text, &opt, &c, &err);
    if (rc != code || !strstr(err.text, says) || strstr(err.text, "secret"))
        fail_msg("%s: %s, \"%s\", not \"%s\"", text, hf_error_name(rc),
                 err.text, says);
    hf_close(c);
}

static void test_password_right_and_wrong(void **state)
{
    (void)state;
    opens("etcd://worker:" PASSWORD "@127.0.0.1:#/p", NULL, 0, "");
    opens("etcd://worker@127.0.0.1:#/p", PASSWORD, 0, "");
    opens("etcd://worker:not-the-secret@127.0.0.1:#/p", NULL, HF_EAUTH,
          "authentication failed");
    opens("etcd://nobody:" PASSWORD "@127.0.0.1:#/p", NULL, HF_EAUTH,
          "authentication failed");
    opens("etcd://127.0.0.1:#/p", NULL, HF_EAUTH,
          "etcd://user@host, and HOLDFAST_PASSWORD");
    opens("etcd://worker@127.0.0.1:#/p", NULL, HF_EINVAL,
          "the user needs a password");
    opens("etcd://127.0.0.1:#/p", PASSWORD, HF_EINVAL,
          "the password needs a user");
    /* What is not below p/ is not the worker's. */
    opens("etcd://worker:" PASSWORD "@127.0.0.1:#", NULL, HF_EAUTH,
          "permission denied: without a path the user needs readwrite");
    opens("etcd://worker:" PASSWORD "@127.0.0.1:#/q", NULL, HF_EAUTH,
          "permission denied: the user needs readwrite on all keys that begin "
          "with \"q/\"");
}

/* ---- tokens
 * ------------------------------------------------------------------
 */

/* The token of a client that asks for nothing ends after a second. */
static void token_ends(void)
{
    assert_true(NEVER_MS(false, 3500));
}

/* Through the proxy, which counts. */
static hf_lock *far(struct world *w, int64_t ttl_ms)
{
    char url[128];

    snprintf(url, sizeof(url), "etcd://worker:" PASSWORD "@127.0.0.1:%d/p",
             proxy_port(w->proxy));
    return world_lock(w, url, ttl_ms, 5000, HF_FAIR_DEFAULT);
}

static bool is_quiet(struct world *w, struct taker *t)
{
    uint64_t before = proxy_sent(w->proxy);

    assert_true(NEVER_MS(taker_back(t), 500));
    return proxy_sent(w->proxy) - before < 2000;
}

/* A waiter is told when it is its turn. After its first looks at a new watch it
 * does not ask any more. */
static struct taker *waits(struct world *w, hf_lock *lock)
{
    struct taker *t = taker_start(w, lock, 60000);

    assert_true(WAIT_FOR(w->server->left(w) == 2));
    assert_true(WAIT_FOR(is_quiet(w, t)));
    return t;
}

static void test_token_ends_before_a_call(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = far(w, 30000);
    struct taker *t;

    for (int i = 0; i < 2; i++) {
        token_ends();
        world_takes(w, a, 3000);
        t = waits(w, b);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
        taker_gets_it(t, 1000);
    }
    world_is_clean(w);
}

static void test_token_ends_while_held_and_waited_for(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->near_url, 12000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = far(w, 30000);
    struct taker *t;

    world_takes(w, a, 3000);
    t = waits(w, b);
    token_ends();
    for (int i = 0; i < 2; i++)
        world_renews(a);
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 1000);
    world_is_clean(w);
}

/* A user whose password has changed meanwhile hears it, and loses nothing that
 * it has: leases need no rights. */
static void test_password_changes(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    int rc = 0;

    world_takes(w, a, 3000);
    ctl("user delete worker");
    assert_true(WAIT_FOR((rc = hf_lock_renew(a, 0, &w->err)) != 0));
    assert_int_equal(rc, HF_EAUTH);
    assert_int_equal(hf_lock_check(a), 0);
    ctl("user add worker:" PASSWORD);
    ctl("user grant-role worker work");
    assert_true(WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* ---- rights
 * ------------------------------------------------------------------
 */

/* Who holds goes on holding, who waits hears of it. */
static void test_rights_taken_while_held_and_waited_for(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 20000);
    assert_true(WAIT_FOR(w->server->left(w) == 2));
    forbid(w);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, HF_EAUTH);
    assert_non_null(strstr(t->err.text, "permission denied"));
    assert_int_equal(hf_lock_check(a), 0);
    allow(w);
    taker_end(t);
    world_renews(a);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_free_for_all(w, b);
    world_is_clean(w);
}

/* Who holds can let go where there is no room for anything new. */
static void test_full_server_lets_go(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    int held, rc, other;

    world_takes(w, a, 3000);
    fill(w);
    held = hf_lock_renew(a, 0, NULL);
    rc = hf_lock_release(a, &w->err);
    other = hf_lock_try(b, NULL);
    relieve(w);
    assert_int_equal(held, 0);
    assert_int_equal(rc, 0);
    assert_int_equal(other, HF_EBACKEND);
    world_free_for_all(w, b);
    world_is_clean(w);
}

static bool says_full(struct world *w, hf_lock *lock)
{
    int64_t began = wait_fair();
    int rc = hf_lock_timed(lock, 5000, &w->err);

    return rc == HF_EBACKEND && wait_within(began, 1000) &&
           strstr(w->err.text, "database space exceeded") &&
           !strstr(w->err.text, "no answer");
}

/* The connection is lost while there is no room: who holds goes on holding, who
 * waits goes on waiting, and what is new is refused. */
static void test_full_server_and_a_lost_connection(void **state)
{
    enum { TTL_MS = 6000 };
    struct world *w = *state;
    hf_lock *a = far(w, TTL_MS), *b = far(w, TTL_MS);
    bool renews = true, is_refused, is_refused_again;
    hf_lock *other = NULL;
    struct taker *t;

    assert_int_equal(hf_lock_new(w->clients[1], "other", 5, NULL, &other, NULL),
                     0);
    world_takes(w, a, 3000);
    t = taker_start(w, b, 60000);
    assert_true(WAIT_FOR(w->server->left(w) == 2));
    fill(w);
    proxy_cut(w->proxy);
    is_refused = WAIT_FOR_MS(says_full(w, other), 3000);
    for (int i = 0; i < 4; i++)
        renews = renews && WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0);
    is_refused_again = says_full(w, other);
    relieve(w);
    assert_true(renews && is_refused && is_refused_again);
    assert_false(world_heard_loss(w, 0));
    assert_int_equal(hf_lock_timed(other, 2000, &w->err), 0);
    assert_int_equal(hf_lock_release(other, &w->err), 0);
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 2000);
    assert_int_equal(hf_lock_free(other), 0);
    world_is_clean(w);
}

/* It has passed a lock on, to a waiter that came before it was full. */
static void test_full_server_passes_on(void **state)
{
    struct world *w = *state;
    hf_lock *a = far(w, 30000), *b = far(w, 30000);
    struct taker *t;
    bool is_back;
    int rc;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 60000);
    assert_true(WAIT_FOR(w->server->left(w) == 2));
    fill(w);
    proxy_cut(w->proxy);
    rc = hf_lock_release(a, &w->err);
    is_back = WAIT_FOR_MS(taker_back(t), 3000);
    relieve(w);
    assert_int_equal(rc, 0);
    assert_true(is_back);
    assert_int_equal(t->rc, 0);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

/* Its lease has ended, and it cannot have another one: the text of the server,
 * at once, until there is room. */
static void test_full_server_and_no_lease(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_lock *a = far(w, 2000);
    hf_client *c = NULL;
    bool is_refused[3];
    int rc;

    world_free_for_all(w, a);
    fill(w);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_true(NEVER_MS(false, 2000 + ETCD_TICK_MS + 500));
    world_heal(w);
    is_refused[0] = WAIT_FOR_MS(says_full(w, a), 3000);
    is_refused[1] = says_full(w, a);
    is_refused[2] = says_full(w, a);
    rc = hf_open(w->near_url, &opt, &c, &w->err);
    relieve(w);
    assert_true(is_refused[0] && is_refused[1] && is_refused[2]);
    assert_int_equal(rc, HF_EBACKEND);
    assert_non_null(strstr(w->err.text, "database space exceeded"));
    assert_int_equal(hf_lock_timed(a, 1000, &w->err), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* ---- certificates ---------------------------------------------------------
 */

static int group_tls(void **state)
{
    (void)state;
    etcd_locked->tls = "server";
    etcd_locked->asks_certificate = true;
    return etcd_server_start(etcd_locked);
}

#define OURS "&cert=$/client.pem&key=$/client.key"

static void test_certificates(void **state)
{
    (void)state;
    opens("etcds://127.0.0.1:#?cacert=$/ca.pem" OURS, NULL, 0, "");
    opens("etcds://localhost:#?cacert=$/ca.pem" OURS, NULL, 0, "");
    opens("etcds://127.0.0.1:#?cacert=$/stranger.pem" OURS, NULL, HF_EAUTH,
          "certificate");
    opens("etcds://127.0.0.1:#", NULL, HF_EAUTH, "certificate");
    opens("etcds://127.0.0.1:#?cacert=$/ca.pem", NULL, HF_EAUTH, "certificate");
    opens("etcds://127.0.0.1:#?cacert=$/ca.pem&cert=$/stranger.pem"
          "&key=$/stranger.key",
          NULL, HF_EAUTH, "certificate");
    opens("etcds://127.0.0.1:#?cacert=$/none.pem", NULL, HF_EINVAL, "none.pem");
    opens("etcd://127.0.0.1:#?cacert=$/ca.pem", NULL, HF_EINVAL, "etcds://");
    opens("etcd://127.0.0.1:#", NULL, HF_EBACKEND, "With TLS it is etcds://");
}

static void test_other_servers(void **state)
{
    int port = etcd_locked->port;

    (void)state;
    etcd_locked->port = etcd_locked->look; /* HTTP/1, without TLS */
    opens("etcd://127.0.0.1:#", NULL, HF_EPROTO, "is it etcd?");
    opens("etcds://127.0.0.1:#?cacert=$/ca.pem" OURS, NULL, HF_EPROTO,
          "does not speak TLS");
    etcd_locked->port = port;
}

/* ---- what hf_diagnose() says ----------------------------------------------
 */

static void test_diagnose_rights_and_space(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;
    char url[96];

    snprintf(url, sizeof(url), "etcd://worker:" PASSWORD "@127.0.0.1:%d/p",
             etcd_locked->port);
    if (proc_open(url, NULL, &c, &w->err))
        fail_msg("%s", w->err.text);
    diagnosis_says(c, HF_LEVEL_OK, "rights", "as a user");
    diagnosis_says(c, HF_LEVEL_OK, "space", "bytes");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    forbid_writing(w);
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "permission denied");
    allow(w);
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    fill(w);
    diagnosis_says(c, HF_LEVEL_ERROR, "space", "etcdctl alarm disarm");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "space");
    relieve(w);
    diagnosis_says(c, HF_LEVEL_OK, "space", "bytes");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    assert_int_equal(hf_close(c), 0);
}

int run_tls_faults(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_other_servers),
    };

    return cmocka_run_group_tests_name("etcd: TLS", tests, group_tls,
                                       group_end);
}

int run_auth_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_password_right_and_wrong),
        T(test_token_ends_before_a_call),
        T(test_token_ends_while_held_and_waited_for),
        T(test_password_changes),
        T(test_rights_taken_while_held_and_waited_for),
        T(test_full_server_lets_go),
        T(test_full_server_and_a_lost_connection),
        T(test_full_server_passes_on),
        T(test_full_server_and_no_lease),
        T(test_diagnose_rights_and_space),
    };

    return cmocka_run_group_tests_name("etcd: a user", tests, group_locked,
                                       group_end);
}
