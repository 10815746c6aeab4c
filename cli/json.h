/*
 * Writes JSON to standard output, for --json. A process has one such writer,
 * which inserts the commas.
 */
#ifndef HF_CLI_JSON_H
#define HF_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An example:
 *
 *     json_open(NULL, '{'); json_text("a", "b"); json_number("n", 1);
 *     json_close('}');
 *
 * The key is NULL in an array and at the top level. json_end() ends the line.
 */
void json_open(const char *key, char bracket);
void json_close(char bracket);
void json_text(const char *key, const char *text);
void json_number(const char *key, int64_t number);
void json_unsigned(const char *key, uint64_t number);
void json_real(const char *key, double number, int digits);
void json_bool(const char *key, bool value);
void json_null(const char *key);
/* Writes the bytes of a name. If some bytes are not UTF-8, each of them becomes
 * U+FFFD, and all bytes of the name follow in hexadecimal under the key
 * "KEY_hex". */
void json_name(const char *key, const void *bytes, size_t len);
void json_end(void);
#endif
