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
        redis_do(w, "AUTH %s", password);
    w->process = &w->redis->process;
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

static int end_server(void *server)
{
    redis_server_end(server);
    free(server);
    return 0;
}

struct redis_server *redis_replica(struct world *w)
{
    struct redis_server *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    world_own(w, s, end_server);
    OK(redis_server_start(s));
    OK(redis_server_follow(s, w->redis->port));
    return s;
}

static int end_context(void *c)
{
    redisFree(c);
    return 0;
}

redisContext *redis_listens(struct world *w, const char *channel)
{
    redisContext *ear = redisConnectUnix(w->redis->socket);

    assert_non_null(ear);
    world_own(w, ear, end_context);
    redisSetTimeout(ear, (struct timeval){10, 0});
    freeReplyObject(redisCommand(ear, "SUBSCRIBE %s", channel));
    return ear;
}

const char *redis_next(redisContext *ear)
{
    redisReply *reply = NULL;
    const char *text;

    assert_int_equal(redisGetReply(ear, (void **)&reply), REDIS_OK);
    text = text_of("%s", reply->element[2]->str);
    freeReplyObject(reply);
    return text;
}

void redis_hears(redisContext *ear, const char *text)
{
    assert_string_equal(redis_next(ear), text);
}

int take_lease(hf_lock *lock, int64_t wait_ms, int64_t lease_ms, hf_error *err)
{
    return hf_lock_acquire(lock, HOW(wait_ms, .lease_ms = lease_ms), err);
}

bool redis_has(struct redis_server *s, const char *key)
{
    return redis_server_do(s, "EXISTS %s", key) == 1;
}

void world_has_waiter(struct world *w, const char *key)
{
    COMES(redis_has(w->redis, key));
}

void redis_tell(struct world *w, const char *list, int place, char letter)
{
    redis_do(w, "EVAL %s 1 %s %d %s",
             "local w=redis.call('lindex',KEYS[1],ARGV[1]) "
             "if w then "
             "  redis.call('publish','holdfast:wake:{}:'..string.sub(w,1,36),"
             "    ARGV[2]..string.sub(w,38)..' 0 0 n') "
             "end",
             list, place, (char[2]){letter});
}

long long redis_looked_at(struct world *w, const char *parties)
{
    redisReply *reply = redis_ask(w, "HVALS %s", parties);
    long long at = -1;

    if (reply->elements == 1)
        assert_int_equal(sscanf(reply->element[0]->str, "%*d %lld", &at), 1);
    freeReplyObject(reply);
    return at;
}

long long redis_calls_of(struct redis_server *s, const char *command)
{
    return redis_server_do(
        s, "EVAL %s 0 %s",
        "local all=redis.call('info','commandstats') "
        "local n=string.match(all,'cmdstat_'..ARGV[1]..':calls=(%d+)') "
        "return tonumber(n) or 0",
        command);
}

long long redis_calls(struct world *w, const char *command)
{
    return redis_calls_of(w->redis, command);
}

long long redis_now_ms(struct world *w)
{
    redisReply *reply = redis_ask(w, "TIME");
    long long ms = atoll(reply->element[0]->str) * 1000 +
                   atoll(reply->element[1]->str) / 1000;

    freeReplyObject(reply);
    return ms;
}

bool redis_two_listen(struct world *w)
{
    redisReply *reply = redis_ask(w, "PUBSUB CHANNELS holdfast:wake:*");
    bool are_two = reply->elements == 2;

    freeReplyObject(reply);
    hf_client_dispatch(w->clients[0]);
    return are_two;
}

long long redis_connections(struct world *w)
{
    return redis_do(
        w, "EVAL %s 0",
        "local all=redis.call('info','clients') "
        "return tonumber(string.match(all,'connected_clients:(%d+)'))");
}

static long holds(struct world *w)
{
    return (long)redis_do(w, "HLEN n");
}

static bool is_waited_for(struct world *w)
{
    return redis_do(w, "EXISTS " WAITERS " " SEEN " " LINE) == 1;
}

const struct any_faults any_faults = {
    .op_ms = 400,
    .ttl_ms = 5500,
    .tick_ms = 500,
    .rounds = 500,
    .cut_most = 64,
    .cut_step = 3,
    .cut_op_ms = 3000,
    .request = "\nn\r",
    .holds = holds,
};

#define REDIS(begin)                                                           \
    {                                                                          \
        "redis", NULL, NULL, begin, end, left, print_left, is_waited_for       \
    }
static const struct world_server plain = REDIS(begin);
const struct world_server redis_with_password = REDIS(begin_auth);
const struct world_server redis_with_tls = REDIS(begin_tls);

int main(int argc, char **argv)
{
    return world_main(argc, argv, &plain);
}
