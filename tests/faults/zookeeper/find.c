/* Finding the servers: peers that are not ZooKeeper, host names that lead to
 * other servers or to none, and hosts that are down. */
#include "../any/any_faults.h"
#include "zk_faults.h"

#include <arpa/inet.h>
#include <sys/socket.h>

GROUP("find");

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
    const char *says; /* NULL if this host never answers */
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
    OK(pthread_create(&s->thread, NULL, speak, s));
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
    struct stranger s;
    hf_client *c = NULL;
    int64_t began = wait_fair();

    stranger_begin(&s, says);
    assert_int_equal(hf_open(text_of("zk://127.0.0.1:%d", s.port),
                             CLIENT(.connect_timeout_ms = 3000), &c, &w->err),
                     code);
    assert_true(wait_within(began, 4000));
    stranger_end(&s);
    if (!strstr(w->err.text, text_of("127.0.0.1:%d: ", s.port)) ||
        !strstr(w->err.text, "ZooKeeper"))
        fail_msg("%s", w->err.text);
}

CASE(test_open_where_somebody_else_answers)
{
    open_stranger(w, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
                  HF_EPROTO);
    open_stranger(w, "-ERR unknown command\r\n", HF_EPROTO);
}

CASE_IS(test_open_where_nobody_speaks, open_stranger(w, NULL, HF_EBACKEND))

/* hf_open() succeeds if one of several hosts is a server that answers, whatever
 * the other hosts are. */
CASE(test_open_beside_strangers)
{
    struct stranger s[2];

    stranger_begin(&s[0], "220 mail ESMTP, who is there?\r\n");
    stranger_begin(&s[1], NULL);
    /* Opens three clients, because each tries the hosts in a random order. */
    for (int i = 0; i < 3; i++)
        world_lock(w,
                   text_of("zk://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
                           s[0].port, s[1].port, w->port),
                   30000, 5000, HF_FAIR_DEFAULT);
    world_free_for_all(w, w->locks[0]);
    for (int i = 0; i < 3; i++) {
        OK(hf_close(w->clients[i]));
        w->clients[i] = NULL;
    }
    stranger_end(&s[0]);
    stranger_end(&s[1]);
}

/* No server answers within the time of the first attempt, but each server would
 * if it had more time. */
CASE(test_open_where_all_are_slow)
{
    struct proxy *other = proxy_start(w->port);
    hf_client *c = NULL;

    proxy_set(w->proxy, PROXY_DELAY, 800);
    proxy_set(other, PROXY_DELAY, 800); /* each host gets about 675 ms, then one
                                           of them gets twice that */
    OK(hf_open(text_of("zk://127.0.0.1:%d,127.0.0.1:%d", proxy_port(w->proxy),
                       proxy_port(other)),
               CLIENT(.connect_timeout_ms = 3000), &c, &w->err));
    OK(hf_close(c));
    proxy_end(other);
}

/* A later lookup of the host name finds two other addresses: the client must
 * try both repeatedly. By itself the ZooKeeper library would try only one of
 * them again. */
CASE(test_each_of_two_found_later_is_asked)
{
    struct stranger s[2];
    struct taker *t;
    hf_lock *a;

    resolver_leads_to(1, w->proxy);
    a = world_lock(w, "zk://" ANY_NAME, 3000, WAIT_LONG_MS, HF_FAIR_DEFAULT);
    world_free_for_all(w, a);
    for (int i = 0; i < 2; i++) {
        stranger_begin(&s[i], "220 mail ESMTP, who is there?\r\n");
        resolver_finds(i, 1, s[i].port);
    }
    any_proxy_gone(w->proxy);
    t = taker_start(w, a, WAIT_LONG_MS);
    WAIT_FOR(visits(&s[0]) + visits(&s[1]) >= 20);
    resolver_leads_to(1, w->proxy);
    proxy_set(w->proxy, PROXY_PASS, 0);
    stranger_end(&s[0]);
    stranger_end(&s[1]);
    if (visits(&s[0]) < 5 || visits(&s[1]) < 5)
        fail_msg("asked %u and %u times", visits(&s[0]), visits(&s[1]));
    taker_gets_it(t, 5000);
}

/* The URL names the proxy and dead ports, which the client tries in random
 * order. The client must find the proxy again after each cut, and pause between
 * its attempts while the proxy refuses. */
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
        OK(hf_lock_release(a, &w->err));
    }
    any_proxy_gone(w->proxy);
    t = taker_start(w, a, 20000);
    cpu = cpu_ms();
    assert_true(NEVER_MS(taker_back(t), 1000));
    assert_true(cpu_ms() - cpu < 500);
    proxy_set(w->proxy, PROXY_PASS, 0);
    taker_gets_it(t, 4000);
    close(fd);
}

CASE(test_one_of_two_is_found_again)
{
    for (int i = 0; i < 3; i++)
        found_among_dead(w, 1);
}

CASE(test_one_of_many_is_found_again)
{
    for (int dead = 2; dead <= 5; dead++)
        found_among_dead(w, dead);
}
