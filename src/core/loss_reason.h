/*
 * Why a hold was lost, for people. The queue keeps what it knows with the lost
 * hold (struct hf__loss). What the server or the connection had to do with it
 * is noted here, once per client, with the time during which it was so; the
 * text of a loss is put together when somebody asks.
 */
#ifndef HF_LOSS_REASON_H
#define HF_LOSS_REASON_H

#include "core/line.h"

/* What the server, or the way to it, was like for a while: so that a loss can
 * be explained as long as its owner has not released it. */
struct hf__note {
    hf__time since, until; /* since is 0: unused; until is NEVER: to this day */
    hf__time from;         /* the text is of this time: there may be another
                              note, with an earlier text */
    enum hf__loss_why why; /* SILENT: not connected; SESSION, REFUSED */
    bool explained;        /* it has explained a loss: its text stays */
    char text[384];        /* with a statement that helps, of MySQL */
};

#define HF__NOTES 8 /* the last ones */
/* Notes it; if the same is noted already and not over, the newer text. */
void hf__note(hf_client *, enum hf__loss_why, const char *text);
void hf__note_over(hf_client *, enum hf__loss_why);
/* A renewal was refused, with that code, in those words. */
void hf__note_refusal(hf_client *, int code, const hf_error *word);

struct hf__reason {
    char text[576];
};

struct hf__reason hf__reason(hf_client *, struct hf__loss);
/* Why a hold that is still ours may not be renewed; "" if all is well. */
struct hf__reason hf__doubt(hf_client *, bool refused);
/* ELOST: the hold of the name was lost; why, if that owner's loss is known. */
int hf__fail_lost(struct hf__line *line, uint64_t owner, hf_error *);
int hf__fail_loss(struct hf__line *line, struct hf__loss, hf_error *);
/* The same for an acquire: the lost hold is to be released first. */
int hf__fail_unreleased(struct hf__line *line, uint64_t owner, hf_error *);
/* The same as the first, or the general text of another code. */
int hf__fail_hold(struct hf__line *line, uint64_t owner, int code, hf_error *);

#endif
