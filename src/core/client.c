#include "core/client.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "core/events.h"
#include "core/hooks.h"
#include "core/last_error.h"
#include "core/line.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps a page that the kernel zeroes in a child after fork(), so that one load
 * tells whether this process is such a child. */
static const uint32_t *client_make_fork_mark(void)
{
    uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, 4096, MADV_WIPEONFORK)) {
        munmap(page, 4096);
        return NULL;
    }
    *page = 1;
    return page;
}

hf_client *hf__client_new(const hf_client_options *opt)
{
    hf_client boot = {0}, *c;

    if (opt->hooks)
        boot.hooks = *opt->hooks;
    if (!boot.hooks.alloc || !boot.hooks.free)
        boot.hooks.alloc = NULL, boot.hooks.free = NULL;
    c = hf__alloc(&boot, sizeof(*c));
    if (!c)
        return NULL;
    c->hooks = boot.hooks;
    c->on_event = opt->on_event;
    c->event_arg = opt->event_arg;
    c->outer_fd = -1;
    c->epfd = epoll_create1(EPOLL_CLOEXEC);
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->parent = client_make_fork_mark();
    return c;
}

static void client_close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void hf__client_free(hf_client *c)
{
    hf_hooks hooks = c->hooks;

    hf__event_drop_all_locked(c);
    while (c->exchanges) {
        struct hf__exchange *x = c->exchanges;

        c->exchanges = x->next;
        hf__words_free(c, x);
        hf__free(c, x);
    }
    hf__free(c, c->timers.heap);
    hf__free(c, c->buckets);
    hf__free(c, c->prefix);
    hf__free(c, c->label);
    hf__free(c, c->place);
    client_close_fd(c->epfd);
    client_close_fd(c->wake_fd);
    client_close_fd(c->ready_fd);
    client_close_fd(c->outer_fd);
    if (c->parent)
        munmap((void *)(uintptr_t)c->parent, 4096);
    hf__free_by(&hooks, c);
}

int hf__client_usable(const hf_client *c, hf_error *err)
{
    int rc = c ? hf__client_check(c) : HF_EINVAL;

    if (!c)
        return hf__fail(err, rc, "client is NULL");
    return rc ? hf__fail(err, rc, "%s", hf_error_text(rc)) : 0;
}

bool hf__client_enter(hf_client *c)
{
    HF__HOLDING(&c->mu);
    bool open = !__atomic_load_n(&c->closed, __ATOMIC_ACQUIRE);

    c->inside += open;
    return open;
}

void hf__client_leave(hf_client *c)
{
    HF__HOLDING(&c->mu);

    c->inside--;
}

void hf__client_put(hf_client *c)
{
    bool last;

    hf__mutex_lock(&c->mu);
    last = --c->handles == 0 && __atomic_load_n(&c->closed, __ATOMIC_ACQUIRE) &&
           !c->self;
    hf__mutex_unlock(&c->mu);
    if (last)
        hf__client_free(c);
}
