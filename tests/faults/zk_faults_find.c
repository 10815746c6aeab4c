/* How the servers are found: who is asked, who answers, names that lead
 * elsewhere or nowhere, some that are gone. */
#include "zk_faults.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

/* ---- who is no ZooKeeper --------------------------------------------------
 */

/* A port of our own, at which nobody listens. */
static int dead_port(int *fd)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&in, len), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&in, &len), 0);
    return ntohs(in.sin_port);
}

struct stranger {
    pthread_t thread;
    int fd, port;
    const char *says; /* NULL: nothing, ever */
    uint32_t visits;  /* atomic */
};

static void *speak(void *arg)
{
    struct stranger *s = arg;
    char heard[64];
    int fd;

    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        __atomic_add_fetch(&s->visits, 1, __ATOMIC_RELAXED);
        if (read(fd, heard, sizeof(heard)) > 0 && s->says)
            send(fd, s->says, strlen(s->says), MSG_NOSIGNAL);
        while (read(fd, heard, sizeof(heard)) > 0)
            ;
        close(fd);
    }
    return NULL;
}

static void stranger_begin(struct stranger *s, const char *says)
{
    s->says = says;
    s->visits = 0;
    s->port = dead_port(&s->fd);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, speak, s), 0);
}

static uint32_t visits(const struct stranger *s)
{
    return __atomic_load_n(&s->visits, __ATOMIC_RELAXED);
}

static void stranger_end(struct stranger *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static void open_stranger(struct world *w, const char *says, int code)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    struct stranger s;
    hf_client *c = NULL;
    char url[64], where[32];
    int64_t began = wait_now();

    stranger_begin(&s, says);
    opt.connect_timeout_ms = 1000;
    snprintf(url, sizeof(url), "zk://127.0.0.1:%d", s.port);
    snprintf(where, sizeof(where), "127.0.0.1:%d: ", s.port);
    assert_int_equal(hf_open(url, &opt, &c, &w->err), code);
    assert_true(wait_ms_since(began) < 2000);
    stranger_end(&s);
    if (!strstr(w->err.text, where) || !strstr(w->err.text, "ZooKeeper"))
        fail_msg("%s", w->err.text);
}

static void test_open_where_somebody_else_answers(void **state)
{
    open_stranger(*state,
                  "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
                  HF_EPROTO);
    open_stranger(*state, "-ERR unknown command\r\n", HF_EPROTO);
}

static void test_open_where_nobody_speaks(void **state)
{
    open_stranger(*state, NULL, HF_EBACKEND);
}

/* Of several, one that answers is enough; whatever the others are. */
static void test_open_beside_strangers(void **state)
{
    struct world *w = *state;
    struct stranger s[2];
    char url[128];

    stranger_begin(&s[0], "220 mail ESMTP, who is there?\r\n");
    stranger_begin(&s[1], NULL);
    snprintf(url, sizeof(url), "zk://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             s[0].port, s[1].port, w->port);
    for (int i = 0; i < 3; i++) /* in any order */
        world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    world_free_for_all(w, w->locks[0]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_close(w->clients[i]), 0);
        w->clients[i] = NULL;
    }
    stranger_end(&s[0]);
    stranger_end(&s[1]);
    world_is_clean(w);
}

/* Nobody answers at once, and all would, given time. */
static void test_open_where_all_are_slow(void **state)
{
    struct world *w = *state;
    struct proxy *other = proxy_start(w->port);
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    char url[64];

    proxy_set(w->proxy, PROXY_DELAY, 800);
    proxy_set(other, PROXY_DELAY, 800);
    opt.connect_timeout_ms = 3000; /* 675 ms each, then 1350 for one of them */
    snprintf(url, sizeof(url), "zk://127.0.0.1:%d,127.0.0.1:%d",
             proxy_port(w->proxy), proxy_port(other));
    if (hf_open(url, &opt, &c, &w->err))
        fail_msg("%s", w->err.text);
    assert_int_equal(hf_close(c), 0);
    proxy_end(other);
}

/* ---- names ----------------------------------------------------------------
 */

#define NAME "moves.test"

/* It is there, says a resolver of our own: 127.0.0.host. */
static struct {
    struct {
        int host, port; /* atomic; port 0: no more */
    } at[2];
    bool hangs;     /* atomic; but not for ever */
    uint32_t asked; /* atomic */
    uint32_t busy;  /* atomic: who waits for it */
} resolver;

typedef int lookup_fn(const char *, const char *, const struct addrinfo *,
                      struct addrinfo **);

static int answer(lookup_fn *real, const struct addrinfo *hints,
                  struct addrinfo **list)
{
    int rc = 0, number;

