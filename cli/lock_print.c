#include "lock_print.h"

#include "client.h"
#include "json.h"
#include "shared/values.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

const char *lock_kind_name(const hf_info *info)
{
    static const char *const kinds[] = {NULL, "mutex", "rwlock", "semaphore",
                                        "latch"};

    return lock_is_used(info) && info->kind <= HF_LATCH ? kinds[info->kind]
                                                        : NULL;
}

bool lock_is_used(const hf_info *info)
{
    return info->holders_len > 0 || info->waiters_len > 0 || info->count > 0;
}

static struct lock_age lock_print_two_parts(int64_t n, char unit, int64_t rest,
                                            char small)
{
    struct lock_age age;

    if (rest == 0)
        snprintf(age.text, sizeof age.text, "%" PRId64 "%c", n, unit);
    else
        snprintf(age.text, sizeof age.text, "%" PRId64 "%c%d%c", n, unit,
                 (int)rest, small);
    return age;
}

struct lock_age lock_age(int64_t ms)
{
    int64_t s = ms > 0 ? ms / 1000 : 0, m = s / 60, h = m / 60, d = h / 24;

    if (m < 2)
        return lock_print_two_parts(s, 's', 0, 0);
    if (m < 10)
        return lock_print_two_parts(m, 'm', s % 60, 's');
    if (h < 3)
        return lock_print_two_parts(m, 'm', 0, 0);
    if (h < 8)
        return lock_print_two_parts(h, 'h', m % 60, 'm');
    if (h < 48)
        return lock_print_two_parts(h, 'h', 0, 0);
    return lock_print_two_parts(d, 'd', d < 8 ? h % 24 : 0, 'h');
}

struct lock_age lock_age_since(int64_t unix_ms)
{
    if (unix_ms <= 0)
        return (struct lock_age){""};
    return lock_age(cli_now_ns(CLOCK_REALTIME) / 1000000 - unix_ms);
}

static uint32_t lock_print_permits_in_use(const hf_info *info)
{
    uint32_t n = 0;

    for (size_t i = 0; i < info->holders_len; i++)
        n += info->holders[i].permits;
    return n;
}

static void print_holders(FILE *out, const hf_info *info)
{
    const hf_party *first = info->holders;

    if (info->kind == HF_SEMAPHORE)
        fprintf(out, "%u of %u permits ", lock_print_permits_in_use(info),
                info->permits);
    fprintf(out, "%s by %s",
            info->kind == HF_RWLOCK && first->mode == HF_READ ? "read" : "held",
            cli_party(first).text);
    if (info->holders_len > 1)
        fprintf(out, " and %zu more", info->holders_len - 1);
    if (first->token)
        fprintf(out, ", token %" PRIu64, first->token);
}

void lock_print_state(FILE *out, const hf_info *info)
{
    if (info->kind == HF_LATCH && info->count > 0)
        fprintf(out, "latch, %" PRIu64 " left", info->count);
    else if (info->holders_len > 0)
        print_holders(out, info);
    else
        fputs("free", out);
    if (info->waiters_len > 0)
        fprintf(out, ", %zu waiting", info->waiters_len);
}

static void lock_print_number_or_null(const char *key, bool is_known,
                                      uint64_t number)
{
    if (is_known)
        json_unsigned(key, number);
    else
        json_null(key);
}

static void lock_print_text_or_null(const char *key, const char *text)
{
    if (text && *text)
        json_text(key, text);
    else
        json_null(key);
}

static void lock_print_json_parties(const char *key, const hf_info *info,
                                    const hf_party *parties, size_t len)
{
    json_open(key, '[');
    for (const hf_party *p = parties; p < parties + len; p++) {
        json_open(NULL, '{');
        lock_print_text_or_null("owner", p->owner);
        lock_print_text_or_null("host", p->host);
        lock_print_number_or_null("pid", p->pid > 0, (uint64_t)p->pid);
        lock_print_text_or_null("label", p->label);
        lock_print_number_or_null("since_unix_ms", p->since_unix_ms > 0,
                                  (uint64_t)p->since_unix_ms);
        lock_print_number_or_null("left_ms", p->left_ms >= 0,
                                  (uint64_t)p->left_ms);
        lock_print_number_or_null("token", p->token > 0, p->token);
        lock_print_text_or_null("mode", info->kind != HF_RWLOCK ? NULL
                                        : p->mode == HF_READ    ? "read"
                                                                : "write");
        lock_print_number_or_null("permits", info->kind == HF_SEMAPHORE,
                                  p->permits);
        json_close('}');
    }
    json_close(']');
}

void lock_print_json(const void *name, size_t len, const hf_info *info)
{
    bool is_used = lock_is_used(info), is_latch = info->kind == HF_LATCH;

    json_name("name", name, len);
    lock_print_text_or_null("kind", lock_kind_name(info));
    if (is_used && !is_latch && info->fairness != HF_FAIR_DEFAULT)
        json_bool("fair", info->fairness == HF_FAIR);
    else
        json_null("fair");
    lock_print_number_or_null("token", info->token > 0, info->token);
    lock_print_number_or_null("count", is_latch, info->count);
    lock_print_number_or_null("permits", is_used && info->kind == HF_SEMAPHORE,
                              info->permits);
    lock_print_json_parties("holders", info, info->holders, info->holders_len);
    lock_print_json_parties("waiters", info, info->waiters, info->waiters_len);
    json_bool("waiters_unknown", info->waiters_unknown);
}
