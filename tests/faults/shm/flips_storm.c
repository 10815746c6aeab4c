/*
 * Many random flips while several clients use the file on several threads. Half
 * of the flips are anywhere after the header, the others in the parts of the
 * file that the clients use.
 */
#include "flips.h"
#include "helpers.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTIES = 3 };

static atomic_bool is_over;

static void *load_main(void *arg)
{
    struct party p;
    unsigned n = *(unsigned *)arg;

    flips_thread_begins();
    while (!atomic_load(&is_over)) {
        party_come(&p);
        for (unsigned i = 0; i < 8 && !atomic_load(&is_over); i++, n++) {
            party_try(&p, 2, n % 2 ? 0 : 20);
            if (n % 4 == 0)
                party_look(&p);
        }
        party_go(&p);
    }
    return NULL;
}

/* Returns a random offset in those parts of the file in which a few clients
 * keep their data. */
static size_t busy_place(uint64_t *seed)
{
    size_t n = chance(seed);

    switch (chance(seed) % 4) {
    case 0:
        return offsetof(struct shm_file, hash) + n % 64;
    case 1:
        return offsetof(struct shm_file, slot) +
               n % (8 * sizeof(struct shm_slot));
    case 2:
        return offsetof(struct shm_file, cell) +
               n % (16 * sizeof(struct shm_cell));
    default:
        return offsetof(struct shm_file, entry[n % 6]) +
               n / 8 % offsetof(struct shm_entry, name);
    }
}

void storm_play(uint64_t seed)
{
    unsigned first[PARTIES];
    pthread_t thread[PARTIES];

    atomic_store(&is_over, false);
    for (unsigned i = 0; i < PARTIES; i++) {
        first[i] = i;
        pthread_create(&thread[i], NULL, load_main, &first[i]);
    }
    for (unsigned i = 0; i < FLIPS; i++) {
        uint32_t far = chance(&seed);

        if (chance(&seed) % 2)
            flips_bit(busy_place(&seed), (int)(chance(&seed) % 8));
        else
            flips_bit(
                sizeof(struct shm_header) +
                    far % (sizeof(struct shm_file) - sizeof(struct shm_header)),
                (int)(chance(&seed) % 8));
        usleep(100);
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < PARTIES; i++)
        pthread_join(thread[i], NULL);
}
