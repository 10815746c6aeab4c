#include "turn.h"

#include "wait.h"

/* A fair one goes before nobody who waits, unless these do not come. Nor does
 * any reader: writers would never have their turn. */
bool hf__my_must_queue(const struct mysql *m, const struct my_lock *lock)
{
    const struct hf__remote *r = lock->remote;
    bool reads = r->kind == HF_RWLOCK && r->mode == HF_READ;

    return (r->fair || reads) && !m->polls && !hf__my_is_first(lock) &&
           !lock->seen_free && !(lock->polls && !lock->wait);
}

#define HASH lock->hash, MY_HASH_LEN

uint64_t hf__my_thread_of(const struct my_lock *lock)
{
    return lock->wait ? lock->wait->conn.thread : 0;
}

void hf__my_put_turn(struct mysql *m, const struct my_lock *lock, bool bell)
{
    uint64_t thread = hf__my_thread_of(lock);
    struct my_conn *c = &m->cmd;

    if (hf__my_must_queue(m, lock) && bell)
        hf__my_sql(c,
                   "set @b=if(" MY_HAVE_BELL ",1,if(" MY_OUR_TURN
                   ",get_lock('hfb:%h',0),null));",
                   HASH, HASH, thread, thread, HASH);
    else if (hf__my_must_queue(m, lock))
        hf__my_sql(c, "set @b=if(" MY_OUR_TURN ",1,null);", HASH, thread,
                   thread);
    else if (bell && !m->polls)
        hf__my_sql(c, "set @b=if(" MY_HAVE_BELL ",1,get_lock('hfb:%h',0));",
                   HASH, HASH);
    else
        hf__my_sql(c, "set @b=0;");
}
