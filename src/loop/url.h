/*
 * Parses the URL of hf_open() into a struct hf__url (backend.h): scheme, user,
 * hosts, path and options. An error message never quotes a part that may
 * contain a password.
 */
#ifndef HF_URL_H
#define HF_URL_H

#include "backends/backend.h"

/* Returns 0, or EINVAL or ENOMEM with a message. hf__url_free() must be called
 * in either case; it wipes the password. */
int hf__url_parse(hf_client *, const char *text, struct hf__url *, hf_error *);
void hf__url_free(hf_client *, struct hf__url *);
/* Returns the value of the option, or NULL if the URL does not have it. */
const char *hf__url_option(struct hf__url *, const char *key);

#endif
