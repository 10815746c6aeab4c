/* Creates and frees handles: hf_lock_new(), hf_lock_free(). */
#ifndef HF_HANDLE_H
#define HF_HANDLE_H

#include <holdfast.h>

/* Does what hf_lock_new() does, for kinds up to `last`. Checks the options. */
int hf__lock_new(hf_client *, const void *name, size_t name_len,
                 const hf_lock_options *, enum hf_kind last, hf_lock **,
                 hf_error *);

#endif
