/*
 * The login, step by step:
 *
 *   server: greeting
 *   client:                  SSLRequest, then the TLS handshake, if tls=yes
 *   client:                  user, database, and a hash that the plugin makes
 *                            of the password and the server's salt
 *   server: switch to another plugin, with another salt
 *   client:                  the hash that this plugin makes
 *   server: more (caching_sha2_password): needs the password itself
 *   client:                  the password, over a private connection
 *   server: OK or ERR
 */
#include "login.h"

#include "conn.h"
#include "wire.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define OK 0x00
#define MORE 0x01
#define SWITCH 0xfe
#define ERR 0xff
/* The second byte of a MORE packet of caching_sha2_password. */
#define SHA2_DONE 3
#define SHA2_FULL 4

#define PROTOCOL 10
#define CHARSET 45 /* utf8mb4 */
#define SALT 20

enum {
    CAN_CONNECT_WITH_DB = 1 << 3,
    CAN_PROTOCOL_41 = 1 << 9,
    CAN_SSL = 1 << 11,
    CAN_TRANSACTIONS = 1 << 13,
    CAN_SECURE_CONNECTION = 1 << 15,
    CAN_MULTI_STATEMENTS = 1 << 16,
    CAN_MULTI_RESULTS = 1 << 17,
    CAN_PLUGIN_AUTH = 1 << 19,
};
#define CAN_WE                                                                 \
    (CAN_PROTOCOL_41 | CAN_TRANSACTIONS | CAN_SECURE_CONNECTION |              \
     CAN_MULTI_STATEMENTS | CAN_MULTI_RESULTS | CAN_PLUGIN_AUTH)
#define CAN_MUST (CAN_PROTOCOL_41 | CAN_SECURE_CONNECTION)

/* ---- scrambles ---------------------------------------------------------- */

/* Writes the digest of two parts, the second of which may be empty. */
static bool login_digest(const EVP_MD *md, const void *a, size_t a_len,
                         const void *b, size_t b_len, unsigned char *to)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, md, NULL) == 1 &&
              EVP_DigestUpdate(ctx, a, a_len) == 1 &&
              EVP_DigestUpdate(ctx, b, b_len) == 1 &&
              EVP_DigestFinal_ex(ctx, to, NULL) == 1;

    EVP_MD_CTX_free(ctx); /* wipes the state too */
    ERR_clear_error();
    return ok;
}

/* With SHA-1 the scramble is H(password) ^ H(salt, H(H(password))); with
 * SHA-256 the salt comes last. An empty password has an empty scramble. */
bool hf__my_scramble(bool is_sha2, const char *password,
                     const unsigned char salt[SALT], unsigned char to[32],
                     size_t *len)
{
    const EVP_MD *md = is_sha2 ? EVP_sha256() : EVP_sha1();
    size_t size = (size_t)EVP_MD_get_size(md);
    unsigned char twice[32];
    bool ok;

    *len = 0;
    if (!password[0])
        return true;
    ok = login_digest(md, password, strlen(password), "", 0, to) &&
         login_digest(md, to, size, "", 0, twice);
    ok = ok && (is_sha2 ? login_digest(md, twice, size, salt, SALT, twice)
                        : login_digest(md, salt, SALT, twice, size, twice));
    for (size_t i = 0; i < size && ok; i++)
        to[i] ^= twice[i];
    OPENSSL_cleanse(twice, sizeof(twice));
    *len = size;
    return ok;
}

/* ---- failures ----------------------------------------------------------- */

/* Sets a permanent failure that follows from the server's answer. */
#define REFUSED(c, now, ...)                                                   \
    ((c)->link.lasts = true, (c)->link.refused_at = (now),                     \
     hf__link_why(&(c)->link, __VA_ARGS__))

enum {
    DATABASE_DENIED = 1044,
    ACCESS_DENIED = 1045,
    UNKNOWN_DATABASE = 1049,
    DENIED_WITHOUT_PASSWORD = 1698,
    TLS_DEMANDED = 3159,
};

