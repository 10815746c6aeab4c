/* TLS: which certificates are trusted, the error messages for those that are
 * not, and connections that break. */
#include "../any/any_faults.h"
#include "redis_faults.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

GROUP("tls", .server = &redis_with_tls);

/* Opens a client with these URL options, in which each '@' is replaced by the
 * server's directory. */
static int open_by(struct world *w, const char *scheme, const char *host,
                   int port, const char *options)
{
    hf_client *c = NULL;
    char url[512], *end = url;
    int rc;

    end += sprintf(end, "%s://%s:%d?connect_timeout=3s", scheme, host, port);
    for (const char *p = options; *p; p++)
        end += *p == '@' ? sprintf(end, "%s/", w->redis->dir)
                         : sprintf(end, "%c", *p);
    rc = hf_open(url, NULL, &c, &w->err);
    hf_close(c);
    return rc;
}

static void expect(struct world *w, const char *host, const char *options,
                   int code, const char *word)
{
    int rc = open_by(w, "rediss", host, w->port, options);

    if (rc != code || (code && !strstr(w->err.text, word)))
        fail_msg("%s: %s: %d, %s", host, options, rc, w->err.text);
}

CASE(test_who_is_believed)
{
    expect(w, "127.0.0.1", "&cacert=@ca.pem", 0, "");
    expect(w, "localhost", "&cacert=@ca.pem", 0, "");
    expect(w, "127.0.0.1", "", HF_EAUTH, "give its CA by cacert=");
    expect(w, "127.0.0.1", "&cacert=@stranger.pem", HF_EAUTH, "cacert=");
    expect(w, "127.0.0.2", "&cacert=@ca.pem", HF_EBACKEND, "refused");
}

CASE(test_files_that_cannot_be_used)
{
    expect(w, "h", "&cacert=@missing", HF_EINVAL, "No such file");
    expect(w, "h", "&cacert=@server.key", HF_EINVAL, "certificates of CAs");
    expect(w, "h", "&cacert=@ca.pem&cert=@client.pem", HF_EINVAL,
           "cert= without key=");
    expect(w, "h", "&cacert=@ca.pem&key=@client.key", HF_EINVAL,
           "key= without cert=");
    expect(w, "h", "&cacert=@ca.pem&cert=@client.key&key=@client.key",
           HF_EINVAL, "a certificate in PEM");
    expect(w, "h", "&cacert=@ca.pem&cert=@client.pem&key=@server.key",
           HF_EINVAL, "not the key of cert=");
    expect(w, "h", "&cacert=@ca.pem&cert=@client.pem&key=@nokey", HF_EINVAL,
           "No such file");
    assert_int_equal(open_by(w, "redis", "h", 1, "&cacert=@ca.pem"), HF_EINVAL);
    expect_words(w->err.text, "rediss://");
}

/* The client must refuse a FIFO: opening it would wait for a writer. */
CASE(test_files_that_are_no_regular_ones)
{
    const char *fifo = text_of("%s/fifo", w->redis->dir);
    const char *link = text_of("%s/link.pem", w->redis->dir);

    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect(w, "h", "&cacert=@fifo", HF_EINVAL, "cacert=");
    expect_words(w->err.text, "fifo: this is a FIFO");
    expect(w, "h", "&cacert=@ca.pem&cert=@fifo&key=@client.key", HF_EINVAL,
           "fifo: this is a FIFO");
    expect_words(w->err.text, " cert=");
    expect(w, "h", "&cacert=@ca.pem&cert=@client.pem&key=@fifo", HF_EINVAL,
           "fifo: this is a FIFO");
    expect_words(w->err.text, "key=");
    expect(w, "h", "&cacert=/dev/null", HF_EINVAL, "a device");
    expect(w, "h", "&cacert=@.", HF_EINVAL, "a directory");
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(symlink("ca.pem", link), 0);
    expect(w, "127.0.0.1", "&cacert=@link.pem", 0, "");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("fifo", link), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect(w, "h", "&cacert=@link.pem", HF_EINVAL, "a FIFO");
}

/* Restarts the server with another certificate or other options. */
static void again(struct world *w, const char *tls, bool asks,
                  const char *protocols)
{
    redis_server_kill(w->redis);
    w->redis->tls = tls;
    w->redis->asks_certificate = asks;
    w->redis->args[0] = protocols ? "--tls-protocols" : NULL;
    w->redis->args[1] = protocols;
    OK(redis_server_again(w->redis));
}

