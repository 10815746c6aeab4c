/*
 * Puppets: real processes for tests. The test program executes itself again,
 * and the new process opens a client and obeys commands that it receives on a
 * socket, one at a time. It can be killed, stopped and continued like any
 * process.
 *
 * A puppet dies with the thread that started it, so start it from the main
 * thread. The program's main() must begin with
 *
 *     if (proc_is_puppet(argc, argv))
 *         return proc_puppet();
 */
#ifndef TESTS_PROC_H
#define TESTS_PROC_H

#include <holdfast.h>
#include <stdbool.h>
#include <sys/types.h>

#define PROC_LOCKS 8

/* Calls hf_open() at most five times while it fails with may_pass, because the
 * server of a busy machine may not answer within connect_timeout. err must not
 * be NULL. */
int proc_open(const char *url, const hf_client_options *opt, hf_client **out,
              hf_error *err);

/* The commands. Each comment lists the fields of proc_cmd that the command
 * reads, and what it stores in proc_reply in addition to rc. */
enum proc_op {
    PROC_OPEN,  /* text (the URL), ttl_ms, label */
    PROC_CLOSE, /* no fields */
    /* slot, name, kind (0: mutex), permits (the semaphore's size), fairness,
     * flags, handoff, max_hold_ms, ttl_ms */
    PROC_NEW,
    PROC_FREE, /* slot */
    /* slot, mode, permits, wait_ms, lease_ms. Reply: token, deadline */
    PROC_TAKE,
    PROC_GIVE,  /* slot */
    PROC_CHECK, /* slot. Reply: count */
    PROC_TOKEN, /* slot. Reply: token */
    PROC_RENEW, /* slot, lease_ms */
    /* Runs rounds (record.h): slot, times (0: until record_over()), text (the
     * record's file), owner, process, kind, permits (the semaphore's size),
     * wait_ms (op_timeout), flags (rough). Reply: count, the number of rounds
     * (0 if times is 0) */
    PROC_LOOP,
    /* Runs rounds with several locks: times, slot (the number of locks), flags
     * (their slots in order of acquisition, 4 bits each), text (the file).
     * Reply: count, the number of rounds */
    PROC_ALL,
    PROC_DOWN,  /* counts the latch down, reply: token (its count); or,
                   without a latch, downgrades slot */
    PROC_LATCH, /* creates the puppet's only latch: name */
    PROC_SET,   /* sets the latch: times (its count) */
    PROC_WAIT,  /* waits for the latch: wait_ms */
    PROC_EXIT,  /* calls _exit() without closing anything */
};

struct proc_cmd {
    enum proc_op op;
    unsigned slot, times, flags, handoff;
    uint32_t owner, process;
    enum hf_kind kind;
    enum hf_mode mode;
    uint32_t permits;
    enum hf_fairness fairness;
    int64_t wait_ms, lease_ms, ttl_ms, max_hold_ms;
    bool announce; /* also send an empty reply before the call */
    size_t name_len;
    char name[HF_NAME_MAX];
    char label[64];
    char text[256];
};

struct proc_reply {
    int rc;
    unsigned count;
    uint64_t token;
    int64_t deadline;
    int64_t called, returned; /* CLOCK_BOOTTIME, ns */
    hf_error err;
};

struct proc {
    pid_t pid; /* 0 if there is no process */
    int fd;
};

bool proc_is_puppet(int argc, char **argv);
int proc_puppet(void);

/* The functions that return int return 0, or -1 if the process could not be
 * created or has died. */
int proc_start(struct proc *);
int proc_send(struct proc *, const struct proc_cmd *);
/* Receives a reply. Returns -1 if the process has died or the reply takes
 * longer than `ms` milliseconds. */
int proc_recv(struct proc *, struct proc_reply *, int ms);
/* Returns whether a reply can be received within `ms` milliseconds. */
bool proc_ready(struct proc *, int ms);
/* Sends the command and waits for its reply. */
int proc_do(struct proc *, const struct proc_cmd *, struct proc_reply *);
/* Kills the process with SIGKILL; it no longer exists when this returns. Does
 * nothing if there is no process. */
void proc_kill(struct proc *);
/* Stops the process with SIGSTOP; it is stopped when this returns. */
int proc_stop(struct proc *);
int proc_continue(struct proc *);
/* Lets the puppet close its client and exit; returns its exit status, or 0 if
 * there is no process. */
int proc_end(struct proc *);

/*
 * What the lock guards: plain memory in a file that each process maps. Nothing
 * in it is atomic, so that two holders at a time are detected.
 */
struct proc_shared {
    volatile long counter;
    volatile long inside;
    volatile long violations;
};

/* Maps the file, which is created if it does not exist. Returns NULL on
 * failure. */
struct proc_shared *proc_shared_map(const char *path);
void proc_shared_unmap(struct proc_shared *);
/* Increments the counter; counts a violation if another caller is inside. Only
 * the lock's holder may call this. */
void proc_shared_bump(struct proc_shared *);

#endif
