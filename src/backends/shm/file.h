/*
 * The file and its mapping. The helper thread opens it when the client is
 * opened, and closes it with the client.
 */
#ifndef HF_SHM_FILE_H
#define HF_SHM_FILE_H

#include "shm.h"

/* Returns HF__DONE; ENOTOWNER if no file is in use and the client must not
 * create one; or another code. May block for nine tenths of open_timeout_ms. */
int hf__shm_file_open(struct shm *, const struct hf__config *);
/* Unmaps and closes the file, and the directory. */
void hf__shm_file_close(struct shm *);
/* Returns false if the file was deleted or the path leads to another file. The
 * first such call reports the loss to the core. */
bool hf__shm_file_is_there(struct shm *);
/* Like hf__shm_file_is_there, but checks at most once in each period of 64 ms
 * while the file is there. */
bool hf__shm_file_still_there(struct shm *);
/* Returns EBACKEND with a message that the file was removed or replaced. */
int hf__shm_file_lost(struct shm *);

#endif
