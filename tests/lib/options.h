/*
 * Options as an argument: each macro evaluates to a pointer to options that
 * live until the end of the block. Omitted fields have their defaults.
 *
 *     hf_lock_acquire(lock, HOW(500, .lease_ms = 2000), &err);
 */
#ifndef TESTS_OPTIONS_H
#define TESTS_OPTIONS_H

#include <holdfast.h>

#define CLIENT(...)                                                            \
    (&(hf_client_options){.size = sizeof(hf_client_options), __VA_ARGS__})
/* KIND(HF_SEMAPHORE, .permits = 2) */
#define KIND(...)                                                              \
    (&(hf_lock_options){.size = sizeof(hf_lock_options), .kind = __VA_ARGS__})
/* HOW(wait_ms, further fields) */
#define HOW(...)                                                               \
    (&(hf_acquire_options){.size = sizeof(hf_acquire_options),                 \
                           .wait_ms = __VA_ARGS__})

#endif
