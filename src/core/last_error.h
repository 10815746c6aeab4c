/*
 * Error messages: what the backend last said about a failure, and why the
 * server cannot be reached. The backend leaves its message in the client
 * (hf__core.why); why_mu, a leaf mutex, guards it. A message about a request of
 * a line is also copied to the exchange of the line (hf__keep_word_locked),
 * because the client's message may be about another failure by the time the
 * caller wakes.
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

/* Fails with that code and the backend's last message, or with the general
 * message of the code if the backend's message is about another code. */
int hf__fail_why(hf_client *, hf_error *, int code);
/* Returns whether a later call may succeed although this one failed with that
 * code. */
bool hf__may_pass(const hf_client *, int code);
/* Fails with that code and with `word`, a message that was kept when the
 * request failed. Uses the general message of the code if `word` is NULL or
 * about another code. */
int hf__fail_word(hf_client *, const hf_error *word, hf_error *, int code);
/* Must be called when a request of the exchange has ended with `code`: the
 * let_go if `let_go` is set, otherwise the attempt. If `code` is an error,
 * keeps the backend's last message for this request; otherwise clears the
 * message that was kept for it. client->mu is held. */
void hf__keep_word_locked(hf_client *, struct hf__exchange *, bool let_go,
                          int code);
/* Frees the messages that were kept for the requests of that exchange. */
void hf__words_free(hf_client *, struct hf__exchange *);
/* Sets err->may_pass; must be called after hf__fail() with the same code.
 * Returns that code. */
int hf__fail_passing(const hf_client *, hf_error *err, int code);
/* Fails with EBACKEND and a message that says that the server does not
 * answer. */
int hf__silence(hf_client *, hf_error *);

/* The string to append to "no answer": "; cause: ...", or "". */
struct hf__trouble {
    char text[720 + sizeof("; cause: ")];
};

struct hf__trouble hf__trouble(hf_client *);

#endif
