/*
 * How each kind of temporary server is made ready and executed, from the files
 * of its Debian package; the inside of servers.c.
 */
#ifndef HF_LAB_RECIPES_H
#define HF_LAB_RECIPES_H

#include "servers.h"

enum { RECIPE_FILES = 2, RECIPE_PATH = 256, RECIPE_SECRET = 17 };

/* Where a member of etcd listens for the others: a socket in the directory of
 * the run, named by the port of the member. */
#define RECIPE_PEER "unix://peer%d:0"

/* What the server's process needs. */
struct launch {
    struct lab_server *server; /* in shared memory */
    const struct recipe *recipe;
    const char *const *args;
    char program[RECIPE_FILES][RECIPE_PATH];
    char secret[RECIPE_SECRET];
};

struct recipe {
    const char *name;
    struct {
        const char *file, *what, *package;
    } needs[RECIPE_FILES];
    void (*execute)(const struct launch *launch);
    bool (*answers)(const struct lab_server *server);
};

/* By engine; one without execute() has no server. */
extern const struct recipe lab_recipes[LAB_ENGINES];

/* Adds the packages that are missing, each after a space. */
void recipe_missing(const struct recipe *recipe, char *out, size_t size);
/* Finds the files, or dies naming the package that has them. */
void recipe_find(struct launch *launch);
/* In the server's process: makes the directory, and executes the server. arg
 * is the launch. */
void recipe_run(void *arg);

#endif
