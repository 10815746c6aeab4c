/*
 * The floor (the least that a lock can cost) on Redis: holdfast's own scripts
 * sent by hand, through hiredis, blocking, in one thread. The hand-over is
 * between two processes that do nothing else. One process releases the lock,
 * and the release publishes to the channel of the other process. That process
 * then acquires the lock.
 *
 * Over TLS (rediss://) hiredis formats and parses, and OpenSSL does the rest.
 */
#include "backends/redis/scripts.h"
#include "ratios.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "holdfast-floor"
#define RW NAME "-rw"

/* The first entries of the scripts' key lists: for an unfair mutex, and for a
 * read-write lock (redis/lua). */
#define MUTEX_KEYS                                                             \
    NAME, "holdfast:info:{" NAME "}", "holdfast:waiters:{" NAME "}",           \
        "redisson_lock_token:{" NAME "}", "holdfast:crowd:{" NAME "}"
#define RW_KEYS                                                                \
    RW, "holdfast:holds:{" RW "}", "redisson_lock_token:{" RW "}",             \
        "holdfast:line:{" RW "}", "holdfast:party:{" RW "}"
/* Arguments of the scripts: the TTL in ms; 0, so that the request never
 * expires; how long the server keeps the token, in ms; the owner's description;
 * 1, so that the request may queue. */
#define TERMS "30000", "0", "86400000", "1\nhost\nlabel", "1"

struct tls_hand {
    SSL_CTX *ctx;
    SSL *ssl;
    char out[32768];
    size_t len; /* bytes used in `out' */
};

struct hand {
    redisContext *conn;
    struct tls_hand *tls;    /* NULL: no TLS */
    char take[41], drop[41]; /* digests of the scripts */
    char owner[64];
    const char *channel; /* a release publishes to this channel */
};

static redisContext *connect_to(const char *url)
{
    int port = atoi(strrchr(url, ':') + 1);
    redisContext *conn = redisConnect("127.0.0.1", port);

    if (!conn || conn->err) {
        fprintf(stderr, "redis: %s\n", conn ? conn->errstr : "no memory");
        if (conn)
            redisFree(conn);
        return NULL;
    }
    return conn;
}

static int open_tls(struct hand *hand, const char *url)
{
    const char *ca = strstr(url, "cacert=");
    struct tls_hand *t = calloc(1, sizeof *t);

    if (!t || !ca)
        abort();
    hand->tls = t;
    t->ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(t->ctx, 1);
    SSL_CTX_load_verify_locations(t->ctx, ca + strlen("cacert="), NULL);
    t->ssl = SSL_new(t->ctx);
    SSL_set_fd(t->ssl, hand->conn->fd);
    if (SSL_connect(t->ssl) == 1)
        return 0;
    fprintf(stderr, "redis: no TLS\n");
    return -1;
}

static void close_hand(struct hand *hand)
{
    if (hand->tls) {
        SSL_free(hand->tls->ssl);
        SSL_CTX_free(hand->tls->ctx);
        free(hand->tls);
    }
    if (hand->conn)
        redisFree(hand->conn);
}

static void ask(const struct hand *hand, const char **argv)
{
    struct tls_hand *t = hand->tls;
    char *command = NULL;
    int argc = 0, len;

    while (argv[argc])
        argc++;
    if (!t) {
        redisAppendCommandArgv(hand->conn, argc, argv, NULL);
        return;
    }
    len = redisFormatCommandArgv(&command, argc, argv, NULL);
    if (len < 0 || (size_t)len > sizeof t->out - t->len)
        abort();
    memcpy(t->out + t->len, command, (size_t)len);
    t->len += (size_t)len;
    redisFreeCommand(command);
}

static int get_reply(const struct hand *hand, redisReply **reply)
{
    struct tls_hand *t = hand->tls;
    char buf[16384];
    int n;

    *reply = NULL;
    if (!t)
        return redisGetReply(hand->conn, (void **)reply);
    if (t->len && SSL_write(t->ssl, t->out, (int)t->len) <= 0)
        return REDIS_ERR;
    t->len = 0;
    while (redisReaderGetReply(hand->conn->reader, (void **)reply) ==
           REDIS_OK) {
        if (*reply)
            return REDIS_OK;
        n = SSL_read(t->ssl, buf, sizeof buf);
        if (n <= 0)
            return REDIS_ERR;
        redisReaderFeed(hand->conn->reader, buf, (size_t)n);
    }
    return REDIS_ERR;
}

