/*
 * The configuration of a client while it is opened: the URL and the options,
 * parsed and checked (struct hf__config).
 */
#ifndef HF_CONFIG_H
#define HF_CONFIG_H

#include <holdfast.h>

/* Creates client->config and sets the constant fields of the client. Returns 0,
 * or EINVAL, EBACKEND (the module could not be loaded) or ENOMEM with a
 * message. hf__config_free() must be called in either case. */
int hf__config_make(hf_client *, const char *url, const hf_client_options *,
                    hf_error *);
void hf__config_free(hf_client *);

#endif
