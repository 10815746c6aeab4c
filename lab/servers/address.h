/* The parts of a place's URL, for the lab's own connections. */
#ifndef HF_LAB_ADDRESS_H
#define HF_LAB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Parses SCHEME://[user[:password]@][host[:port]][/path][?options]; user,
 * password and path may contain %XX. A part that is missing is "" or 0. */
struct lab_address {
    char scheme[16];
    char user[96], password[160];
    char host[160]; /* an IPv6 address without its brackets */
    int port;
    char path[160]; /* what follows the slash; for redis+unix with the slash */
    char options[256];
};

/* Returns NULL, or what is wrong: a text that quotes nothing from the URL. */
const char *lab_address_parse(const char *url, struct lab_address *out);
/* The option KEY=... of a URL, decoded. False: the URL has none. */
bool lab_address_option(const struct lab_address *address, const char *key,
                        char *out, size_t size);

#endif
