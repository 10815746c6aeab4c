/* A server that is known by host name: it moves, or its name cannot be
 * resolved. */
#include "any_faults.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

GROUP("names");

/* The state of the test's own resolver. Addresses are 127.0.0.host, or ::1 if
 * host is 0. */
static struct {
    struct {
        int host, port; /* atomic; no such address if port is 0 */
    } at[2];
    bool hangs;     /* atomic: lookups hang (not forever) */
    int fails;      /* atomic: EAI_... instead of an answer, or 0 */
    uint32_t asked; /* atomic: number of lookups */
    uint32_t busy;  /* atomic: lookups in progress */
} resolver;

typedef int lookup_fn(const char *, const char *, const struct addrinfo *,
                      struct addrinfo **);

/* Calls libc's resolver for one thread at a time: TSan does not know libc's
 * locks, except in its own getaddrinfo(), which this test replaces. */
static int ask_libc(const char *node, const char *service,
                    const struct addrinfo *hints, struct addrinfo **list)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    lookup_fn *real = (lookup_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
    int rc;

    pthread_mutex_lock(&mutex);
    rc = real(node, service, hints, list);
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int answer(const struct addrinfo *hints, struct addrinfo **list)
{
    int rc = 0, number;

    for (int i = 0; i < 2 && !rc; i++) {
        const char *port;
        const char *host;

        number = __atomic_load_n(&resolver.at[i].host, __ATOMIC_RELAXED);
        host = text_of(number ? "127.0.0.%d" : "::1", number);
        number = __atomic_load_n(&resolver.at[i].port, __ATOMIC_RELAXED);
        port = text_of("%d", number);
        if (number)
            rc = ask_libc(host, port, hints, list);
        while (!rc && *list)
            list = &(*list)->ai_next;
    }
    return rc;
}

__attribute__((visibility("default"))) int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    bool answers;
    int rc;

    if (!node || strcmp(node, ANY_NAME) != 0)
        return ask_libc(node, service, hints, list);
    __atomic_add_fetch(&resolver.busy, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&resolver.asked, 1, __ATOMIC_RELAXED);
    answers =
        WAIT_FOR_MS(!__atomic_load_n(&resolver.hangs, __ATOMIC_RELAXED), 15000);
    __atomic_sub_fetch(&resolver.busy, 1, __ATOMIC_RELAXED);
    if (!answers)
        return EAI_AGAIN;
    *list = NULL;
    rc = __atomic_load_n(&resolver.fails, __ATOMIC_RELAXED);
    return rc ? rc : answer(hints, list);
}

static uint32_t asked(void)
{
    return __atomic_load_n(&resolver.asked, __ATOMIC_RELAXED);
}

static bool is_looking_up(void)
{
    return __atomic_load_n(&resolver.busy, __ATOMIC_RELAXED) > 0;
}

void resolver_finds(int i, int host, int port)
{
    __atomic_store_n(&resolver.at[i].host, host, __ATOMIC_RELAXED);
    __atomic_store_n(&resolver.at[i].port, port, __ATOMIC_RELAXED);
}

void resolver_leads_to(int host, const struct proxy *proxy)
{
    resolver_finds(0, host, proxy_port(proxy));
    resolver_finds(1, 0, 0);
    __atomic_store_n(&resolver.hangs, false, __ATOMIC_RELAXED);
}

static void resolver_hangs(bool hangs)
{
    __atomic_store_n(&resolver.hangs, hangs, __ATOMIC_RELAXED);
}

void any_proxy_gone(struct proxy *proxy)
{
    proxy_set(proxy, PROXY_REFUSE, 0);
    proxy_cut(proxy);
}

/* Returns a lock at a host name that leads to the proxy. */
static hf_lock *named_lock(struct world *w, int64_t ttl_ms)
{
    char url[128];

    resolver_leads_to(1, w->proxy);
    world_url(w, ANY_NAME, url, sizeof(url));
    return world_lock(w, url, ttl_ms, 1000, HF_FAIR_DEFAULT);
}

/* The server moves to another address: the client resolves the name again
 * before its session ends. */
CASE(test_server_that_moves_is_found)
{
    struct proxy *elsewhere = proxy_start_at(2, w->port);
    hf_lock *a;

    assert_non_null(elsewhere);
    a = named_lock(w, 6000);
    world_takes(w, a, 5000);
    resolver_leads_to(2, elsewhere);
    any_proxy_gone(w->proxy);
    world_renews(a);
    world_renews(a);
    OK(hf_lock_release(a, &w->err));
    proxy_end(elsewhere);
}

