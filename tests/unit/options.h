/* Initializers for the options of the public interface: the defaults, except
 * for the fields that are given. */
#ifndef UNIT_OPTIONS_H
#define UNIT_OPTIONS_H

#include <holdfast.h>

/* A given field is initialized twice: its value overrides the default. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

/* clang-format off */
#define CLIENT_OPTIONS(...) {.size = sizeof(hf_client_options), __VA_ARGS__}
#define LOCK_OPTIONS(...) \
    {.size = sizeof(hf_lock_options), .kind = HF_MUTEX, __VA_ARGS__}
#define ACQUIRE_OPTIONS(...) \
    {.size = sizeof(hf_acquire_options), .wait_ms = HF_FOREVER, __VA_ARGS__}
/* clang-format on */

#endif