CASE(test_a_certificate_of_the_server_that_is_wrong)
{
    again(w, "elsewhere", false, NULL);
    expect(w, "127.0.0.1", "&cacert=@ca.pem", HF_EAUTH, "other hosts");
    expect(w, "localhost", "&cacert=@ca.pem", HF_EAUTH, "than localhost");
    again(w, "expired", false, NULL);
    expect(w, "127.0.0.1", "&cacert=@ca.pem", HF_EAUTH, "expired");
    again(w, "stranger", false, NULL);
    expect(w, "127.0.0.1", "&cacert=@ca.pem", HF_EAUTH, "not trusted");
    expect(w, "127.0.0.1", "&cacert=@stranger.pem", 0, "");
}

CASE(test_a_server_that_wants_a_certificate)
{
    static const char *const protocols[] = {"TLSv1.2", "TLSv1.3"};
    for (int i = 0; i < 2; i++) {
        again(w, "server", true, protocols[i]);
        expect(w, "127.0.0.1", "&cacert=@ca.pem", HF_EAUTH, "cert= and key=");
        expect(w, "127.0.0.1",
               "&cacert=@ca.pem&cert=@stranger.pem&key=@stranger.key", HF_EAUTH,
               "refused our certificate");
        expect(w, "127.0.0.1",
               "&cacert=@ca.pem&cert=@client.pem&key=@client.key", 0, "");
    }
}

CASE(test_tls_on_one_side_alone)
{
    assert_int_not_equal(open_by(w, "redis", "127.0.0.1", w->port, ""), 0);
    expect_words(w->err.text, "With TLS it is rediss://");
    again(w, NULL, false, NULL);
    /* The client sends TLS to a server without TLS. If these bytes contain no
     * newline, the server waits for one. Then the client's error message names
     * TLS only when the connection times out, but on a machine that stalls
     * hf_open() may give up earlier. Therefore the test tries repeatedly. */
    for (int i = 0; i < 5 && !(i && strstr(w->err.text, "TLS")); i++)
        assert_int_not_equal(
            open_by(w, "rediss", "127.0.0.1", w->port, "&cacert=@ca.pem"), 0);
    if (!strstr(w->err.text, "TLS"))
        fail_msg("%s", w->err.text);
}

static hf_lock *far_lock(struct world *w, int64_t ttl_ms, int64_t op_timeout_ms)
{
    return world_lock(w,
                      text_of("rediss://127.0.0.1:%d?cacert=%s/ca.pem",
                              proxy_port(w->proxy), w->redis->dir),
                      ttl_ms, op_timeout_ms, HF_FAIR_DEFAULT);
}

/* The connection is cut within records, between records, and in the handshake
 * of the next connection. */
CASE_IS(test_tls_reset_anywhere,
        any_cut_answers(w, far_lock(w, 30000, 3000), PROXY_RESET, 2400, 191))
CASE_IS(test_tls_half_close_anywhere,
        any_cut_answers(w, far_lock(w, 30000, 3000), PROXY_HALF_CLOSE, 2400,
                        197))

CASE(test_tls_waiter_after_cuts)
{
    hf_lock *a = world_near(w);

    any_cut_waiter(w, a, far_lock(w, 30000, 1000));
}

/* The server is killed and restarted while the client is idle: the client reads
 * the end of the old connection before it sends anything. */
CASE(test_tls_server_killed_while_idle)
{
    hf_lock *a = world_near(w);

    world_free_for_all(w, a);
    redis_server_kill(w->redis);
    OK(redis_server_again(w->redis));
    world_free_for_all(w, a);
}

CASE(test_tls_long_answer)
{
    enum { NAMES = 600 };
    hf_lock *locks[NAMES];
    hf_names *names = NULL;
    char name[250];

    world_near(w);
    for (int i = 0; i < NAMES; i++) {
        memset(name, 'x', sizeof(name));
        snprintf(name, 10, "%09d", i);
        name[9] = 'x';
        OK(hf_lock_new(w->clients[0], name, sizeof(name), NULL, &locks[i],
                       &w->err));
        OK(hf_lock_acquire(locks[i], NULL, &w->err));
    }
    OK(hf_list(w->clients[0], "", &names, &w->err));
    assert_int_equal(names->len, NAMES);
    hf_names_free(names);
    for (int i = 0; i < NAMES; i++) {
        OK(hf_lock_release(locks[i], NULL));
        hf_lock_free(locks[i]);
    }
}
