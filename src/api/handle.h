/* Handles are made and freed: hf_lock_new(), hf_lock_free(). Checks the
 * options. */
#ifndef HF_HANDLE_H
#define HF_HANDLE_H

#include <holdfast.h>

/* hf_lock_new(), of a kind up to the last. */
int hf__lock_new(hf_client *, const void *name, size_t name_len,
                 const hf_lock_options *, enum hf_kind last, hf_lock **,
                 hf_error *);

#endif