static const struct {
    uint16_t error;
    enum { PASSES = 1, ENDS, DENIES } is;
} errors[] = {
    {1040, PASSES}, /* too many connections */
    {1203, PASSES}, /* this user has too many connections */
    {1226, PASSES}, /* another limit of this user */
    {1129, PASSES}, /* the host is blocked after too many errors */
    {1053, ENDS},   /* the server shuts down */
    {1080, ENDS},   /* the server closes connections by force */
    {1152, ENDS},   /* the connection was aborted */
    {1927, ENDS},   /* killed; MariaDB */
    {3032, ENDS},   /* the server is offline */
    {3169, ENDS},   /* killed; MySQL */
    {4031, ENDS},   /* the connection was idle for too long */
    {1130, DENIES}, /* this host may not connect */
    {1251, DENIES}, /* the client's protocol is too old */
    {1862, DENIES}, /* the password has expired */
    {3118, DENIES}, /* the account is locked; MySQL */
    {4151, DENIES}, /* the account is locked; MariaDB */
};

/* Returns what the error means, or 0 if it is not in the list. */
static int login_error_is(uint16_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].error == error)
            return errors[i].is;
    return 0;
}

bool hf__my_error_ends(uint16_t error)
{
    return login_error_is(error) == ENDS;
}

/* The server's message is shown, because it names the account as which the
 * server identified the client. */
static int login_access_denied(struct my_conn *c, const char *text)
{
    bool wants_tls = (c->offers & CAN_SSL) && !c->link.stream.ssl;

    return hf__link_why(&c->link, HF_EAUTH,
                        "the server refused the user name or password%s (%s)",
                        !c->login->password[0]
                            ? "; no password was given: in HOLDFAST_PASSWORD, "
                              "by password_file=, or in the URL"
                        : wants_tls ? ", or it demands TLS"
                                    : "",
                        text);
}

static int login_refused(struct my_conn *c, struct my_cursor *body,
                         hf__time now)
{
    struct net_link *l = &c->link;
    char text[140];
    uint16_t error = hf__my_get_error(body, text, sizeof(text));
    int is;

    if (!error)
        return HF_EPROTO;
    l->understood = true;
    is = login_error_is(error);
    l->lasts = is != PASSES && is != ENDS;
    l->refused_at = now;
    switch (error) {
    case ACCESS_DENIED:
    case DENIED_WITHOUT_PASSWORD:
        return login_access_denied(c, text);
    case DATABASE_DENIED:
        return hf__link_why(l, HF_EAUTH,
                            "the user may not use the database %.64s: grant it "
                            "select, insert, update, delete on `%.64s`.*, or "
                            "correct the name in the URL",
                            c->login->database, c->login->database);
    case UNKNOWN_DATABASE:
        return hf__link_why(l, HF_EBACKEND,
                            "there is no database %.64s: correct the name in "
                            "the URL, or run: create database `%.64s`",
                            c->login->database, c->login->database);
    case TLS_DEMANDED:
        return hf__link_why(l, HF_EAUTH,
                            "the server demands TLS, and the URL has none");
    default:
        return hf__link_why(l, is == DENIES ? HF_EAUTH : HF_EBACKEND, "%s",
                            text);
    }
}

/* ---- authentication plugins --------------------------------------------- */

static bool login_uses(const struct my_conn *c, const char *plugin)
{
    return strcmp(c->plugin, plugin) == 0;
}

/* Returns whether the client implements the plugin. If the client lacks the
 * server's default plugin, the login begins with mysql_native_password. The
 * server then switches to the plugin of the user. */
static bool login_is_known(const struct my_conn *c)
{
    return login_uses(c, "mysql_native_password") ||
           login_uses(c, "caching_sha2_password") ||
           login_uses(c, "auth_socket") || login_uses(c, "unix_socket") ||
           login_uses(c, "mysql_clear_password");
}

static int login_unknown_plugin(struct my_conn *c, hf__time now)
{
    return REFUSED(c, now, HF_EAUTH,
                   "the server wants the plugin \"%s\" for this user, which "
                   "holdfast does not have; use mysql_native_password or "
                   "caching_sha2_password",
                   c->plugin);
}

/* Returns whether the connection is protected from readers and attackers on the
 * way. */
static bool login_is_private(const struct my_conn *c)
{
    return c->link.stream.ssl || !c->link.peer->hosts;
}

/* Appends a secret. The stream wipes the bytes once they are sent. */
static void login_put_secret(struct my_conn *c, const void *p, size_t len)
{
    hf__my_put(c, p, len);
    if (!c->failed)
        c->link.stream.out.secret = true;
}

static int login_send_packet(struct my_conn *c)
{
    return hf__my_packet_end(c, c->seq++);
}

/* Appends the plugin's hash. `with_length` is true in the login packet, where
 * the length precedes the hash. */
