/*
 * Explains to people why a hold was lost. The explanation is composed, when it
 * is needed, from two records. The queue keeps a short one with the lost hold
 * (struct hf__loss). The client keeps notes about its server and its
 * connection, with their times (struct hf__note); the notes serve all holds of
 * the client.
 */
#ifndef HF_LOSS_REASON_H
#define HF_LOSS_REASON_H

#include "core/line.h"

/* The state of the server or the connection during some time. Kept so that the
 * loss of a hold can be explained until the owner has released the lost
 * hold. */
struct hf__note {
    hf__time since, until; /* since: 0 if unused; until: NEVER while the state
                              lasts */
    hf__time from; /* when this text was noted; another note of the same outage
                      may have an earlier text */
    enum hf__loss_why why; /* SILENT (not connected), SESSION or REFUSED */
    bool explained;        /* it has explained a loss, so its text must stay */
    char text[384];        /* long enough for an SQL statement that the MySQL
                              backend suggests */
};

#define HF__NOTES 8 /* how many notes are kept */
/* Notes the current state, unless the newest note of this state has not ended
 * and has the same text. */
void hf__note(hf_client *, enum hf__loss_why, const char *text);
/* Notes that the state has ended. */
void hf__note_over(hf_client *, enum hf__loss_why);
/* Notes that a renewal was refused, with that code and message. */
void hf__note_refusal(hf_client *, int code, const hf_error *word);

struct hf__reason {
    char text[576];
};

/* Returns the explanation of that loss. Takes why_mu. */
struct hf__reason hf__reason(hf_client *, struct hf__loss);
/* Returns why a hold might not be renewed although it still lasts, or "" if all
 * is well. `refused` tells whether its last renewal was refused. */
struct hf__reason hf__doubt(hf_client *, bool refused);
/* Fails with ELOST, and with the reason if the loss of that owner is known. */
int hf__fail_lost(struct hf__line *line, uint64_t owner, hf_error *);
/* Fails with ELOST and the reason of that loss. */
int hf__fail_loss(struct hf__line *line, struct hf__loss, hf_error *);
/* Fails an acquire with ELOST, because the owner must first release the hold
 * that it has lost. The message includes the reason of the loss. */
int hf__fail_unreleased(struct hf__line *line, uint64_t owner, hf_error *);
/* Does what hf__fail_lost() does if the code is ELOST; otherwise fails with
 * that code and its general message. */
int hf__fail_hold(struct hf__line *line, uint64_t owner, int code, hf_error *);

#endif
