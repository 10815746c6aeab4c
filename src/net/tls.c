#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct net_tls {
    const struct hf__core *core;
    hf_client *client;
    SSL_CTX *ctx;
    BIO_METHOD *socket;
    bool has_cert;    /* a client certificate was loaded */
    const char *alpn; /* the protocol inside TLS, or NULL for no ALPN */
};

/* ---- the socket -------------------------------------------------------- */

/* Replaces the write function of OpenSSL's socket BIO, whose write(2) raises
 * SIGPIPE. */
static int tls_socket_write(BIO *bio, const char *p, int len)
{
    const struct net_stream *s = BIO_get_data(bio);
    ssize_t n = send(s->fd, p, (size_t)len, MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)n;
}

static int tls_socket_read(BIO *bio, char *p, int len)
{
    const struct net_stream *s = BIO_get_data(bio);
    ssize_t n = recv(s->fd, p, (size_t)len, 0);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)n;
}

static long tls_socket_ctrl(BIO *bio, int what, long number, void *p)
{
    (void)bio;
    (void)number;
    (void)p;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *tls_new_socket_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "holdfast");

    if (m && BIO_meth_set_write(m, tls_socket_write) &&
        BIO_meth_set_read(m, tls_socket_read) &&
        BIO_meth_set_ctrl(m, tls_socket_ctrl))
        return m;
    BIO_meth_free(m);
    return NULL;
}

/* ---- files ------------------------------------------------------------- */

/* Fails with a message that explains why OpenSSL refuses a file. */
static int tls_bad_file(const struct net_tls *t, const char *option,
                        const char *path, const char *wanted)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(e);

    if (ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE)
        return HF_ENOMEM;
    if (access(path, R_OK))
        return t->core->why(t->client, HF_EINVAL, "%s=%s: %s", option, path,
                            strerror(errno));
    return t->core->why(t->client, HF_EINVAL,
                        "%s=%s: %s; the file must contain %s in PEM format",
                        option, path, reason ? reason : "it cannot be used",
                        wanted);
}

/* Checks that the file is a regular one. OpenSSL reads the file during the
 * backend's open, which must not block without limit: opening a FIFO waits for
 * a writer, and reading a device may never end. */
static int tls_check_file(const struct net_tls *t, const char *option,
                          const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return t->core->why(t->client, HF_EINVAL, "%s=%s: %s", option, path,
                            strerror(errno));
    if (!S_ISREG(st.st_mode))
        return t->core->why(t->client, HF_EINVAL,
                            "%s=%s: this is %s; it must be a regular file",
                            option, path,
                            S_ISFIFO(st.st_mode)   ? "a FIFO"
                            : S_ISDIR(st.st_mode)  ? "a directory"
                            : S_ISSOCK(st.st_mode) ? "a socket"
                                                   : "a device");
    return 0;
}

/* Returns no passphrase. Without this callback OpenSSL would request one on the
 * terminal. */
static int tls_no_passphrase(char *buf, int size, int for_writing, void *arg)
{
    (void)buf;
    (void)size;
    (void)for_writing;
    (void)arg;
    return -1;
}

static int tls_take_own(struct net_tls *t, const char *cert, const char *key)
{
    int rc;

    if (!cert && !key)
        return 0;
    if (!cert || !key)
        return t->core->why(t->client, HF_EINVAL,
                            "%s= without %s=: they must be given together",
                            cert ? "cert" : "key", cert ? "key" : "cert");
    rc = tls_check_file(t, "cert", cert);
    if (!rc)
        rc = tls_check_file(t, "key", key);
    if (rc)
        return rc;
    SSL_CTX_set_default_passwd_cb(t->ctx, tls_no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(t->ctx, cert) != 1)
        return tls_bad_file(t, "cert", cert, "a certificate");
    t->has_cert = true;
    if (SSL_CTX_use_PrivateKey_file(t->ctx, key, SSL_FILETYPE_PEM) == 1)
        return 0;
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        return t->core->why(t->client, HF_EINVAL,
                            "key=%s: it is not the key of cert=%s", key, cert);
    return tls_bad_file(t, "key", key, "a private key without a passphrase");
}

static int tls_take_cas(struct net_tls *t, const char *cacert)
{
    int rc;

    if (!cacert)
        return SSL_CTX_set_default_verify_paths(t->ctx) == 1 ? 0 : HF_ENOMEM;
    rc = tls_check_file(t, "cacert", cacert);
    if (rc)
        return rc;
    if (SSL_CTX_load_verify_locations(t->ctx, cacert, NULL) == 1)
        return 0;
    return tls_bad_file(t, "cacert", cacert, "certificates of CAs");
}

