/*
 * What a user of the server has to be allowed: rules for ACL SETUSER, from the
 * texts of the scripts and the names of the keys. Pure text, for the advice
 * that errors and diagnoses give; rights.c and redlock use it too.
 */
#ifndef HF_REDIS_RULES_H
#define HF_REDIS_RULES_H

#include "keys.h"

#define RD_COMMANDS_MAX 64

/* The text before the rules of a user. */
#define RD_RUN "Run in redis-cli: ACL SETUSER "

enum rd_rules_of { RD_RULES_REDISSON, RD_RULES_STRING, RD_RULES_REDLOCK };

/* Commands, as lua/rights.lua takes them: each once. */
struct rd_commands {
    size_t len;
    struct rd_command {
        char word[24];
    } all[RD_COMMANDS_MAX];
};

/* Rules as they are written, each with a blank before it. */
struct rd_rules {
    char *to;
    size_t size, len;
    bool is_cut;
};

/* The commands of the scripts, and those that are sent without a script. */
void hf__rd_rules_commands(struct rd_commands *, enum rd_rules_of, bool wait);
void hf__rd_rules_put(struct rd_rules *, const char *command);
void hf__rd_rules_put_keys(struct rd_rules *, enum rd_rules_of,
                           const char *prefix, size_t len);
void hf__rd_rules_put_channels(struct rd_rules *, enum rd_rules_of,
                               const char *prefix, size_t len);

/* Rules for ACL SETUSER, with a blank before each: the keys of names that begin
 * with the prefix (NULL: not these), and all commands; wait: WAIT too. Cut if
 * it is too long. Returns the buffer. */
const char *hf__rd_rules(char *buffer, size_t size, enum rd_rules_of,
                         const char *prefix, bool wait);

#endif
