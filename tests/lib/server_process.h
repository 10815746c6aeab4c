/*
 * The process of a test's server of any kind: its directory, its ports, its
 * death and its restart. A server dies with the thread that started it. It is
 * ready when it answers, never after a sleep.
 *
 * The struct of a kind of server begins with SERVER_PROCESS, and its header has
 * SERVER_VERBS(kind), which defines kind_kill(), kind_again() and so on: the
 * functions below.
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

/* The functions get the server whose first member is the process. */
struct server_kind {
    const char *name; /* name of the program, for messages */
    /* Called after the fork. Becomes the server, by server_exec(). */
    void (*run)(void *server);
    bool (*answers)(void *server);
    /* Closes the test's connections to the server; or NULL. */
    void (*forget)(void *server);
    /* Called when the restarted server answers; returns 0 or -1. Or NULL. */
    int (*warm)(void *server);
    int ready_ms; /* 0: WAIT_LONG_MS */
};

/* Functions that return int return 0, or -1 with a message on stderr. */

/* Reserves a loopback port for the server. */
int server_port(struct server_process *, int *port);
/* Makes its directory, in memory unless `durable`. */
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

/* server_spawn() starts the process; server_await() waits until it is ready. */
int server_spawn(struct server_process *);
int server_await(struct server_process *);
/* Spawns and awaits the server: for the first time, or on the same ports after
 * a kill. */
int server_again(struct server_process *);
/* SIGKILL; the process is gone when this returns. The directory stays. */
void server_kill(struct server_process *);
int server_stop(struct server_process *); /* SIGSTOP, in effect on return */
int server_continue(struct server_process *);
/* Kills it and removes the directory. */
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

/* server_arg() adds one argument; server_args() adds those of a list that ends
 * with NULL, at most `most` of them. */
void server_arg(struct server_args *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void server_args(struct server_args *, const char *const *list, size_t most);
/* Sends the server's output to the file `log` in its directory. */
_Noreturn void server_exec(const struct server_process *, struct server_args *);
/* Connects to 127.0.0.1; reads time out after 2 s. Returns -1 on failure. */
int server_connect(int port);

#endif
