/*
 * What a client is opened with: the URL and the options, taken apart and
 * checked (struct hf__config). It is there until the client is open.
 */
#ifndef HF_CONFIG_H
#define HF_CONFIG_H

#include <holdfast.h>

/* Makes client->config, and sets what the client keeps of it. EINVAL, EBACKEND
 * (no such module), ENOMEM, each with a text; what has been made is freed by
 * hf__config_free(). */
int hf__config_make(hf_client *, const char *url, const hf_client_options *,
                    hf_error *);
void hf__config_free(hf_client *);

#endif
