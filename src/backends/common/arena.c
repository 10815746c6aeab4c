#include "arena.h"

#define BLOCK_MIN 4096
#define BLOCK_MAX (1u << 20) /* only a larger piece needs a larger block */

struct hf__block {
    struct hf__block *next;
    size_t used, cap;
    max_align_t data[];
};

void hf__arena_init(struct hf__arena *a, const struct hf__core *core,
                    hf_client *client, size_t max)
{
    *a = (struct hf__arena){.core = core, .client = client, .max = max};
}

void hf__arena_reset(struct hf__arena *a)
{
    while (a->blocks && a->blocks->next) {
        struct hf__block *b = a->blocks;

        a->blocks = b->next;
        a->core->free(a->client, b);
    }
    if (a->blocks)
        a->blocks->used = 0;
    a->used = 0;
}

void hf__arena_fini(struct hf__arena *a)
{
    hf__arena_reset(a);
    a->core->free(a->client, a->blocks);
    a->blocks = NULL;
}

void *hf__arena_take(struct hf__arena *a, size_t size)
{
    struct hf__block *b = a->blocks;
    size_t cap = BLOCK_MIN;
    void *p;

    if (size > a->max)
        return NULL;
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (a->used + size > a->max)
        return NULL;
    if (!b || b->cap - b->used < size) {
        cap = b && b->cap < BLOCK_MAX ? b->cap * 2 : cap;
        cap = size > cap ? size : cap;
        b = a->core->alloc(a->client, sizeof(*b) + cap);
        if (!b)
            return NULL;
        b->cap = cap;
        b->next = a->blocks;
        a->blocks = b;
    }
    p = (char *)b->data + b->used;
    b->used += size;
    a->used += size;
    return p;
}

bool hf__arena_is_full(const struct hf__arena *a)
{
    return a->used >= a->max / 2;
}
