/*
 * The keys of entries, below ROOT NAME/, and their values. Pure.
 *
 *   MUTEX   <lease>           1 to 16 hexadecimal digits, as Go's Mutex
 *   UNFAIR  lock              an unfair mutex: the creator of the key holds it
 *   READ    read/<own>        as Go's RWMutex
 *   WRITE   write/<own>       as Go's RWMutex
 *   MARK    write/<own>+      the writer was downgraded: it lets readers in
 *   PERMIT  permit/<own>.<permits>.<size>
 *   LATCH   latch
 *
 * <own> is "<lease>-<hold id>", both in hexadecimal, the lease in 16 digits.
 * (The <own> of Go's RWMutex is a number of 19 digits.) A mutex may be called
 * NAME/read: its <lease> has at most 16 characters and <own> has more, so its
 * entries differ from those of the readers of NAME.
 */
#ifndef HF_ETCD_ENTRY_H
#define HF_ETCD_ENTRY_H

#include <holdfast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum et_form {
    ET_FORM_NONE, /* no entry: the key of a longer name or of another program */
    ET_FORM_MUTEX,
    ET_FORM_UNFAIR,
    ET_FORM_READ,
    ET_FORM_WRITE,
    ET_FORM_MARK,
    ET_FORM_PERMIT,
    ET_FORM_LATCH,
};

/* A key belongs to no lock if one of its parts begins with this prefix. */
#define ET_OURS "holdfast:"
#define ET_REST_MAX 80 /* longest part of an entry's key after NAME/ */
#define ET_KEY_MAX (HF_NAME_MAX + 300)
#define ET_MARK '+' /* added to a writer's key to form that of its mark */

/* Returns the form of a key by the part after NAME/. If the form is PERMIT,
 * sets permits and size, which may be NULL. */
enum et_form hf__et_form(const char *rest, size_t len, uint32_t *permits,
                         uint32_t *size);
/* Returns the length of the name in this key (without ROOT), or 0 if the key is
 * no entry. */
size_t hf__et_name_len(const char *key, size_t len);
/* Writes the end of the range of all keys with that prefix and returns the
 * length of that end. An empty prefix is replaced with the first possible key,
 * for which `key` must have room. */
size_t hf__et_prefix(char *key, size_t *len, char *end);
/* Returns true if a part of the name begins with ET_OURS. */
bool hf__et_is_reserved(const char *name, size_t len);
/* Returns the kind of lock that has entries of this form, or 0 for
 * ET_FORM_NONE. */
int hf__et_kind(enum et_form);
/* Writes the part of an entry's key after NAME/ and returns its length. */
size_t hf__et_rest(char out[ET_REST_MAX], enum et_form, int64_t lease,
                   uint64_t hold_id, uint32_t permits, uint32_t size);

/*
 * The value of an entry describes the client that created it. Entries of Go
 * have no value. Ours:
 *
 *   holdfast <fixed lease in ms, or 0> <since, unix ms> <written, unix ms>
 *   <pid>
 *   <host>
 *   <label>
 */
#define ET_VALUE_MAX 512
/* Writes such a value and returns its length; what does not fit is cut. `about`
 * contains the lines of <pid> and <host>. */
size_t hf__et_value(char out[ET_VALUE_MAX], const char *about,
                    const char *label, uint32_t lease_ms, int64_t since_ms,
                    int64_t now_ms);
/* Fills in the party from the value. Does nothing if another program wrote the
 * value. */
void hf__et_value_read(hf_party *, const char *value, size_t len,
                       int64_t now_ms);

/* Reads a number, and moves *at past it and the space that follows. */
int64_t hf__et_number(const char **at, const char *end);

/* Writes the value of a LATCH and returns its length. */
size_t hf__et_count_text(char out[ET_VALUE_MAX], uint64_t count);
/* Reads the value of a LATCH. Returns false if holdfast did not write it. */
bool hf__et_count_parse(const char *value, size_t len, uint64_t *count);

#endif
