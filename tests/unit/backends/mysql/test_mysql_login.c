/* The greeting and the login: each way to prove knowledge of the password, TLS
 * after the greeting, and servers that cannot be trusted. */
#include "mysql_fixture.h"

#include "../../../lib/certs.h"

#include <openssl/ssl.h>

#define CASE_HERE(fn) CASE_WITH(fn, begin, end, struct scene *t)

#define NATIVE "mysql_native_password"
#define SHA2 "caching_sha2_password"

/* Proofs of "secret" with SALT_TEXT, computed by Python's hashlib. */
#define NATIVE_HEX "b32bb3a583e1340c0a1108d58b1be49781ad8c2f"
#define SHA2_HEX                                                               \
    "746ebe205d56a0707acb3e796e834e0dd7b1d61743b26bd5202c7a623230c7c9"

static void is_hex(const void *bytes, size_t len, const char *wanted)
{
    char hex[65];

    assert_true(len <= 32);
    for (size_t i = 0; i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
    hex[2 * len] = '\0';
    assert_string_equal(hex, wanted);
}

/* Asserts that the server receives a correct login packet. */
static void hears_login(struct scene *t, const char *plugin, const char *hex)
{
    char got[512];
    size_t at = 32, len = hears(t, 1, got, sizeof(got));
    uint32_t caps;

    memcpy(&caps, got, 4);
    assert_int_equal(caps, CAPS_OURS);
    assert_int_equal(got[8], 45);
    assert_string_equal(got + at, "me");
    at += 3;
    assert_int_equal(got[at], strlen(hex) / 2);
    is_hex(got + at + 1, strlen(hex) / 2, hex);
    at += 1 + strlen(hex) / 2;
    assert_string_equal(got + at, "locks");
    assert_string_equal(got + at + 6, plugin);
    assert_int_equal(len, at + 6 + strlen(plugin) + 1);
}

static void failed_with(struct scene *t, int code, const char *part)
{
    assert_int_equal(t->ups, 0);
    assert_int_equal(t->downs, 1);
    if (t->down_code != code || !strstr(t->c.link.text, part))
        fail_msg("%d %s, not %d %s", t->down_code, t->c.link.text, code, part);
    assert_null(strstr(t->c.link.text, "secret"));
    assert_null(strstr(t->c.link.text, "lost"));
}

/* Asserts that the output buffer was wiped after the password had been sent. */
static void is_wiped(const struct scene *t)
{
    const struct net_out *o = &t->c.link.stream.out;

    assert_int_equal(o->len, 0);
    assert_false(o->secret);
    for (size_t i = 0; i < o->cap; i++)
        assert_int_equal(o->data[i], 0);
}

CASE(test_scrambles)
{
    const unsigned char *salt = (const unsigned char *)SALT_TEXT;
    unsigned char to[32];
    size_t len;

    assert_true(hf__my_scramble(false, "secret", salt, to, &len));
    is_hex(to, len, NATIVE_HEX);
    assert_true(hf__my_scramble(true, "secret", salt, to, &len));
    is_hex(to, len, SHA2_HEX);
    assert_true(hf__my_scramble(false, "", salt, to, &len));
    assert_int_equal(len, 0);
    assert_true(hf__my_scramble(true, "", salt, to, &len));
    assert_int_equal(len, 0);
}

CASE_HERE(test_native_login)
{
    connect_it(t);
    assert_true(hears_nothing(t)); /* the server speaks first */
    greets(t, CAPS_ALL, NATIVE);
    hears_login(t, NATIVE, NATIVE_HEX);
    is_wiped(t);
    assert_int_equal(t->ups, 0);
    SAYS(t, 2, OK_PACKET);
    assert_int_equal(t->ups, 1);
    assert_true(hf__link_wanted(&t->c.link));
    assert_int_equal(t->c.thread, 298);
    assert_string_equal(t->c.version, "8.0.46");
    assert_false(t->c.is_mariadb);
}

CASE_HERE(test_mariadb_is_known)
{
    unsigned char buf[512];

    connect_it(t);
    says_raw(t, buf, greeting(buf, CAPS_ALL, "5.5.5-10.11.19-MariaDB", NATIVE));
    assert_true(t->c.is_mariadb);
    assert_string_equal(t->c.version, "10.11.19-MariaDB");
}

CASE_HERE(test_greeting_is_cut_anywhere)
{
    unsigned char buf[512];
    size_t len = greeting(buf, CAPS_ALL, "8.0.46", NATIVE);

    for (size_t cut = 1; cut < len; cut++) {
        connect_it(t);
        says_raw(t, buf, cut);
        assert_true(hears_nothing(t));
        says_raw(t, buf + cut, len - cut);
        hears_login(t, NATIVE, NATIVE_HEX);
        assert_int_equal(t->downs, 0);
        hf__my_conn_stop(&t->c);
    }
}

/* A greeting that is cut off at any byte is refused. */
CASE_HERE(test_greeting_is_too_short)
{
    unsigned char buf[512];
    size_t len = greeting(buf, CAPS_ALL, "8.0.46", "");

    for (size_t n = 1; n < len - 4 - 1; n++) {
        t->downs = 0;
        connect_it(t);
        buf[0] = (unsigned char)n;
        says_raw(t, buf, 4 + n);
        failed_with(t, HF_EPROTO, "; is it MySQL or MariaDB?");
        assert_true(hears_nothing(t));
    }
}

CASE_HERE(test_something_else_answers)
{
    static const char *const others[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", "-ERR unknown command\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n", "220 mail.example ESMTP\r\n"};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        t->downs = 0;
        connect_it(t);
        says_raw(t, others[i], strlen(others[i]));
        failed_with(t, HF_EPROTO, "; is it MySQL or MariaDB?");
        assert_true(hears_nothing(t));
    }
}

/* The server waits for the client to speak first, as in most protocols: it is
 * not MySQL. */
CASE_HERE(test_nobody_greets)
{
    connect_it(t);
    clock_ns += 1000 * HF__MS;
    hf__link_advance(&t->c.link, clock_ns);
    failed_with(t, HF_EBACKEND,
                "no answer within 1 s; is it MySQL or MariaDB?");
}

CASE_HERE(test_old_server)
{
    connect_it(t);
    greets(t, CAPS_ALL & ~0x8000u, NATIVE);
    failed_with(t, HF_EBACKEND, "MySQL 8.0.46 is too old");
    assert_true(t->c.link.lasts);
    assert_true(hears_nothing(t));
}

static void greets_as(struct scene *t, const char *version)
{
    unsigned char buf[512];

    t->downs = 0;
    connect_it(t);
    says_raw(t, buf, greeting(buf, CAPS_ALL, version, NATIVE));
}

/* In MySQL before 5.7 a session that takes a second user lock releases the
 * first one; MariaDB before 10.1 has no max_statement_time. A proxy may greet
 * with any version. The connection therefore logs in, and its owner decides
 * whether the version is too old. */
CASE_HERE(test_old_versions)
{
    static const char *const old[][2] = {
        {"5.6.51-log", "MySQL 5.6.51-log is too old"},
        {"5.5.30", "MySQL 5.5.30 is too old"},
        {"4.1.22", "MySQL 4.1.22 is too old"},
        {"5.5.68-MariaDB", "MariaDB 5.5.68-MariaDB is too old"},
        {"5.5.5-10.0.38-MariaDB", "MariaDB 10.0.38-MariaDB is too old"},
        {"5.5.5-10.0.38-cloud", "MariaDB 10.0.38-cloud is too old"},
        {"5.5.5-m2", "MySQL 5.5.5-m2 is too old"},
    };
    static const char *const fit[] = {"5.7.9",
                                      "5.7.22-log",
                                      "8.0.15",
                                      "9.1.0",
                                      "5.7.25-TiDB-v7.5.0",
                                      "5.5.5-10.1.8-MariaDB",
                                      "11.4.5-MariaDB",
                                      "5.5.5-10.11.6-log",
                                      "11.4.5-log",
                                      "of our own",
                                      ""};

    for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++) {
        greets_as(t, old[i][0]);
        hears_login(t, NATIVE, NATIVE_HEX);
        assert_int_equal(t->downs, 0);
        assert_true(t->c.is_too_old);
        assert_int_equal(hf__my_too_old(&t->c, clock_ns), HF_EBACKEND);
        assert_non_null(strstr(t->c.link.text, old[i][1]));
        assert_non_null(
            strstr(t->c.link.text, "use MySQL 5.7 or MariaDB 10.1, or later"));
        assert_true(t->c.link.lasts);
        hf__my_conn_stop(&t->c);
    }
    for (size_t i = 0; i < sizeof(fit) / sizeof(*fit); i++) {
        greets_as(t, fit[i]);
        hears_login(t, NATIVE, NATIVE_HEX);
        assert_int_equal(t->downs, 0);
        assert_false(t->c.is_too_old);
        hf__my_conn_stop(&t->c);
    }
}

