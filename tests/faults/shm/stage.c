#include "stage.h"

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
struct locks_place stage_shm;
char stage_fault[200];
void (*stage_at_point)(void);

static int cases, failed;
static int64_t began;
static _Atomic int countdown; /* 0 if not armed */

void hf__shm_point(const char *file, int line); /* called by the backend */

int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void stage_build(const char *name)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    began = now_ns();
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED || !canary_start(&stage_canary) ||
        !locks_place_make(&stage_shm, name)) {
        perror(name);
        exit(2);
    }
}

static int count_places(bool show)
{
    int n = 0;

    for (; n < STAGE_PLACES && stage->place[n].line; n++)
        if (show)
            printf("# %s:%d %d\n", stage->place[n].file, stage->place[n].line,
                   stage->place[n].visits);
    return n;
}

int stage_end(int steps, const char *what)
{
    canary_stop(&stage_canary);
    locks_place_remove(&stage_shm);
    printf("# %d %s at %d places in %.1f s, worst wait %.2f ms\n", steps, what,
           count_places(getenv("SHM_POINTS_SHOW")),
           (double)(now_ns() - began) / 1e9, (double)stage_worst_ns / 1e6);
    printf("1..%d\n", cases);
    return failed || !cases ? 1 : 0;
}

void stage_map(void)
{
    int fd = open(stage_shm.file, O_RDONLY | O_CLOEXEC);

    if (stage_file)
        munmap(stage_file, sizeof(*stage_file));
    stage_file = mmap(NULL, sizeof(*stage_file), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (stage_file == MAP_FAILED) {
        perror(stage_shm.file);
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

void stage_reset(void)
{
    stage->at = (struct stage_place){.line = 0};
    atomic_store(&stage->phase, 0);
    atomic_store(&stage->paused, 0);
    atomic_store(&stage->go, 0);
    atomic_store(&stage->overlaps, 0);
    stage_nobody_inside();
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

/* Returns how many permits the cell holds. Always 0 for a kind of lock that
 * cannot be shared. */
static unsigned has(unsigned cell)
{
    struct shm_entry *e = &stage_file->entry[0];

    if (!is_shared())
        return 0;
    return shm_has(stage_file, atomic_load(&e->word), cell);
}

static bool is_queued(unsigned cell)
{
    struct shm_entry *e = &stage_file->entry[0];

    return (atomic_load(&e->cells[cell / 64]) >> cell % 64 & 1) &&
           atomic_load(&stage_file->cell[cell].ticket) && !has(cell);
}

int queued(void)
{
    int n = 0;

    for (unsigned i = 0; i < SHM_CELLS; i++)
        n += is_queued(i);
    return n;
}

/* Counts the waiters that have checked the queue since they joined it and now
 * sleep until they are notified. */
static int settled(void)
{
    int n = 0;

    for (unsigned i = 0; i < SHM_CELLS; i++)
        n += is_queued(i) && atomic_load(&stage_file->cell[i].announced);
    return n;
}

/* Returns whether the cell is in use. A cell that a living client of a shared
 * lock merely keeps for its next acquire does not count. */
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

void await_end(pid_t pid)
{
    while (!has_ended(pid))
        nap_us(50);
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

void victim_stays(struct seat *s)
{
    stage_arm(0);
    atomic_store(&stage->phase, 3);
    while (atomic_load(&stage->go) != 2)
        nap_us(20);
    stand_up(s);
    _exit(0);
}

int stage_walk(const struct stage_walk *w, int *faults)
{
    int steps = 0;
    bool was_there = true;

    for (int n = w->only ? w->only : 1; n < 2000 && was_there; n++) {
        stage_fault[0] = '\0';
        stage_reset();
        was_there = w->run(w->scenario, n);
        steps += was_there;
        if (stage_fault[0]) {
            printf("# %s, %s, at %s:%d (%d)%s%s: %s\n", w->name,
                   stage_cast->name, stage->at.file, stage->at.line, n,
                   w->meanwhile ? " " : "", w->meanwhile ? w->meanwhile : "",
                   stage_fault);
            ++*faults;
        }
        if (w->only || (w->once && stage_fault[0]))
            break;
    }
    return steps;
}

int stage_kill_at_each(const char *name, int only,
                       bool (*run)(const void *scenario, int n),
                       const void *scenario)
{
    int faults = 0;
    int kills = stage_walk(
        &(struct stage_walk){
            .name = name, .run = run, .scenario = scenario, .only = only},
        &faults);

    if (!kills)
        faults++; /* without any kill, nothing is tested */
    stage_case(faults, "%s, %s: killed at each of %d steps", name,
               stage_cast->name, kills);
    return kills;
}
