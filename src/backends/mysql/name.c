#include "name.h"

#include "wait.h"

#include <openssl/sha.h>
#include <string.h>

void hf__my_hash(const struct mysql *m, const char *name, size_t len,
                 uint8_t to[MY_HASH_LEN])
{
    char text[64 + 1 + HF_NAME_MAX];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    /* The hash includes the database, because user locks are common to all
     * databases of the server. */
    size_t used = strlen(m->login.database) + 1;

    memcpy(text, m->login.database, used);
    memcpy(text + used, name, len);
    SHA256((const unsigned char *)text, used + len, digest);
    memcpy(to, digest, MY_HASH_LEN);
}

size_t hf__my_label_len(const struct hf__remote *remote)
{
    size_t len = strlen(remote->label);

    return len < 255 ? len : 255;
}

void hf__my_bind_name(struct my_conn *c, const char *name, size_t len,
                      const uint8_t hash[MY_HASH_LEN])
{
    hf__my_bind_bytes(c, 'N', 'x', name, len);
    hf__my_bind_bytes(c, 'Q', 'h', hash, MY_HASH_LEN);
}

void hf__my_bind_client(const struct mysql *m, struct my_conn *c)
{
    hf__my_bind_bytes(c, 'O', 'x', m->owner, MY_OWNER_LEN);
    hf__my_bind_bytes(c, 'C', 'h', m->owner, MY_OWNER_LEN);
    hf__my_bind_bytes(c, 'A', 'x', m->host, strlen(m->host));
    hf__my_bind_number(c, 'P', m->pid);
}

void hf__my_bind_lock(const struct mysql *m, struct my_conn *c,
                      const struct my_lock *lock)
{
    const struct hf__remote *r = lock->remote;

    hf__my_bind_client(m, c);
    hf__my_bind_name(c, r->name, r->name_len, lock->hash);
    hf__my_bind_bytes(c, 'B', 'x', r->label, hf__my_label_len(r));
    hf__my_bind_number(c, 'T', lock->wait ? lock->wait->conn.thread : 0);
    hf__my_bind_number(c, 'K', r->kind);
    hf__my_bind_number(c, 'S', r->permits);
    hf__my_bind_number(c, 'F', r->fair);
    hf__my_bind_number(c, 'W', r->kind == HF_RWLOCK && r->mode == HF_WRITE);
}
