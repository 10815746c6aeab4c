#include "region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int64_t region_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

bool region_open(struct region *region, const char *file)
{
    int fd = open(file, O_RDWR | O_CLOEXEC);
    void *at = MAP_FAILED;

    if (fd >= 0) {
        at = mmap(NULL, sizeof *region->words, PROT_READ | PROT_WRITE,
                  MAP_SHARED, fd, 0);
        close(fd);
    }
    region->me = getpid();
    region->words = at == MAP_FAILED ? NULL : at;
    return region->words;
}

void region_close(struct region *region)
{
    if (region->words)
        munmap((void *)region->words, sizeof *region->words);
    region->words = NULL;
}

static void stay(const struct region *region)
{
    int64_t end = region_now_us() + region->stay_us;

    while (region_now_us() < end)
        ;
}

static bool is_over(const struct region *region)
{
    volatile struct region_words *words = region->words;

    return words->entries + __atomic_load_n(&words->shared, __ATOMIC_SEQ_CST) >=
           region->total;
}

bool region_exclusive(struct region *region, uint64_t token)
{
    volatile struct region_words *words = region->words;
    int64_t entries;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (is_over(region))
        return false;
    if (words->owner != 0 || words->inside != 0)
        region->overlaps++;
    words->owner = region->me;
    entries = words->entries;
    if (token > 0) {
        if (token <= (uint64_t)words->token)
            region->stale++;
        words->token = (int64_t)token;
    }
    stay(region);
    words->entries = entries + 1;
    if (words->owner != region->me || words->inside != 0)
        region->overlaps++;
    words->owner = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    region->entered++;
    return true;
}

bool region_shared(struct region *region)
{
    volatile struct region_words *words = region->words;
    int64_t inside;

    if (is_over(region))
        return false;
    inside = __atomic_add_fetch(&words->inside, 1, __ATOMIC_SEQ_CST);
    if (words->owner != 0 || (region->limit > 0 && inside > region->limit))
        region->overlaps++;
    stay(region);
    __atomic_add_fetch(&words->shared, 1, __ATOMIC_SEQ_CST);
    if (words->owner != 0)
        region->overlaps++;
    __atomic_sub_fetch(&words->inside, 1, __ATOMIC_SEQ_CST);
    region->entered++;
    return true;
}

void region_down(struct region *region)
{
    stay(region);
    __atomic_add_fetch(&region->words->shared, 1, __ATOMIC_SEQ_CST);
}

void region_pass(struct region *region, int64_t round)
{
    int64_t downs = __atomic_load_n(&region->words->shared, __ATOMIC_SEQ_CST);

    if (downs < region->limit * (round + 1) ||
        downs >= region->limit * (round + 2))
        region->overlaps++;
    region->entered++;
}
