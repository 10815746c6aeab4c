/*
 * Numbers, URLs and times: small functions that print nothing.
 */
#ifndef HF_CLI_VALUES_H
#define HF_CLI_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* Parses a decimal number in [min, max]. Returns 0 or -1. */
int cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* Returns the URL to use: the value of the option if it is not NULL, else the
 * environment variable HOLDFAST_URL, else the URL of shared memory. */
const char *cli_url(const char *option);
/* Writes the part of the URL before the first colon. That part, unlike the
 * rest, is safe to print. */
void cli_scheme(const char *url, char *out, size_t size);

int64_t cli_now_ns(int clock); /* clock: a clockid_t */
#endif