static const struct {
    unsigned error;
    int code;
    bool lasts;
    const char *part;
} refusals[] = {
    {1040, HF_EBACKEND, false, "words of it"},
    {1053, HF_EBACKEND, false, "words of it"},
    {1129, HF_EBACKEND, false, "words of it"},
    {1203, HF_EBACKEND, false, "words of it"},
    {1226, HF_EBACKEND, false, "words of it"},
    {1130, HF_EAUTH, true, "words of it"},
    {1045, HF_EAUTH, true, "the server refused the user name or password"},
    {1698, HF_EAUTH, true, "the server refused the user name or password"},
    {1044, HF_EAUTH, true, "may not use the database shop: grant it"},
    {1049, HF_EBACKEND, true, "no database shop: correct the name"},
    {3159, HF_EAUTH, true, "the server demands TLS"},
    {1105, HF_EBACKEND, true, "words of it"},
};

static void refuses(struct scene *t, unsigned seq, size_t i)
{
    unsigned error = refusals[i].error;
    char body[64] = "\xff..#HY000words of it";

    body[1] = (char)error;
    body[2] = (char)(error >> 8);
    says(t, seq, body, strlen(body + 3) + 3);
    failed_with(t, refusals[i].code, refusals[i].part);
    assert_int_equal(t->c.link.lasts, refusals[i].lasts);
    assert_true(t->c.link.refused_at == clock_ns);
    assert_null(strstr(t->c.link.text, "is it MySQL"));
}

