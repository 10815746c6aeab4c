/*
 * How each kind of temporary server is prepared and executed, from the files of
 * its Debian package. Only servers.c uses this header, except that a scenario
 * calls lab_etcd_leads().
 */
#ifndef HF_LAB_SERVER_RECIPES_H
#define HF_LAB_SERVER_RECIPES_H

#include "../runner/place.h"
#include "servers.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SERVER_RECIPE_FILES = 2,
    SERVER_RECIPE_PATH = 256,
    SERVER_RECIPE_SECRET = 17
};

/* Where a member of etcd listens for the other members: a socket in the
 * directory of the run, named after the port of the member. */
#define SERVER_RECIPE_PEER "unix://peer%d:0"

/* What the server's process needs. */
struct launch {
    struct lab_server *server; /* in shared memory */
    const struct server_recipe *recipe;
    const char *const *args;
    char program[SERVER_RECIPE_FILES][SERVER_RECIPE_PATH];
    char secret[SERVER_RECIPE_SECRET];
};

struct server_recipe {
    const char *name;
    struct {
        const char *file, *what, *package;
    } needs[SERVER_RECIPE_FILES];
    void (*execute)(const struct launch *launch);
    bool (*answers)(const struct lab_server *server);
};

/* Returns whether the member is the leader of its etcd cluster. */
bool lab_etcd_leads(const struct lab_server *member);

/* Indexed by engine. If `execute' is NULL, the engine has no server of its
 * own. */
extern const struct server_recipe server_recipes[LAB_ENGINES];

/* Adds to `out' the packages that are missing, each after a space. */
void server_recipe_missing(const struct server_recipe *recipe, char *out,
                           size_t size);
/* Finds the programs that the recipe needs, and notes their paths in the
 * struct. Dies if one is missing, and names the package that contains it. */
void server_recipe_find(struct launch *launch);
/* In the server's process: creates the directory, and executes the server. The
 * parameter `arg' is the struct launch. */
void server_recipe_run(void *arg);

#endif
