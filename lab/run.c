/*
 * The supervisor and the runner. The supervisor forks the runner, in which
 * everything happens, and waits until all that the runner leaves behind
 * (keepers, keeper.h) is gone, however the runner ends.
 */
#include "frame.h"
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct cli_verb verb = {"lab", NULL, NULL, NULL};

/* ---- the runner ---------------------------------------------------------- */

void lab_describe(struct lab *lab, int argc, char **argv)
{
    struct lab_report *report = &lab->report;
    struct utsname name;
    size_t at = (size_t)snprintf(report->command, sizeof report->command,
                                 "holdfast lab");

    /* Of a URL the scheme alone is shown: it may have a password. */
    for (int i = 1; i < argc && at < sizeof report->command; i++) {
        const char *colon = strstr(argv[i], "://");
        int len = colon ? (int)(colon - argv[i]) + 3 : (int)strlen(argv[i]);

        at +=
            (size_t)snprintf(report->command + at, sizeof report->command - at,
                             " %.*s%s", len, argv[i], colon ? "..." : "");
    }
    uname(&name);
    snprintf(report->machine, sizeof report->machine,
             "%ld processors, %.16s, %.16s %.40s",
             sysconf(_SC_NPROCESSORS_ONLN), name.machine, name.sysname,
             name.release);
}

static void remove_directory(void *arg)
{
    keeper_remove(arg);
}

const char *lab_directory(struct lab *lab)
{
    const char *tmp = getenv("TMPDIR");

    if (lab->directory[0])
        return lab->directory;
    snprintf(lab->directory, sizeof lab->directory, "%.40s/holdfast-lab-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(lab->directory))
        lab_die(CLI_OSERR, "cannot make a directory in %s: %s",
                tmp && *tmp ? tmp : "/tmp", strerror(errno));
    keeper_start(remove_directory, lab->directory);
    return lab->directory;
}

const struct lab_settings *lab_settings(const struct lab *lab)
{
    return &lab->settings;
}

static void write_page(const struct lab *lab)
{
    FILE *file = fopen(lab->html, "we");
    bool failed = !file || lab_page_write(file, &lab->report) < 0;
    int error = errno;

    if (file && fclose(file) != 0 && !failed) {
        failed = true;
        error = errno;
    }
    if (failed)
        lab_die(CLI_OSERR, "cannot write %s: %s", lab->html, strerror(error));
    if (!lab->json)
        printf("The page is %s\n", lab->html);
}

/* Better known now than after five minutes. */
static void check_page(const struct lab *lab)
{
    int fd = open(lab->html, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        lab_die(CLI_OSERR, "cannot write %s: %s", lab->html, strerror(errno));
    close(fd);
}

_Noreturn static void runner_main(struct lab *lab, void (*run)(struct lab *lab))
{
    int64_t began = lab_now();
    unsigned char random[2] = {0};

    progress_init(lab);
    if (getrandom(random, sizeof random, 0) < 0)
        lab_die(CLI_OSERR, "getrandom: %s", strerror(errno));
    snprintf(lab->id, sizeof lab->id, "%d-%02x%02x", (int)getpid(), random[0],
             random[1]);
    if (lab->html)
        check_page(lab);
    lab->as_expected = true;
    run(lab);
    lab->report.seconds = (double)(lab_now() - began) / 1e9;
    if (lab->html)
        write_page(lab);
    if (!lab->as_expected && !lab->json)
        puts("Rows with !! did not come out as they must.");
    if (fflush(stdout) != 0 || ferror(stdout))
        lab_die(CLI_FAILED, "standard output: %s", strerror(errno));
    exit(lab->as_expected ? CLI_OK : CLI_FAILED);
}

/* ---- the supervisor ------------------------------------------------------ */

static pid_t runner;
static volatile sig_atomic_t signals;

/* The runner ends by itself when it next looks; the second time at once. */
static void pass_on(int number)
{
    if (runner > 0)
        kill(runner, signals++ ? SIGKILL : number);
}

int lab_supervise(struct lab *lab, void (*run)(struct lab *lab))
{
    struct sigaction action = {.sa_handler = pass_on};
    int status, end = 0;
    sigset_t mask, old;
    pid_t pid, self = getpid();

    prctl(PR_SET_CHILD_SUBREAPER, 1); /* keepers fall to us */
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, &old);
    fflush(stdout);
    runner = fork();
    if (runner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        runner = 0;
        sigprocmask(SIG_SETMASK, &old, NULL);
        runner_main(lab, run);
    }
    if (runner < 0) {
        cli_say(&verb, "cannot fork: %s", strerror(errno));
        return CLI_OSERR;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR) {
        if (pid == runner) {
            end = status;
            runner = -1;
        }
    }
    if (WIFEXITED(end))
        return WEXITSTATUS(end);
    cli_say(&verb,
            "the run was killed by signal %d; temporary servers are "
            "stopped, and given databases are clean",
            WTERMSIG(end));
    return 128 + WTERMSIG(end);
}
