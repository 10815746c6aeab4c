#include "aside.h"

#include "name.h"
#include "wire.h"

#include <errno.h>
#include <stdarg.h>

static int aside_ignored(struct my_conn *c, const struct my_answer *a)
{
    (void)c;
    (void)a;
    return 0;
}

static void aside_send(struct mysql *m, my_answer_fn *fn)
{
    if (!hf__my_end(&m->cmd, fn))
        m->cmd.link.stream.broken = ENOMEM;
    hf__net_flush(&m->cmd.link.stream);
}

void hf__my_aside(struct mysql *m, const char *fmt, ...)
{
    va_list ap;

    if (m->cmd.link.state != NET_UP || m->cmd.link.stream.broken)
        return;
    hf__my_begin(&m->cmd);
    va_start(ap, fmt);
    hf__my_vsql(&m->cmd, fmt, ap);
    va_end(ap);
    aside_send(m, aside_ignored);
}

void hf__my_bell_give_back(struct mysql *m, const struct my_lock *lock)
{
    if (lock->remote->kind == HF_MUTEX)
        hf__my_aside(m, "do release_lock('hfb:%h')", lock->hash, MY_HASH_LEN);
}

/* Behind a proxy that shares connections, `thread` may be the id of another
 * client's connection, and KILL QUERY would then end a statement of that
 * client. */
void hf__my_ring(struct mysql *m, uint64_t thread)
{
    if (thread && !m->is_proxied)
        hf__my_aside(m, "kill query %u", thread);
}

static int aside_found(struct my_conn *c, const struct my_answer *a)
{
    for (const struct my_row *row = a->last->rows; row; row = row->next)
        hf__my_ring(c->owner, hf__my_num(row, 0));
    return 0;
}

void hf__my_ring_all(struct mysql *m, const struct hf__query *q)
{
    uint8_t hash[MY_HASH_LEN];

    if (m->is_proxied)
        return;
    hf__my_hash(m, q->name, q->name_len, hash);
    hf__my_begin(&m->cmd);
    hf__my_sql(&m->cmd,
               "select id from information_schema.processlist where info like "
               "'/*hf:%h %%'",
               hash, MY_HASH_LEN);
    aside_send(m, aside_found);
}