    for (int i = 0; i < 2 && !rc; i++) {
        char host[16], port[8];

        snprintf(host, sizeof(host), "127.0.0.%d",
                 __atomic_load_n(&resolver.at[i].host, __ATOMIC_RELAXED));
        number = __atomic_load_n(&resolver.at[i].port, __ATOMIC_RELAXED);
        snprintf(port, sizeof(port), "%d", number);
        if (number)
            rc = real(host, port, hints, list);
        while (!rc && *list)
            list = &(*list)->ai_next;
    }
    return rc;
}

__attribute__((visibility("default"))) int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    lookup_fn *real = (lookup_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
    bool answers;

    if (!node || strcmp(node, NAME) != 0)
        return real(node, service, hints, list);
    __atomic_add_fetch(&resolver.busy, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&resolver.asked, 1, __ATOMIC_RELAXED);
    answers =
        WAIT_FOR_MS(!__atomic_load_n(&resolver.hangs, __ATOMIC_RELAXED), 6000);
    __atomic_sub_fetch(&resolver.busy, 1, __ATOMIC_RELAXED);
    if (!answers)
        return EAI_AGAIN;
    *list = NULL;
    return answer(real, hints, list);
}

static uint32_t asked(void)
{
    return __atomic_load_n(&resolver.asked, __ATOMIC_RELAXED);
}

static bool is_looking_up(void)
{
    return __atomic_load_n(&resolver.busy, __ATOMIC_RELAXED) > 0;
}

static void set_answer(int i, int host, int port)
{
    __atomic_store_n(&resolver.at[i].host, host, __ATOMIC_RELAXED);
    __atomic_store_n(&resolver.at[i].port, port, __ATOMIC_RELAXED);
}

static void resolve_to(int host, const struct proxy *proxy)
{
    set_answer(0, host, proxy_port(proxy));
    set_answer(1, 0, 0);
    __atomic_store_n(&resolver.hangs, false, __ATOMIC_RELAXED);
}

static void resolver_hangs(bool hangs)
{
    __atomic_store_n(&resolver.hangs, hangs, __ATOMIC_RELAXED);
}

static void proxy_gone(struct proxy *proxy)
{
    proxy_set(proxy, PROXY_REFUSE, 0);
    proxy_cut(proxy);
}

/* A lock by name, its server where the proxy is. */
static hf_lock *named_lock(struct world *w, int64_t ttl_ms)
{
    resolve_to(1, w->proxy);
    return world_lock(w, "zk://" NAME, ttl_ms, 500, HF_FAIR_DEFAULT);
}

/* The name is looked up again while the session still lives. */
static void test_server_that_moves_is_found(void **state)
{
    struct world *w = *state;
    struct proxy *elsewhere = proxy_start_at(2, w->port);
    hf_lock *a;

    assert_non_null(elsewhere);
    a = named_lock(w, 4000);
    world_takes(w, a, 5000);
    resolve_to(2, elsewhere);
    proxy_gone(w->proxy);
    assert_true(NEVER_MS(hf_lock_check(a) != 0, 6000));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    proxy_end(elsewhere);
    world_is_clean(w);
}

