#include "mismatch.h"

#include "base/text.h"
#include "lock_print.h"
#include "shared/message.h"

#include <stdio.h>

struct words {
    char text[48];
};

/* Describes a kind of lock: "a fair mutex", "a semaphore of 3 permits". */
static struct words mismatch_describe(enum hf_kind kind,
                                      enum hf_fairness fairness,
                                      uint32_t permits)
{
    static const char *const kinds[] = {
        [HF_RWLOCK] = "a read-write lock", [HF_LATCH] = "a latch"};
    struct words out;

    if (kind == HF_SEMAPHORE)
        snprintf(out.text, sizeof out.text, "a semaphore of %u permit%s",
                 permits, permits == 1 ? "" : "s");
    else if (kind == HF_MUTEX)
        snprintf(out.text, sizeof out.text, "a%s mutex",
                 fairness == HF_FAIR     ? " fair"
                 : fairness == HF_UNFAIR ? "n unfair"
                                         : "");
    else
        snprintf(out.text, sizeof out.text, "%s", kinds[kind]);
    return out;
}

/* Returns advice on the options that select the existing kind of lock, such as
 * "use -s or -x, or "; "" if this verb has no such option. */
static struct words mismatch_advise(const struct lock_options *w,
                                    const hf_info *info)
{
    struct words out = {""};

    if (w->kind == HF_LATCH)
        return out;
    if (info->kind == HF_SEMAPHORE)
        snprintf(out.text, sizeof out.text, "use --of %u, or ", info->permits);
    else if (info->kind == HF_RWLOCK)
        snprintf(out.text, sizeof out.text, "use -s or -x, or ");
    else if (info->kind == HF_MUTEX && w->kind == HF_MUTEX)
        snprintf(out.text, sizeof out.text, "use --%s, or ",
                 info->fairness == HF_FAIR ? "fair" : "unfair");
    else if (info->kind == HF_MUTEX)
        snprintf(out.text, sizeof out.text, "drop %s, or ",
                 w->of       ? "--of"
                 : w->shared ? "-s"
                             : "-x");
    return out;
}

/* Returns whether the existing lock differs from the lock that the options
 * describe. Returns false if, for example, the existing lock has changed since
 * the server refused the request. */
static bool mismatch_differs(const struct lock_options *w, const hf_info *info)
{
    if (!lock_is_used(info) || info->kind < HF_MUTEX || info->kind > HF_LATCH)
        return false;
    if (info->kind != w->kind)
        return true;
    return w->kind == HF_SEMAPHORE
               ? info->permits != w->of
               : w->kind == HF_MUTEX && info->fairness != HF_FAIR_DEFAULT &&
                     info->fairness != w->fairness;
}

bool mismatch_say(const struct lock_options *w, hf_client *client,
                  const char *name)
{
    enum hf_fairness is = HF_FAIR_DEFAULT, asked = HF_FAIR_DEFAULT;
    hf_info *info = NULL;
    bool known = hf_inspect(client, name, HF_CSTRING, &info, NULL) == HF_OK &&
                 mismatch_differs(w, info);

    if (known && info->kind == HF_MUTEX && w->kind == HF_MUTEX) {
        is = info->fairness;
        asked = is == HF_FAIR ? HF_UNFAIR : HF_FAIR;
    }
    if (known)
        cli_say(w->verb,
                "%s: it is in use as %s, not %s: %schoose another name",
                hf__show(name).text,
                mismatch_describe(info->kind, is, info->permits).text,
                mismatch_describe(w->kind, asked, w->of).text,
                mismatch_advise(w, info).text);
    hf_info_free(info);
    return known;
}
