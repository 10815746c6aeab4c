/* Actor B fails while the scenario waits for actor A, which never continues:
 * the runner must say at once which actor failed, and why. If B ends normally,
 * the runner must say nothing. */
#include "../../cli/shared/exit_code.h"
#include "../../lab/actors/stage.h"
#include "../../lab/runner/die.h"
#include "../../lab/runner/lab_state.h"
#include "../../lab/supervisor.h"
#include "../lib/wait.h"

#include <signal.h>
#include <sys/wait.h>

enum { SOON_MS = 5000 };

static void waits_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        pause();
}

static void fails(void *arg)
{
    (void)arg;
    lab_die(CLI_FAILED, "out of luck");
}

static void is_killed(void *arg)
{
    (void)arg;
    raise(SIGKILL);
}

static void comes_to_its_end(void *arg)
{
    (void)arg;
}

static void (*play)(void *);

static void run(struct lab *lab)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", waits_for_ever, NULL);

    stage_enter(stage, "B", play, NULL);
    if (actor_comes(a, "there", play == comes_to_its_end ? 300 : 60000))
        lab_die(CLI_FAILED, "a defect");
    stage_close(stage, NULL);
}

/* Runs the scenario in a child process, and copies what the child prints on
 * standard error to `said'. Returns whether the child ended within SOON_MS. */
static bool supervise(char *said, size_t size)
{
    static struct lab lab;
    int64_t began = wait_fair();
    size_t len = 0;
    ssize_t n;
    int fds[2];
    pid_t pid;

    if (pipe(fds) || (pid = fork()) < 0)
        exit(2);
    if (!pid) {
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        exit(lab_supervise(&lab, run));
    }
    close(fds[1]);
    while ((n = read(fds[0], said + len, size - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(fds[0]);
    waitpid(pid, NULL, 0);
    return wait_within(began, SOON_MS);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*play)(void *);
        const char *says;
    } cases[] = {{"one fails", fails, "B: out of luck"},
                 {"one is killed", is_killed, "B was killed by signal 9"},
                 {"one comes to its end", comes_to_its_end, ""}};
    int failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..3\n");
    for (int i = 0; i < 3; i++) {
        char said[1000];
        bool is_soon, is_good;

        play = cases[i].play;
        is_soon = supervise(said, sizeof(said));
        is_good = is_soon &&
                  (cases[i].says[0] ? !!strstr(said, cases[i].says) : !said[0]);
        printf("%sok %d - %s\n", is_good ? "" : "not ", i + 1, cases[i].name);
        if (!is_good)
            printf("# %s; it said: %s\n", is_soon ? "soon" : "late", said);
        failed += !is_good;
    }
    return failed != 0;
}
