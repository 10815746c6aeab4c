#include "servers.h"

#include "../lib/shm_dir.h"
#include "conf.h"

#include <ftw.h>

#ifdef HAVE_REDIS
#include "../lib/redlock_servers.h"
#endif

#ifdef HAVE_EXAMPLE
#include "../lib/example_server.h"
#endif

#ifdef HAVE_ETCD
#include "../lib/etcd_server.h"
#endif

#ifdef HAVE_MYSQL
#include "../lib/mysql_server.h"
#endif

#ifdef HAVE_ZOOKEEPER
#include "../lib/zk_hand.h"
#include "../lib/zk_server.h"
#endif

static char dir[64], url[512];

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
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
    "{a}:timeout",
    "a{b}:timeout",
    "{a}:x:1:rwlock_timeout:1",
    "redisson_unlock_latch:{a}:1",
    NULL,
};

static long redis_left(void)
{
    return (long)redis_server_keys(&redis);
}

static void redis_print_left(void)
{
    redis_server_print_keys(&redis);
}

static char redis_options[128];

static const char *redis_url_at(int port)
{
    static char at[512];

    snprintf(at, sizeof(at), "redis%s://:%s@127.0.0.1:%d%s",
             redis.tls ? "s" : "", conf.secret, port, redis_options);
    return at;
}

/* Sets a password. EXPECT checks that no error message contains it. */
static int start_redis(const char *how)
{
    conf.secret = "Geheimnis-7391";
    redis.args[0] = "--requirepass";
    redis.args[1] = conf.secret;
    redis.args[2] = "--notify-keyspace-events";
    redis.args[3] = "KA";
    conf.watches = conf.watches_prefixes = true;
    redis.tls = !strcmp(how, "-tls") ? "server" : NULL;
    redis.persist = conf.keeps;
    if (redis_server_start(&redis))
        return -1;
    redis_server_do(&redis, "AUTH %s", conf.secret);
    if (!strcmp(how, "-unix")) {
        snprintf(url, sizeof(url), "redis+unix://:%s@%s", conf.secret,
                 redis.socket);
    } else {
        if (redis.tls)
            snprintf(redis_options, sizeof(redis_options), "?cacert=%s/ca.pem",
                     redis.dir);
        else if (*how)
            snprintf(redis_options, sizeof(redis_options), "?dialect=string");
        conf.port = redis.port;
        conf.url_at = redis_url_at;
        snprintf(url, sizeof(url), "%s", redis_url_at(redis.port));
    }
    conf.url = url;
    conf.reserved = redis_reserved;
    conf.left = redis_left;
    conf.print_left = redis_print_left;
    return 0;
}

/* ---- Redlock: five servers */

static struct redlock_servers redlock;

static long redlock_left(void)
{
    return redlock_servers_keys(&redlock);
}

static void redlock_print_left(void)
{
    redlock_servers_print_keys(&redlock);
}

/* The long server_timeout keeps a slow server on a busy machine from counting
 * as failed. */
static int start_redlock(const char *how)
{
    redlock.password = conf.secret = "Geheimnis-7391";
    redlock.tls = *how ? "server" : NULL;
    redlock.persist = conf.keeps;
    if (redlock_servers_start(&redlock))
        return -1;
    redlock_servers_url(&redlock, url, sizeof(url), "server_timeout=2s");
    conf.url = url;
    conf.reserved = redis_reserved;
    conf.looks = true;
    conf.left = redlock_left;
    conf.print_left = redlock_print_left;
    return 0;
}

static void stop_redlock(void)
{
    redlock_servers_end(&redlock);
}

static bool hurt_redlock(enum servers_fault fault, unsigned which)
{
    struct redis_server *one = &redlock.server[which % REDLOCK_SERVERS];

    if (one->pid > 0 && fault == SERVERS_STOPPED)
        return !redis_server_stop(one);
    if (one->pid > 0 && one->persist) {
        redis_server_kill(one);
        return true;
    }
    return false;
}

static int heal_redlock(void)
{
    return redlock_servers_heal(&redlock);
}

static void stop_redis(void)
{
    redis_server_end(&redis);
}

static bool hurt_redis(enum servers_fault fault, unsigned which)
{
    if (redis.pid <= 0 || (fault == SERVERS_KILLED && !redis.persist))
        return false;
    if (fault == SERVERS_STOPPED)
        return !redis_server_stop(&redis);
    redis_server_kill(&redis);
    return true;
}

