/* Users, tokens, rights and certificates, and a server without space. */
#include "cluster.h"

#include "../../lib/diagnosis.h"
#include "../../lib/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

GROUP("auth");

static void ctl(const char *args)
{
    char out[400];

    if (etcd_server_ctl(etcd_locked, args, out, sizeof(out)))
        fail_msg("etcdctl %s: %s", args, out);
}

/* The ways in which the server refuses, for any/refusals.c. */

const int64_t any_refused_ttl_ms = 10000;

static void forbid(struct world *w)
{
    ctl("role revoke-permission work p/ --prefix=true");
}

static void allow(struct world *w)
{
    ctl("role grant-permission work --prefix=true readwrite p/");
}

static void forbid_writing(struct world *w)
{
    ctl("role grant-permission work --prefix=true read p/");
}

static bool is_full(void)
{
    return etcd_server_ctl(etcd_locked, "put full x", NULL, 0) != 0;
}

static void fill(struct world *w)
{
    const char *args = text_of("put full < %s/full", etcd_locked->dir);
    int fd = open(strchr(args, '/'), O_WRONLY | O_CREAT, 0600);

    assert_int_equal(ftruncate(fd, 1200000), 0);
    close(fd);
    for (int i = 0; i < 4; i++)
        etcd_server_ctl(etcd_locked, args, NULL, 0);
    COMES(is_full());
}

/* Deleted revisions use space until the server compacts them. */
static void relieve(struct world *w)
{
    char out[400];
    const char *at;

    ctl("del full");
    OK(etcd_server_ctl(etcd_locked, "get x -w json", out, sizeof(out)));
    at = strstr(out, "\"revision\":");
    assert_non_null(at);
    ctl(text_of("compact --physical %lld", atoll(at + 11)));
    ctl("defrag");
    ctl("alarm disarm");
    COMES(!is_full());
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

/* Copies the string; replaces '#' by the server's port and '$' by its
 * directory. */
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
    hf_error err = HF_ERROR_INIT;
    hf_client *c = NULL;
    char text[400];
    int rc;

    expand(text, sizeof(text), url);
    rc = hf_open(text, CLIENT(.password = password), &c, &err);
    if (rc != code || !strstr(err.text, says) || strstr(err.text, "secret"))
        fail_msg("%s: %s, \"%s\", not \"%s\"", text, hf_error_name(rc),
                 err.text, says);
    hf_close(c);
}

CASE(test_password_right_and_wrong)
{
    opens("etcd://worker:" PASSWORD "@127.0.0.1:#/p", NULL, 0, "");
    opens("etcd://worker@127.0.0.1:#/p", PASSWORD, 0, "");
    opens("etcd://worker:not-the-secret@127.0.0.1:#/p", NULL, HF_EAUTH,
          "authentication failed");
    opens("etcd://stranger:" PASSWORD "@127.0.0.1:#/p", NULL, HF_EAUTH,
          "authentication failed");
    opens("etcd://127.0.0.1:#/p", NULL, HF_EAUTH,
          "etcd://user@host, and HOLDFAST_PASSWORD");
    opens("etcd://worker@127.0.0.1:#/p", NULL, HF_EINVAL,
          "the user needs a password");
    opens("etcd://127.0.0.1:#/p", PASSWORD, HF_EINVAL,
          "the password needs a user");
    /* The worker has no rights on keys that are not below p/. */
    opens("etcd://worker:" PASSWORD "@127.0.0.1:#", NULL, HF_EAUTH,
          "permission denied: without a path the user needs readwrite");
    opens("etcd://worker:" PASSWORD "@127.0.0.1:#/q", NULL, HF_EAUTH,
          "permission denied: the user needs readwrite on all keys that begin "
          "with \"q/\"");
}

/* Waits until the token of an idle client has certainly expired. The server's
 * tokens last one second. */
static void token_ends(void)
{
    assert_true(NEVER_MS(false, 3500));
}

/* Returns a lock whose client connects through the proxy, which counts
 * bytes. */
static hf_lock *far(struct world *w, int64_t ttl_ms)
{
    return world_lock(w,
                      text_of("etcd://worker:" PASSWORD "@127.0.0.1:%d/p",
                              proxy_port(w->proxy)),
                      ttl_ms, 5000, HF_FAIR_DEFAULT);
}

static bool is_quiet(struct world *w, struct taker *t)
{
    uint64_t before = proxy_sent(w->proxy);

    assert_true(NEVER_MS(taker_back(t), 500));
    return proxy_sent(w->proxy) - before < 2000;
}

/* Waits until the waiter relies on its watch: after its first polls with a new
 * watch, the waiter sends almost nothing. */
static struct taker *waits(struct world *w, hf_lock *lock)
{
    struct taker *t = taker_start(w, lock, 60000);

    COMES(w->server->left(w) == 2);
    COMES(is_quiet(w, t));
    return t;
}

CASE(test_token_ends_before_a_call)
{
    hf_lock *a = world_near(w), *b = far(w, 30000);
    struct taker *t;

    for (int i = 0; i < 2; i++) {
        token_ends();
        world_takes(w, a, 3000);
        t = waits(w, b);
        OK(hf_lock_release(a, &w->err));
        taker_gets_it(t, 1000);
    }
}

