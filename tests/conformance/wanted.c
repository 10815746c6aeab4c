/* hf_ask() asks holders to release; hf_lock_put() lets only holders write. */
#include "conf.h"

struct ears {
    unsigned wanted;
    uint64_t token;
    char name[128];
};

static void hear(void *arg, const hf_event *e)
{
    struct ears *ears = arg;

    if (e->type != HF_EVENT_WANTED)
        return;
    ears->wanted++;
    ears->token = e->token;
    snprintf(ears->name, sizeof(ears->name), "%.*s", (int)e->name_len, e->name);
}

static hf_client *open_listening(struct ears *ears)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;

    *ears = (struct ears){0};
    opt.on_event = hear;
    opt.event_arg = ears;
    opt.label = "listens";
    opt.ttl_ms = conf.hears_late ? CONF_KEPT_TTL_MS : 0;
    return conf_open_with(&opt);
}

static bool heard(hf_client *c, const struct ears *ears)
{
    assert_true(hf_client_dispatch(c) >= 0);
    return ears->wanted;
}

/* Asserts that hf_inspect() shows the holder. */
static void shows_holder(hf_client *c, const char *name, hf_lock *lock)
{
    hf_info *info = conf_inspect(c, name);

    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].label, "listens");
    assert_int_equal(info->holders[0].pid, getpid());
    assert_true(info->holders[0].token == conf_token(lock));
}

/* The holder is notified of hf_ask(), which has no other effect. */
CONF_CASE(test_wanted_is_heard_by_the_holder, CONF_EACH | CONF_WANTED)
{
    static struct ears ears;
    hf_client *a = open_listening(&ears), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_ask(b, name, HF_CSTRING, E));
    COMES(heard(a, &ears));
    assert_true(ears.token == conf_token(lock));
    assert_string_equal(ears.name, name);
    OK(hf_lock_check(lock));
    OK(hf_lock_renew(lock, 0, E));
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    shows_holder(b, name, lock);
    OK(hf_ask(b, name, HF_CSTRING, E));
    shows_holder(b, name, lock);
    OK(hf_lock_release(lock, E));
    EXPECT(HF_ENOTOWNER, hf_ask(b, name, HF_CSTRING, E));
}

/* A request to release is for one hold; the next holder does not learn of
 * it. */
CONF_CASE(test_wanted_is_about_one_hold, CONF_EACH | CONF_WANTED)
{
    static struct ears ears;
    hf_client *a = open_listening(&ears), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name);
    uint64_t first;

    OK(hf_lock_acquire(lock, NULL, E));
    first = conf_token(lock);
    OK(hf_ask(b, name, HF_CSTRING, E));
    COMES(heard(a, &ears));
    OK(hf_lock_release(lock, E));
    OK(hf_lock_acquire(lock, NULL, E));
    ears.wanted = 0;
    OK(hf_ask(b, name, HF_CSTRING, E));
    COMES(heard(a, &ears));
    assert_true(ears.token == conf_token(lock));
    assert_true(ears.token > first);
    OK(hf_lock_release(lock, E));
}

/* A request to release is only for those who hold the lock at that time: a
 * waiter does not learn of it, not even after it has been granted the lock. */
CONF_CASE(test_wanted_is_not_for_those_who_wait, CONF_EACH | CONF_WANTED)
{
    static struct ears ears;
    hf_client *a = conf_open(), *b = open_listening(&ears);
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name), *lock = conf_lock(b, name);
    struct conf_taker t;

    OK(hf_lock_acquire(held, NULL, E)); /* client a has no event callback */
    conf_taker_wait(&t, lock, HF_WRITE, 0);
    OK(hf_ask(a, name, HF_CSTRING, E));
    OK(hf_lock_check(held));
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&t));
    hf_client_dispatch(b);
    assert_int_equal(ears.wanted, 0);
    OK(hf_ask(a, name, HF_CSTRING, E));
    COMES(heard(b, &ears));
    conf_taker_ends(&t, 0);
}

/* All holders are notified of hf_ask(). */
static void all_hear(enum hf_kind kind, uint32_t size, enum hf_mode mode)
{
    static struct ears ears[2];
    hf_client *c[2] = {open_listening(&ears[0]), open_listening(&ears[1])};
    const char *name = conf_name();
    hf_lock *lock[2];

    for (int i = 0; i < 2; i++) {
        lock[i] = conf_lock_of(c[i], name, kind, size, 0);
        OK(conf_take(lock[i], mode, 0, WAIT_LONG_MS));
    }
    OK(hf_ask(c[0], name, HF_CSTRING, E));
    for (int i = 0; i < 2; i++)
        COMES(heard(c[i], &ears[i]));
    for (int i = 0; i < 2; i++)
        OK(hf_lock_release(lock[i], E));
}

