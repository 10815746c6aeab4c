/*
 * The findings of hf_diagnose: who shares the file, where it is, and what may
 * delete it.
 */
#ifndef HF_SHM_DIAGNOSE_H
#define HF_SHM_DIAGNOSE_H

#include "shm.h"

int hf__shm_diagnose(struct shm *, struct hf__query *);
/* Reads that file and its .d directory. */
bool hf__shm_logind_removes(const char *conf);
bool hf__shm_lingers(const char *dir, uid_t);

#endif
