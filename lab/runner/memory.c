#include "memory.h"

#include "../../cli/shared/exit_code.h"
#include "die.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *lab_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        lab_die(CLI_OSERR, "cannot map shared memory: %s", strerror(errno));
    return memory;
}

void lab_unshare(void *memory, size_t size)
{
    munmap(memory, size);
}

void *lab_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    if (!memory)
        lab_die(CLI_OSERR, "out of memory");
    return memory;
}

void *lab_grow(void *memory, size_t count, size_t size)
{
    void *more = reallocarray(memory, count, size);

    if (!more)
        lab_die(CLI_OSERR, "out of memory");
    return more;
}
