/* Faults of ZooKeeper servers and of the network to them. The cases of a group
 * share a server, or an ensemble of three. */
#ifndef ZK_FAULTS_H
#define ZK_FAULTS_H

#include "../../lib/world.h"
#include "../../lib/zk_hand.h"
#include "../../lib/zk_server.h"

#define MS 1000000LL
#define NODE "/n" /* the node of the lock "n" */

extern struct zk_ensemble zk_three;

/* Start and end zk_three for a group that uses it. */
int zk_start_three(void);
void zk_end_three(void);

/* Returns the administrator's session. */
struct zk_hand *hand(struct world *);
/* Creates a child of the lock's node or of a container below it. Retries,
 * because the server may remove the container while it is empty. */
void create_below(struct world *, const char *container, const char *path,
                  int mode, char *out, size_t size);
/* Waits until the lock's node has n entries of holders and waiters. */
void world_has_entries(struct world *, long n);
/* Copies the path of the entry with the lowest sequence number. */
void world_first_entry(struct world *, char *path, size_t size);

/* Set what all users may do with the node, as ZOO_PERM_... values. try_rights()
 * returns the library's code; set_rights() asserts that it succeeds. */
int try_rights(struct world *, const char *path, int rights);
void set_rights(struct world *, const char *path, int rights);
/* Returns another handle of that client for the same name, with
 * HF_OWNER_HANDLE. */
hf_lock *own_handle(struct world *, size_t client, enum hf_kind);
/* How a lock is held. */
struct manner {
    enum hf_kind kind;
    enum hf_fairness fairness;
    enum hf_mode mode;
};
/* Returns a new handle of the first client, which holds the lock in that
 * manner. */
hf_lock *held_as(struct world *, const char *name, const struct manner *);
/* Adds a client without an event callback, and returns its own_handle(). */
hf_lock *deaf_lock(struct world *);

/* Returns the CPU time of this process in ms. */
int64_t cpu_ms(void);

#endif
