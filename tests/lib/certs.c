#include "certs.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define HERE "DNS:localhost,IP:127.0.0.1"
#define DAY 86400L

struct cert {
    X509 *x;
    EVP_PKEY *key;
};

static void forget(struct cert *c)
{
    X509_free(c->x);
    EVP_PKEY_free(c->key);
}

static bool add(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    bool ok = e && X509_add_ext(x, e, -1);

    X509_EXTENSION_free(e);
    return ok;
}

/* Creates a certificate that is valid for the two days before `until`. It is
 * signed by `by`; if that is NULL, the certificate is self-signed and a CA.
 * names: its alternative names, or NULL. */
static bool make(struct cert *c, const struct cert *by, const char *name,
                 const char *names, long until)
{
    static long serial;
    X509_NAME *subject;

    /* A MySQL built with OpenSSL 1.0 does not support ECDSA. */
    c->key =
        getenv("TEST_MYSQL") ? EVP_RSA_gen(2048) : EVP_EC_gen("prime256v1");
    c->x = X509_new();
    if (!c->key || !c->x)
        return false;
    subject = X509_get_subject_name(c->x);
    return X509_set_version(c->x, X509_VERSION_3) &&
           ASN1_INTEGER_set(X509_get_serialNumber(c->x), ++serial) &&
           X509_gmtime_adj(X509_getm_notBefore(c->x), until - 2 * DAY) &&
           X509_gmtime_adj(X509_getm_notAfter(c->x), until) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                      (const unsigned char *)name, -1, -1, 0) &&
           X509_set_issuer_name(c->x,
                                by ? X509_get_subject_name(by->x) : subject) &&
           X509_set_pubkey(c->x, c->key) &&
           (by || add(c->x, NID_basic_constraints, "critical,CA:TRUE")) &&
           (!names || add(c->x, NID_subject_alt_name, names)) &&
           X509_sign(c->x, by ? by->key : c->key, EVP_sha256());
}

static FILE *create(const char *dir, const char *name, const char *ending)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s.%s", dir, name, ending);
    return fopen(path, "w");
}

static bool save(const struct cert *c, const char *dir, const char *name)
{
    FILE *pem = create(dir, name, "pem"), *key = create(dir, name, "key");
    bool ok = pem && key && PEM_write_X509(pem, c->x) &&
              PEM_write_PrivateKey(key, c->key, NULL, NULL, 0, NULL, NULL);

    if (pem && fclose(pem))
        ok = false;
    if (key && fclose(key))
        ok = false;
    return ok;
}

int certs_make(const char *dir)
{
    static const struct {
        const char *name, *names;
        long until;
        bool own;
    } all[] = {
        {"server", HERE, DAY, false},
        {"client", "DNS:client", DAY, false},
        {"elsewhere", "DNS:elsewhere.example", DAY, false},
        {"expired", HERE, -DAY, false},
        {"stranger", HERE, DAY, true},
    };
    struct cert ca = {0};
    bool ok = make(&ca, NULL, "ca", NULL, DAY) && save(&ca, dir, "ca");

    for (size_t i = 0; ok && i < sizeof(all) / sizeof(*all); i++) {
        struct cert c = {0};

        ok = make(&c, all[i].own ? NULL : &ca, all[i].name, all[i].names,
                  all[i].until) &&
             save(&c, dir, all[i].name);
        forget(&c);
    }
    forget(&ca);
    if (!ok)
        fprintf(stderr, "cannot make certificates in %s\n", dir);
    return ok ? 0 : -1;
}
