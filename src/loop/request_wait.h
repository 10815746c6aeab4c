/* Waits for the answer to a request. The calling thread drives, or follows the
 * driver, while it waits. No mutex is held. */
#ifndef HF_REQUEST_WAIT_H
#define HF_REQUEST_WAIT_H

#include "core/requests.h"

/* Submits the request and waits for its answer. Returns false if no answer came
 * in time; the request then no longer belongs to the caller. */
bool hf__request_run(hf_client *, struct hf__request *);
/* Waits for a request that has a sleeper and was submitted. Returns what
 * hf__request_run() returns. */
bool hf__request_await(hf_client *, struct hf__request *, hf__time until);

#endif