CASE_HERE(test_refusals_are_explained)
{
    t->login.database = "shop";
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        t->downs = 0;
        connect_it(t);
        greets(t, CAPS_ALL, NATIVE);
        refuses(t, 2, i);
    }
}

/* The server refuses the connection before the login. Such an error may lack an
 * SQLSTATE, which the client accepts. */
CASE_HERE(test_refusal_instead_of_a_greeting)
{
    for (size_t i = 0; i < 6; i++) {
        t->downs = 0;
        connect_it(t);
        refuses(t, 0, i);
    }
    t->downs = 0;
    connect_it(t);
    SAYS(t, 0, "\xff\x10\4Too many connections");
    failed_with(t, HF_EBACKEND, ": Too many connections");
}

CASE_HERE(test_no_password_was_given)
{
    t->login.password = "";
    connect_it(t);
    greets(t, CAPS_ALL, NATIVE);
    hears_login(t, NATIVE, "");
    SAYS(t, 2, "\xff\x15\4#28000Access denied");
    failed_with(t, HF_EAUTH, "HOLDFAST_PASSWORD");
}

CASE_HERE(test_switch_of_plugins)
{
    char got[64];

    connect_it(t);
    greets(t, CAPS_ALL, "client_ed25519"); /* the server's default */
    hears_login(t, NATIVE, NATIVE_HEX);
    SAYS(t, 2, "\xfe" SHA2 "\0" SALT_TEXT "\0");
    is_hex(got, hears(t, 3, got, sizeof(got)), SHA2_HEX);
    SAYS(t, 4, "\xfe" NATIVE "\0" SALT_TEXT); /* another switch of the plugin */
    is_hex(got, hears(t, 5, got, sizeof(got)), NATIVE_HEX);
    SAYS(t, 6,
         "\xfe"
         "auth_socket\0");
    assert_int_equal(hears(t, 7, got, sizeof(got)), 0);
    SAYS(t, 8, OK_PACKET);
    assert_int_equal(t->ups, 1);
}

CASE_HERE(test_unknown_plugins)
{
    connect_it(t);
    greets(t, CAPS_ALL, NATIVE);
    SAYS(t, 2,
         "\xfe"
         "client_ed25519\0" SALT_TEXT SALT_TEXT);
    failed_with(t, HF_EAUTH, "\"client_ed25519\"");
    failed_with(t, HF_EAUTH, "use " NATIVE " or " SHA2);
    assert_true(t->c.link.lasts);
    t->downs = 0;
    connect_it(t);
    greets(t, CAPS_ALL, NATIVE);
    SAYS(t, 2, "\xfe");
    failed_with(t, HF_EAUTH, "\"mysql_old_password\"");
    t->downs = 0;
    connect_it(t);
    greets(t, CAPS_ALL, NATIVE);
    SAYS(t, 2,
         "\xfe" NATIVE "\0"
         "short");
    failed_with(t, HF_EPROTO, "do not understand");
}