CONF_ROW(test_wanted_is_heard_by_all_readers, CONF_RWLOCK | CONF_WANTED,
         all_hear(HF_RWLOCK, 0, HF_READ));
CONF_ROW(test_wanted_is_heard_by_all_with_permits, CONF_SEMAPHORE | CONF_WANTED,
         all_hear(HF_SEMAPHORE, 2, HF_WRITE));

/* A downgraded hold remains the same hold, whose holder is notified of
 * hf_ask(). */
CONF_CASE(test_wanted_is_heard_after_a_downgrade, CONF_RWLOCK | CONF_WANTED)
{
    static struct ears ears;
    hf_client *a = open_listening(&ears), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock_of(a, name, HF_RWLOCK, 0, 0);

    OK(conf_take(lock, HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_downgrade(lock, E));
    for (int i = 0; i < 2; i++) {
        ears.wanted = 0;
        OK(hf_ask(b, name, HF_CSTRING, E));
        COMES(heard(a, &ears));
        assert_true(ears.token == conf_token(lock));
        shows_holder(b, name, lock);
    }
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_put_ends_with_the_hold, CONF_EACH | CONF_PUT | CONF_INSPECT)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name(), *key = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);

    EXPECT(HF_ENOTOWNER, hf_lock_put(lock, key, HF_CSTRING, "1", 1, E));
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_put(lock, key, HF_CSTRING, "1", 1, E));
    OK(hf_lock_put(lock, key, HF_CSTRING, NULL, 0, E));
    EXPECT(HF_ENOTOWNER, hf_lock_put(other, key, HF_CSTRING, "2", 1, E));
    EXPECT(HF_EINVAL,
           hf_lock_put(lock, key, HF_CSTRING, "2", (size_t)HF_PUT_MAX + 1, E));
    EXPECT(HF_EINVAL, hf_lock_put(lock, key, HF_CSTRING, NULL, 1, E));
    EXPECT(HF_EINVAL, hf_lock_put(lock, NULL, 1, "2", 1, E));
    EXPECT(HF_EINVAL, hf_lock_put(lock, "", 0, "2", 1, E));
    OK(hf_break(b, name, HF_CSTRING, E));
    OK(hf_lock_acquire(other, NULL, E));
    OK(hf_lock_put(other, key, HF_CSTRING, "3", 1, E));
    EXPECT(HF_ELOST, hf_lock_put(lock, key, HF_CSTRING, "4", 1, E));
    EXPECT(HF_ELOST, hf_lock_check(lock));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    OK(hf_lock_put(other, key, HF_CSTRING, "5", 1, E));
    OK(hf_lock_release(other, E));
    EXPECT(HF_ENOTOWNER, hf_lock_put(other, key, HF_CSTRING, "6", 1, E));
    if (conf.unput)
        conf.unput(key);
}

struct writer {
    struct conf_thread t;
    hf_lock *lock;
    const char *key;
    int rc;
};

static void write_often(void *arg)
{
    struct writer *w = arg;

    for (int i = 0; i < 100 && !w->rc; i++)
        w->rc = hf_lock_put(w->lock, w->key, HF_CSTRING, "1", 1, NULL);
}

/* Two holds of different locks write the same key at the same time. */
CONF_CASE(test_put_beside_another, CONF_PUT)
{
    const char *key = conf_name();
    struct writer w[2] = {{.key = key}, {.key = key}};

    for (int i = 0; i < 2; i++) {
        w[i].lock = conf_lock_flags(conf_open(), conf_name(), HF_OWNER_HANDLE);
        OK(hf_lock_acquire(w[i].lock, NULL, E));
    }
    for (int i = 0; i < 2; i++)
        conf_thread_start(&w[i].t, write_often, &w[i]);
    for (int i = 0; i < 2; i++)
        conf_thread_join(&w[i].t);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(w[i].rc, 0);
        OK(hf_lock_release(w[i].lock, E));
    }
    if (conf.unput)
        conf.unput(key);
}

CONF_CASE(test_put_of_many_bytes, CONF_PUT)
{
    const char *key = conf_name();
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    char *value = calloc(1, HF_PUT_MAX);

    assert_non_null(value);
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_put(lock, key, HF_CSTRING, value, HF_PUT_MAX, E));
    OK(hf_lock_release(lock, E));
    if (conf.unput)
        conf.unput(key);
    free(value);
}
