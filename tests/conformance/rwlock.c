/* The read-write lock: readers share, writers exclude, and fair locks keep the
 * order. Also reentry, downgrades and tokens. */
#include "conf.h"

static struct conf_group open_three(void)
{
    return conf_group(HF_RWLOCK, 0, 0);
}

static int try_as(hf_lock *lock, enum hf_mode mode)
{
    return conf_take(lock, mode, 0, 0);
}

static void granted_and_back(struct conf_taker *t)
{
    COMES(conf_taker_has(t));
    conf_taker_ends(t, 0);
}

CONF_CASE(test_rwlock_reads_share, CONF_EACH | CONF_RWLOCK)
{
    struct conf_group g = open_three();

    for (int i = 0; i < 3; i++)
        OK(try_as(g.l[i], HF_READ));
    for (int i = 0; i < 3; i++) {
        OK(hf_lock_check(g.l[i]));
        OK(hf_lock_release(g.l[i], E));
    }
}

/* Threads of one client read through one handle. */
CONF_CASE(test_rwlock_reads_share_between_threads, CONF_EACH | CONF_RWLOCK)
{
    hf_lock *lock = conf_lock_of(conf_open(), conf_name(), HF_RWLOCK, 0, 0);
    struct conf_taker t[4] = {0};

    for (int i = 0; i < 4; i++) {
        t[i].opt = (hf_acquire_options)HF_ACQUIRE_OPTIONS_INIT;
        t[i].opt.mode = HF_READ;
        conf_taker_start(&t[i], lock);
    }
    for (int i = 0; i < 4; i++)
        COMES(conf_taker_has(&t[i])); /* all four hold the lock at once */
    EXPECT(HF_EBUSY, try_as(lock, HF_WRITE));
    for (int i = 0; i < 4; i++)
        granted_and_back(&t[i]);
    OK(conf_take(lock, HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_rwlock_writes_exclude, CONF_EACH | CONF_RWLOCK)
{
    struct conf_group g = open_three();

    OK(try_as(g.l[0], HF_WRITE));
    EXPECT(HF_EBUSY, try_as(g.l[1], HF_WRITE));
    EXPECT(HF_EBUSY, try_as(g.l[1], HF_READ));
    EXPECT(HF_ETIMEDOUT, conf_take(g.l[2], HF_READ, 0, 50));
    OK(hf_lock_release(g.l[0], E));
    OK(conf_take(g.l[1], HF_READ, 0, WAIT_LONG_MS));
    EXPECT(HF_EBUSY, try_as(g.l[0], HF_WRITE));
    EXPECT(HF_ETIMEDOUT, conf_take(g.l[2], HF_WRITE, 0, 50));
    OK(hf_lock_release(g.l[1], E));
    OK(conf_take(g.l[2], HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[2], E));
}

CONF_CASE(test_rwlock_waiting_reads_are_let_in_together,
          CONF_EACH | CONF_RWLOCK)
{
    struct conf_taker one, two;
    struct conf_group g = open_three();

    OK(hf_lock_acquire(g.l[0], NULL, E));
    conf_taker_wait(&one, g.l[1], HF_READ, 0);
    conf_taker_wait(&two, g.l[2], HF_READ, 0);
    OK(hf_lock_release(g.l[0], E));
    COMES(conf_taker_has(&one) && conf_taker_has(&two));
    granted_and_back(&one);
    granted_and_back(&two);
}

/* With a fair lock, a reader that arrives after a waiting writer waits too. */
CONF_CASE(test_rwlock_fair_writer_is_not_starved, CONF_FAIR | CONF_RWLOCK)
{
    struct conf_taker writer, reader;
    struct conf_group g = open_three();

    OK(try_as(g.l[0], HF_READ));
    conf_taker_wait(&writer, g.l[1], HF_WRITE, 0);
    conf_await_queue(g.c[0], g.name, 1);
    EXPECT(HF_EBUSY, try_as(g.l[2], HF_READ));
    conf_taker_wait(&reader, g.l[2], HF_READ, 0);
    OK(hf_lock_release(g.l[0], E));
    COMES(conf_taker_has(&writer));
    assert_false(conf_taker_has(&reader));
    granted_and_back(&writer);
    granted_and_back(&reader);
    assert_true(reader.token >= writer.token);
}

/* When a waiting writer gives up, the readers queued after it are granted the
 * lock. */
CONF_CASE(test_rwlock_fair_writer_that_gives_up_holds_nobody_up,
          CONF_FAIR | CONF_RWLOCK)
{
    struct conf_taker writer, reader;
    hf_cancel cancel = HF_CANCEL_INIT;
    struct conf_group g = open_three();

    OK(try_as(g.l[0], HF_READ));
    writer = (struct conf_taker){.opt = HF_ACQUIRE_OPTIONS_INIT};
    writer.opt.cancel = &cancel;
    conf_taker_start(&writer, g.l[1]);
    conf_thread_asleep(&writer.t);
    conf_await_queue(g.c[0], g.name, 1);
    conf_taker_wait(&reader, g.l[2], HF_READ, 0);
    hf_cancel_fire(&cancel);
    conf_taker_ends(&writer, HF_ECANCELED);
    granted_and_back(&reader); /* while g.l[0] still reads */
    OK(hf_lock_check(g.l[0]));
    OK(hf_lock_release(g.l[0], E));
}

CONF_CASE(test_rwlock_down_lets_reads_in_and_no_write, CONF_EACH | CONF_RWLOCK)
{
    struct conf_taker reader, writer;
    uint64_t token;
    struct conf_group g = open_three();

    EXPECT(HF_ENOTOWNER, hf_lock_downgrade(g.l[0], E));
    OK(hf_lock_acquire(g.l[0], NULL, E));
    token = conf_token(g.l[0]);
    conf_taker_wait(&reader, g.l[1], HF_READ, 0);
    conf_await_queue(g.c[0], g.name, 1);
    conf_taker_wait(&writer, g.l[2], HF_WRITE, 0);
    OK(hf_lock_downgrade(g.l[0], E));
    COMES(conf_taker_has(&reader));
    assert_false(conf_taker_has(&writer));
    OK(hf_lock_check(g.l[0]));
    assert_true(conf_token(g.l[0]) >= token);
    granted_and_back(&reader);
    assert_false(conf_taker_has(&writer));
    OK(hf_lock_release(g.l[0], E));
    granted_and_back(&writer);
    assert_true(writer.token > token);
}

CONF_CASE(test_rwlock_never_goes_up, CONF_EACH | CONF_RWLOCK)
{
    hf_lock *lock = conf_lock_of(conf_open(), conf_name(), HF_RWLOCK, 0, 0);
    int64_t began = wait_fair();

    EXPECT(HF_ENOTOWNER, hf_lock_upgrade(lock, E));
    OK(try_as(lock, HF_READ));
    EXPECT(HF_ENOTSUP, conf_take(lock, HF_WRITE, 0, HF_FOREVER));
    EXPECT(HF_ENOTSUP, try_as(lock, HF_WRITE));
    EXPECT(HF_ENOTSUP, hf_lock_upgrade(lock, E));
    assert_true(wait_within(began, 1000));
    OK(hf_lock_check(lock)); /* the handle still has its read hold */
    OK(hf_lock_release(lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
}

static void has_count(hf_lock *lock, unsigned expected)
{
    unsigned count = 0;

    OK(hf_lock_count(lock, &count));
    assert_int_equal(count, expected);
}

static void take_twice(enum hf_mode first, enum hf_mode second)
{
    struct conf_group g = open_three();

    OK(try_as(g.l[0], first));
    OK(try_as(g.l[0], second));
    has_count(g.l[0], 2);
    EXPECT(HF_EBUSY, try_as(g.l[1], HF_WRITE));
    OK(hf_lock_release(g.l[0], E));
    has_count(g.l[0], 1);
    EXPECT(first == HF_READ ? 0 : HF_EBUSY, try_as(g.l[1], HF_READ));
    if (first == HF_READ)
        OK(hf_lock_release(g.l[1], E));
    OK(hf_lock_release(g.l[0], E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(g.l[0], E));
    OK(conf_take(g.l[2], HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[2], E));
}

CONF_ROW(test_rwlock_read_in_read, CONF_EACH | CONF_RWLOCK,
         take_twice(HF_READ, HF_READ));
CONF_ROW(test_rwlock_write_in_write, CONF_EACH | CONF_RWLOCK,
         take_twice(HF_WRITE, HF_WRITE));
CONF_ROW(test_rwlock_read_in_write, CONF_EACH | CONF_RWLOCK,
         take_twice(HF_WRITE, HF_READ));

/* A reader reads again while a writer waits. The second read must not queue
 * after the writer, because the writer waits for this very reader. */
CONF_CASE(test_rwlock_read_in_read_passes_a_waiting_writer,
          CONF_EACH | CONF_RWLOCK)
{
    struct conf_taker writer;
    struct conf_group g = open_three();

    OK(try_as(g.l[0], HF_READ));
    conf_taker_wait(&writer, g.l[1], HF_WRITE, 0);
    conf_await_queue(g.c[0], g.name, 1);
    OK(conf_take(g.l[0], HF_READ, 0, HF_FOREVER));
    OK(hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[0], E));
    granted_and_back(&writer);
}

CONF_CASE(test_rwlock_not_reentrant_says_so, CONF_EACH | CONF_RWLOCK)
{
    hf_lock *lock =
        conf_lock_of(conf_open(), conf_name(), HF_RWLOCK, 0, HF_NOT_REENTRANT);

    for (int mode = HF_WRITE; mode <= HF_READ; mode++) {
        OK(conf_take(lock, (enum hf_mode)mode, 0, WAIT_LONG_MS));
        EXPECT(HF_EDEADLK, conf_take(lock, (enum hf_mode)mode, 0, HF_FOREVER));
        OK(hf_lock_check(lock));
        OK(hf_lock_release(lock, E));
    }
}

static uint64_t token_as(hf_lock *lock, enum hf_mode mode)
{
    uint64_t token;

    OK(conf_take(lock, mode, 0, WAIT_LONG_MS));
    token = conf_token(lock);
    OK(hf_lock_release(lock, E));
    return token;
}

CONF_CASE(test_rwlock_tokens_of_writes_rise_and_bind_reads,
          CONF_EACH | CONF_RWLOCK)
{
    uint64_t last = 0;
    struct conf_group g = open_three();

    for (int i = 0; i < 6; i++) {
        uint64_t wrote = token_as(g.l[i % 3], HF_WRITE);

        /* The token exceeds those of all readers so far, so a resource that has
         * seen this token refuses these readers. */
        assert_true(wrote > last);
        for (int k = 0; k < 3; k++) {
            uint64_t read = token_as(g.l[k], HF_READ);

            assert_true(read >= wrote);
            last = read > last ? read : last;
        }
    }
}

CONF_CASE(test_rwlock_tokens_of_reads_do_not_raise,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    hf_info *before, *after;
    struct conf_group g = open_three();

    token_as(g.l[0], HF_WRITE);
    OK(try_as(g.l[0], HF_READ));
    before = conf_inspect(g.c[2], g.name);
    for (int i = 0; i < 5; i++)
        token_as(g.l[1], HF_READ);
    after = conf_inspect(g.c[2], g.name);
    assert_true(after->token == before->token);
    OK(hf_lock_release(g.l[0], E));
}

/* Two threads use one handle, which is one owner: whatever the modes, the
 * second acquire fails. */
CONF_CASE(test_rwlock_handle_acquires_once, CONF_EACH | CONF_RWLOCK)
{
    struct conf_group g = conf_group(HF_RWLOCK, 0, HF_OWNER_HANDLE);

    for (int first = HF_WRITE; first <= HF_READ; first++) {
        struct conf_taker t = {0};

        OK(conf_take(g.l[0], HF_WRITE, 0, WAIT_LONG_MS));
        conf_taker_wait(&t, g.l[1], (enum hf_mode)first, 0);
        EXPECT(HF_EDEADLK, conf_take(g.l[1], HF_READ, 0, HF_FOREVER));
        EXPECT(HF_EDEADLK, conf_take(g.l[1], HF_WRITE, 0, HF_FOREVER));
        OK(hf_lock_release(g.l[0], E));
        COMES(conf_taker_has(&t));
        EXPECT(HF_EDEADLK, conf_take(g.l[1], HF_READ, 0, HF_FOREVER));
        EXPECT(first == HF_READ ? HF_ENOTSUP : HF_EDEADLK,
               conf_take(g.l[1], HF_WRITE, 0, HF_FOREVER));
        conf_taker_ends(&t, 0);
        /* The handle had only one hold. */
        EXPECT(HF_ENOTOWNER, hf_lock_release(g.l[1], E));
    }
    OK(conf_take(g.l[1], HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[1], E));
}