static int heal_redis(void)
{
    if (!redis.port)
        return 0;
    if (redis.pid > 0)
        return redis_server_continue(&redis);
    if (redis_server_again(&redis))
        return -1;
    redis_server_do(&redis, "AUTH %s", conf.secret);
    return WAIT_FOR(redis_server_do(&redis, "DBSIZE") >= 0) ? 0 : -1;
}

#endif

#ifdef HAVE_EXAMPLE

static struct example_server example;

static long example_left(void)
{
    return example_server_holds(&example) + example_server_places(&example);
}

static void example_print_left(void)
{
    fprintf(stderr, "left behind: %ld holds, %ld places\n",
            example_server_holds(&example), example_server_places(&example));
}

static const char *example_url_at(int port)
{
    static char at[64];

    snprintf(at, sizeof(at), "example://127.0.0.1:%d", port);
    return at;
}

static int start_example(const char *how)
{
    if (example_server_start(&example))
        return -1;
    conf.url = example.url;
    conf.port = example.port;
    conf.url_at = example_url_at;
    conf.left = example_left;
    conf.print_left = example_print_left;
    return 0;
}

static void stop_example(void)
{
    example_server_end(&example);
}

static bool hurt_example(enum servers_fault fault, unsigned which)
{
    return example.pid > 0 && fault == SERVERS_STOPPED &&
           !example_server_stop(&example);
}

static int heal_example(void)
{
    return example.pid > 0 ? example_server_continue(&example) : 0;
}

#endif

#ifdef HAVE_ETCD

/* The single server, or the members of the cluster. Entries are counted at the
 * first one. */
static struct etcd_cluster etcd;
static char etcd_options[256]; /* follows the port in the URL */
#define ETCD_PATH "a/path/"

static const char *const etcd_reserved[] = {"holdfast:", "holdfast:client/1",
                                            NULL};

static long etcd_left(void)
{
    return etcd_server_keys(&etcd.server[0], false);
}

static void etcd_print_left(void)
{
    etcd_server_keys(&etcd.server[0], true);
}

static void etcd_unput(const char *key)
{
    char args[HF_NAME_MAX + 32];

    snprintf(args, sizeof(args), "del '%s%s'", conf.secret ? ETCD_PATH : "",
             key);
    assert_int_equal(etcd_server_ctl(&etcd.server[0], args, NULL, 0), 0);
}

static const char *etcd_url_at(int port)
{
    static char at[512];

    if (conf.secret)
        snprintf(at, sizeof(at), "etcds://worker:%s@127.0.0.1:%d%s",
                 conf.secret, port, etcd_options);
    else
        snprintf(at, sizeof(at), "etcd://127.0.0.1:%d", port);
    return at;
}

/* Starts a server with TLS that requires a client certificate and a password,
 * and whose user has rights only below a path. */
static int start_etcd_tls(struct etcd_server *s)
{
    s->tls = "server";
    s->asks_certificate = true;
    conf.secret = "Geheimnis-7391";
    if (etcd_server_start(s) || etcd_server_lock(s, conf.secret, ETCD_PATH))
        return -1;
    snprintf(etcd_options, sizeof(etcd_options),
             "/" ETCD_PATH
             "?cacert=%s/ca.pem&cert=%s/client.pem&key=%s/client.key",
             s->dir, s->dir, s->dir);
    return 0;
}

static int start_etcd(const char *how)
{
    struct etcd_server *first = &etcd.server[0];
    bool three = !strcmp(how, "-3");

    if (three                  ? etcd_cluster_start(&etcd)
        : !strcmp(how, "-tls") ? start_etcd_tls(first)
                               : etcd_server_start(first))
        return -1;
    snprintf(url, sizeof(url), "%s",
             three ? etcd.url : etcd_url_at(first->port));
    conf.url = url;
    conf.port = first->port;
    conf.url_at = etcd_url_at;
    conf.session = conf.watches = conf.watches_prefixes = true;
    conf.tick_ms = ETCD_TICK_MS;
    conf.reserved = etcd_reserved;
    conf.left = etcd_left;
    conf.print_left = etcd_print_left;
    conf.unput = etcd_unput;
    return 0;
}

static void stop_etcd(void)
{
    etcd_cluster_end(&etcd);
}

static bool hurt_etcd(enum servers_fault fault, unsigned which)
{
    struct etcd_server *s =
        &etcd.server[etcd.url[0] ? which % ETCD_CLUSTER : 0];

    if (s->pid <= 0)
        return false;
    if (fault == SERVERS_STOPPED)
        return !etcd_server_stop(s);
    etcd_server_kill(s);
    return true;
}

