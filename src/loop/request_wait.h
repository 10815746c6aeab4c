/* Waits for the answer to a request on this thread, which drives or follows the
 * driver. No mutex is held. */
#ifndef HF_REQUEST_WAIT_H
#define HF_REQUEST_WAIT_H

#include "core/requests.h"

/* Submits the request and waits for it. Returns whether it was answered in
 * time; if not, it no longer belongs to the caller. */
bool hf__request_run(hf_client *, struct hf__request *);
/* Waits for a request that was submitted with a sleeper. Returns what
 * hf__request_run() returns. */
bool hf__request_await(hf_client *, struct hf__request *, hf__time until);

#endif
