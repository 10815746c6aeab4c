#include "late.h"

#include "../actors/actor_locks.h"
#include "../runner/clock.h"
#include "../servers/redis.h"
#include "fence.h"

#include <holdfast.h>

enum { POLL_MS = 5 };

static void late_sell(const struct late *sale, struct fence *fence,
                      uint64_t token, int64_t stock)
{
    int64_t left = stock - sale->amount;
    bool wrote = fence_write(fence, token, left);

    actor_report(wrote ? LATE_WROTE : LATE_REFUSED, 1);
    actor_mark(false, wrote ? "writes %d" : "%d is refused", (int)left);
}

static int64_t late_read_stock(struct fence *fence, uint64_t token)
{
    int64_t stock = 0;

    if (!fence_read(fence, token, &stock))
        actor_mark(false, "reading is refused");
    actor_mark(false, "reads %d", (int)stock);
    actor_step("read");
    return stock;
}

static void late_play_by_hand(const struct late *sale)
{
    redisContext *redis = rd_open(sale->place);
    struct fence *fence = fence_open(sale->lab, sale->store);

    hand_take(redis, sale->name, sale->who,
              sale->ttl_ms ? sale->ttl_ms : ACTOR_LOCK_LONG_MS);
    late_sell(sale, fence, 0, late_read_stock(fence, 0));
    actor_step("done");
    actor_lets_go();
    rd_unlock(redis, sale->name, sale->who);
}

static void late_learn(const struct hold *hold)
{
    while (hf_lock_check(hold->lock) == HF_OK)
        lab_sleep_ms(POLL_MS);
    actor_lets_go();
    actor_report(LATE_KNOWS_AT, lab_now());
    actor_mark(false, "knows: the hold is lost");
    actor_step("knows");
}

void late_play(void *arg)
{
    const struct late *sale = arg;
    struct hold hold;
    struct fence *fence;
    struct grant grant;
    uint64_t token;
    int64_t stock;
    int rc;

    if (sale->by_hand) {
        late_play_by_hand(sale);
        return;
    }
    hold = hold_open(sale->place, sale->name, sale->ttl_ms);
    fence = fence_open(sale->lab, sale->store);
    if (sale->tries) {
        actor_report(LATE_BUSY, hold_is_busy(&hold));
        actor_step("asked");
    }
    grant = hold_take(&hold, sale->lease_ms, "");
    actor_report(LATE_TOKEN, (int64_t)grant.token);
    token = sale->token ? grant.token : 0;
    stock = late_read_stock(fence, token);
    rc = hf_lock_check(hold.lock);
    actor_report(LATE_CHECKED, rc);
    if (sale->deadline && rc != HF_OK) {
        hold_ended(grant.deadline);
        actor_mark(false, "knows: %s", hf_error_name(rc));
    } else {
        late_sell(sale, fence, token, stock);
    }
    actor_step("done");
    if (sale->learns)
        late_learn(&hold);
    hold_release(&hold);
    hold_close(&hold);
}

void late_read(struct late_result *result, const struct actor *a,
               const struct actor *b)
{
    result->a_wrote = actor_value(a, LATE_WROTE);
    result->a_refused = actor_value(a, LATE_REFUSED);
    result->a_checked = (int)actor_value(a, LATE_CHECKED);
    result->a_token = (uint64_t)actor_value(a, LATE_TOKEN);
    result->b_token = (uint64_t)actor_value(b, LATE_TOKEN);
}

bool late_is_lost(const struct late_result *result)
{
    return result->came_in && result->left != LATE_STOCK - LATE_BY_B;
}