static int heal_etcd(void)
{
    struct etcd_server *s = &etcd.server[0];

    if (!s->port || etcd.url[0])
        return s->port ? etcd_cluster_heal(&etcd) : 0;
    return s->pid > 0 ? etcd_server_continue(s) : etcd_server_again(s);
}

#endif

#ifdef HAVE_MYSQL

static struct my_server mysql;
static char mysql_options[128];

static long mysql_left(void)
{
    return my_server_left(&mysql, false);
}

static void mysql_print_left(void)
{
    my_server_left(&mysql, true);
}

static void mysql_unput(const char *key)
{
    assert_int_equal(my_server_do(&mysql,
                                  "delete from holdfast_values where name='%s'",
                                  key),
                     1);
}

static const char *mysql_url_at(int port)
{
    static char at[512];

    my_server_url_at(port, mysql_options, at, sizeof(at));
    return at;
}

/* Sets a password. EXPECT checks that no error message contains it. */
static int start_mysql(const char *how)
{
    conf.secret = MY_SERVER_SECRET;
    mysql.tls = !strcmp(how, "-tls") ? "server" : NULL;
    if (my_server_start(&mysql))
        return -1;
    if (mysql.tls)
        snprintf(mysql_options, sizeof(mysql_options),
                 "?tls=yes&cacert=%s/ca.pem", mysql.dir);
    else if (!strcmp(how, "-poll"))
        snprintf(mysql_options, sizeof(mysql_options), "?wait=poll");
    snprintf(url, sizeof(url), "%s", mysql_url_at(mysql.port));
    conf.url = url;
    conf.port = mysql.port;
    conf.url_at = mysql_url_at;
    conf.looks = !strcmp(how, "-poll");
    conf.in_turn = conf.hears_late = true;
    conf.left = mysql_left;
    conf.print_left = mysql_print_left;
    conf.unput = mysql_unput;
    return 0;
}

static void stop_mysql(void)
{
    my_server_end(&mysql);
}

static bool hurt_mysql(enum servers_fault fault, unsigned which)
{
    if (mysql.pid <= 0)
        return false;
    if (fault == SERVERS_STOPPED)
        return !my_server_stop(&mysql);
    my_server_kill(&mysql);
    return true;
}

static int heal_mysql(void)
{
    if (!mysql.port)
        return 0;
    return mysql.pid > 0 ? my_server_continue(&mysql) : my_server_again(&mysql);
}

#endif

#ifdef HAVE_ZOOKEEPER

/* The single server, or the members of the ensemble. Entries are counted at the
 * first one. */
static struct zk_ensemble zk;
static char zk_root[16]; /* path of this part, or "" */

#define ZK_RESERVED_AT_THE_TOP 2
static const char *const zk_reserved[] = {
    "zookeeper", "zookeeper/quota",
    "a/locks",   "a/leases",
    "a/lock",    "a/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000001",
    NULL,
};

static long zk_left(void)
{
    return zk_server_nodes_below(&zk.server[0], zk_root);
}

static void zk_print_left(void)
{
    zk_server_print_nodes(&zk.server[0]);
}

static void zk_unput(const char *key)
{
    char path[sizeof(zk_root) + HF_NAME_MAX + 2];
    int rc;

    snprintf(path, sizeof(path), "%s/%s", zk_root, key);
    do /* again if the idle session has expired */
        rc = zk_hand_delete(zk_server_hand(&zk.server[0]), path);
    while (rc == ZSESSIONEXPIRED);
    assert_int_equal(rc, 0);
}

static const char *zk_url_at(int port)
{
    static char at[64];

    snprintf(at, sizeof(at), "zk://127.0.0.1:%d%s", port, zk_root);
    return at;
}

static int start_zk(const char *how)
{
    struct zk_server *first = &zk.server[0];
    bool three = *how;

    if (three ? zk_ensemble_start(&zk) : zk_server_start(first))
        return -1;
    zk_server_hand(first); /* connects before the first case, which would
                              otherwise seem to leak the connection */
    snprintf(url, sizeof(url), "%s", three ? zk.url : first->url);
    conf.url = url;
    conf.port = first->port;
    conf.url_at = zk_url_at;
    conf.session = true;
    conf.watches = true;
    conf.tick_ms = ZK_TICK_MS;
    conf.reserved = zk_reserved;
    conf.left = zk_left;
    conf.print_left = zk_print_left;
    conf.unput = zk_unput;
    return 0;
}