static bool login_put_answer(struct my_conn *c, bool with_length)
{
    unsigned char to[32];
    bool is_sha2 = login_uses(c, "caching_sha2_password"), ok = true;
    size_t len = 0;

    if (is_sha2 || login_uses(c, "mysql_native_password"))
        ok = hf__my_scramble(is_sha2, c->login->password, c->salt, to, &len);
    if (with_length)
        hf__my_put_number(c, len, 1);
    login_put_secret(c, to, len);
    OPENSSL_cleanse(to, sizeof(to));
    return ok;
}

static int login_send_password(struct my_conn *c)
{
    const char *password = c->login->password;

    hf__my_packet_begin(c);
    login_put_secret(c, password, strlen(password) + 1);
    return login_send_packet(c);
}

/* ---- packets of the server ---------------------------------------------- */

static void login_take_name(char *to, size_t size, const char *from, size_t len)
{
    len = len < size - 1 ? len : size - 1;
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(from[i] > ' ' && from[i] < 127 ? from[i] : '?');
    to[len] = '\0';
}

/* In "5.5.5-10.11.6-MariaDB" the first part is for old replicas. Only MariaDB
 * writes "5.5.5-" before another number, so the server is MariaDB even if the
 * rest does not name it. */
static void login_take_version(struct my_conn *c, const char *text, size_t len)
{
    static const char prefix[] = "5.5.5-";
    char *own = c->version + sizeof(prefix) - 1;

    login_take_name(c->version, sizeof(c->version), text, len);
    c->is_mariadb = strstr(c->version, "MariaDB");
    if (strncmp(c->version, prefix, sizeof(prefix) - 1) != 0 || *own < '0' ||
        *own > '9')
        return;
    c->is_mariadb = true;
    memmove(c->version, own, strlen(own) + 1);
}

static bool login_read_greeting(struct my_conn *c, struct my_cursor *g)
{
    const char *text;
    const void *part;
    size_t len, salt_len;

    text = hf__my_get_text(g, &len);
    if (!text || !g->len)
        return false;
    login_take_version(c, text, len);
    c->thread = (uint32_t)hf__my_get(g, 4);
    part = hf__my_get_bytes(g, 8);
    if (part)
        memcpy(c->salt, part, 8);
    hf__my_get(g, 1);
    c->offers = (uint32_t)hf__my_get(g, 2);
    hf__my_get(g, 3); /* charset, status */
    c->offers |= (uint32_t)hf__my_get(g, 2) << 16;
    salt_len = hf__my_get(g, 1);
    hf__my_get_bytes(g, 10);
    part = hf__my_get_bytes(g, salt_len > 8 + 13 ? salt_len - 8 : 13);
    if (!part)
        return false;
    memcpy(c->salt + 8, part, SALT - 8); /* a 0 follows */
    text = c->offers & CAN_PLUGIN_AUTH ? hf__my_get_text(g, &len) : NULL;
    login_take_name(c->plugin, sizeof(c->plugin), text ? text : "",
                    text ? len : 0);
    return true;
}

static uint32_t login_capabilities(const struct my_conn *c)
{
    return (CAN_WE & c->offers) |
           (c->login->database[0] ? CAN_CONNECT_WITH_DB : 0) |
           (c->login->tls ? CAN_SSL : 0);
}

/* Begins the login packet. If the URL requires TLS, this part is first sent by
 * itself, as the SSLRequest. */
static void login_put_head(struct my_conn *c)
{
    static const char zeros[23];

    hf__my_put_number(c, login_capabilities(c), 4);
    hf__my_put_number(c, 1u << 24, 4); /* the maximum packet size */
    hf__my_put_number(c, CHARSET, 1);
    hf__my_put(c, zeros, sizeof(zeros));
}

int hf__my_login_send(struct my_conn *c)
{
    bool ok;

    c->phase = MY_LOGIN;
    if (!login_is_known(c))
        login_take_name(c->plugin, sizeof(c->plugin), "mysql_native_password",
                        21);
    hf__my_packet_begin(c);
    login_put_head(c);
    hf__my_put_text(c, c->login->user);
    ok = login_put_answer(c, true);
    if (c->login->database[0])
        hf__my_put_text(c, c->login->database);
    if (c->offers & CAN_PLUGIN_AUTH)
        hf__my_put_text(c, c->plugin);
    return ok ? login_send_packet(c) : HF_ENOMEM;
}

