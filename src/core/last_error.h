/*
 * The texts of errors: what the backend last said of a failure, and why its
 * server cannot be reached. The backend leaves its text in the client
 * (hf__core.why). The text about a request of a line is copied to that
 * request's exchange (hf__keep_word_locked), because the last text may be about
 * another failure when the caller wakes. why_mu, a leaf mutex, guards them.
 */
#ifndef HF_LAST_ERROR_H
#define HF_LAST_ERROR_H

#include "core/line.h"

#include <holdfast.h>
#include <stdbool.h>

/* Implement hf__core.why, lasts and trouble. */
int hf__fail_why_set(hf_client *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int hf__fail_lasts_set(hf_client *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void hf__trouble_set(hf_client *, const char *text);

/* Returns the code, with the backend's last text if that was about this
 * code. */
int hf__fail_why(hf_client *, hf_error *, int code);
/* True if a later call may succeed although this one failed with that code. */
bool hf__may_pass(const hf_client *, int code);
/* hf__fail_why() with `word`, a text that was kept when the request failed
 * (NULL if there is none). */
int hf__fail_word(hf_client *, const hf_error *word, hf_error *, int code);
/* Keeps the backend's last text for a request of that exchange that ended with
 * that code. client->mu is held. */
void hf__keep_word_locked(hf_client *, struct hf__exchange *, bool let_go,
                          int code);
/* Frees the texts that were kept for its requests. */
void hf__words_free(hf_client *, struct hf__exchange *);
/* Sets may_pass; must be called after hf__fail() with that code. Returns the
 * code. */
int hf__fail_passing(const hf_client *, hf_error *err, int code);
/* Fails with EBACKEND: the server does not answer. */
int hf__silence(hf_client *, hf_error *);

/* What to append to "no answer": "; cause: ...", or "". */
struct hf__trouble {
    char text[720 + sizeof("; cause: ")];
};

struct hf__trouble hf__trouble(hf_client *);

#endif
