/*
 * A process is stopped (SIGSTOP) while it holds the table lock, which every new
 * client and every new name needs. No other client may be delayed for more than
 * a moment: calls that need the table lock fail and name the stopped process,
 * and other calls work. Afterwards, whether the process continues or is killed,
 * the names that were freed in the meantime are reclaimed.
 */
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* OP_MS is the op_timeout of the client of a crowd. */
enum { NAMES = 100, OP_MS = 600, MOMENT_MS = 900, WAIT_MS = 5000 };

struct crowd { /* a client with many names */
    hf_client *client;
    hf_lock *lock[NAMES];
};

static struct seat here;
static int64_t begun, excused_before;

static void stop_here(void)
{
    stage_arm(0);
    kill(getpid(), SIGSTOP);
}

/* Stops a process at the first point of creating a name, when it has just
 * acquired the table lock. */
static pid_t stop_one_in_the_tables(void)
{
    int status = 0;
    pid_t pid = fork();

    if (!pid) {
        struct seat s;
        hf_lock *more;

        if (sit(&s, VICTIM, NULL))
            _exit(3);
        stage_arm(1);
        if (hf_lock_new(s.client, "more", 4, NULL, &more, NULL))
            _exit(4);
        hf_lock_free(more);
        stand_up(&s);
        _exit(0);
    }
    waitpid(pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status))
        stage_blame("the victim did not stop");
    return pid;
}

static void expect(bool good, const char *what)
{
    if (!good)
        stage_blame(what);
}

/* Returns how long this process has waited for a CPU or the machine has
 * stalled. The measured calls mostly sleep, so it does not matter how long
 * other processes wait. */
static int64_t excused(void)
{
    return cpu_wait_of(getpid()) + wait_stolen() +
           canary_stood_by_now(&stage_canary);
}

static void begin(void)
{
    stage_fault[0] = '\0';
    excused_before = excused();
    begun = wait_now();
}

static void end(int limit_ms, const char *what)
{
    int64_t took = wait_now() - begun;

    took -= excused() - excused_before;
    if (took > limit_ms * 1000000LL)
        stage_blame("it took too long");
    if (stage_fault[0])
        printf("# %s\n", stage_fault);
    stage_case(stage_fault[0] != '\0', "%s (%.1f ms)", what,
               (double)took / 1e6);
}

static bool is_named(const hf_error *err, pid_t culprit)
{
    char pid[24];

    snprintf(pid, sizeof(pid), "process %d", (int)culprit);
    return err->code == HF_EBACKEND && strstr(err->text, pid);
}

static void names_the_culprit(const hf_error *err, pid_t culprit)
{
    expect(is_named(err, culprit), err->text);
}

static void crowd_come(struct crowd *c, const char *kind)
{
    char name[16], url[120];

    snprintf(url, sizeof(url), "%s?op_timeout=%dms", stage_shm.url, OP_MS);
    expect(!hf_open(url, NULL, &c->client, NULL), "open");
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "%s-%d", kind, i);
        expect(
            !hf_lock_new(c->client, name, HF_CSTRING, NULL, &c->lock[i], NULL),
            "new");
    }
}

/* The client's helper thread gives up and names the culprit a moment before the
 * timeout. If the machine stalls at that moment, the helper thread is too late.
 * Therefore hf_open() is tried up to three times. */
static void a_client_is_refused(pid_t culprit)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    char url[120];

    snprintf(url, sizeof(url), "%s?connect_timeout=2s", stage_shm.url);
    for (int i = 0; i < 3 && !is_named(&err, culprit); i++) {
        begin();
        err = (hf_error)HF_ERROR_INIT;
        expect(hf_open(url, NULL, &client, &err), "it worked");
    }
    names_the_culprit(&err, culprit);
    end(2000 + MOMENT_MS, "so is a new client, by its connect_timeout");
}

static void what_needs_the_tables(pid_t culprit, hf_client *client)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;
    hf_info *info;

    begin();
    expect(hf_lock_new(client, "new", 3, NULL, &lock, &err), "it worked");
    names_the_culprit(&err, culprit);
    end(OP_MS + MOMENT_MS,
        "a new name is refused, with the name of who is stopped");

    begin();
    expect(hf_inspect(here.client, "x", 1, &info, &err), "it worked");
    names_the_culprit(&err, culprit);
    end(MOMENT_MS, "so is a look at a name");

    a_client_is_refused(culprit);
}

static void what_does_not(struct crowd *held, struct crowd *idle)
{
    begin();
    expect(!hf_lock_acquire(here.lock, NULL, NULL), "acquire");
    expect(!hf_lock_release(here.lock, NULL), "release");
    end(STAGE_LIMIT_MS, "a lock that is there goes on");

    begin();
    hf_lock_free(held->lock[0]);
    held->lock[0] = NULL;
    end(STAGE_LIMIT_MS, "a name can be let go");

    begin();
    for (int i = 1; i < NAMES; i++)
        expect(!hf_lock_acquire(held->lock[i], NULL, NULL), "acquire");
    expect(!hf_close(held->client), "close");
    end(MOMENT_MS, "a client with 100 names that are held can be closed");

    begin();
    for (int i = 0; i < NAMES; i++)
        hf_lock_free(idle->lock[i]);
    expect(!hf_close(idle->client), "close");
    end(MOMENT_MS, "so can one whose 100 names were freed before");
    for (int i = 1; i < NAMES; i++)
        hf_lock_free(held->lock[i]);
}

/* The culprit continues or is killed. The client that creates the next name
 * reclaims the freed ones. */
static void afterwards(pid_t culprit, int sig, const char *what)
{
    hf_error err = HF_ERROR_INIT;
    int status;
    hf_lock *lock;

    begin();
    kill(culprit, sig);
    if (sig == SIGKILL) {
        waitid(P_PID, (id_t)culprit, &(siginfo_t){0}, WEXITED | WNOWAIT);
        expect(atomic_load(&stage_file->header.tables) & FUTEX_OWNER_DIED,
               "the kernel has not marked the lock of the tables");
    }
    waitpid(culprit, &status, 0);
    expect(sig == SIGKILL || !status, "the victim failed");
    if (hf_lock_new(here.client, "new", 3, NULL, &lock, &err))
        stage_blame(err.text);
    else
        hf_lock_free(lock);
    stand_up(&here);
    expect(!sit(&here, HOLDER, &err), err.text); /* reclaims the last name */
    check_leaks(1);
    end(WAIT_MS, what);
}

static void run(int sig, const char *what)
{
    struct crowd held, idle;
    pid_t culprit;

    stage_fault[0] = '\0';
    crowd_come(&held, "held");
    crowd_come(&idle, "idle");
    culprit = stop_one_in_the_tables();
    if (stage_fault[0])
        stage_case(1, "%s", stage_fault);
    what_needs_the_tables(culprit, idle.client);
    what_does_not(&held, &idle);
    afterwards(culprit, sig, what);
}

int main(void)
{
    stage_build("shm_stopped");
    stage_at_point = stop_here;
    stage_cast = stage_next_cast("mutex", NULL);
    if (sit(&here, HOLDER, NULL)) {
        perror(stage_shm.url);
        return 2;
    }
    stage_map();
    run(SIGCONT, "it goes on, and nothing is left behind");
    run(SIGKILL, "it is killed, and nothing is left behind");
    stand_up(&here);
    return stage_end(2, "stops");
}
