/* redlock_faults [GROUP [PATTERN]] */
#include "redlock_faults.h"

struct redlock_servers five;
struct proxy *way[SERVERS];

/* Opens the administrator's connection to each server, so that no case has
 * to. */
static void greet(void)
{
    for (int i = 0; i < SERVERS; i++)
        do_at(i, "PING");
}

static int start(void)
{
    if (redlock_servers_start(&five))
        return -1;
    greet();
    return 0;
}

static void stop(void)
{
    redlock_servers_end(&five);
    five = (struct redlock_servers){0};
}

static int begin(struct world *w)
{
    w->port = SERVER(0)->port;
    for (int i = 0; i < SERVERS; i++) {
        way[i] = proxy_start(SERVER(i)->port);
        if (!way[i])
            return -1;
    }
    redlock_servers_url(&five, w->near_url, sizeof(w->near_url), PATIENT);
    return 0;
}

static int end(struct world *w)
{
    for (int i = 0; i < SERVERS; i++)
        proxy_end(way[i]);
    if (redlock_servers_heal(&five))
        return -1;
    for (int i = 0; i < SERVERS; i++) {
        do_at(i, "FLUSHALL");
        do_at(i, "ACL DELUSER worker");
    }
    return 0;
}

static long left(struct world *w)
{
    return redlock_servers_keys(&five);
}

static void print_left(struct world *w)
{
    for (int i = 0; i < SERVERS; i++) {
        fprintf(stderr, "server %d: %lld ms\n", i, do_at(i, "PTTL n"));
        redis_server_print_keys(SERVER(i));
    }
}

static const struct world_server redlock = {"redlock", start, stop,       begin,
                                            end,       left,  print_left, NULL};

void restart(int i)
{
    redis_server_kill(SERVER(i));
    OK(redis_server_again(SERVER(i)));
}

bool has(int i)
{
    return do_at(i, "EXISTS n") == 1;
}

void delete_key(int i)
{
    do_at(i, "DEL n");
}

int keys(void)
{
    int n = 0;

    for (int i = 0; i < SERVERS; i++)
        n += has(i);
    return n;
}

int keys_as(int i)
{
    redisReply *one = redis_server_ask(SERVER(i), "GET n"), *other;
    int n = 0;

    for (int j = 0; j < SERVERS; j++) {
        other = redis_server_ask(SERVER(j), "GET n");
        n += one->str && other->str && !strcmp(one->str, other->str);
        freeReplyObject(other);
    }
    freeReplyObject(one);
    return n;
}

const char *far_url(const char *options)
{
    static char url[256];
    struct redlock_servers proxies = five;

    for (int i = 0; i < SERVERS; i++)
        proxies.server[i].port = proxy_port(way[i]);
    redlock_servers_url(&proxies, url, sizeof(url), options);
    return url;
}

hf_lock *far(struct world *w, int64_t ttl_ms, int64_t op_ms,
             const char *options)
{
    return world_lock(w, far_url(options), ttl_ms, op_ms, HF_FAIR_DEFAULT);
}

hf_lock *near(struct world *w)
{
    return world_near(w);
}

void cut(int i)
{
    proxy_set(way[i], PROXY_REFUSE, 0);
    proxy_cut(way[i]);
}

void heal(int i)
{
    proxy_set(way[i], PROXY_PASS, 0);
    proxy_cut(way[i]);
}

void heal_all(void)
{
    for (int i = 0; i < SERVERS; i++)
        heal(i);
}

void pass(int64_t ms)
{
    int64_t began = wait_now();

    while (wait_ms_since(began) < ms)
        wait_tick();
}

void takes(struct world *w, hf_lock *lock)
{
    int64_t began = wait_now();

    world_takes(w, lock, 3000);
    /* The client may not have been connected to every server yet. Then some
     * servers lack the key. */
    while (!WAIT_FOR_MS(keys_as(0) == SERVERS, 200)) {
        assert_true(wait_ms_since(began) < WAIT_LONG_MS);
        gives(w, lock);
        world_takes(w, lock, 3000);
    }
}

void gives(struct world *w, hf_lock *lock)
{
    OK(hf_lock_release(lock, &w->err));
}

void renews(struct world *w, hf_lock *lock)
{
    int rc = hf_lock_renew(lock, 0, &w->err);

    if (rc)
        fail_msg("%d: %s", rc, w->err.text);
}

void says(const char *text, const char *words)
{
    expect_words(text, words);
}

void is_busy(struct world *w, hf_lock *lock)
{
    EXPECT(HF_EBUSY, hf_lock_try(lock, &w->err));
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, &redlock);
}
