/* Waiting for the answer to a request, on this thread: it drives, or follows
 * whoever drives. */
#ifndef HF_REQUEST_WAIT_H
#define HF_REQUEST_WAIT_H

#include "core/requests.h"

/* Submits it and waits for it. False: not answered in time; the request is not
 * the caller's any more. */
bool hf__request_run(hf_client *, struct hf__request *);
/* Waits for one that has been submitted with a sleeper. */
bool hf__request_await(hf_client *, struct hf__request *, hf__time until);

#endif
