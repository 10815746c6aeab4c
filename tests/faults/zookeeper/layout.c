/* The nodes of a lock at the server, its token, how many round trips an acquire
 * needs, kazoo's locks, and where names may be. */
#include "zk_faults.h"

#include <stdio.h>

GROUP("layout");

/* Asserts that the token is the czxid of all nodes of the hold: one transaction
 * has created them, or there is only one node. */
static void token_is_czxid(struct world *w, hf_lock *lock, const char *dir)
{
    struct String_vector names = {0};
    struct Stat stat = {0};

    OK(zk_hand_children(hand(w), dir, &names));
    assert_true(names.count > 0);
    for (int i = 0; i < names.count; i++) {
        OK(zk_hand_stat(hand(w), text_of("%s/%s", dir, names.data[i]), &stat));
        assert_true(stat.ephemeralOwner != 0);
        assert_true(token_of(lock) == (uint64_t)stat.czxid);
    }
    deallocate_String_vector(&names);
}

CASE(test_token_is_the_czxid)
{
    static const struct {
        struct manner manner;
        const char *dir;
    } each[] = {{{HF_MUTEX, HF_FAIR, HF_WRITE}, NODE},
                {{HF_MUTEX, HF_UNFAIR, HF_WRITE}, NODE},
                {{HF_RWLOCK, HF_FAIR, HF_WRITE}, NODE},
                {{HF_RWLOCK, HF_FAIR, HF_READ}, NODE},
                {{HF_SEMAPHORE, HF_FAIR, HF_WRITE}, NODE "/leases"}};
    world_near(w);
    OK(hf_lock_free(w->locks[0]));
    w->locks[0] = NULL;
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        hf_lock *lock = held_as(w, "n", &each[i].manner);

        token_is_czxid(w, lock, each[i].dir);
        OK(hf_lock_release(lock, NULL));
        OK(hf_lock_free(lock));
    }
}

/* A plain `lock` node cannot be broken by its token, because the next holder's
 * node has the same name. */
CASE(test_breaking_a_plain_lock)
{
    struct Stat stat = {0};
    hf_client *c;

    world_near(w);
    c = w->clients[0];
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    OK(zk_hand_create(hand(w), NODE "/lock", "", ZOO_EPHEMERAL, NULL, 0,
                      &stat));
    EXPECT(HF_ENOTSUP,
           hf_break_hold(c, "n", 1, (uint64_t)stat.czxid, NULL, &w->err));
    expect_words(w->err.text, "without a token");
    EXPECT(HF_ENOTOWNER,
           hf_break_hold(c, "n", 1, (uint64_t)stat.czxid + 1, NULL, &w->err));
    OK(zk_hand_stat(hand(w), NODE "/lock", &stat));
    OK(hf_break(c, "n", 1, &w->err));
    OK(zk_hand_delete(hand(w), NODE));
}

/* Returns whether the server, after it has created the node, has answered
 * another request of the same session. A ping counts too: the client sends
 * pings if it has no other request. */
static bool was_asked_more(struct world *w, const struct Stat *made)
{
    char text[8192];
    const char *sid;
    const char *line, *zxid;

    zk_server_ask(w->zk, "cons", text, sizeof(text));
    sid = text_of("sid=0x%llx,", (long long)made->ephemeralOwner);
    line = strstr(text, sid);
    zxid = line ? strstr(line, "lzxid=0x") : NULL;
    return zxid && strtoll(zxid + strlen("lzxid="), NULL, 16) >= made->czxid &&
           strncmp(line + strlen(sid), "lop=CREA,", strlen("lop=CREA,")) != 0;
}

/* The client must send all requests that it needs before it gets the first
 * reply. To show this, the proxy first delays the replies. Before it lets them
 * pass, it begins to hold back what the client sends. The client must get the
 * lock nevertheless. */
CASE(test_free_lock_is_one_trip)
{
    hf_lock *a = world_far(w, 30000, 10000);
    char path[256];
    struct Stat stat = {0};
    struct taker *t;

    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    proxy_set(w->proxy, PROXY_DELAY, 60000);
    t = taker_start(w, a, WAIT_LONG_MS);
    world_has_entries(w, 1);
    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_stat(hand(w), path, &stat));
    COMES(was_asked_more(w, &stat));
    assert_false(taker_back(t));
    proxy_hoard(w->proxy);
    proxy_set(w->proxy, PROXY_PASS, 0);
    taker_has_it(t, WAIT_LONG_MS);
    proxy_deliver(w->proxy);
    taker_gives(t);
    COMES(!zk_hand_delete(hand(w), NODE));
}

#define KAZOO_1 "0000000000004000800000000000000a"
#define KAZOO_2 "0000000000004000800000000000000b"
#define KAZOO_3 "0000000000004000800000000000000c"

static void kazoo_entry(struct world *w, const char *name, const char *who,
                        struct Stat *stat)
{
    OK(zk_hand_create(hand(w), text_of(NODE "/%s", name), who, ZOO_EPHEMERAL,
                      NULL, 0, stat));
}

static void drop_entries(struct world *w)
{
    struct String_vector names = {0};

    OK(zk_hand_children(hand(w), NODE, &names));
    for (int i = 0; i < names.count; i++)
        OK(zk_hand_delete(hand(w), text_of(NODE "/%s", names.data[i])));
    deallocate_String_vector(&names);
}

static hf_info *inspect(struct world *w, size_t holders, size_t waiters)
{
    hf_info *info = world_inspect(w, w->clients[0]);

    assert_int_equal(info->holders_len, holders);
    assert_int_equal(info->waiters_len, waiters);
    assert_false(info->waiters_unknown);
    assert_int_equal(info->fairness, HF_FAIR);
    return info;
}

