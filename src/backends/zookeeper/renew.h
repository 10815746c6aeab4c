/*
 * Implements the backend's slot `renew`, which proves the session for all holds
 * of a batch. A renewal ends when all parts of the batch are answered. Also
 * executes the query HF__DOWNGRADE; if the answer to a downgrade is lost, the
 * next renewal sends it again.
 *
 * All holds live as long as the session, so one acknowledged write renews them
 * all. The write is a transaction that checks that each entry exists, with as
 * many entries as fit, so a deleted entry is noticed, too. If an entry is
 * missing, the answer names only the first missing one. Then each hold is
 * checked in a transaction of its own, all in one packet.
 *
 * A downgrade replaces the entry for writing with one for reading of the same
 * sequence, in one transaction, as Curator does. Therefore the hold stays
 * before all waiters. After a lost answer the same transaction is sent again;
 * the new name tells whether the first one was carried out.
 */
#ifndef HF_ZK_RENEW_H
#define HF_ZK_RENEW_H

#include "zookeeper.h"

int hf__zk_renew(void *self, struct hf__batch *);
/* Executes HF__DOWNGRADE. Returns an outcome, or PENDING. */
int hf__zk_downgrade_query(struct zk *, struct hf__query *);
void hf__zk_renew_fini(struct zk *);

#endif