/* And when it has ended before. */
static void test_server_that_moved_long_ago_is_found(void **state)
{
    struct world *w = *state;
    struct proxy *elsewhere = proxy_start_at(2, w->port);
    hf_lock *a;

    assert_non_null(elsewhere);
    a = named_lock(w, 1000);
    world_takes(w, a, 5000);
    proxy_gone(w->proxy);
    assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
    world_is_clean(w);
    resolve_to(2, elsewhere);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    assert_true(WAIT_FOR(hf_lock_timed(a, 1000, NULL) == 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    proxy_end(elsewhere);
    world_is_clean(w);
}

/* Of two that a later lookup has found, both are asked again and again: the
 * library alone would come back to one of them only. */
static void test_each_of_two_found_later_is_asked(void **state)
{
    struct world *w = *state;
    struct stranger s[2];
    struct taker *t;
    hf_lock *a;

    resolve_to(1, w->proxy);
    a = world_lock(w, "zk://" NAME, 3000, WAIT_LONG_MS, HF_FAIR_DEFAULT);
    world_free_for_all(w, a);
    for (int i = 0; i < 2; i++) {
        stranger_begin(&s[i], "220 mail ESMTP, who is there?\r\n");
        set_answer(i, 1, s[i].port);
    }
    proxy_gone(w->proxy);
    t = taker_start(w, a, WAIT_LONG_MS);
    WAIT_FOR(visits(&s[0]) + visits(&s[1]) >= 20);
    resolve_to(1, w->proxy);
    proxy_set(w->proxy, PROXY_PASS, 0);
    stranger_end(&s[0]);
    stranger_end(&s[1]);
    if (visits(&s[0]) < 5 || visits(&s[1]) < 5)
        fail_msg("asked %u and %u times", visits(&s[0]), visits(&s[1]));
    taker_gets_it(t, 5000);
    world_is_clean(w);
}

/* The server is gone, and the resolver does not say whereto. */
static void nothing_is_found(struct world *w)
{
    resolver_hangs(true);
    proxy_gone(w->proxy);
}

/* Held, and nobody calls, while a lookup hangs. */
static hf_lock *held_without_a_server(struct world *w, int64_t ttl_ms)
{
    hf_lock *a = named_lock(w, ttl_ms);

    world_takes(w, a, 5000);
    nothing_is_found(w);
    assert_true(WAIT_FOR(is_looking_up()));
    return a;
}

/* Nobody who has a deadline waits for a resolver. */
static void test_lookup_that_hangs_keeps_nobody(void **state)
{
    struct world *w = *state;
    hf_lock *a = named_lock(w, 6000);
    uint32_t before;
    int64_t began;

    world_free_for_all(w, a);
    before = asked();
    nothing_is_found(w);
    while (asked() == before) {
        began = wait_now();
        assert_int_not_equal(hf_lock_timed(a, 100, &w->err), 0);
        assert_true(wait_ms_since(began) < 1100);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_takes(w, a, 2000);
    assert_true(is_looking_up());
    resolver_hangs(false);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* The hold is renewed although a lookup hangs. */
static void test_lookup_that_hangs_costs_no_hold(void **state)
{
    struct world *w = *state;
    hf_lock *a = held_without_a_server(w, 6000);

    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(NEVER_MS(hf_lock_check(a) != 0, 5000));
    resolver_hangs(false);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* The session is over: the servers are where they were. */
static void test_lookup_that_hangs_keeps_no_session(void **state)
{
    struct world *w = *state;
    hf_lock *a = held_without_a_server(w, 1000);

    assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_is_clean(w);
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(WAIT_FOR(hf_lock_timed(a, 500, NULL) == 0));
    assert_true(is_looking_up());
    resolver_hangs(false);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* It is left alone with what it finds. */
static void test_lookup_that_hangs_keeps_no_close(void **state)
{
    struct world *w = *state;
    int64_t began;

    held_without_a_server(w, 2000);
    began = wait_fair();
    hf_close(w->clients[0]);
    w->clients[0] = NULL;
    assert_true(wait_within(began, 1500));
    assert_true(is_looking_up());
    resolver_hangs(false);
    world_is_clean(w);
}

/* ---- some of several ------------------------------------------------------
 */

/* The proxy, and so many that are dead, in an order of chance: it is found
 * again each time; and while it is gone, there are pauses. */
static void found_among_dead(struct world *w, int dead)
{
    int fd, port = dead_port(&fd), len;
    struct taker *t;
    int64_t cpu;
    char url[128];
    hf_lock *a;

    len = snprintf(url, sizeof(url), "%s", w->far_url);
    for (int i = 0; i < dead; i++)
        len += snprintf(url + len, sizeof(url) - (size_t)len, ",127.0.0.1:%d",
                        port);
    a = world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    world_free_for_all(w, a);
    for (int i = 0; i < 3; i++) {
        proxy_cut(w->proxy);
        world_takes(w, a, 4000);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
    }
    proxy_gone(w->proxy);
    t = taker_start(w, a, 20000);
    cpu = cpu_ms();
    assert_true(NEVER_MS(taker_back(t), 1000));
    assert_true(cpu_ms() - cpu < 500);
    proxy_set(w->proxy, PROXY_PASS, 0);
    taker_gets_it(t, 4000);
    close(fd);
}

static void test_one_of_two_is_found_again(void **state)
{
    for (int i = 0; i < 3; i++)
        found_among_dead(*state, 1);
    world_is_clean(*state);
}

static void test_one_of_many_is_found_again(void **state)
{
    for (int dead = 2; dead <= 5; dead++)
        found_among_dead(*state, dead);
    world_is_clean(*state);
}

int run_find_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_open_where_somebody_else_answers),
        T(test_open_where_nobody_speaks),
        T(test_open_beside_strangers),
        T(test_open_where_all_are_slow),
        T(test_server_that_moves_is_found),
        T(test_server_that_moved_long_ago_is_found),
        T(test_each_of_two_found_later_is_asked),
        T(test_lookup_that_hangs_keeps_nobody),
        T(test_lookup_that_hangs_costs_no_hold),
        T(test_lookup_that_hangs_keeps_no_session),
        T(test_lookup_that_hangs_keeps_no_close),
        T(test_one_of_two_is_found_again),
        T(test_one_of_many_is_found_again),
    };

    return cmocka_run_group_tests_name("zookeeper: finding it", tests,
                                       group_one, group_one_end);
}