/* The server requests the password in clear text. Without TLS the server may be
 * an impostor, or a man in the middle may read the password; therefore the
 * client does not send it. */
CASE_HERE(test_clear_password_needs_tls)
{
    char got[512];

    connect_it(t);
    greets(t, CAPS_ALL, NATIVE);
    hears(t, 1, got, sizeof(got));
    SAYS(t, 2,
         "\xfe"
         "mysql_clear_password\0");
    failed_with(t, HF_EAUTH, "in clear text: use TLS");
    assert_true(hears_nothing(t));
}

CASE_HERE(test_sha2_that_is_cached)
{
    connect_it(t);
    greets(t, CAPS_ALL, SHA2);
    hears_login(t, SHA2, SHA2_HEX);
    says_raw(t, "\2\0\0\2\1\3\7\0\0\3" OK_PACKET, 6 + 4 + 7);
    assert_int_equal(t->ups, 1);
}

/* On a Unix socket no third party can read the connection, which is why the
 * password is sent in clear text. */
CASE_HERE(test_sha2_in_private)
{
    char got[512];

    connect_it(t);
    greets(t, CAPS_ALL, SHA2);
    hears(t, 1, got, sizeof(got));
    SAYS(t, 2, "\1\4");
    assert_int_equal(hears(t, 3, got, sizeof(got)), 7);
    assert_string_equal(got, "secret");
    is_wiped(t);
    SAYS(t, 4, OK_PACKET);
    assert_int_equal(t->ups, 1);
}

/* A man in the middle could request the password too, which is why the password
 * is not sent over TCP without TLS. */
CASE_HERE(test_sha2_in_full_wants_a_safe_way)
{
    char got[512];

    connect_it(t);
    t->peer.hosts = "far away"; /* not a Unix socket */
    greets(t, CAPS_ALL, SHA2);
    hears(t, 1, got, sizeof(got));
    SAYS(t, 2, "\1\4");
    t->peer.hosts = NULL; /* avoids a lookup */
    failed_with(t, HF_EAUTH, "use TLS");
}

CASE_HERE(test_hello_is_answered_before_it_is_up)
{
    char got[64];

    t->hello_statements = 2;
    log_in(t);
    hears(t, 0, got, sizeof(got));
    assert_string_equal(got, "\3do 101");
    hears(t, 0, got, sizeof(got));
    SAYS(t, 1, OK_PACKET);
    assert_int_equal(t->ups, 0);
    SAYS(t, 1, "\xff\x28\4#42000no"); /* the owner decides on errors */
    assert_string_equal(t->answers, "101:done 0 0\n102:error 1064 no\n");
    assert_int_equal(t->ups, 1);
}

CASE_HERE(test_hello_is_refused_by_its_owner)
{
    t->hello_statements = 1;
    log_in(t);
    t->code = HF_ENOTSUP;
    SAYS(t, 1, OK_PACKET);
    failed_with(t, HF_ENOTSUP, ": as told");
}

static void with_tls(struct scene *t, const char *name, SSL_CTX **ctx)
{
    char ca[96], pem[96], key[96];
    struct net_tls_files files = {.cacert = ca};

    assert_int_equal(certs_make(t->dir), 0);
    snprintf(ca, sizeof(ca), "%s/ca.pem", t->dir);
    snprintf(pem, sizeof(pem), "%s/%s.pem", t->dir, name);
    snprintf(key, sizeof(key), "%s/%s.key", t->dir, name);
    assert_int_equal(hf__tls_new(&core, NULL, &files, &t->login.tls), 0);
    strcpy(t->peer.addr[0].host, "localhost");
    *ctx = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_file(*ctx, pem, 1), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(*ctx, key, 1), 1);
}

static void hears_request(struct scene *t)
{
    char got[512];
    uint32_t caps;

    assert_int_equal(hears(t, 1, got, sizeof(got)), 32);
    memcpy(&caps, got, 4);
    assert_int_equal(caps & CAPS_SSL, CAPS_SSL);
}