static int load(const struct hand *hand, const char *script, char digest[41])
{
    redisReply *reply;
    int ok;

    ask(hand, (const char *[]){"SCRIPT", "LOAD", script, NULL});
    ok = get_reply(hand, &reply) == REDIS_OK && reply &&
         reply->type == REDIS_REPLY_STRING;
    if (ok)
        snprintf(digest, 41, "%s", reply->str);
    else
        fprintf(stderr, "redis: %s\n", reply ? reply->str : hand->conn->errstr);
    if (reply)
        freeReplyObject(reply);
    return ok ? 0 : -1;
}

static int open_hand(struct hand *hand, const char *url, int number,
                     enum rd_script take, enum rd_script drop)
{
    hand->conn = connect_to(url);
    if (!hand->conn)
        return -1;
    snprintf(hand->owner, sizeof hand->owner,
             "00000000-0000-4000-8000-000000000000:%d", number);
    if (strncmp(url, "rediss:", 7) == 0 && open_tls(hand, url) < 0)
        return -1;
    if (load(hand, hf__rd_script[take].text, hand->take) < 0 ||
        load(hand, hf__rd_script[drop].text, hand->drop) < 0)
        return -1;
    return 0;
}

#define ASK(hand, ...) ask(hand, (const char *[]){"EVALSHA", __VA_ARGS__, NULL})

static void ask_take(const struct hand *hand)
{
    ASK(hand, hand->take, "5", MUTEX_KEYS, hand->owner, TERMS, "30000");
}

static void ask_drop(const struct hand *hand)
{
    ASK(hand, hand->drop, "8", MUTEX_KEYS, "redisson_lock_queue:{" NAME "}",
        "redisson_lock_timeout:{" NAME "}", "holdfast:seen:{" NAME "}",
        hand->owner,
        hand->channel ? hand->channel : "redisson_lock__channel:{" NAME "}",
        "holdfast:mark:{" NAME "}");
}

/* Reads the next answer, which must be the number `wanted', or an array that
 * begins with it. */
static int expect(const struct hand *hand, long long wanted)
{
    redisReply *reply, *first;
    int ok = 0;

    if (get_reply(hand, &reply) == REDIS_OK && reply) {
        first = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0
                    ? reply->element[0]
                    : reply;
        ok = first->type == REDIS_REPLY_INTEGER && first->integer == wanted;
        if (!ok)
            fprintf(stderr, "redis: wanted %lld, got %lld %s\n", wanted,
                    first->integer, first->str ? first->str : "");
        freeReplyObject(reply);
    }
    return ok ? 0 : -1;
}

static int take(const struct hand *hand)
{
    ask_take(hand);
    return expect(hand, RD_GRANTED);
}

static int drop(const struct hand *hand)
{
    ask_drop(hand);
    return expect(hand, 1);
}

static int two_trips_step(void *arg)
{
    const struct hand *hand = arg;

    for (int i = 0; i < 1000; i++) {
        if (take(hand) < 0 || drop(hand) < 0)
            return -1;
    }
    return 0;
}

/* Sends each release in one packet with the next acquire. */
static int one_trip_step(void *arg)
{
    const struct hand *hand = arg;

    if (take(hand) < 0)
        return -1;
    for (int i = 0; i < 999; i++) {
        ask_drop(hand);
        ask_take(hand);
        if (expect(hand, 1) < 0 || expect(hand, RD_GRANTED) < 0)
            return -1;
    }
    return drop(hand);
}

/* Acquires a lock that the owner already holds: measures only the round trip,
 * without a release. */
static int acquire_step(void *arg)
{
    const struct hand *hand = arg;

    for (int i = 0; i < 1000; i++) {
        if (take(hand) < 0)
            return -1;
    }
    return 0;
}

static double floor_of(const char *url, int (*step)(void *arg))
{
    struct hand hand = {0};
    double ns = -1;

    if (open_hand(&hand, url, 1, RD_TAKE, RD_DROP) == 0)
        ns = ns_per_pair(step, &hand);
    if (hand.conn) {
        redisReply *reply;

        ask_drop(&hand);
        if (get_reply(&hand, &reply) == REDIS_OK)
            freeReplyObject(reply);
    }
    close_hand(&hand);
    return ns;
}

double floor_redis_two_trips(const char *url)
{
    return floor_of(url, two_trips_step);
}

double floor_redis_one_trip(const char *url)
{
    return floor_of(url, one_trip_step);
}

double floor_redis_acquire(const char *url)
{
    return floor_of(url, acquire_step);
}

