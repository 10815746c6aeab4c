/*
 * Real processes for tests: puppets. The test program runs itself again, and
 * the new process opens a client and obeys commands over a socket, one at a
 * time. It can be killed, stopped and continued like any other.
 *
 * A puppet dies with the thread that started it, so start it from the main one.
 * The program's main() has to begin with
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

/* hf_open of a server that answers, if late: beside a busy machine it may not
 * within connect_timeout. It is tried up to five times. */
int proc_open(const char *url, const hf_client_options *opt, hf_client **out,
              hf_error *err);

enum proc_op {
    PROC_OPEN,  /* text: the URL; ttl_ms, label */
    PROC_CLOSE, /* rc of hf_close */
    PROC_NEW,   /* slot, name; kind (0: mutex), permits: its size, fairness,
                   flags, handoff, max_hold_ms, ttl_ms */
    PROC_FREE,  /* slot */
    PROC_TAKE, /* slot; mode, permits, wait_ms, lease_ms. Reply: token, deadline
                */
    PROC_GIVE, /* slot: release */
    PROC_CHECK, /* slot: check. Reply: count */
    PROC_TOKEN, /* slot. Reply: token */
    PROC_RENEW, /* slot; lease_ms */
    PROC_LOOP,  /* slot, times (0: until it dies); text: a file for record,
                   owner, process, kind, permits: its size; wait_ms: op_timeout;
                   flags: rough */
    PROC_ALL,   /* times; flags: slots in this order, 4 bits each, count;
                   text: the file */
    PROC_DOWN,  /* slot: downgrade; of a latch: down. Reply: token,
                   what is left */
    PROC_LATCH, /* name: the latch, of which there is one */
    PROC_SET,   /* times: the count of the latch */
    PROC_WAIT,  /* wait_ms: for the latch */
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
    bool announce; /* send an empty reply before the call */
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
    pid_t pid; /* 0: none */
    int fd;
};

bool proc_is_puppet(int argc, char **argv);
int proc_puppet(void);

/* All return 0, or -1 if the process could not be made or is gone. */
int proc_start(struct proc *);
int proc_send(struct proc *, const struct proc_cmd *);
/* -1 also if nothing came for that long. */
int proc_recv(struct proc *, struct proc_reply *, int ms);
/* Is there a reply to receive, within so many ms? */
bool proc_ready(struct proc *, int ms);
/* Sends, and waits for the reply. */
int proc_do(struct proc *, const struct proc_cmd *, struct proc_reply *);
/* SIGKILL, and gone for sure. Nothing to do if there is none. */
void proc_kill(struct proc *);
/* SIGSTOP, and stopped for sure. */
int proc_stop(struct proc *);
int proc_continue(struct proc *);
/* Ends it in an orderly way; its exit status. */
int proc_end(struct proc *);

/*
 * What the lock guards: plain memory in a file, without anything atomic, so
 * that two at a time are seen. In a mapping of its own in every process.
 */
struct proc_shared {
    volatile long counter;
    volatile long inside;
    volatile long violations;
};

/* Makes the file if there is none. NULL on failure. */
struct proc_shared *proc_shared_map(const char *path);
void proc_shared_unmap(struct proc_shared *);
/* To be called by the holder of the lock. */
void proc_shared_bump(struct proc_shared *);

#endif
