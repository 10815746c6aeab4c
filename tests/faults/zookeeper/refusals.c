/* Rights that a ZooKeeper server denies, for any/refusals.c. */
#include "../any/any_faults.h"
#include "zk_faults.h"

const int64_t any_refused_ttl_ms = 10000;

/* Sets the rights unless the node is missing: the server may sweep a container
 * below the name's node at any time. */
static void set_rights_if_there(struct world *w, const char *path, int rights)
{
    int rc = try_rights(w, path, rights);

    assert_true(rc == ZOK || rc == ZNONODE);
}

/* The name's node is not a container, so that the server does not remove it. */
static void prepare(struct world *w)
{
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
}

static void tidy(struct world *w)
{
    COMES(!zk_hand_delete(hand(w), NODE));
}

static void set_all_rights(struct world *w, int rights)
{
    set_rights(w, NODE, rights);
    set_rights_if_there(w, NODE "/locks", rights);
    set_rights_if_there(w, NODE "/leases", rights);
}

static void forbid_create(struct world *w)
{
    set_all_rights(w, ZOO_PERM_ALL & ~ZOO_PERM_CREATE);
}

static void forbid_delete(struct world *w)
{
    set_all_rights(w, ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
}

static void allow_all(struct world *w)
{
    set_all_rights(w, ZOO_PERM_ALL);
}

const struct any_refusal any_refusals[] = {
    {"no right to create", HF_EAUTH, "no right to CREATE", forbid_create,
     allow_all, .acquires = true, .prepare = prepare, .tidy = tidy},
    {"no right to delete", HF_EAUTH, "no right to DELETE", forbid_delete,
     allow_all, .releases = true, .prepare = prepare, .tidy = tidy},
    {NULL},
};
