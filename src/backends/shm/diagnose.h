/*
 * The findings of hf_diagnose: who shares the file, where it is, and what may
 * delete it.
 */
#ifndef HF_SHM_DIAGNOSE_H
#define HF_SHM_DIAGNOSE_H

#include "shm.h"

/* Adds the findings to the query. Returns HF__DONE or a code. */
int hf__shm_diagnose(struct shm *, struct hf__query *);
/* Does logind delete the files of users that log out? Reads `conf` and the
 * directory `conf`.d. */
bool hf__shm_logind_removes(const char *conf);
/* Does the user linger (loginctl enable-linger)? Then there is a file with the
 * user's name in `dir`. */
bool hf__shm_lingers(const char *dir, uid_t);

#endif