static SSL *shakes_hands(struct scene *t, SSL_CTX *ctx)
{
    SSL *ssl = SSL_new(ctx);
    struct timeval soon = {0, 1000};

    setsockopt(t->server, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
    SSL_set_fd(ssl, t->server);
    SSL_set_accept_state(ssl);
    for (int i = 0; i < 20 && !t->downs; i++) {
        if (SSL_do_handshake(ssl) == 1 && !t->c.link.securing)
            break;
        turn(t);
    }
    return ssl;
}

CASE_HERE(test_tls_begins_behind_the_greeting)
{
    SSL_CTX *ctx;
    SSL *ssl;
    char got[512];
    int len;

    with_tls(t, "server", &ctx);
    connect_it(t);
    greets(t, CAPS_ALL | CAPS_SSL, SHA2);
    hears_request(t);
    assert_true(t->c.link.securing);
    assert_int_equal(t->c.link.state, NET_GREETING);
    ssl = shakes_hands(t, ctx);
    assert_int_equal(t->downs, 0);
    len = SSL_read(ssl, got, sizeof(got));
    assert_true(len > 70);
    assert_int_equal(got[3], 2); /* sequence numbers continue */
    assert_string_equal(got + 4 + 32, "me");
    SSL_write(ssl, "\2\0\0\3\1\4", 6); /* the server requests the password */
    turn(t);
    assert_int_equal(SSL_read(ssl, got, sizeof(got)), 11);
    assert_memory_equal(got, "\7\0\0\4secret\0", 11);
    is_wiped(t);
    SSL_write(ssl, "\7\0\0\5" OK_PACKET, 11);
    turn(t);
    assert_int_equal(t->ups, 1);
    assert_non_null(submit(t, 1));
    hf__net_flush(&t->c.link.stream);
    SSL_write(ssl, "\7\0\0\1" OK_PACKET, 11);
    turn(t);
    assert_string_equal(t->answers, "1:done 0 0\n");
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

CASE_HERE(test_server_is_verified)
{
    SSL_CTX *ctx;

    with_tls(t, "elsewhere", &ctx);
    connect_it(t);
    greets(t, CAPS_ALL | CAPS_SSL, NATIVE);
    hears_request(t);
    SSL_free(shakes_hands(t, ctx));
    failed_with(t, HF_EAUTH, "certificate is for other hosts than localhost");
    assert_true(t->c.link.refused_at == clock_ns);
    SSL_CTX_free(ctx);
}

CASE_HERE(test_server_without_tls)
{
    SSL_CTX *ctx;

    with_tls(t, "server", &ctx);
    connect_it(t);
    greets(t, CAPS_ALL, NATIVE);
    failed_with(t, HF_EPROTO, "the server has no TLS");
    assert_true(t->c.link.lasts);
    assert_true(hears_nothing(t));
    SSL_CTX_free(ctx);
}

/* A man in the middle may append bytes to the greeting. The client must not
 * treat these bytes as data that the server sent inside TLS. */
CASE_HERE(test_plain_bytes_behind_the_greeting)
{
    SSL_CTX *ctx;
    unsigned char buf[512];
    size_t len = greeting(buf, CAPS_ALL | CAPS_SSL, "8.0.46", NATIVE);

    with_tls(t, "server", &ctx);
    connect_it(t);
    memcpy(buf + len, "\7\0\0\2" OK_PACKET, 11);
    says_raw(t, buf, len + 11);
    failed_with(t, HF_EPROTO, "11 bytes follow the server's greeting");
    assert_true(hears_nothing(t));
    t->downs = 0;
    connect_it(t); /* the bytes arrive a little later */
    says_raw(t, buf, len);
    hears_request(t);
    says_raw(t, buf + len, 11);
    failed_with(t, HF_EPROTO, "does not speak TLS");
    SSL_CTX_free(ctx);
}

CASE_HERE(test_handshake_has_its_time)
{
    SSL_CTX *ctx;

    with_tls(t, "server", &ctx);
    connect_it(t);
    greets(t, CAPS_ALL | CAPS_SSL, NATIVE);
    clock_ns += 1000 * HF__MS;
    hf__link_advance(&t->c.link, clock_ns);
    failed_with(t, HF_EBACKEND, "no answer within 1 s");
    /* The greeting has shown that the server is MySQL. */
    assert_null(strstr(t->c.link.text, "is it MySQL"));
    assert_false(t->c.link.securing);
    SSL_CTX_free(ctx);
}

CASES_MAIN(NULL, NULL);
