/* redis_faults [GROUP [PATTERN]] */
#include "redis_faults.h"

#include "../any/any_faults.h"

static int start(struct world *w, const char *password, const char *tls)
{
    w->redis = calloc(1, sizeof(*w->redis));
    if (!w->redis)
        return -1;
    w->redis->tls = tls;
    if (password) {
        w->redis->args[0] = "--requirepass";
        w->redis->args[1] = password;
    }
    if (redis_server_start(w->redis))
        return -1;
    if (password)
        redis_server_do(w->redis, "AUTH %s", password);
    w->port = w->redis->port;
    snprintf(w->near_url, sizeof(w->near_url), "%s",
             tls ? w->redis->tls_url : w->redis->url);
    return 0;
}

static int begin(struct world *w)
{
    return start(w, NULL, NULL);
}

static int begin_auth(struct world *w)
{
    return start(w, "secret-of-default", NULL);
}

static int begin_tls(struct world *w)
{
    return start(w, NULL, "server");
}

static int end(struct world *w)
{
    redis_server_end(w->redis);
    free(w->redis);
    return 0;
}

static long left(struct world *w)
{
    return (long)redis_server_keys(w->redis);
}

static void print_left(struct world *w)
{
    redis_server_print_keys(w->redis);
}

int world_setup(void **state)
{
    static const struct world_server server = {"redis", begin, end, left,
                                               print_left};

    return world_begin(state, &server);
}

int world_setup_auth(void **state)
{
    static const struct world_server server = {"redis", begin_auth, end, left,
                                               print_left};

    return world_begin(state, &server);
}

int world_setup_tls(void **state)
{
    static const struct world_server server = {"redis", begin_tls, end, left,
                                               print_left};

    return world_begin(state, &server);
}

int take_lease(hf_lock *lock, int64_t wait_ms, int64_t lease_ms, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.wait_ms = wait_ms;
    opt.lease_ms = lease_ms;
    return hf_lock_acquire(lock, &opt, err);
}

void world_has_waiter(struct world *w, const char *key)
{
    assert_true(WAIT_FOR(redis_server_do(w->redis, "EXISTS %s", key) == 1));
}

void redis_tell(struct world *w, const char *list, int place, char letter)
{
    redis_server_do(
        w->redis, "EVAL %s 1 %s %d %s",
        "local w=redis.call('lindex',KEYS[1],ARGV[1]) "
        "if w then "
        "  redis.call('publish','holdfast:wake:{}:'..string.sub(w,1,36),"
        "    ARGV[2]..string.sub(w,38)..' 0 0 n') "
        "end",
        list, place, (char[2]){letter});
}

long long redis_looked_at(struct world *w, const char *parties)
{
    redisReply *reply = redis_server_ask(w->redis, "HVALS %s", parties);
    long long at = -1;

    if (reply->elements == 1)
        assert_int_equal(sscanf(reply->element[0]->str, "%*d %lld", &at), 1);
    freeReplyObject(reply);
    return at;
}

long long redis_calls(struct world *w, const char *command)
{
    return redis_server_do(
        w->redis, "EVAL %s 0 %s",
        "local all=redis.call('info','commandstats') "
        "local n=string.match(all,'cmdstat_'..ARGV[1]..':calls=(%d+)') "
        "return tonumber(n) or 0",
        command);
}

long long redis_connections(struct world *w)
{
    return redis_server_do(
        w->redis, "EVAL %s 0",
        "local all=redis.call('info','clients') "
        "return tonumber(string.match(all,'connected_clients:(%d+)'))");
}

static long holds(struct world *w)
{
    return (long)redis_server_do(w->redis, "HLEN n");
}

static bool is_waited_for(struct world *w)
{
    return redis_server_do(w->redis, "EXISTS holdfast:waiters:{n}") == 1;
}

static int stop(struct world *w)
{
    return redis_server_stop(w->redis);
}

static int go_on(struct world *w)
{
    return redis_server_continue(w->redis);
}

const struct any_faults any_faults = {
    .setup = world_setup,
    .op_ms = 400,
    .ttl_ms = 5500,
    .tick_ms = 500,
    .rounds = 500,
    .request = "\nn\r",
    .holds = holds,
    .is_waited_for = is_waited_for,
    .stop = stop,
    .go_on = go_on,
};

int main(int argc, char **argv)
{
    static const struct world_group groups[] = {
        {"server", run_server_faults},
        {"net", run_net_faults},
        {"hostile", run_hostile_faults},
        {"auth", run_auth_faults},
        {"wait", run_wait_faults},
        {"kinds", run_kinds_faults},
        {"hand", run_hand_faults},
        {"find", run_find_faults},
        {"cuts", run_any_cuts},
        {"any", run_any_faults},
        {"names", run_any_names},
        {"keys", run_keys_faults},
        {"beside", run_beside_faults},
        {"cost", run_cost_faults},
        {"same-server", run_same_server_faults},
        {"inspect", run_inspect_faults},
        {"refusals", run_any_refusals},
        {"loss", run_any_loss},
        {"late", run_any_late},
        {"tls", run_tls_faults},
        {"diagnose", run_diagnose_faults},
        {"ask", run_ask_faults},
        {"break", run_break_faults},
        {"renew", run_renew_faults},
        {"watch", run_watch_faults},
        {"failover", run_failover_faults},
        {"replica", run_replica_faults},
    };

    return world_main(argc, argv, groups, sizeof(groups) / sizeof(*groups));
}
