#include "core/watches.h"

#include "base/list.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/wakeup.h"

#include <string.h>

void hf__watch_ring_locked(hf_client *c, hf_watch *w)
{
    hf__deque_add(c->changed, c->changed_tail, w);
    c->changed_len++;
    hf__fd_post(c->ready_fd);
}

void hf__watch_unring_locked(hf_client *c, hf_watch *w)
{
    hf__deque_remove(c->changed, c->changed_tail, w);
    c->changed_len--;
}

void hf__watch_changed(hf_client *c, struct hf__listener *on, const char *name,
                       size_t len)
{
    hf_watch *w = hf__container(on, hf_watch, on);
    char heard[HF_NAME_MAX + 1] = "";

    if (name && (len -= strlen(c->prefix)) <= HF_NAME_MAX)
        memcpy(heard, name + strlen(c->prefix), len);
    if (w->changed && strcmp(w->heard, heard) != 0)
        heard[0] = '\0';
    strcpy(w->heard, heard);
    if (w->given && !w->changed && !w->calling)
        hf__watch_ring_locked(c, w);
    w->changed = true;
}

void hf__watch_remove_locked(struct hf__listener *on)
{
    hf_watch *w = on ? hf__container(on, hf_watch, on) : NULL;
    hf_client *c = w ? w->client : NULL;

    if (!w)
        return;
    if (c->self)
        c->be->unlisten(c->self, on);
    if (w->given && w->changed && !w->calling)
        hf__watch_unring_locked(c, w);
    w->freed = true;
    if (!w->calling)
        hf__free(c, w);
}
