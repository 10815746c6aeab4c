/*
 * The keys of entries, below ROOT NAME/, and their values. Pure.
 *
 *   MUTEX   <lease>           1 to 16 hexadecimal digits, as Go's Mutex
 *   UNFAIR  lock              of an unfair mutex: its creator holds it
 *   READ    read/<own>        as Go's RWMutex
 *   WRITE   write/<own>
 *   MARK    write/<own>+      the writer reads now, and lets readers in
 *   PERMIT  permit/<own>.<permits>.<size>
 *   LATCH   latch
 *
 * <own> is "<lease>-<hold id>", both in hexadecimal, the lease in 16 digits; of
 * Go a number of 19 digits. It has more than 16 characters: so NAME/read can be
 * the name of a mutex.
 */
#ifndef HF_ETCD_ENTRY_H
#define HF_ETCD_ENTRY_H

#include <holdfast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum et_form {
    ET_FORM_NONE, /* no entry: of a name below this one, or of a stranger */
    ET_FORM_MUTEX,
    ET_FORM_UNFAIR,
    ET_FORM_READ,
    ET_FORM_WRITE,
    ET_FORM_MARK,
    ET_FORM_PERMIT,
    ET_FORM_LATCH,
};

#define ET_OURS "holdfast:" /* parts of keys that are no lock's begin so */
#define ET_REST_MAX 80      /* of a key, behind NAME/ */
#define ET_KEY_MAX (HF_NAME_MAX + 300)
#define ET_MARK '+' /* behind the key of a writer: its mark's */

/* What is behind NAME/. permits, size: of a PERMIT, may be NULL. */
enum et_form hf__et_form(const char *rest, size_t len, uint32_t *permits,
                         uint32_t *size);
/* Where the name ends that the key (without ROOT) is an entry of; 0: of none.
 */
size_t hf__et_name_len(const char *key, size_t len);
/* Of a range of all that begins with the key: its end, and that end's length.
 * An empty key becomes the first one that can be. */
size_t hf__et_prefix(char *key, size_t *len, char *end);
/* Has it a part that begins with ET_OURS? */
bool hf__et_is_reserved(const char *name, size_t len);
/* The kind of lock that has such entries; 0: NONE. */
int hf__et_kind(enum et_form);
/* Writes what is behind NAME/; the length. */
size_t hf__et_rest(char out[ET_REST_MAX], enum et_form, int64_t lease,
                   uint64_t hold_id, uint32_t permits, uint32_t size);

/*
 * What an entry of ours says of itself, as a value; Go's have none.
 *
 *   holdfast <fixed lease in ms, or 0> <since, unix ms> <written, unix ms>
 *   <pid>
 *   <host>
 *   <label>
 */
#define ET_VALUE_MAX 512
size_t hf__et_value(char out[ET_VALUE_MAX], const char *about,
                    const char *label, uint32_t lease_ms, int64_t since_ms,
                    int64_t now_ms);
/* Fills in what it says; nothing, if it is not one of ours. */
void hf__et_value_read(hf_party *, const char *value, size_t len,
                       int64_t now_ms);

/* Takes a number, and the space behind it, from the front. */
int64_t hf__et_number(const char **at, const char *end);

/* The value of a LATCH. */
size_t hf__et_count_text(char out[ET_VALUE_MAX], uint64_t count);
bool hf__et_count_parse(const char *value, size_t len, uint64_t *count);

#endif