struct game {
    _Atomic bool over;
    _Atomic uint64_t handovers;
};

static redisContext *listen_to(const char *url, const char *channel)
{
    redisContext *conn = connect_to(url);
    redisReply *reply =
        conn ? redisCommand(conn, "SUBSCRIBE %s", channel) : NULL;

    if (reply)
        freeReplyObject(reply);
    return conn;
}

static int wait_message(redisContext *conn)
{
    redisReply *reply = NULL;

    if (redisGetReply(conn, (void **)&reply) != REDIS_OK)
        return -1;
    freeReplyObject(reply);
    return 0;
}

static const char *const channels[2] = {NAME ":0", NAME ":1"};

static _Noreturn void play(struct game *game, const char *url, int me,
                           int ready, int go)
{
    redisContext *ear = listen_to(url, channels[me]);
    struct hand hand = {.channel = channels[1 - me]};
    int rc = open_hand(&hand, url, me, RD_TAKE, RD_DROP);
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rc < 0 || !ear || write(ready, "", 1) != 1 || read(go, &byte, 1) < 0)
        _exit(1);
    /* The first process starts the game. */
    if (me == 0 && (take(&hand) < 0 || drop(&hand) < 0))
        _exit(1);
    while (rc == 0 && !atomic_load(&game->over)) {
        rc = wait_message(ear);
        if (rc == 0)
            rc = take(&hand);
        if (rc == 0)
            rc = drop(&hand);
        atomic_fetch_add(&game->handovers, 1);
    }
    /* Ends the wait of the other process, which may wait for a release that
     * this process no longer sends. */
    freeReplyObject(redisCommand(hand.conn, "PUBLISH %s 0", hand.channel));
    _exit(rc == 0 ? 0 : 1);
}

static void ask_read(const struct hand *hand)
{
    ASK(hand, hand->take, "5", RW_KEYS, hand->owner, TERMS, "0", "0", "r",
        "{" RW "}");
}

static void ask_read_no_more(const struct hand *hand)
{
    ASK(hand, hand->drop, "5", RW_KEYS, hand->owner, "redisson_rwlock:{" RW "}",
        "holdfast:rwmark:{" RW "}", "{" RW "}");
}

static _Noreturn void read_on(struct game *game, const char *url, int me,
                              int ready, int go)
{
    struct hand hand = {0};
    int rc = open_hand(&hand, url, me, RD_TAKE_RW, RD_DROP_RW);
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rc < 0 || write(ready, "", 1) != 1 || read(go, &byte, 1) < 0)
        _exit(1);
    while (rc == 0 && !atomic_load(&game->over)) {
        ask_read(&hand);
        rc = expect(&hand, RD_GRANTED);
        ask_read_no_more(&hand);
        rc |= expect(&hand, 1);
        atomic_fetch_add(&game->handovers, 1);
    }
    _exit(rc == 0 ? 0 : 1);
}

typedef void play_fn(struct game *, const char *url, int me, int ready, int go);

enum { PLAYERS = 8 };

static double umpire(struct game *game, const char *url, play_fn *player,
                     int players)
{
    struct timespec nap = {0, RUN_MS * 1000000L};
    int ready[2], go[2], bad = 0, status;
    pid_t pids[PLAYERS];
    int64_t start;
    char byte;

    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < players; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(go[1]);
            close(ready[0]);
            player(game, url, i, ready[1], go[0]);
        }
    }
    close(ready[1]);
    for (int i = 0; i < players; i++)
        bad |= read(ready[0], &byte, 1) != 1;
    start = cli_now_ns(CLOCK_MONOTONIC);
    close(go[1]);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    atomic_store(&game->over, true);
    start = cli_now_ns(CLOCK_MONOTONIC) - start;
    for (int i = 0; i < players; i++) {
        waitpid(pids[i], &status, 0);
        bad |= status != 0;
    }
    close(ready[0]);
    close(go[0]);
    return bad ? -1 : (double)start / (double)atomic_load(&game->handovers);
}

static double nanoseconds(const char *url, play_fn *player, int players)
{
    struct game *game = mmap(NULL, sizeof *game, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double ns;

    if (game == MAP_FAILED)
        return -1;
    ns = umpire(game, url, player, players);
    munmap(game, sizeof *game);
    return ns;
}

double floor_redis_handover(const char *url)
{
    return nanoseconds(url, play, 2);
}

double floor_redis_reading(const char *url)
{
    return nanoseconds(url, read_on, PLAYERS);
}
