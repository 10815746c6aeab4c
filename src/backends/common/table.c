#include "table.h"

#include "base/hash.h"

#include <string.h>

static uint32_t table_hash_of(uint16_t number, const char *text, size_t len)
{
    uint32_t hash = hf__hash32(HF__HASH32 ^ number, text, len);

    return hash ^ hash >> 15;
}

static struct hf__keyed **table_bucket_of(const struct hf__table *t,
                                          uint32_t hash)
{
    return &t->bucket[hash & (t->cap - 1)];
}

void *hf__table_find(const struct hf__table *t, uint16_t number,
                     const char *text, size_t len)
{
    uint32_t hash = table_hash_of(number, text, len);
    struct hf__keyed *k = t->cap ? *table_bucket_of(t, hash) : NULL;

    while (k && (k->hash != hash || k->number != number || k->len != len ||
                 memcmp(k->text, text, len) != 0))
        k = k->next;
    return k;
}

static void table_put(struct hf__table *t, struct hf__keyed *k)
{
    struct hf__keyed **at = table_bucket_of(t, k->hash);

    k->next = *at;
    *at = k;
}

static int table_grow(struct hf__table *t)
{
    struct hf__table bigger = *t;

    if (t->len < t->cap)
        return 0;
    bigger.cap = t->cap ? t->cap * 2 : 16;
    bigger.bucket =
        t->core->alloc(t->client, bigger.cap * sizeof(*bigger.bucket));
    if (!bigger.bucket)
        /* Without memory for a bigger table, the full one is kept: it is
         * slower, but works. */
        return t->cap ? 0 : HF_ENOMEM;
    for (size_t i = 0; i < t->cap; i++)
        while (t->bucket[i]) {
            struct hf__keyed *k = t->bucket[i];

            t->bucket[i] = k->next;
            table_put(&bigger, k);
        }
    t->core->free(t->client, t->bucket);
    *t = bigger;
    return 0;
}

void *hf__table_add(struct hf__table *t, size_t size, uint16_t number,
                    const char *text, size_t len)
{
    struct hf__keyed *k =
        table_grow(t) ? NULL : t->core->alloc(t->client, size + len + 1);

    if (!k)
        return NULL;
    k->text = memcpy((char *)k + size, text, len);
    k->number = number;
    k->len = (uint16_t)len;
    k->hash = table_hash_of(number, text, len);
    table_put(t, k);
    t->len++;
    return k;
}

void hf__table_remove(struct hf__table *t, void *keyed)
{
    struct hf__keyed *k = keyed, **at = table_bucket_of(t, k->hash);

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    t->len--;
    t->core->free(t->client, k);
}

void *hf__table_next(const struct hf__table *t, const void *keyed)
{
    const struct hf__keyed *k = keyed;
    size_t i = k ? (k->hash & (t->cap - 1)) + 1 : 0;

    if (k && k->next)
        return k->next;
    while (i < t->cap && !t->bucket[i])
        i++;
    return i < t->cap ? t->bucket[i] : NULL;
}

void hf__table_fini(struct hf__table *t)
{
    struct hf__keyed *k = hf__table_next(t, NULL), *next;

    for (; k; k = next) {
        next = hf__table_next(t, k);
        hf__table_remove(t, k);
    }
    t->core->free(t->client, t->bucket);
    t->bucket = NULL;
    t->cap = 0;
}
