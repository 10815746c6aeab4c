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

void hf__my_put_turn(struct mysql *m, const struct my_lock *lock, bool bell)
{
    bool queues = hf__my_must_queue(m, lock);

    hf__my_sql(&m->cmd, queues && bell ? "set @b=if(" MY_HAVE_BELL
                                         ",1,if(" MY_OUR_TURN
                                         ",get_lock('hfb:%Q',0),null));"
                        : queues ? "set @b=if(" MY_OUR_TURN ",1,null);"
                        : bell && !m->polls ? "set @b=if(" MY_HAVE_BELL
                                              ",1,get_lock('hfb:%Q',0));"
                                            : "set @b=0;");
}
