/* The parts of a place's URL, for the lab's own connections. */
#ifndef HF_LAB_ADDRESS_H
#define HF_LAB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* The parts of SCHEME://[user[:password]@][host[:port]][/path][?options], where
 * user, password and path may contain %XX. A part that is missing is "" or
 * 0. */
struct lab_address {
    char scheme[16];
    char user[96], password[160];
    char host[160]; /* an IPv6 address without its brackets */
    int port;
    char path[160]; /* without the leading slash; with it for redis+unix */
    char options[256];
};

/* Parses a URL. Returns NULL, or a message that says what is wrong and quotes
 * nothing from the URL. */
const char *lab_address_parse(const char *url, struct lab_address *out);
/* Copies the decoded value of the option KEY=... to out. Returns false if the
 * URL has no such option, or if its value is bad or too long. */
bool lab_address_option(const struct lab_address *address, const char *key,
                        char *out, size_t size);

#endif