/* Returns whether the version is too old. Before MySQL 5.7 a session can own
 * only one user lock; MariaDB before 10.1 has no max_statement_time. A version
 * that does not begin with a number does not count as old. */
static bool login_says_old(const struct my_conn *c)
{
    unsigned major = 0, minor = 0;

    if (sscanf(c->version, "%5u.%5u", &major, &minor) < 1)
        return false;
    return c->is_mariadb ? major < 10 || (major == 10 && minor < 1)
                         : major < 5 || (major == 5 && minor < 7);
}

int hf__my_too_old(struct my_conn *c, hf__time now)
{
    return REFUSED(c, now, HF_EBACKEND,
                   "%s %s is too old: use MySQL 5.7 or MariaDB 10.1, or later",
                   c->is_mariadb ? "MariaDB" : "MySQL", c->version);
}

/* Handles the greeting. A server is refused here if it lacks a capability that
 * the client needs, or if the URL requires TLS and the server has none. A
 * server whose version is too old is refused later, by the hello (session.c):
 * the version may be that of a proxy, and only the hello detects a proxy. */
static int login_greeted(struct my_conn *c, struct my_cursor *body,
                         hf__time now)
{
    /* OpenSSL must not install its atexit handler, because the helper thread
     * may still use OpenSSL when the program exits. */
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    if (!login_read_greeting(c, body))
        return HF_EPROTO;
    c->link.understood = true;
    c->is_too_old = login_says_old(c);
    if ((c->offers & CAN_MUST) != CAN_MUST)
        return hf__my_too_old(c, now);
    if (!c->login->tls)
        return hf__my_login_send(c);
    if (!(c->offers & CAN_SSL))
        return REFUSED(c, now, HF_EPROTO, "the server has no TLS");
    hf__my_packet_begin(c);
    login_put_head(c);
    hf__link_secure(&c->link);
    return login_send_packet(c);
}

static int login_switched(struct my_conn *c, struct my_cursor *body,
                          hf__time now)
{
    size_t len;
    const char *name = hf__my_get_text(body, &len);
    bool has_salt = body->len >= SALT;

    if (!name || !len) /* a server without plugins */
        name = "mysql_old_password", len = strlen(name);
    login_take_name(c->plugin, sizeof(c->plugin), name, len);
    if (!login_is_known(c))
        return login_unknown_plugin(c, now);
    if (has_salt)
        memcpy(c->salt, hf__my_get_bytes(body, SALT), SALT);
    if (login_uses(c, "mysql_clear_password")) {
        if (c->link.stream.ssl)
            return login_send_password(c);
        return REFUSED(c, now, HF_EAUTH,
                       "the server wants the password in clear text: use TLS");
    }
    if (!has_salt && !login_uses(c, "auth_socket") &&
        !login_uses(c, "unix_socket"))
        return HF_EPROTO;
    hf__my_packet_begin(c);
    return login_put_answer(c, false) ? login_send_packet(c) : HF_ENOMEM;
}

static int login_more(struct my_conn *c, struct my_cursor *body, hf__time now)
{
    if (!login_uses(c, "caching_sha2_password") || !body->len)
        return HF_EPROTO;
    switch (hf__my_get(body, 1)) {
    case SHA2_DONE:
        return 0;
    case SHA2_FULL:
        /* The password is sent only over a private connection. On any other
         * connection, it would have to be encrypted with a public key that the
         * server sends, and an attacker could replace that key. */
        return login_is_private(c)
                   ? login_send_password(c)
                   : REFUSED(c, now, HF_EAUTH,
                             "the server wants the password itself: use TLS, "
                             "or the server's socket");
    default:
        return HF_EPROTO;
    }
}

int hf__my_login_packet(struct my_conn *c, struct my_packet *p, hf__time now)
{
    struct my_cursor *body = &p->body;
    uint64_t type = hf__my_get(body, 1);

    if (type == ERR)
        return login_refused(c, body, now);
    if (c->phase == MY_GREETING)
        return type == PROTOCOL ? login_greeted(c, body, now) : HF_EPROTO;
    switch (type) {
    case OK:
        return c->phase == MY_LOGIN ? 1 : HF_EPROTO;
    case MORE:
        return login_more(c, body, now);
    case SWITCH:
        return login_switched(c, body, now);
    default:
        return HF_EPROTO;
    }
}
