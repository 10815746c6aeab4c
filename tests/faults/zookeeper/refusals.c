/* Rights that a ZooKeeper server may refuse, for any/refusals.c. */
#include "../any/any_faults.h"
#include "zk_faults.h"

const int64_t any_refused_ttl_ms = 10000;

static void note_rc(int rc, const void *data)
{
    *(int *)(uintptr_t)data = rc;
}

/* A container below the name's node may be swept at any time. */
static void set_rights_if_there(struct world *w, const char *path, int rights)
{
    struct ACL all = {rights, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector acl = {1, &all};
    int rc = 1;

    assert_int_equal(
        zoo_aset_acl(zk_hand_handle(hand(w)), path, -1, &acl, note_rc, &rc), 0);
    OK(zk_hand_sync(hand(w))); /* answered after it */
    assert_true(rc == ZOK || rc == ZNONODE);
}

/* The name's node is no container, so that it stays. */
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
