#include "watch.h"

#include <stdio.h>
#include <string.h>

GROUP("watch");

static void see(void *arg, hf_watch *watch, const char *name, size_t len)
{
    struct seen *s = arg;

    assert_ptr_equal(watch, s->watch);
    s->calls++;
    snprintf(s->name, sizeof(s->name), "%.*s", (int)len, name ? name : "");
}

static int end_watch(void *watch)
{
    return hf_watch_free(watch);
}

void watch(struct world *w, size_t i, const char *name, unsigned flags,
           struct seen *s)
{
    *s = (struct seen){.client = w->clients[i]};
    OK(hf_watch_new(s->client, name, HF_CSTRING, flags, see, s, &s->watch,
                    &w->err));
    world_own(w, s->watch, end_watch);
}

void watch_is_refused(struct world *w, hf_client *c, const char *name,
                      unsigned flags, int code, const char *word)
{
    struct seen s = {0};

    assert_int_equal(
        hf_watch_new(c, name, HF_CSTRING, flags, see, &s, &s.watch, &w->err),
        code);
    assert_null(s.watch);
    expect_words(w->err.text, word);
}

bool is_seen(const struct seen *s, unsigned before)
{
    assert_true(hf_client_dispatch(s->client) >= 0);
    return s->calls > before;
}

static size_t holders(const struct seen *s)
{
    hf_info *info = NULL;
    size_t len;

    if (hf_inspect(s->client, "n", 1, &info, NULL))
        return SIZE_MAX;
    len = info->holders_len;
    hf_info_free(info);
    return len;
}

/* Inspects the lock after each call of the watch, as a program that follows the
 * lock does. */
static bool comes_to(struct seen *s, unsigned *calls, size_t n)
{
    if (!is_seen(s, *calls))
        return false;
    *calls = s->calls;
    return holders(s) == n;
}

void hears(struct world *w, struct seen *s, hf_lock *lock)
{
    unsigned calls = s->calls;

    OK(hf_lock_timed(lock, 5000, &w->err));
    COMES(comes_to(s, &calls, 1));
    OK(hf_lock_release(lock, &w->err));
    COMES(comes_to(s, &calls, 0));
}

unsigned watch_taken(struct world *w, struct seen *s, hf_lock *lock)
{
    watch(w, 0, "n", 0, s);
    OK(hf_lock_timed(lock, 5000, &w->err));
    COMES(is_seen(s, 0));
    return s->calls;
}

CASE(test_watch_hears_after_a_cut)
{
    struct seen s;
    hf_lock *b;

    world_far(w, 30000, 5000);
    b = world_near(w);
    watch(w, 0, "n", 0, &s);
    hears(w, &s, b);
    for (int i = 0; i < 3; i++) {
        unsigned calls = s.calls;

        proxy_cut(w->proxy);
        COMES(is_seen(&s, calls));
        hears(w, &s, b);
    }
}

/* After an outage a watch reports the changes that were made during the
 * outage. */
CASE(test_watch_hears_of_an_outage)
{
    unsigned calls = 0;
    struct seen s;
    hf_lock *b;

    world_far(w, 30000, 5000);
    b = world_near(w);
    watch(w, 0, "n", 0, &s);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    OK(hf_lock_timed(b, 5000, &w->err));
    hf_client_dispatch(s.client);
    world_heal(w);
    COMES(comes_to(&s, &calls, 1));
    OK(hf_lock_release(b, &w->err));
    COMES(comes_to(&s, &calls, 0));
    hears(w, &s, b);
}

/* A watch can be freed while there is no connection, but no new watch can be
 * created. */
CASE(test_watch_is_freed_while_cut)
{
    struct seen s, other;
    hf_lock *b;

    world_far(w, 30000, 1000);
    b = world_near(w);
    watch(w, 0, "n", 0, &s);
    watch(w, 0, "m", 0, &other);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    world_ends(w, s.watch);
    COMES(hf_lock_timed(w->locks[0], 0, NULL) != 0);
    watch_is_refused(w, w->clients[0], "n", 0, HF_EUNKNOWN, "cause: ");
    world_heal(w);
    COMES(is_seen(&other, 0));
    watch(w, 0, "n", 0, &s);
    hears(w, &s, b);
}

void watch_again_and_again(struct world *w, unsigned other_flags)
{
    hf_lock *a = world_near(w);
    struct seen s;

    world_near(w);
    for (int i = 0; i < 20; i++) {
        watch(w, 1, "n", i % 2 ? other_flags : 0, &s);
        if (i % 3 == 0)
            hears(w, &s, a);
        OK(hf_lock_timed(a, 5000, &w->err));
        world_ends(w, s.watch);
        OK(hf_lock_release(a, &w->err));
    }
    world_is_clean(w);
}
