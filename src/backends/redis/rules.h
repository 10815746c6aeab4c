/*
 * The rights that a user of the server needs: rules for ACL SETUSER, derived
 * from the scripts and the keys. Pure functions on strings, for advice in
 * errors and diagnoses, including those of rights.c and redlock.
 */
#ifndef HF_REDIS_RULES_H
#define HF_REDIS_RULES_H

#include "keys.h"

#define RD_COMMANDS_MAX 64

/* Begins a piece of advice; the user name and the rules follow. */
#define RD_RUN "Run in redis-cli: ACL SETUSER "

enum rd_rules_of { RD_RULES_REDISSON, RD_RULES_STRING, RD_RULES_REDLOCK };

/* Commands without duplicates, in the form that lua/rights.lua takes. */
struct rd_commands {
    size_t len;
    struct rd_command {
        char word[24];
    } all[RD_COMMANDS_MAX];
};

/* A string of rules under construction; a blank precedes each rule. */
struct rd_rules {
    char *to;
    size_t size, len;
    bool is_cut;
};

/* Adds the commands that the scripts call, and those that are sent without a
 * script. Adds WAIT only if `wait` is true. */
void hf__rd_rules_commands(struct rd_commands *, enum rd_rules_of, bool wait);
void hf__rd_rules_put(struct rd_rules *, const char *command);
void hf__rd_rules_put_keys(struct rd_rules *, enum rd_rules_of,
                           const char *prefix, size_t len);
void hf__rd_rules_put_channels(struct rd_rules *, enum rd_rules_of,
                               const char *prefix, size_t len);

/* Writes rules for ACL SETUSER, with a blank before each: all commands (WAIT
 * only if `wait` is true), and the keys of names that begin with `prefix`, or
 * no keys if `prefix` is NULL. Truncates the string to fit. Returns the
 * buffer. */
const char *hf__rd_rules(char *buffer, size_t size, enum rd_rules_of,
                         const char *prefix, bool wait);

#endif