CASE(test_server_that_moved_long_ago_is_found)
{
    struct proxy *elsewhere = proxy_start_at(2, w->port);
    hf_lock *a;

    assert_non_null(elsewhere);
    a = named_lock(w, 1000);
    world_takes(w, a, 5000);
    any_proxy_gone(w->proxy);
    COMES(hf_lock_check(a) == HF_ELOST);
    world_is_clean(w);
    resolver_leads_to(2, elsewhere);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    COMES(hf_lock_timed(a, 1000, NULL) == 0);
    OK(hf_lock_release(a, &w->err));
    proxy_end(elsewhere);
}

/* From here on the server cannot be reached, and the resolver does not
 * answer. */
static void nothing_is_found(struct world *w)
{
    resolver_hangs(true);
    any_proxy_gone(w->proxy);
}

/* Returns a held lock while a lookup hangs and no call waits for it. */
static hf_lock *held_without_a_server(struct world *w, int64_t ttl_ms)
{
    hf_lock *a = named_lock(w, ttl_ms);

    world_takes(w, a, 5000);
    nothing_is_found(w);
    COMES(is_looking_up());
    return a;
}

/* A call with a time limit ends in time although the resolver does not
 * answer. */
CASE(test_lookup_that_hangs_keeps_nobody)
{
    hf_lock *a = named_lock(w, 6000);
    uint32_t before;

    world_free_for_all(w, a);
    before = asked();
    nothing_is_found(w);
    while (asked() == before) {
        WITHIN(1100, FAILS(hf_lock_timed(a, 100, &w->err)));
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_takes(w, a, 2000);
    assert_true(is_looking_up());
    resolver_hangs(false);
    OK(hf_lock_release(a, &w->err));
}

CASE(test_lookup_that_hangs_costs_no_hold)
{
    hf_lock *a = held_without_a_server(w, 6000);

    proxy_set(w->proxy, PROXY_PASS, 0);
    world_renews(a);
    assert_true(is_looking_up());
    resolver_hangs(false);
    OK(hf_lock_release(a, &w->err));
}

/* The session ends while the lookup hangs; afterwards the old address works
 * again. */
CASE(test_lookup_that_hangs_keeps_no_session)
{
    hf_lock *a = held_without_a_server(w, 1000);

    COMES(hf_lock_check(a) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_is_clean(w);
    proxy_set(w->proxy, PROXY_PASS, 0);
    COMES(hf_lock_timed(a, 500, NULL) == 0);
    assert_true(is_looking_up());
    resolver_hangs(false);
    OK(hf_lock_release(a, &w->err));
}

/* hf_close() does not wait for a lookup, which ends by itself. */
CASE(test_lookup_that_hangs_keeps_no_close)
{
    int64_t began;

    held_without_a_server(w, 2000);
    began = wait_fair();
    hf_close(w->clients[0]);
    w->clients[0] = NULL;
    assert_true(wait_within(began, 1500));
    assert_true(is_looking_up());
    resolver_hangs(false);
}

/* Returns whether hf_open() fails with an error that says that a later
 * hf_open() may succeed. */
static bool may_pass(struct world *w)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *c = NULL;
    char url[128];

    world_url(w, ANY_NAME, url, sizeof(url));
    EXPECT(HF_EBACKEND,
           hf_open(url, CLIENT(.connect_timeout_ms = 300), &c, &err));
    expect_words(err.text, ANY_NAME);
    return err.may_pass;
}

/* The error distinguishes a resolver that cannot answer now from a resolver
 * that says that the name does not exist. */
CASE(test_unknown_name_does_not_pass)
{
    resolver_leads_to(1, w->proxy);
    __atomic_store_n(&resolver.fails, EAI_NONAME, __ATOMIC_RELAXED);
    assert_false(may_pass(w));
    __atomic_store_n(&resolver.fails, EAI_FAIL, __ATOMIC_RELAXED);
    assert_false(may_pass(w));
    __atomic_store_n(&resolver.fails, EAI_AGAIN, __ATOMIC_RELAXED);
    assert_true(may_pass(w));
    __atomic_store_n(&resolver.fails, 0, __ATOMIC_RELAXED);
    resolver_hangs(true);
    assert_true(may_pass(w));
    resolver_hangs(false);
    COMES(!is_looking_up());
}