static int tls_offer(struct net_tls *t, const char *alpn)
{
    unsigned char list[16];
    size_t len = alpn ? strlen(alpn) : 0;

    if (!len)
        return 0;
    if (len >= sizeof(list))
        return HF_EINVAL;
    t->alpn = alpn;
    list[0] = (unsigned char)len;
    memcpy(list + 1, alpn, len);
    /* Unlike similar functions of OpenSSL, this one returns 0 on success. */
    return SSL_CTX_set_alpn_protos(t->ctx, list, (unsigned)len + 1) ? HF_ENOMEM
                                                                    : 0;
}

static int tls_set_up(struct net_tls *t, const struct net_tls_files *files)
{
    int rc;

    ERR_clear_error();
    /* OpenSSL must not install its atexit handler, because the helper thread
     * may still use OpenSSL when the program exits. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return HF_ENOMEM;
    t->socket = tls_new_socket_method();
    t->ctx = SSL_CTX_new(TLS_client_method());
    if (!t->socket || !t->ctx ||
        SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION) != 1)
        return HF_ENOMEM;
    SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
    /* Freeing must not send anything, because a forked child shares the socket.
     */
    SSL_CTX_set_quiet_shutdown(t->ctx, 1);
    SSL_CTX_set_read_ahead(t->ctx, 1); /* one recv() for each record, not two */
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    rc = tls_offer(t, files->alpn);
    if (!rc)
        rc = tls_take_cas(t, files->cacert);
    return rc ? rc : tls_take_own(t, files->cert, files->key);
}

int hf__tls_new(const struct hf__core *core, hf_client *client,
                const struct net_tls_files *files, struct net_tls **out)
{
    struct net_tls *t = core->alloc(client, sizeof(*t));
    int rc;

    if (!t)
        return HF_ENOMEM;
    t->core = core;
    t->client = client;
    rc = tls_set_up(t, files);
    ERR_clear_error();
    if (rc)
        hf__tls_free(t);
    else
        *out = t;
    return rc;
}

void hf__tls_free(struct net_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    BIO_meth_free(t->socket);
    t->core->free(t->client, t);
}

/* ---- failures ----------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int
tls_say(struct net_stream *s, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->words, sizeof(s->words), fmt, ap);
    va_end(ap);
    s->broken = EPROTO;
    return s->code = code;
}

/* Fails because the server's certificate was not accepted. */
static int tls_distrusted(struct net_stream *s, long why)
{
    switch (why) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return tls_say(
            s, HF_EAUTH,
            "the server's certificate is for other hosts than %.64s; "
            "use a host name that is in it",
            s->host);
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return tls_say(s, HF_EAUTH,
                       "the server's certificate, or its CA's, has expired");
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return tls_say(
            s, HF_EAUTH,
            "the server's certificate, or its CA's, is not valid yet; "
            "is the clock right?");
    case X509_V_ERR_OUT_OF_MEM:
        return tls_say(s, HF_ENOMEM, "out of memory");
    default:
        return tls_say(
            s, HF_EAUTH,
            "the server's certificate is not trusted (%s); give its CA "
            "by cacert=",
            X509_verify_cert_error_string(why));
    }
}

/* Sets code and message for an alert from the server, or for an error in what
 * the server has sent. */
static int tls_explain(struct net_stream *s, unsigned long e)
{
    const char *reason = ERR_reason_error_string(e);

    switch (ERR_GET_REASON(e)) {
    case ERR_R_MALLOC_FAILURE:
        return tls_say(s, HF_ENOMEM, "out of memory");
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return tls_distrusted(s, SSL_get_verify_result(s->ssl));
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return tls_say(s, HF_EPROTO, "what answers does not speak TLS");
    /* In TLS 1.2 this may mean that a client certificate is missing. */
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        if (s->tls->has_cert)
            break;
        /* fallthrough */
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return tls_say(
            s, HF_EAUTH,
            "the server wants a certificate of ours (%s); give it by "
            "cert= and key=",
            reason);
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        return tls_say(s, HF_EAUTH, "the server refused our certificate (%s)",
                       reason);
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
        return tls_say(s, HF_EPROTO, "the server does not agree to speak %s",
                       s->tls->alpn ? s->tls->alpn : "anything");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return tls_say(s, HF_EPROTO, "the server has no TLS 1.2 or later");
    }
    return tls_say(s, HF_EPROTO, "TLS: %s", reason ? reason : "unknown error");
}

