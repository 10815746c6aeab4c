#include "stage.h"

#include "../../lib/shm_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct stage *stage;
struct canary stage_canary;
struct shm_file *stage_file;
char stage_fault[200], stage_path[96], stage_url[80];
void (*stage_at_point)(void);

static char dir[64];
static int cases, failed;
static _Atomic int countdown; /* 0: not armed */

void hf__shm_point(const char *file, int line); /* called by the backend */

int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void nap_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}

void stage_build(const char *name)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED || !canary_start(&stage_canary) ||
        !shm_dir_make(dir, sizeof(dir), name)) {
        perror(name);
        exit(2);
    }
    snprintf(stage_url, sizeof(stage_url), "shm://%s", dir);
    snprintf(stage_path, sizeof(stage_path), "%s/locks", dir);
}

void stage_clear(void)
{
    canary_stop(&stage_canary);
    unlink(stage_path);
    rmdir(dir);
}

void stage_map(void)
{
    int fd = open(stage_path, O_RDONLY | O_CLOEXEC);

    if (stage_file)
        munmap(stage_file, sizeof(*stage_file));
    stage_file = mmap(NULL, sizeof(*stage_file), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (stage_file == MAP_FAILED) {
        perror(stage_path);
        exit(2);
    }
}

void stage_blame(const char *what)
{
    if (!stage_fault[0])
        snprintf(stage_fault, sizeof(stage_fault), "%s", what);
}

void stage_case(int faults, const char *fmt, ...)
{
    va_list ap;

    printf("%s %d - ", faults ? "not ok" : "ok", ++cases);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    failed += faults != 0;
}

int stage_plan(void)
{
    printf("1..%d\n", cases);
    return failed || !cases ? 1 : 0;
}

void stage_note_place(void)
{
    for (int i = 0; i < STAGE_PLACES; i++) {
        struct stage_place *p = &stage->place[i];

        if (!p->line)
            *p = stage->at;
        if (p->line == stage->at.line && !strcmp(p->file, stage->at.file)) {
            p->visits++;
            return;
        }
    }
}

int stage_count_places(bool show)
{
    int n = 0;

    for (; n < STAGE_PLACES && stage->place[n].line; n++)
        if (show)
            printf("# %s:%d %d\n", stage->place[n].file, stage->place[n].line,
                   stage->place[n].visits);
    return n;
}

void stage_arm(int n)
{
    atomic_store(&countdown, n);
}

void stage_pause(void)
{
    atomic_store(&stage->paused, 1);
    while (!atomic_load(&stage->go))
        nap_us(20);
}

void hf__shm_point(const char *path, int line)
{
    const char *name = strrchr(path, '/');

    if (!atomic_load(&countdown) || atomic_fetch_sub(&countdown, 1) != 1)
        return;
    snprintf(stage->at.file, sizeof(stage->at.file), "%s",
             name ? name + 1 : path);
    stage->at.line = line;
    if (stage_at_point) {
        stage_at_point();
        return;
    }
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static bool is_shared(void)
{
    return stage_cast->kind == HF_RWLOCK || stage_cast->kind == HF_SEMAPHORE;
}

/* Returns the permits that the cell holds, for a shared kind. */
static unsigned has(unsigned cell)
{
    struct shm_entry *e = &stage_file->entry[0];

    if (!is_shared())
        return 0;
    return shm_has(stage_file, atomic_load(&e->word), cell);
}

int queued(void)
{
    struct shm_entry *e = &stage_file->entry[0];
    int n = 0;

    for (unsigned i = 0; i < SHM_CELLS; i++)
        n += (atomic_load(&e->cells[i / 64]) >> i % 64 & 1) &&
             atomic_load(&stage_file->cell[i].ticket) && !has(i);
    return n;
}

/* Counts waiters that sleep until they are notified: they have checked the
 * queue since they joined it. */
static int settled(void)
{
    struct shm_entry *e = &stage_file->entry[0];
    int n = 0;

    for (unsigned i = 0; i < SHM_CELLS; i++)
        n += (atomic_load(&e->cells[i / 64]) >> i % 64 & 1) &&
             atomic_load(&stage_file->cell[i].ticket) && !has(i) &&
             atomic_load(&stage_file->cell[i].announced);
    return n;
}

/* True if the cell is in use. A living client may keep one for its next
 * acquire. */
static bool is_left(unsigned cell)
{
    struct shm_cell *c = &stage_file->cell[cell];
    unsigned slot = atomic_load(&c->owner) & SHM_SLOT_MASK;

    if (!slot)
        return false;
    return stage_cast->kind == HF_MUTEX || atomic_load(&c->ticket) ||
           has(cell) ||
           atomic_load(&stage_file->slot[slot].state) == SHM_SLOT_FREE;
}

bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
           info.si_pid;
}

static void await_count(int (*count)(void), int n, pid_t victim)
{
    int64_t until = now_ns() + 20000000000LL;

    while (count() < n) {
        if (victim && (has_ended(victim) || atomic_load(&stage->paused)))
            return;
        if (now_ns() > until) {
            stage_blame("the queue did not fill");
            return;
        }
        nap_us(20);
    }
}

void await_queue(int n, pid_t victim)
{
    await_count(queued, n, victim);
}

void await_settled(int n, pid_t victim)
{
    await_count(settled, n, victim);
}

void check_leaks(int clients)
{
    struct shm_file *f = stage_file;
    int cells = 0, slots = 0, names = 0;
    unsigned used = 0;
    char text[100];

    for (unsigned i = 0; i < SHM_CELLS; i++)
        cells += is_left(i);
    for (unsigned i = 0; i < SHM_SLOTS; i++)
        slots += atomic_load(&f->slot[i].state) != SHM_SLOT_FREE;
    for (unsigned i = 0; i < SHM_NAMES; i++)
        names += atomic_load(&f->hash[i]) != 0;
    if (is_shared())
        used = shm_used(atomic_load(&f->entry[0].word));
    snprintf(text, sizeof(text),
             "left behind: %d cells, %d slots, %d names, %u permits", cells,
             slots - clients, names - 1, used);
    if (cells || slots != clients || names != 1 || queued() || used)
        stage_blame(text);
}

pid_t victim_begin(void (*play)(struct seat *), bool sits, int n)
{
    struct seat s = {NULL, NULL, VICTIM, NULL};
    pid_t pid = fork();

    if (pid)
        return pid;
    if (sits && sit(&s, VICTIM, NULL))
        _exit(3);
    stage_arm(n);
    play(&s);
    stage_arm(0);
    _exit(0);
}

bool victim_was_killed(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        stage_note_place();
        return true;
    }
    if (WEXITSTATUS(status))
        stage_blame("the victim failed by itself");
    return false;
}

int stage_kill_at_each(const char *name, int only,
                       bool (*run)(const void *scenario, int n),
                       const void *scenario)
{
    int faults = 0, kills = 0;
    bool was_killed = true;

    for (int n = only ? only : 1; n < 2000 && was_killed; n++) {
        stage_fault[0] = '\0';
        memset(&stage->at, 0, sizeof(stage->at));
        was_killed = run(scenario, n);
        kills += was_killed;
        if (stage_fault[0]) {
            printf("# %s, %s, killed at %s:%d (%d): %s\n", name,
                   stage_cast->name, stage->at.file, stage->at.line, n,
                   stage_fault);
            faults++;
        }
        if (only)
            break;
    }
    if (!kills)
        faults++; /* without a kill it tests nothing */
    stage_case(faults, "%s, %s: killed at each of %d steps", name,
               stage_cast->name, kills);
    return kills;
}
