#include "name.h"

#include <openssl/sha.h>
#include <string.h>

void hf__my_hash(const struct mysql *m, const char *name, size_t len,
                 uint8_t to[MY_HASH_LEN])
{
    char text[64 + 1 + HF_NAME_MAX];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    size_t used = strlen(m->login.database) + 1; /* user locks know none */

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