/* Handles the result n of an OpenSSL call. Returns 0 if the call must be
 * repeated later; otherwise sets `broken` and returns an error code. The caller
 * has set errno to 0 before the call. */
static int tls_judge(struct net_stream *s, int n)
{
    int error = errno;

    switch (SSL_get_error(s->ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_SSL:
        return tls_explain(s, ERR_peek_error());
    case SSL_ERROR_SYSCALL:
        if (error) {
            s->broken = error;
            break;
        }
        /* fallthrough */
    default: /* SSL_ERROR_ZERO_RETURN */
        s->closed = true;
        s->broken = ECONNRESET;
    }
    return HF_EBACKEND;
}

static int tls_outcome(struct net_stream *s, int n)
{
    int rc = tls_judge(s, n);

    ERR_clear_error();
    return rc;
}

/* Clears OpenSSL's error queue and errno. The thread may belong to the program,
 * whose own errors may be in the queue. SSL_get_error() would take these for
 * errors of the next call. */
static void tls_begin_call(void)
{
    ERR_clear_error();
    errno = 0;
}

/* ---- one connection ------------------------------------------------------ */

/* Sets the host that the certificate must name. An IP address is compared with
 * the addresses in the certificate, and is not sent as the server name. */
static bool tls_set_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

int hf__tls_begin(struct net_stream *s)
{
    BIO *bio;

    /* Without a host name OpenSSL would accept any certificate. */
    if (!s->host[0])
        return tls_say(s, HF_EAUTH, "there is no host name to be verified");
    bio = BIO_new(s->tls->socket);
    s->ssl = SSL_new(s->tls->ctx);
    if (!s->ssl || !bio || !tls_set_host(s->ssl, s->host)) {
        BIO_free(bio);
        ERR_clear_error();
        return tls_say(s, HF_ENOMEM, "out of memory");
    }
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_connect_state(s->ssl);
    return 0;
}

/* Checks that the server has agreed to the protocol. A server that does not
 * support ALPN fails this check, too, because it speaks a different
 * protocol. */
static int tls_check_agreed(struct net_stream *s)
{
    const char *wanted = s->tls->alpn;
    const unsigned char *got = NULL;
    unsigned len = 0;

    if (!wanted)
        return 0;
    SSL_get0_alpn_selected(s->ssl, &got, &len);
    if (len == strlen(wanted) && memcmp(got, wanted, len) == 0)
        return 0;
    return tls_say(s, HF_EPROTO, "the server does not agree to speak %s",
                   wanted);
}

int hf__tls_shake(struct net_stream *s)
{
    int n, rc;

    tls_begin_call();
    n = SSL_do_handshake(s->ssl);
    if (n == 1)
        return tls_check_agreed(s);
    rc = tls_outcome(s, n);
    return rc ? rc : HF__PENDING;
}

bool hf__tls_wants_out(const struct net_stream *s)
{
    return SSL_want_write(s->ssl);
}

ssize_t hf__tls_write(struct net_stream *s, const void *p, size_t len)
{
    int n;

    tls_begin_call();
    n = SSL_write(s->ssl, p, len < INT32_MAX ? (int)len : INT32_MAX);
    return n > 0 ? n : tls_outcome(s, n);
}

/* Sets `more` if OpenSSL has read bytes ahead, because epoll does not report
 * such bytes. */
ssize_t hf__tls_read(struct net_stream *s, void *p, size_t size)
{
    int n, rc;

    tls_begin_call();
    n = SSL_read(s->ssl, p, (int)size);
    s->more = n > 0 && SSL_has_pending(s->ssl);
    if (n > 0)
        return n;
    rc = tls_outcome(s, n);
    /* If OpenSSL wants to write, it cannot send the answer to a key update now,
     * and nothing would send the answer later. This is rare, so the connection
     * is ended. */
    if (!rc && SSL_want_write(s->ssl))
        rc = tls_say(s, HF_EBACKEND, "TLS: a key update is stuck");
    return rc;
}

bool hf__tls_is_over(struct net_stream *s)
{
    char byte;
    int n;
    bool is_over;

    tls_begin_call();
    n = SSL_peek(s->ssl, &byte, 1);
    is_over = n <= 0 && SSL_get_error(s->ssl, n) != SSL_ERROR_WANT_READ;
    ERR_clear_error();
    return is_over;
}

void hf__tls_end(struct net_stream *s)
{
    SSL_free(s->ssl);
    s->ssl = NULL;
}
