/*
 * Real processes for tests: puppets. The test program runs itself again, and
 * the new process opens a client and obeys commands over a socket, one at a
 * time. It can be killed, stopped and continued like any other.
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

/* hf_open() for a server that may be slow: on a busy machine it may not answer
 * within connect_timeout, so this tries up to five times. */
int proc_open(const char *url, const hf_client_options *opt, hf_client **out,
              hf_error *err);

enum proc_op {
    PROC_OPEN,  /* text: the URL; ttl_ms, label */
    PROC_CLOSE, /* replies with the code of hf_close */
    PROC_NEW,   /* slot, name; kind (0: mutex), permits: its size, fairness,
                   flags, handoff, max_hold_ms, ttl_ms */
    PROC_FREE,  /* slot */
    PROC_TAKE, /* slot; mode, permits, wait_ms, lease_ms. Reply: token, deadline
                */
    PROC_GIVE, /* slot: release */
    PROC_CHECK, /* slot: check. Reply: count */
    PROC_TOKEN, /* slot. Reply: token */
    PROC_RENEW, /* slot; lease_ms */
    /* Runs rounds (record.h) with slot, times (0: until the puppet dies); text:
     * the record's file, owner, process, kind, permits: its size; wait_ms:
     * op_timeout; flags: rough */
    PROC_LOOP,
    PROC_ALL, /* times; flags: slots in order of acquisition, 4 bits each; slot:
                 their number; text: the file */
    PROC_DOWN,  /* slot: downgrade; of a latch: down. Reply: token, count */
    PROC_LATCH, /* name: of the puppet's only latch */
    PROC_SET,   /* times: the count of the latch */
    PROC_WAIT,  /* wait_ms: wait for the latch */
    PROC_EXIT,  /* _exit without closing anything */
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
    pid_t pid; /* 0: no process */
    int fd;
};

bool proc_is_puppet(int argc, char **argv);
int proc_puppet(void);

/* All return 0, or -1 if the process could not be made or has died. */
int proc_start(struct proc *);
int proc_send(struct proc *, const struct proc_cmd *);
/* Also -1 if no reply came for so many ms. */
int proc_recv(struct proc *, struct proc_reply *, int ms);
/* True if a reply can be received within so many ms. */
bool proc_ready(struct proc *, int ms);
/* Sends the command and waits for its reply. */
int proc_do(struct proc *, const struct proc_cmd *, struct proc_reply *);
/* SIGKILL; the process is gone when this returns. Does nothing if there is
 * none. */
void proc_kill(struct proc *);
/* SIGSTOP; the process is stopped when this returns. */
int proc_stop(struct proc *);
int proc_continue(struct proc *);
/* Lets the puppet close its client and exit; returns its exit status. */
int proc_end(struct proc *);

/*
 * What the lock guards: plain memory in a file, with nothing atomic, so that
 * two holders at a time are detected. Each process maps it.
 */
struct proc_shared {
    volatile long counter;
    volatile long inside;
    volatile long violations;
};

/* Makes the file if it does not exist. NULL on failure. */
struct proc_shared *proc_shared_map(const char *path);
void proc_shared_unmap(struct proc_shared *);
/* Only the lock's holder may call this. */
void proc_shared_bump(struct proc_shared *);

#endif
