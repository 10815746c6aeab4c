/*
 * What the backend last said of a failure, and why its server cannot be
 * reached: the texts of errors. The backend leaves its words in the client, by
 * hf__core.why(); those about a request of a line are kept with that request
 * (hf__keep_word_locked), because the last word may be about another one when
 * its caller wakes. why_mu guards them, a leaf mutex.
 */
#ifndef HF_LAST_ERROR_H
#define HF_LAST_ERROR_H

#include "core/line.h"

#include <holdfast.h>
#include <stdbool.h>

/* hf__core.why, lasts and trouble. */
int hf__fail_why_set(hf_client *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int hf__fail_lasts_set(hf_client *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void hf__trouble_set(hf_client *, const char *text);

/* The code, with the backend's last word as text if it spoke of that code. */
int hf__fail_why(hf_client *, hf_error *, int code);
bool hf__may_pass(const hf_client *, int code);
/* The same, with the words that were kept when that request failed: the last
 * word may be about another one by now. */
int hf__fail_word(hf_client *, const hf_error *word, hf_error *, int code);
/* Keeps the backend's last word for a request of that exchange which has come
 * to that code; client->mu is held. */
void hf__keep_word_locked(hf_client *, struct hf__exchange *, bool let_go,
                          int code);
void hf__words_free(hf_client *, struct hf__exchange *);
/* After hf__fail() with that code: does it pass by itself? Returns the code. */
int hf__fail_passing(const hf_client *, hf_error *err, int code);
/* EBACKEND, with its text: the server does not answer. */
int hf__silence(hf_client *, hf_error *);

/* To be put behind "no answer": "; cause: ...", or "". */
struct hf__trouble {
    char text[720 + sizeof("; cause: ")];
};

struct hf__trouble hf__trouble(hf_client *);

#endif
