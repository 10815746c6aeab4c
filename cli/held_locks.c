#include "held_locks.h"

int held_locks_explain(const struct held_locks *held, size_t *which,
                       hf_error *why)
{
    hf_error trouble = HF_ERROR_INIT;
    int rc = HF_OK;
    size_t i = 0;

    while (i < held->len && rc == HF_OK) {
        hf_error one = HF_ERROR_INIT;

        rc = hf_lock_explain(held->parts[i++].lock, &one);
        if (rc != HF_OK || !trouble.text[0])
            trouble = one;
    }
    if (rc != HF_OK && which)
        *which = i - 1;
    if (why)
        *why = trouble;
    return rc;
}

int held_locks_deadline(const struct held_locks *held, size_t *which,
                        int64_t *deadline)
{
    int64_t first = HF_NO_DEADLINE, one;

    for (size_t i = 0; i < held->len; i++) {
        int rc = hf_lock_deadline(held->parts[i].lock, &one);

        if (rc != HF_OK)
            return rc;
        if (one < first && which)
            *which = i;
        first = one < first ? one : first;
    }
    *deadline = first;
    return HF_OK;
}

void held_locks_release_nowait(const struct held_locks *held)
{
    for (size_t i = 0; i < held->len; i++)
        hf_lock_release_nowait(held->parts[i].lock, NULL);
}

int held_locks_asked_fd(const struct held_locks *held)
{
    int caps = hf_client_caps(held->client, held->options->kind);

    return caps > 0 && caps & HF_CAP_WANTED ? hf_client_fd(held->client) : -1;
}

void held_locks_say_asked(const struct held_locks *held)
{
    hf_client_dispatch(held->client);
}
