/*
 * The process of a test's server, of any kind: its directory, its ports, its
 * start, death and restart. A server dies with the thread that started it. A
 * start waits until the server answers, never for a fixed time.
 *
 * The struct of each kind of server begins with SERVER_PROCESS, and its header
 * contains SERVER_VERBS(kind), which defines kind_kill(), kind_again(), ... as
 * wrappers of the functions below.
 */
#ifndef TESTS_SERVER_PROCESS_H
#define TESTS_SERVER_PROCESS_H

#include <ftw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SERVER_PORTS 3

#define SERVER_FIELDS                                                          \
    pid_t pid;                  /* 0: not running */                           \
    bool is_stopped;            /* by SIGSTOP */                               \
    char dir[64];               /* its directory; "": none */                  \
    int reserved[SERVER_PORTS]; /* descriptors, to keep its ports */           \
    const struct server_kind *kind;

struct server_process {
    SERVER_FIELDS
};

#define SERVER_PROCESS                                                         \
    union {                                                                    \
        struct server_process process;                                         \
        struct {                                                               \
            SERVER_FIELDS                                                      \
        };                                                                     \
    }

/* Each function is called with the struct of the server, which begins with
 * SERVER_PROCESS. */
struct server_kind {
    const char *name; /* name of the program, for messages */
    /* Called in the child after the fork; must call server_exec(), which
     * executes the server. */
    void (*run)(void *server);
    bool (*answers)(void *server);
    /* Closes the test's own connections to the server; or NULL. */
    void (*forget)(void *server);
    /* Called by server_again() once the server answers; returns 0 or -1. May be
     * NULL. */
    int (*warm)(void *server);
    int ready_ms; /* 0: WAIT_LONG_MS */
};

/* Functions that return int return 0, or -1 with a message on stderr. */

/* Reserves a loopback port for the server. */
int server_port(struct server_process *, int *port);
/* Creates the server's directory, in memory unless `durable`. */
int server_dir(struct server_process *, const char *name, bool durable);

static inline int server_dir_remove_one(const char *path, const struct stat *st,
                                        int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* Removes the directory with its content. */
static inline int server_dir_remove(const char *dir)
{
    return nftw(dir, server_dir_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* server_spawn() starts the process; server_await() waits until it answers. */
int server_spawn(struct server_process *);
int server_await(struct server_process *);
/* Spawns and awaits the server, for the first time or after a kill; the server
 * keeps its ports. */
int server_again(struct server_process *);
/* Kills the server with SIGKILL; the process no longer exists when this
 * returns. The directory stays. */
void server_kill(struct server_process *);
int server_stop(struct server_process *); /* SIGSTOP, in effect on return */
int server_continue(struct server_process *);
/* Kills the server, gives its ports back and removes its directory. */
void server_end(struct server_process *);

#define SERVER_VERBS(kind)                                                     \
    static inline int kind##_again(struct kind *s)                             \
    {                                                                          \
        return server_again(&s->process);                                      \
    }                                                                          \
    static inline void kind##_kill(struct kind *s)                             \
    {                                                                          \
        server_kill(&s->process);                                              \
    }                                                                          \
    static inline int kind##_stop(struct kind *s)                              \
    {                                                                          \
        return server_stop(&s->process);                                       \
    }                                                                          \
    static inline int kind##_continue(struct kind *s)                          \
    {                                                                          \
        return server_continue(&s->process);                                   \
    }                                                                          \
    static inline void kind##_end(struct kind *s)                              \
    {                                                                          \
        server_end(&s->process);                                               \
    }

struct server_args {
    char *arg[64]; /* NULL at the end */
    char text[4096];
    size_t len, used;
};

/* server_arg() adds one argument; server_args() adds at most `most` arguments
 * of a list that ends with NULL. */
void server_arg(struct server_args *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void server_args(struct server_args *, const char *const *list, size_t most);
/* Executes the server in place of this process, with its output appended to the
 * file `log` in its directory. */
_Noreturn void server_exec(const struct server_process *, struct server_args *);
/* Connects to 127.0.0.1; reads time out after 2 s. Returns the descriptor, or
 * -1 on failure. */
int server_connect(int port);

#endif
