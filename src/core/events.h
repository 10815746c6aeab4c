/*
 * Events for the program (hf_client_options.on_event: a hold was lost, the
 * connection is down), queued until the program dispatches. The event of a loss
 * is allocated together with its line, in front of it in memory, so it cannot
 * be dropped while the line exists. All other events are allocated when they
 * occur, up to a limit. client->mu is held.
 */
#ifndef HF_EVENTS_H
#define HF_EVENTS_H

#include "core/line.h"
#include "core/loss_reason.h"

struct hf__event {
    struct hf__event *next, *prev; /* client->events */
    uint64_t token;
    struct hf__loss loss; /* LOST: the reason of the loss */
    int type;             /* the type of the event, or 0 if it is not queued */
    uint16_t name_len;
    enum { HF__IN_LINE, HF__IN_CLIENT, HF__ALLOCATED } place : 8;
};

/* Returns the line's own event. The client must have on_event. */
static inline struct hf__event *hf__event_of_loss(struct hf__line *n)
{
    return (struct hf__event *)n - 1;
}

/* Queues an event about that line, which may be NULL. For a LOST event, `loss`
 * is the reason. */
void hf__event_queue_locked(hf_client *, int type, struct hf__line *,
                            uint64_t token, struct hf__loss);
/* Must be called when a line is about to be freed: moves its queued event, if
 * any, to other memory. */
void hf__event_detach_locked(struct hf__line *);
/* Drops all queued events. */
void hf__event_drop_all_locked(hf_client *);

/* An event as the program gets it. */
struct hf__event_copy {
    hf_event event;
    char name[HF_NAME_MAX + 1];
    struct hf__reason reason;
};

/* Removes the next event from the queue and copies it. Returns false if there
 * is none. Takes client->mu itself. */
bool hf__event_next(hf_client *, struct hf__event_copy *);

#endif