CASE(test_token_ends_while_held_and_waited_for)
{
    hf_lock *a = world_lock(w, w->near_url, 12000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = far(w, 30000);
    struct taker *t;

    world_takes(w, a, 3000);
    t = waits(w, b);
    token_ends();
    for (int i = 0; i < 2; i++)
        world_renews(a);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 1000);
}

/* A client whose user was deleted gets errors but loses no hold: keeping a
 * lease alive needs no rights. */
CASE(test_password_changes)
{
    hf_lock *a = world_near(w);
    int rc = 0;

    world_takes(w, a, 3000);
    ctl("user delete worker");
    COMES((rc = hf_lock_renew(a, 0, &w->err)) != 0);
    assert_int_equal(rc, HF_EAUTH);
    OK(hf_lock_check(a));
    ctl("user add worker:" PASSWORD);
    ctl("user grant-role worker work");
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    OK(hf_lock_release(a, &w->err));
}

/* The user's rights are revoked: the holder keeps the lock, and the waiter gets
 * the refusal. */
CASE(test_rights_taken_while_held_and_waited_for)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 20000);
    COMES(w->server->left(w) == 2);
    forbid(w);
    COMES(taker_back(t));
    assert_int_equal(t->rc, HF_EAUTH);
    expect_words(t->err.text, "permission denied");
    OK(hf_lock_check(a));
    allow(w);
    taker_end(t);
    world_renews(a);
    OK(hf_lock_release(a, &w->err));
    world_free_for_all(w, b);
}

/* A holder can release even when the server has no space for a new entry. */
CASE(test_full_server_lets_go)
{
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
}

static bool says_full(struct world *w, hf_lock *lock)
{
    int64_t began = wait_fair();
    int rc = hf_lock_timed(lock, 5000, &w->err);

    return rc == HF_EBACKEND && wait_within(began, 1000) &&
           strstr(w->err.text, "database space exceeded") &&
           !strstr(w->err.text, "no answer");
}

/* The connection is lost while there is no space: the holder keeps the lock,
 * the waiter keeps waiting, and a new acquire is refused. */
CASE(test_full_server_and_a_lost_connection)
{
    enum { TTL_MS = 6000 };
    hf_lock *a = far(w, TTL_MS), *b = far(w, TTL_MS);
    bool renews = true, is_refused, is_refused_again;
    hf_lock *other;
    struct taker *t;

    other = world_handle(w, w->clients[1], "other", NULL);
    world_takes(w, a, 3000);
    t = taker_start(w, b, 60000);
    COMES(w->server->left(w) == 2);
    fill(w);
    proxy_cut(w->proxy);
    is_refused = WAIT_FOR_MS(says_full(w, other), 3000);
    for (int i = 0; i < 4; i++)
        renews = renews && WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0);
    is_refused_again = says_full(w, other);
    relieve(w);
    assert_true(renews && is_refused && is_refused_again);
    assert_false(world_heard_loss(w, 0));
    OK(hf_lock_timed(other, 2000, &w->err));
    OK(hf_lock_release(other, &w->err));
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 2000);
}

/* The lock passes to a waiter that queued before the server ran out of
 * space. */
CASE(test_full_server_passes_on)
{
    hf_lock *a = far(w, 30000), *b = far(w, 30000);
    struct taker *t;
    bool is_back;
    int rc;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 60000);
    COMES(w->server->left(w) == 2);
    fill(w);
    proxy_cut(w->proxy);
    rc = hf_lock_release(a, &w->err);
    is_back = WAIT_FOR_MS(taker_back(t), 3000);
    relieve(w);
    assert_int_equal(rc, 0);
    assert_true(is_back);
    assert_int_equal(t->rc, 0);
    taker_gives(t);
}

/* The client's lease has ended, and the server has no space for a new lease.
 * Acquires fail at once with the server's error until there is space. */
CASE(test_full_server_and_no_lease)
{
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
    expect_words(w->err.text, "database space exceeded");
    OK(hf_lock_timed(a, 1000, &w->err));
    OK(hf_lock_release(a, &w->err));
}

static int start_tls(void)
{
    etcd_locked->tls = "server";
    etcd_locked->asks_certificate = true;
    return etcd_server_start(etcd_locked);
}

static const struct world_group tls = {.name = "tls", .start = start_tls};

#define OURS "&cert=$/client.pem&key=$/client.key"

CASE_OF(tls, test_certificates)
{
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

CASE_OF(tls, test_other_servers)
{
    int port = etcd_locked->port;

    etcd_locked->port = etcd_locked->look; /* HTTP/1, without TLS */
    opens("etcd://127.0.0.1:#", NULL, HF_EPROTO, "is it etcd?");
    opens("etcds://127.0.0.1:#?cacert=$/ca.pem" OURS, NULL, HF_EPROTO,
          "does not speak TLS");
    etcd_locked->port = port;
}

CASE(test_diagnose_rights_and_space)
{
    hf_client *c = world_open(
        w,
        text_of("etcd://worker:" PASSWORD "@127.0.0.1:%d/p", etcd_locked->port),
        NULL);

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
}
