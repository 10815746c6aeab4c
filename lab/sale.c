/* A sale under a lock; see sale.h. */
#include "sale.h"

enum { LOOK_MS = 5 };

static void sell(const struct sale *sale, struct fence *fence, uint64_t token,
                 int64_t stock)
{
    int64_t left = stock - sale->amount;
    bool wrote = fence_write(fence, token, left);

    actor_report(wrote ? SALE_WROTE : SALE_REFUSED, 1);
    actor_mark(false, wrote ? "writes %d" : "%d is refused", (int)left);
}

static int64_t look(struct fence *fence, uint64_t token)
{
    int64_t stock = 0;

    if (!fence_read(fence, token, &stock))
        actor_mark(false, "reading is refused");
    actor_mark(false, "reads %d", (int)stock);
    actor_step("read");
    return stock;
}

static void play_by_hand(const struct sale *sale)
{
    redisContext *redis = rd_open(sale->place);
    struct fence *fence = fence_open(sale->lab, sale->store);

    hand_take(redis, sale->name, sale->who,
              sale->ttl_ms ? sale->ttl_ms : CAST_LONG_MS);
    sell(sale, fence, 0, look(fence, 0));
    actor_step("done");
    rd_unlock(redis, sale->name, sale->who);
    actor_lets_go();
}

static void learn(const struct hold *hold)
{
    while (hf_lock_check(hold->lock) == HF_OK)
        lab_sleep_ms(LOOK_MS);
    actor_report(SALE_KNOWS_AT, lab_now());
    actor_mark(false, "knows: the hold is lost");
    actor_step("knows");
}

void sale_play(void *arg)
{
    const struct sale *sale = arg;
    struct hold hold;
    struct fence *fence;
    struct grant grant;
    uint64_t token;
    int64_t stock;
    int rc;

    if (sale->by_hand) {
        play_by_hand(sale);
        return;
    }
    hold = hold_open(sale->place, sale->name, sale->ttl_ms);
    fence = fence_open(sale->lab, sale->store);
    grant = hold_take(&hold, sale->lease_ms, "");
    actor_report(SALE_TOKEN, (int64_t)grant.token);
    token = sale->token ? grant.token : 0;
    stock = look(fence, token);
    rc = hf_lock_check(hold.lock);
    actor_report(SALE_CHECKED, rc);
    if (sale->deadline && rc != HF_OK)
        actor_mark(false, "knows: %s", hf_error_name(rc));
    else
        sell(sale, fence, token, stock);
    actor_step("done");
    if (sale->learns)
        learn(&hold);
    hold_release(&hold);
    hold_close(&hold);
}

void sale_read(struct sale_result *result, const struct actor *a,
               const struct actor *b)
{
    result->a_wrote = actor_value(a, SALE_WROTE);
    result->a_refused = actor_value(a, SALE_REFUSED);
    result->a_checked = (int)actor_value(a, SALE_CHECKED);
    result->a_token = (uint64_t)actor_value(a, SALE_TOKEN);
    result->b_token = (uint64_t)actor_value(b, SALE_TOKEN);
}

bool sale_is_lost(const struct sale_result *result)
{
    return result->came_in && result->left != SALE_STOCK - SALE_BY_B;
}
