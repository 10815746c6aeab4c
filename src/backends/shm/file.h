/*
 * The file and its mapping: opened when the client is opened, by the helper
 * thread, and closed with it.
 */
#ifndef HF_SHM_FILE_H
#define HF_SHM_FILE_H

#include "shm.h"

int hf__shm_file_open(struct shm *, const struct hf__config *);
void hf__shm_file_close(struct shm *);
/* False, and the loss is reported to the client, when the file was deleted
 * under us, or the path leads to another one. */
bool hf__shm_file_is_there(struct shm *);
/* The same, but asks the kernel now and then only, until the file is gone. */
bool hf__shm_file_still_there(struct shm *);
/* Returns EBACKEND, and says that the file is gone. */
int hf__shm_file_lost(struct shm *);

#endif
