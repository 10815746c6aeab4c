#include "tables.h"

#include <stdio.h>
#include <string.h>

#define OWNER "owner binary(16) not null"
#define HOLD "hold bigint unsigned not null"
#define TOKEN "token bigint unsigned not null"
#define HOLDER                                                                 \
    "host varbinary(64) not null", "pid bigint unsigned not null",             \
        "label varbinary(255) not null", "since datetime(6) not null",         \
        "lease_us bigint unsigned not null",                                   \
        "lease_until datetime(6) not null",                                    \
        "asks bigint unsigned not null default 0"

const struct my_table hf__my_tables[MY_TABLES] = {
    {"holdfast_locks",
     {"name varbinary(512) not null primary key", "kind tinyint not null",
      "size bigint unsigned not null", TOKEN, OWNER, HOLD,
      "rings tinyint not null", "fair tinyint not null", HOLDER},
     ""},
    {"holdfast_holds",
     {"name varbinary(512) not null", OWNER, HOLD, "mode tinyint not null",
      "permits int unsigned not null", TOKEN, HOLDER},
     ",primary key(name,owner,hold)"},
    {"holdfast_requests",
     {"name varbinary(512) not null", OWNER, "request bigint unsigned not null",
      "answer tinyint not null", "keep_until datetime(6) not null"},
     ",primary key(name,owner,request)"},
    {"holdfast_values",
     {"name varbinary(512) not null primary key", "value longblob not null",
      TOKEN, "written datetime(6) not null"},
     ""},
};

const char *hf__my_make_table(char to[MY_STATEMENT_MAX], size_t i,
                              const char *database)
{
    const struct my_table *t = &hf__my_tables[i];
    size_t at = (size_t)snprintf(to, MY_STATEMENT_MAX,
                                 "create table if not exists %s%.64s%s%s",
                                 database ? "`" : "", database ? database : "",
                                 database ? "`." : "", t->name);

    for (size_t c = 0; t->column[c]; c++)
        at += (size_t)snprintf(to + at, MY_STATEMENT_MAX - at, "%c%s",
                               c ? ',' : '(', t->column[c]);
    snprintf(to + at, MY_STATEMENT_MAX - at, "%s) engine=innodb", t->key);
    return to;
}

bool hf__my_add_grant(char *to, size_t size, size_t i, const char *rights,
                      const char *database, const char *user, int user_len)
{
    size_t at = strlen(to);
    int len = snprintf(to + at, size - at, "%sgrant %s on `%s`.%s to %.*s",
                       at ? "; " : "", rights, database, hf__my_tables[i].name,
                       user_len, user);

    if ((size_t)len < size - at)
        return true;
    to[at] = '\0';
    return false;
}
