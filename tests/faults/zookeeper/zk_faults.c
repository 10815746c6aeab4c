/* zk_faults [GROUP [PATTERN]] */
#include "zk_faults.h"

#include "../any/any_faults.h"

struct zk_ensemble zk_three;

static struct zk_server one;
static bool three;

static int start_one(void)
{
    three = false;
    return zk_server_start(&one);
}

static void end_one(void)
{
    zk_server_end(&one);
}

int zk_start_three(void)
{
    three = true;
    zk_three.can_be_cut = true;
    for (int i = 0; i < ZK_ENSEMBLE; i++) /* this setting is off by default */
        zk_three.server[i].flags[0] = "-Dzookeeper.enableEagerACLCheck=true";
    return zk_ensemble_start(&zk_three);
}

void zk_end_three(void)
{
    zk_ensemble_end(&zk_three);
}

static int begin(struct world *w)
{
    if (three && zk_ensemble_elect(&zk_three))
        return -1;
    w->zk = three ? zk_three.server : &one;
    w->process = &w->zk->process;
    w->port = w->zk->port;
    snprintf(w->near_url, sizeof(w->near_url), "%s",
             three ? zk_three.url : one.url);
    return 0;
}

static int mend(struct world *w)
{
    struct zk_server *s = w->zk;

    for (int i = 0; i < (three ? ZK_ENSEMBLE : 1); i++) {
        if (s[i].pid)
            zk_server_continue(&s[i]);
        else if (zk_server_again(&s[i]))
            return -1;
        zk_server_leave(&s[i]);
    }
    return three && (zk_ensemble_heal(&zk_three) ||
                     zk_ensemble_serves(&zk_three))
               ? -1
               : 0;
}

static long left(struct world *w)
{
    return zk_server_nodes(w->zk);
}

static void print_left(struct world *w)
{
    zk_server_print_nodes(w->zk);
}

struct zk_hand *hand(struct world *w)
{
    return zk_server_hand(w->zk);
}

hf_lock *held_as(struct world *w, const char *name, const struct manner *m)
{
    hf_lock *lock;

    OK(hf_lock_new(w->clients[0], name, HF_CSTRING,
                   KIND(m->kind, .fairness = m->fairness,
                        .permits = m->kind == HF_SEMAPHORE ? 2 : 0),
                   &lock, &w->err));
    OK(hf_lock_acquire(lock, HOW(HF_FOREVER, .mode = m->mode), &w->err));
    return lock;
}

void create_below(struct world *w, const char *container, const char *path,
                  int mode, char *out, size_t size)
{
    int rc;

    do {
        zk_hand_create(hand(w), NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
        zk_hand_create(hand(w), container, "", ZOO_CONTAINER, NULL, 0, NULL);
        rc = zk_hand_create(hand(w), path, "", mode, out, size, NULL);
    } while (rc == ZNONODE);
    assert_int_equal(rc, 0);
}

void world_has_entries(struct world *w, long n)
{
    if (WAIT_FOR(zk_server_children(w->zk, NODE) == n))
        return;
    zk_server_print_nodes(w->zk);
    fail_msg("%ld entries instead of %ld", zk_server_children(w->zk, NODE), n);
}

void world_first_entry(struct world *w, char *path, size_t size)
{
    struct String_vector names = {0};
    const char *first = NULL;

    OK(zk_hand_children(zk_server_hand(w->zk), NODE, &names));
    for (int i = 0; i < names.count; i++)
        if (!first ||
            strcmp(strrchr(names.data[i], '-'), strrchr(first, '-')) < 0)
            first = names.data[i];
    assert_non_null(first);
    snprintf(path, size, NODE "/%s", first);
    deallocate_String_vector(&names);
}

hf_lock *own_handle(struct world *w, size_t client, enum hf_kind kind)
{
    hf_lock *lock = NULL;

    OK(hf_lock_new(w->clients[client], "n", 1,
                   KIND(kind, .flags = HF_OWNER_HANDLE), &lock, &w->err));
    return lock;
}

hf_lock *deaf_lock(struct world *w)
{
    size_t i = w->len;

    OK(hf_open(w->zk->url, NULL, &w->clients[i], &w->err));
    w->len++;
    return w->locks[i] = own_handle(w, i, HF_MUTEX);
}

static void note_rc(int rc, const void *data)
{
    *(int *)(uintptr_t)data = rc;
}

int try_rights(struct world *w, const char *path, int rights)
{
    struct ACL all = {rights, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector acl = {1, &all};
    int rc = 1;

    assert_int_equal(
        zoo_aset_acl(zk_hand_handle(hand(w)), path, -1, &acl, note_rc, &rc), 0);
    OK(zk_hand_sync(hand(w))); /* answered after zoo_aset_acl() */
    return rc;
}

void set_rights(struct world *w, const char *path, int rights)
{
    OK(try_rights(w, path, rights));
}

int64_t cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static long holds(struct world *w)
{
    return zk_server_children(w->zk, NODE);
}

static bool is_waited_for(struct world *w)
{
    return zk_server_children(w->zk, NODE) == 2;
}

static bool takes_value(struct world *w, const char *key, const char *value)
{
    char path[64], data[64] = "";

    snprintf(path, sizeof(path), "/%s", key);
    return !zk_hand_get(hand(w), path, data, sizeof(data)) &&
           !zk_hand_delete(hand(w), path) && strcmp(data, value) == 0;
}

const struct any_faults any_faults = {
    .op_ms = 1000,
    .ttl_ms = 5500,
    .tick_ms = ZK_TICK_MS,
    .rounds = 200,
    .cut_most = 160,
    .cut_step = 7,
    .cut_op_ms = 5000,
    .request = "/n",
    .holds = holds,
    .takes_value = takes_value,
};

static const struct world_server zk = {
    "zk", start_one, end_one, begin, mend, left, print_left, is_waited_for};

int main(int argc, char **argv)
{
    return world_main(argc, argv, &zk);
}
