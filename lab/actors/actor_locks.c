#include "actor_locks.h"

#include "../../cli/shared/exit_code.h"
#include "../../cli/shared/values.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../servers/client.h"
#include "../servers/places.h"
#include "stage.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SPIN_MS = 10, ROUND_MS = 100 };

void actor_lock_name(const struct lab *lab, const char *word, char out[96])
{
    static unsigned last;
    char numbered[48];

    snprintf(numbered, sizeof numbered, "%s-%u", word, ++last);
    lab_name(lab, numbered, out);
}

struct hold hold_open(const struct lab_place *place, const char *name,
                      int64_t ttl_ms)
{
    struct hold hold;

    hold.client = lab_open(place, ttl_ms);
    hold.lock = lab_lock(hold.client, name, NULL);
    return hold;
}

struct grant hold_take(const struct hold *hold, int64_t lease_ms,
                       const char *label)
{
    hf_acquire_options options = HF_ACQUIRE_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    struct grant grant;

    options.lease_ms = lease_ms;
    actor_waits("");
    lab_check(hf_lock_acquire(hold->lock, &options, &err), "acquire", &err);
    /* If the machine stalls after the grant, the hold may be lost before its
     * token and deadline have been read. The lock is then released and acquired
     * again. */
    while (hf_lock_token(hold->lock, &grant.token) == HF_ELOST ||
           hf_lock_deadline(hold->lock, &grant.deadline) == HF_ELOST) {
        hf_lock_release(hold->lock, NULL);
        lab_check(hf_lock_acquire(hold->lock, &options, &err), "acquire", &err);
    }
    actor_lets_go();
    actor_holds(label);
    return grant;
}

int64_t grant_ttl_ms(const struct grant *grant, int64_t ttl_ms)
{
    int64_t left_ms;

    if (grant->deadline == HF_NO_DEADLINE)
        return ttl_ms;
    left_ms = (grant->deadline - cli_now_ns(CLOCK_BOOTTIME)) / 1000000;
    if (left_ms <= ttl_ms)
        return ttl_ms;
    /* Rounds up, because the deadline is earlier than the end of the TTL, by a
     * margin for clock drift. */
    return (left_ms + ROUND_MS - 1) / ROUND_MS * ROUND_MS;
}

bool hold_try(const struct hold *hold)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_try(hold->lock, &err);

    if (rc == HF_EBUSY)
        return false;
    lab_check(rc, "try the lock", &err);
    actor_holds("");
    return true;
}

bool hold_is_busy(const struct hold *hold)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_try(hold->lock, &err);

    if (rc == HF_EBUSY) {
        actor_mark(false, "tries: HF_EBUSY");
        return true;
    }
    lab_check(rc, "try the lock", &err);
    actor_mark(true, "tries: it is free");
    hf_lock_release(hold->lock, NULL);
    return false;
}

int hold_release(const struct hold *hold)
{
    hf_error err = HF_ERROR_INIT;
    int rc;

    actor_lets_go();
    rc = hf_lock_release(hold->lock, &err);
    if (rc != HF_ELOST && rc != HF_ENOTOWNER)
        lab_check(rc, "release", &err);
    return rc;
}

void hold_ended(int64_t deadline)
{
    actor_let_go_at(lab_now() - (cli_now_ns(CLOCK_BOOTTIME) - deadline));
}

void hold_close(struct hold *hold)
{
    hf_lock_free(hold->lock);
    hf_close(hold->client);
    *hold = (struct hold){0};
}

bool hand_try(redisContext *redis, const char *key, const char *who,
              int64_t ttl_ms)
{
    if (!rd_lock(redis, key, who, ttl_ms))
        return false;
    actor_holds("");
    return true;
}

void hand_take(redisContext *redis, const char *key, const char *who,
               int64_t ttl_ms)
{
    actor_waits("");
    while (!rd_lock(redis, key, who, ttl_ms))
        lab_sleep_ms(SPIN_MS);
    actor_lets_go();
    actor_holds("");
}

bool hand_is_busy(redisContext *redis, const char *key, const char *who)
{
    bool busy = !rd_lock(redis, key, who, ACTOR_LOCK_LONG_MS);

    actor_mark(!busy, busy ? "tries: busy" : "tries: it is free");
    if (!busy)
        rd_unlock(redis, key, who);
    return busy;
}

bool hand_owns(redisContext *redis, const char *key, const char *who)
{
    redisReply *reply = rd_send(redis, "GET %s", key);
    bool owns =
        reply->type == REDIS_REPLY_STRING && strcmp(reply->str, who) == 0;

    freeReplyObject(reply);
    return owns;
}

void hold_b(void *arg)
{
    const struct contest *contest = arg;
    struct hold hold = hold_open(contest->place, contest->name, 0);

    hold_take(&hold, 0, "");
    actor_report(B_IN_AT, cli_now_ns(CLOCK_BOOTTIME));
    actor_step("in");
    actor_report(B_KEPT, hold_release(&hold) == HF_OK);
    hold_close(&hold);
}

void hold_c(void *arg)
{
    const struct contest *contest = arg;
    struct hold hold = hold_open(contest->place, contest->name, 0);

    actor_report(C_IN, hold_try(&hold));
    actor_step("tried");
    hold_close(&hold);
}

void hand_b(void *arg)
{
    const struct contest *contest = arg;
    redisContext *redis = rd_open(contest->place);

    hand_take(redis, contest->name, "B", ACTOR_LOCK_LONG_MS);
    actor_report(B_IN_AT, cli_now_ns(CLOCK_BOOTTIME));
    actor_step("in");
    actor_report(B_KEPT, rd_unlock(redis, contest->name, "B"));
}

void hand_c(void *arg)
{
    const struct contest *contest = arg;
    redisContext *redis = rd_open(contest->place);

    actor_report(C_IN, hand_try(redis, contest->name, "C", ACTOR_LOCK_LONG_MS));
    actor_step("tried");
    rd_unlock(redis, contest->name, "C");
}

const struct lab_place *actor_lock_redis(struct lab *lab, const char *strategy)
{
    const struct lab_place *redis = lab_store(lab, LAB_REDIS);

    if (!redis && lab_insists(lab, strategy))
        lab_die(CLI_USAGE,
                "%s needs a Redis: --servers, or --stores redis://host",
                strategy);
    return redis;
}
