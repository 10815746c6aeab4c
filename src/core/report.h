/*
 * What a backend reports about lines and requests (struct hf__core). A report
 * only leaves a mark, under client->mu. A line with a mark is in client->news.
 * Later a thread, usually the driver, delivers the mark to the line's queue
 * (loop/deliver.c), with the mutexes in the right order.
 */
#ifndef HF_REPORT_H
#define HF_REPORT_H

#include "backends/backend.h"

/* Implement hf__core.done, bell, lost, wanted and session. */
void hf__report_done(hf_client *, struct hf__req *);
void hf__report_bell(hf_client *, struct hf__remote *);
void hf__report_lost(hf_client *, struct hf__remote *, uint64_t hold_id,
                     const char *session);
void hf__report_wanted(hf_client *, struct hf__remote *, uint64_t token);
void hf__report_session(hf_client *, int event, const char *why);
/* Marks every line of the client because the session has ended; the marks are
 * delivered later. */
void hf__report_session_locked(hf_client *);

#endif