static void is_party(const hf_party *p, const char *owner, const char *label,
                     enum hf_mode mode)
{
    assert_string_equal(p->owner, owner);
    assert_string_equal(p->label, label);
    assert_string_equal(p->host, "");
    assert_int_equal(p->mode, mode);
    assert_int_equal(p->left_ms, -1);
}

/* Waiters are listed in the order of their sequence numbers, not of their
 * names. */
CASE(test_kazoos_lock_is_seen)
{
    struct Stat first = {0};
    hf_info *info;

    world_near(w);
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    kazoo_entry(w, KAZOO_1 "__lock__0000000007", "ann", NULL);
    kazoo_entry(w, KAZOO_3 "__lock__0000000003", "bob", &first);
    kazoo_entry(w, KAZOO_2 "__lock__0000000005", "", NULL);
    info = inspect(w, 1, 2);
    assert_int_equal(info->kind, HF_MUTEX);
    is_party(&info->holders[0], KAZOO_3, "bob", HF_WRITE);
    assert_true(info->holders[0].token == (uint64_t)first.czxid);
    is_party(&info->waiters[0], KAZOO_2, "", HF_WRITE);
    is_party(&info->waiters[1], KAZOO_1, "ann", HF_WRITE);
    drop_entries(w);
    OK(zk_hand_delete(hand(w), NODE));
}

CASE(test_kazoos_readers_are_seen)
{
    hf_info *info;

    world_near(w);
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    kazoo_entry(w, KAZOO_2 "__rlock__0000000001", "ann", NULL);
    kazoo_entry(w, KAZOO_1 "__lock__0000000002", "bob", NULL);
    kazoo_entry(w, KAZOO_3 "__rlock__0000000003", "cid", NULL);
    info = inspect(w, 1, 2);
    assert_int_equal(info->kind, HF_RWLOCK);
    is_party(&info->holders[0], KAZOO_2, "ann", HF_READ);
    is_party(&info->waiters[0], KAZOO_1, "bob", HF_WRITE);
    is_party(&info->waiters[1], KAZOO_3, "cid", HF_READ);
    drop_entries(w);
    OK(zk_hand_delete(hand(w), NODE));
}

/* Waits until the server has swept (deleted) a container that became empty just
 * now. All containers that were empty before are then swept too. */
static void is_swept(struct world *w)
{
    struct Stat stat;

    zk_hand_create(hand(w), "/swept", "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(hand(w), "/swept/x", "", 0, NULL, 0, NULL);
    zk_hand_delete(hand(w), "/swept/x");
    COMES(zk_hand_stat(hand(w), "/swept", &stat) == ZNONODE);
}

/* A kazoo Lock object creates its path once and then relies on it: the path
 * must stay. */
CASE(test_kazoos_path_stays)
{
    static const struct manner each[] = {{HF_MUTEX, HF_FAIR, HF_WRITE},
                                         {HF_MUTEX, HF_UNFAIR, HF_WRITE},
                                         {HF_RWLOCK, HF_FAIR, HF_READ}};
    char theirs[256];
    hf_lock *lock;

    world_lock(w, text_of("%s?dialect=kazoo", w->zk->url), 30000, 5000,
               HF_FAIR_DEFAULT);
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        lock = held_as(w, "n/m", &each[i]);
        OK(hf_lock_release(lock, &w->err));
        OK(hf_lock_free(lock));
        is_swept(w);
        is_swept(w);
        OK(zk_hand_create(hand(w), NODE "/m/" KAZOO_1 "__lock__", "",
                          ZOO_EPHEMERAL_SEQUENTIAL, theirs, sizeof(theirs),
                          NULL));
        OK(zk_hand_delete(hand(w), theirs));
        OK(zk_hand_delete(hand(w), NODE "/m"));
        OK(zk_hand_delete(hand(w), NODE));
    }
}

/* tooz locks at /tooz/locks/NAME. A name must not have a part `locks', but the
 * path in the URL may. */
CASE(test_leading_parts_go_into_the_url)
{
    hf_lock *lock = NULL;
    hf_info *info = NULL;

    world_near(w);
    EXPECT(HF_EINVAL, hf_lock_new(w->clients[0], "tooz/locks/job", HF_CSTRING,
                                  NULL, &lock, &w->err));
    expect_words(w->err.text, "zk://HOST/tooz/locks");
    expect_words(w->err.text, "\"job\"");
    EXPECT(HF_EINVAL, hf_inspect(w->clients[0], "tooz/locks/job", HF_CSTRING,
                                 &info, &w->err));
    expect_words(w->err.text, "zk://HOST/tooz/locks");
    EXPECT(HF_EINVAL, hf_lock_new(w->clients[0], "tooz/locks", HF_CSTRING, NULL,
                                  &lock, &w->err));
    expect_words(w->err.text, "\"locks\"");
    assert_null(strstr(w->err.text, "zk://"));
    world_lock(w, text_of("%s/tooz/locks?dialect=kazoo", w->zk->url), 30000,
               5000, HF_FAIR_DEFAULT);
    OK(hf_lock_new(w->clients[1], "job", HF_CSTRING, NULL, &lock, &w->err));
    OK(hf_lock_timed(lock, 5000, &w->err));
    assert_int_equal(zk_server_children(w->zk, "/tooz/locks/job"), 1);
    OK(hf_lock_release(lock, &w->err));
    OK(hf_lock_free(lock));
    OK(zk_hand_delete(hand(w), "/tooz/locks/job"));
    OK(zk_hand_delete(hand(w), "/tooz/locks"));
    OK(zk_hand_delete(hand(w), "/tooz"));
}
