#include "tables.h"

#include <stddef.h>

const char *const hf__my_tables[MY_TABLES + 1] = {
    "create table if not exists holdfast_locks("
    "name varbinary(512) not null primary key,kind tinyint not null,"
    "size bigint unsigned not null,token bigint unsigned not null,"
    "owner binary(16) not null,hold bigint unsigned not null,"
    "rings tinyint not null,fair tinyint not null,host varbinary(64) not null,"
    "pid bigint unsigned not null,label varbinary(255) not null,"
    "since datetime(6) not null,lease_us bigint unsigned not null,"
    "lease_until datetime(6) not null,"
    "asks bigint unsigned not null default 0) engine=innodb",
    "create table if not exists holdfast_holds("
    "name varbinary(512) not null,owner binary(16) not null,"
    "hold bigint unsigned not null,mode tinyint not null,"
    "permits int unsigned not null,token bigint unsigned not null,"
    "host varbinary(64) not null,pid bigint unsigned not null,"
    "label varbinary(255) not null,since datetime(6) not null,"
    "lease_us bigint unsigned not null,lease_until datetime(6) not null,"
    "asks bigint unsigned not null default 0,"
    "primary key(name,owner,hold)) engine=innodb",
    "create table if not exists holdfast_requests("
    "name varbinary(512) not null,owner binary(16) not null,"
    "request bigint unsigned not null,answer tinyint not null,"
    "keep_until datetime(6) not null,primary key(name,owner,request)) "
    "engine=innodb",
    "create table if not exists holdfast_values("
    "name varbinary(512) not null primary key,value longblob not null,"
    "token bigint unsigned not null,written datetime(6) not null) "
    "engine=innodb",
    NULL};
