/* TLS, which begins after the server's greeting, and the unix socket. */
#include "mysql_faults.h"

#include <stdio.h>
#include <string.h>

static int start(void)
{
    my_one.tls = "server";
    return my_start();
}

static void end(void)
{
    my_one.tls = NULL;
    my_end();
}

GROUP("tls", .start = start, .stop = end);

/* Returns a URL with these options, in which each '@' is replaced by the
 * server's directory. */
static const char *tls_url(int port, const char *options)
{
    static char url[400];
    char text[300] = "", *end = text;

    for (const char *p = options; *p; p++)
        end += *p == '@' ? sprintf(end, "%s/", my_one.dir)
                         : sprintf(end, "%c", *p);
    my_server_url_at(port, text, url, sizeof(url));
    return url;
}

static void expect(struct world *w, const char *options, int code,
                   const char *word)
{
    hf_client *c = NULL;
    int rc = hf_open(tls_url(my_one.port, options), NULL, &c, &w->err);

    if (rc != code || (code && !strstr(w->err.text, word)))
        fail_msg("%s: %d, %s", options, rc, w->err.text);
    hf_close(c);
}

/* Restarts the server with another certificate, or without TLS if `tls` is
 * NULL. */
static void again(const char *tls)
{
    my_server_kill(&my_one);
    my_one.tls = tls;
    OK(my_server_again(&my_one));
}

CASE(test_who_is_believed)
{
    expect(w, "?tls=yes&cacert=@ca.pem", 0, "");
    expect(w, "?tls=yes", HF_EAUTH, "cacert=");
    expect(w, "?tls=yes&cacert=@stranger.pem", HF_EAUTH, "cacert=");
    expect(w, "?tls=yes&cacert=@missing.pem", HF_EINVAL, "No such file");
    again("elsewhere");
    expect(w, "?tls=yes&cacert=@ca.pem", HF_EAUTH, "other hosts");
    again("expired");
    expect(w, "?tls=yes&cacert=@ca.pem", HF_EAUTH, "expired");
    again("stranger");
    expect(w, "?tls=yes&cacert=@ca.pem", HF_EAUTH, "not trusted");
    expect(w, "?tls=yes&cacert=@stranger.pem", 0, "");
    again("server");
}

/* With tls=yes the client sends nothing without TLS, in particular no
 * password. */
CASE(test_tls_on_one_side_alone)
{
    again(NULL);
    expect(w, "?tls=yes&cacert=@ca.pem", HF_EPROTO, "no TLS");
    again("server");
    expect(w, "", 0, "");
    my_do("alter user " MY_SERVER_USER " require ssl");
    expect(w, "", HF_EAUTH, "");
    expect(w, "?tls=yes&cacert=@ca.pem", 0, "");
    my_do("alter user " MY_SERVER_USER " require none");
}

/* The connection is cut in the greeting, in the handshake, in records and
 * between them. */
CASE_IS(test_tls_reset_anywhere,
        any_cut_answers(w,
                        world_lock(w,
                                   tls_url(proxy_port(w->proxy),
                                           "?tls=yes&cacert=@ca.pem"),
                                   30000, 3000, HF_FAIR_DEFAULT),
                        PROXY_RESET, 2400, 191))

CASE(test_tls_waits)
{
    hf_lock *a = world_near(w);

    any_cut_waiter(
        w, a,
        world_lock(w, tls_url(proxy_port(w->proxy), "?tls=yes&cacert=@ca.pem"),
                   30000, 1000, HF_FAIR_DEFAULT));
}

CASE(test_socket)
{
    hf_lock *a = world_near(w), *b;

    b = world_lock(w,
                   text_of("mysql://" MY_SERVER_USER ":" MY_SERVER_SECRET
                           "@localhost/" MY_SERVER_DB "?socket=%s",
                           my_one.socket),
                   30000, 5000, HF_FAIR_DEFAULT);
    any_cut_waiter(w, a, b);
    world_free_for_all(w, b);
}

static void clerk_opens(struct world *w, const char *options, int code,
                        const char *word)
{
    const char *url = tls_url(my_one.port, options);
    hf_client *c = NULL;
    int rc = hf_open(
        text_of("mysql://clerk%s", url + strlen("mysql://" MY_SERVER_USER)),
        NULL, &c, &w->err);

    if (rc != code || (code && !strstr(w->err.text, word)))
        fail_msg("%s: %d, %s", options, rc, w->err.text);
    hf_close(c);
}

/* The first pass uses the default login method of the test servers. If the
 * server has caching_sha2_password, the default of MySQL 8, the second pass
 * uses that method. The first login of a user with that method needs the
 * password itself, which only TLS keeps secret; for later logins a digest
 * suffices. */
CASE(test_ways_to_log_in)
{
    static const char sha2[] = "with caching_sha2_password ";
    bool has_sha2 = my_number("select count(*) from information_schema.plugins "
                              "where plugin_name='caching_sha2_password'") > 0;

    for (int i = 0; i < 1 + has_sha2; i++) {
        my_do("drop user if exists clerk");
        my_server_do(&my_one,
                     "create user clerk identified %sby "
                     "'" MY_SERVER_SECRET "'",
                     i ? sha2 : "");
        my_do("grant " MY_SERVER_GRANTS ", create on " MY_SERVER_DB
              ".* to clerk");
        if (i)
            clerk_opens(w, "", HF_EAUTH, "the password itself: use TLS");
        clerk_opens(w, "?tls=yes&cacert=@ca.pem", 0, "");
        clerk_opens(w, "", 0, "");
    }
}
