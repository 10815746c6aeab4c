/*
 * The findings of hf_diagnose: which users share the file, where the file is,
 * and what may delete it.
 */
#ifndef HF_SHM_DIAGNOSE_H
#define HF_SHM_DIAGNOSE_H

#include "shm.h"

/* Adds the findings to the query. Returns HF__DONE or a code. */
int hf__shm_diagnose(struct shm *, struct hf__query *);
/* Returns whether logind deletes the files of users who log out, according to
 * `conf` and the directory `conf`.d. */
bool hf__shm_logind_removes(const char *conf);
/* Returns whether the user lingers (loginctl enable-linger), which is the case
 * if `dir` contains a file with the user's name. */
bool hf__shm_lingers(const char *dir, uid_t);

#endif
