/* Faults of ZooKeeper servers and of the way to them. The cases of a group
 * share a server, or an ensemble of three. */
#ifndef ZK_FAULTS_H
#define ZK_FAULTS_H

#include "../../lib/world.h"
#include "../../lib/zk_hand.h"
#include "../../lib/zk_server.h"

#define MS 1000000LL
#define NODE "/n" /* of the lock of all cases */

extern struct zk_ensemble zk_three;

/* For the group whose server is zk_three. */
int zk_start_three(void);
void zk_end_three(void);

/* The administrator's session. */
struct zk_hand *hand(struct world *);
/* A child of the lock's node or of a container below it, which the server may
 * sweep until it has one. */
void create_below(struct world *, const char *container, const char *path,
                  int mode, char *out, size_t size);
/* So many entries are below the lock's node: holders and waiters. */
void world_has_entries(struct world *, long n);
/* The first of them, by its name; its path. */
void world_first_entry(struct world *, char *path, size_t size);

/* Sets what all users may do with the node: ZOO_PERM_... The one returns the
 * library's code. */
int try_rights(struct world *, const char *path, int rights);
void set_rights(struct world *, const char *path, int rights);
/* One more handle of that client's, of the same name, that owns what it has. */
hf_lock *own_handle(struct world *, size_t client, enum hf_kind);
/* A kind of hold. */
struct manner {
    enum hf_kind kind;
    enum hf_fairness fairness;
    enum hf_mode mode;
};
/* A new handle of the first client's, which holds it in that manner. */
hf_lock *held_as(struct world *, const char *name, const struct manner *);
/* A client that hears of no events, and does not ask for them; with such a
 * handle. */
hf_lock *deaf_lock(struct world *);

/* What this process has had of the processors. */
int64_t cpu_ms(void);

#endif