int servers_part(unsigned index)
{
    struct zk_server *first = &zk.server[0];
    size_t len = strlen(dir);

    snprintf(dir + len, sizeof(dir) - len, "/%u", index);
    snprintf(zk_root, sizeof(zk_root), "/part-%u", index);
    first->admin = NULL; /* the parent's session, not this process's */
    if (mkdir(dir, 0700) || zk_hand_create(zk_server_hand(first), zk_root, NULL,
                                           0, NULL, 0, NULL)) {
        fprintf(stderr, "conformance: cannot make a part of the server\n");
        return -1;
    }
    len = strlen(url);
    snprintf(url + len, sizeof(url) - len, "%s", zk_root);
    conf.reserved = zk_reserved + ZK_RESERVED_AT_THE_TOP;
    return 0;
}

static void stop_zk(void)
{
    zk_ensemble_end(&zk);
}

static bool hurt_zk(enum servers_fault fault, unsigned which)
{
    struct zk_server *s = &zk.server[zk.hosts[0] ? which % ZK_ENSEMBLE : 0];

    if (s->pid <= 0)
        return false;
    if (fault == SERVERS_STOPPED)
        return !zk_server_stop(s);
    zk_server_kill(s);
    return true;
}

static int heal_zk(void)
{
    for (int i = 0; i < ZK_ENSEMBLE; i++) {
        struct zk_server *s = &zk.server[i];

        if (s->port &&
            (s->pid > 0 ? zk_server_continue(s) : zk_server_again(s)))
            return -1;
    }
    return zk.hosts[0] ? zk_ensemble_serves(&zk) : 0;
}

#else

int servers_part(unsigned index)
{
    return -1;
}

#endif

/* Functions for the servers whose names begin with `name`. start() gets the
 * rest of the name. */
static const struct family {
    const char *name;
    int (*start)(const char *how);
    void (*stop)(void);
    bool (*hurt)(enum servers_fault, unsigned which);
    int (*heal)(void);
} families[] = {
#ifdef HAVE_REDIS
    {"redis", start_redis, stop_redis, hurt_redis, heal_redis},
    {"redlock", start_redlock, stop_redlock, hurt_redlock, heal_redlock},
#endif
#ifdef HAVE_EXAMPLE
    {"example", start_example, stop_example, hurt_example, heal_example},
#endif
#ifdef HAVE_ETCD
    {"etcd", start_etcd, stop_etcd, hurt_etcd, heal_etcd},
#endif
#ifdef HAVE_MYSQL
    {"mysql", start_mysql, stop_mysql, hurt_mysql, heal_mysql},
#endif
#ifdef HAVE_ZOOKEEPER
    {"zk", start_zk, stop_zk, hurt_zk, heal_zk},
#endif
};

#define EACH_FAMILY(f)                                                         \
    for (const struct family *f = families;                                    \
         f < families + sizeof(families) / sizeof(*families); f++)

static const char names[] =
    " shm redis redis-unix redis-string redis-tls redlock redlock-tls example "
    "etcd etcd-cluster etcd-tls mysql mysql-tls mysql-poll zk zk-ensemble ";

static bool is_a_name(const char *name)
{
    char word[64];

    snprintf(word, sizeof(word), " %s ", name);
    return !strchr(name, ' ') && strstr(names, word);
}

int servers_start(const char *name)
{
    if (make_dir())
        return -1;
    conf.fresh = is_a_name(name);
    if (!strcmp(name, "shm"))
        return start_shm();
    EACH_FAMILY(f)
    if (conf.fresh && !strncmp(name, f->name, strlen(f->name)))
        return f->start(name + strlen(f->name));
    if (!conf.fresh && strchr(name, ':')) {
        conf.url = name;
        conf.local = !strncmp(name, "shm:", 4);
        conf.session = !strncmp(name, "zk:", 3) || !strncmp(name, "etcd", 4);
        return 0;
    }
    fprintf(stderr,
            conf.fresh ? "conformance: built without what %s needs\n"
                       : "conformance: \"%s\" is neither a URL nor one of%s\n",
            name, names);
    return -1;
}

bool servers_hurt(enum servers_fault fault, unsigned which)
{
    EACH_FAMILY(f)
    if (f->hurt(fault, which))
        return true;
    return false;
}

int servers_heal(void)
{
    EACH_FAMILY(f)
    if (f->heal())
        return -1;
    return 0;
}

void servers_stop(void)
{
    EACH_FAMILY(f)
    f->stop();
    if (conf.dir)
        nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
