/* Faults of ZooKeeper servers and of the network to them. The cases of a group
 * share a server, or an ensemble of three. */
#ifndef ZK_FAULTS_H
#define ZK_FAULTS_H

#include "../../lib/world.h"
#include "../../lib/zk_hand.h"
#include "../../lib/zk_server.h"

#define MS 1000000LL
#define NODE "/n" /* of the lock in all cases */

extern struct zk_ensemble zk_three;

/* For a group that uses zk_three. */
int zk_start_three(void);
void zk_end_three(void);

/* The administrator's session. */
struct zk_hand *hand(struct world *);
/* Creates a child of the lock's node or of a container below it; retries,
 * because the server may sweep that while it is empty. */
void create_below(struct world *, const char *container, const char *path,
                  int mode, char *out, size_t size);
/* Waits until the lock's node has n entries, holders and waiters. */
void world_has_entries(struct world *, long n);
/* The path of the first entry by its sequence number. */
void world_first_entry(struct world *, char *path, size_t size);

/* Sets what all users may do with the node: ZOO_PERM_... try_rights() returns
 * the library's code; set_rights() asserts that it succeeds. */
int try_rights(struct world *, const char *path, int rights);
void set_rights(struct world *, const char *path, int rights);
/* Another handle of that client and the same name, with HF_OWNER_HANDLE. */
hf_lock *own_handle(struct world *, size_t client, enum hf_kind);
/* A kind of hold. */
struct manner {
    enum hf_kind kind;
    enum hf_fairness fairness;
    enum hf_mode mode;
};
/* A new handle of the first client, which holds the lock in that manner. */
hf_lock *held_as(struct world *, const char *name, const struct manner *);
/* A client without an event callback, with an own_handle(). */
hf_lock *deaf_lock(struct world *);

/* The CPU time of this process. */
int64_t cpu_ms(void);

#endif
