#include "servers.h"

#include "../lib/shm_dir.h"
#include "conf.h"

#include <ftw.h>
#include <stdio.h>

#ifdef HAVE_REDIS
#include "../lib/redis_server.h"
#endif

static char dir[64], url[512];

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int make_dir(void)
{
    if (!shm_dir_make(dir, sizeof(dir), "holdfast-conf")) {
        perror("conformance: mkdtemp");
        return -1;
    }
    conf.dir = dir;
    return 0;
}

static int start_shm(void)
{
    snprintf(url, sizeof(url), "shm://%s/shm", dir);
    conf.url = url;
    conf.local = true;
    return 0;
}

#ifdef HAVE_REDIS

static struct redis_server redis;

static const char *const redis_reserved[] = {
    "holdfast:info:{a}",
    "holdfast:",
    "redisson_lock_token:{a}",
    "redisson_lock_queue:{a}",
    "redisson_lock_timeout:{a}",
    "redisson_unlock_latch:{a}:1",
    NULL,
};

static long redis_left(void)
{
    long n = (long)redis_server_keys(&redis);

    if (n)
        redis_server_print_keys(&redis);
    return n;
}

static const char *redis_options = "";

static const char *redis_url_at(int port)
{
    static char at[512];

    snprintf(at, sizeof(at), "redis://:%s@127.0.0.1:%d%s", conf.secret, port,
             redis_options);
    return at;
}

/* With a password, so that every error text is looked at for it. */
static int start_redis(const char *how)
{
    conf.secret = "Geheimnis-7391";
    redis.args[0] = "--requirepass";
    redis.args[1] = conf.secret;
    if (redis_server_start(&redis))
        return -1;
    redis_server_do(&redis, "AUTH %s", conf.secret);
    if (!strcmp(how, "-unix")) {
        snprintf(url, sizeof(url), "redis+unix://:%s@%s", conf.secret,
                 redis.socket);
    } else {
        redis_options = *how ? "?dialect=string" : "";
        conf.port = redis.port;
        conf.url_at = redis_url_at;
        snprintf(url, sizeof(url), "%s", redis_url_at(redis.port));
    }
    conf.url = url;
    conf.reserved = redis_reserved;
    conf.left = redis_left;
    return 0;
}

static void stop_redis(void)
{
    redis_server_end(&redis);
}

#else

static int start_redis(const char *how)
{
    (void)how;
    fprintf(stderr, "conformance: built without Redis\n");
    return -1;
}

static void stop_redis(void)
{
}

#endif

int servers_start(const char *name)
{
    if (make_dir())
        return -1;
    conf.fresh = true;
    if (!strcmp(name, "shm"))
        return start_shm();
    if (!strcmp(name, "redis") || !strcmp(name, "redis-string") ||
        !strcmp(name, "redis-unix"))
        return start_redis(name + strlen("redis"));
    conf.fresh = false;
    if (strchr(name, ':')) {
        conf.url = name;
        conf.local = !strncmp(name, "shm:", 4);
        return 0;
    }
    fprintf(stderr,
            "conformance: \"%s\" is neither a URL nor shm, redis, redis-unix "
            "or redis-string\n",
            name);
    return -1;
}

void servers_stop(void)
{
    stop_redis();
    if (conf.dir)
        nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
