#include "api/cancel.h"

#include "base/futex.h"
#include "core/client.h"
#include "core/wakeup.h"

#include <errno.h>

bool hf__cancel_attach(hf_cancel *cancel, hf_client *c)
{
    __atomic_store_n(&cancel->client, c, __ATOMIC_SEQ_CST);
    return !(__atomic_fetch_or(&cancel->word, HF__ATTACHED, __ATOMIC_SEQ_CST) &
             HF__CANCELLED);
}

/* A thread that has fired the hf_cancel during the wait might not have woken
 * the client's driver yet. That thread is added to client->firing here, and
 * subtracts itself when it no longer uses the client.
 *
 * HF__ATTACHED is set in the word. Adding it once more clears the bit and
 * increments the count above it. A thread in hf_cancel_fire() that has read the
 * old word, and this client, therefore fails to replace the word and starts
 * again, even if the next wait is already attached to a different client. */
void hf__cancel_detach(hf_cancel *cancel, hf_client *c)
{
    if (__atomic_fetch_add(&cancel->word, HF__ATTACHED, __ATOMIC_SEQ_CST) &
        HF__CANCELLED)
        __atomic_add_fetch(&c->firing, 1, __ATOMIC_SEQ_CST);
}

void hf_cancel_init(hf_cancel *cancel)
{
    if (cancel)
        *cancel = (hf_cancel)HF_CANCEL_INIT;
}

/* As soon as HF__CANCELLED is set, the wait may return, and the hf_cancel may
 * be freed. Therefore everything in the hf_cancel is read before that.
 * HF__CANCELLED is set only if the word has not changed since it was read.
 * hf__cancel_detach() adds this thread to client->firing; the client stays
 * until this thread has subtracted itself. */
void hf_cancel_fire(hf_cancel *cancel)
{
    int saved = errno;
    hf_client *c;
    uint32_t word;

    if (!cancel)
        return;
    word = __atomic_load_n(&cancel->word, __ATOMIC_SEQ_CST);
    do {
        if (word & HF__CANCELLED)
            return;
        c = __atomic_load_n(&cancel->client, __ATOMIC_SEQ_CST);
    } while (!__atomic_compare_exchange_n(&cancel->word, &word,
                                          word | HF__CANCELLED, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    hf__futex_wake(&cancel->word, 1);
    if ((word & HF__ATTACHED) && hf__client_check(c) != HF_EFORK) {
        hf__fd_post(c->wake_fd);
        __atomic_sub_fetch(&c->firing, 1, __ATOMIC_SEQ_CST);
    }
    errno = saved;
}
