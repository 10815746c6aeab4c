#include "supervisor.h"

#include "../cli/shared/exit_code.h"
#include "../cli/shared/message.h"
#include "page/page.h"
#include "runner/cleanup.h"
#include "runner/clock.h"
#include "runner/die.h"
#include "runner/lab.h"
#include "runner/lab_state.h"
#include "runner/progress.h"
#include "runner/report.h"
#include "runner/scenario.h"
#include "servers/places.h"

#include <errno.h>
#include <holdfast.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void lab_describe(struct lab *lab, int argc, char **argv)
{
    struct lab_report *report = &lab->report;
    struct utsname name;
    time_t now = time(NULL);
    char date[16];
    size_t at = (size_t)snprintf(report->command, sizeof report->command,
                                 "holdfast lab");

    /* Keeps only the scheme of a URL, because the rest may contain a
     * password. */
    for (int i = 1; i < argc && at < sizeof report->command; i++) {
        const char *colon = strstr(argv[i], "://");
        int len = colon ? (int)(colon - argv[i]) + 3 : (int)strlen(argv[i]);

        at +=
            (size_t)snprintf(report->command + at, sizeof report->command - at,
                             " %.*s%s", len, argv[i], colon ? "..." : "");
    }
    strftime(date, sizeof date, "%Y-%m-%d", localtime(&now));
    uname(&name);
    snprintf(report->machine, sizeof report->machine,
             "holdfast %s, %s, %ld processors, %.16s, %.16s %.40s",
             hf_version(), date, sysconf(_SC_NPROCESSORS_ONLN), name.machine,
             name.sysname, name.release);
}

/* Writes the page. An existing regular file is replaced in one step, or not at
 * all. */
static void supervisor_write_page(const struct lab *lab)
{
    struct stat there;
    bool is_file = stat(lab->html, &there) < 0 || S_ISREG(there.st_mode);
    char path[PATH_MAX];
    FILE *file;
    int error;

    snprintf(path, sizeof path, "%s%s", lab->html, is_file ? ".tmp" : "");
    file = fopen(path, "we");
    if (!file)
        lab_die(CLI_OSERR, "cannot write %s: %s", path, strerror(errno));
    error = lab_page_write(file, &lab->report) < 0 ? errno : 0;
    if (fclose(file) != 0 && !error)
        error = errno;
    if (!error && is_file && rename(path, lab->html) < 0)
        error = errno;
    if (error && is_file)
        unlink(path);
    if (error)
        lab_die(CLI_OSERR, "cannot write %s: %s", lab->html, strerror(error));
    if (!lab->json)
        printf("The page is %s\n", lab->html);
}

/* Dies if the page cannot be written, so that the error is reported before a
 * long run and not at its end. */
static void supervisor_check_page(const struct lab *lab)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(lab->html, '/');
    struct stat there;
    int bad = access(lab->html, W_OK);

    if (!bad && stat(lab->html, &there) == 0 && S_ISDIR(there.st_mode)) {
        errno = EISDIR;
        bad = -1;
    }
    if (bad && errno == ENOENT) {
        snprintf(directory, sizeof directory, "%.*s",
                 slash ? (int)(slash - lab->html) + 1 : 1,
                 slash ? lab->html : ".");
        bad = access(directory, W_OK);
    }
    if (bad)
        lab_die(CLI_OSERR, "cannot write %s: %s", lab->html, strerror(errno));
}

static int supervisor_remove_directory(void *arg)
{
    return cleanup_remove(arg);
}

static bool supervisor_has_rows(const struct lab_report *report)
{
    for (size_t i = 0; i < report->sections_len; i++)
        if (report->sections[i].rows_len)
            return true;
    return false;
}

static void supervisor_finish(struct lab *lab, int number,
                              char name[DIE_NAME_MAX])
{
    if (lab->scenario && !number)
        snprintf(name, DIE_NAME_MAX, "lab %s", lab->scenario->name);
    progress_clear();
    report_end(lab);
    if (number && lab->html)
        cli_say(&lab_verb, "%s was not written", lab->html);
}

_Noreturn static void supervisor_runner_main(struct lab *lab,
                                             void (*run)(struct lab *lab))
{
    int64_t began = lab_now();
    unsigned char random[2] = {0};

    if (getrandom(random, sizeof random, 0) < 0)
        lab_die(CLI_OSERR, "getrandom: %s", strerror(errno));
    snprintf(lab->id, sizeof lab->id, "%d-%02x%02x", (int)getpid(), random[0],
             random[1]);
    /* The supervisor, too, removes the directory at the end. This cleanup
     * process is needed if the supervisor is killed. */
    cleanup_start(supervisor_remove_directory, lab->directory);
    if (lab->html)
        supervisor_check_page(lab);
    places_check(lab);
    lab->as_expected = true;
    run(lab);
    lab->report.seconds = (double)(lab_now() - began) / 1e9;
    if (lab->html)
        supervisor_write_page(lab);
    if (!lab->as_expected && !lab->json)
        puts("Rows marked !! did not have the expected outcome.");
    if (lab->report.sections_len && places_are_bare(lab) && !lab->json)
        puts("--servers adds what needs Redis, ZooKeeper, etcd or MariaDB.");
    report_flush();
    if (lab->report.sections_len && !supervisor_has_rows(&lab->report))
        lab_die(CLI_USAGE, "nothing was run: --servers starts the servers that "
                           "are needed");
    exit(lab->as_expected ? CLI_OK : CLI_FAILED);
}

/* The functions from here on run in the supervisor. Those from
 * supervisor_write_page() to here run in the runner, except
 * supervisor_remove_directory(), which runs in a cleanup process. */
enum { KILL_AFTER_S = 1 };

static volatile pid_t runner; /* -1 once it has been reaped */

/* Passes a signal on to the runner, which ends at its next lab_tick(). A signal
 * that arrives more than KILL_AFTER_S (in whole seconds) after the first signal
 * kills the runner. A signal that arrives earlier does not kill it, because
 * timeout(1) sends its signal twice. */
static void supervisor_pass_on(int number)
{
    static time_t first;
    struct timespec now;
    int error = errno;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!first)
        first = now.tv_sec;
    if (runner > 0)
        kill(runner, now.tv_sec > first + KILL_AFTER_S ? SIGKILL : number);
    errno = error;
}

static int supervisor_make_directory(struct lab *lab)
{
    const char *env = getenv("TMPDIR");
    const char *tmp = env && *env == '/' ? env : "/tmp";
    int n = snprintf(lab->directory, sizeof lab->directory,
                     "%s/holdfast-lab-XXXXXX", tmp);

    if (n >= (int)sizeof lab->directory) {
        cli_say(&lab_verb, "TMPDIR has %zu bytes; it must have at most %zu",
                strlen(tmp),
                sizeof lab->directory - sizeof "/holdfast-lab-XXXXXX");
        return CLI_USAGE;
    }
    if (mkdtemp(lab->directory))
        return CLI_OK;
    cli_say(&lab_verb, "cannot create a directory in %s: %s", tmp,
            strerror(errno));
    return CLI_OSERR;
}

/* Waits for the runner and for all processes that it leaves behind. Returns the
 * wait status of the runner, and adds to *failures the number of cleanup
 * processes that failed. */
static int supervisor_wait_for_all(unsigned *failures)
{
    int status = 0, end = CLI_OSERR << 8;
    pid_t pid;

    while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR) {
        if (pid > 0 && pid == runner) {
            end = status;
            runner = -1;
        } else if (pid > 0 && WIFEXITED(status) &&
                   WEXITSTATUS(status) == CLEANUP_FAILED) {
            ++*failures;
        }
    }
    return end;
}

static int supervisor_conclude(const struct lab *lab, int end,
                               unsigned failures)
{
    int status = WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
    const char *how = failures ? "; not everything could be removed, see above"
                               : "; servers are stopped, nothing is left";

    if (!WIFEXITED(end))
        cli_say(&lab_verb, "the run was killed by signal %d%s", WTERMSIG(end),
                how);
    else if (status > 128 && status != 128 + SIGPIPE)
        cli_say(&lab_verb, "interrupted%s", how);
    if (cleanup_remove(lab->directory)) {
        cli_say(&lab_verb, "%s could not be removed", lab->directory);
        failures++;
    }
    return status == CLI_OK && failures ? CLI_FAILED : status;
}

int lab_supervise(struct lab *lab, void (*run)(struct lab *lab))
{
    pid_t self = getpid();
    unsigned failures = 0;
    sigset_t mask, old;
    int status;

    signal(SIGCHLD, SIG_DFL); /* the parent may have left SIGCHLD ignored */
    /* Makes this process the parent of cleanup processes whose runner has
     * ended, so that this process can wait for them. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, &old);
    status = supervisor_make_directory(lab);
    if (status != CLI_OK)
        return status;
    fflush(stdout);
    runner = fork();
    if (runner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        progress_init();
        die_set_finish(supervisor_finish, lab);
        sigprocmask(SIG_SETMASK, &old, NULL);
        supervisor_runner_main(lab, run);
    }
    if (runner < 0) {
        cli_say(&lab_verb, "cannot fork: %s", strerror(errno));
        rmdir(lab->directory);
        return CLI_OSERR;
    }
    lab_catch(supervisor_pass_on);
    sigprocmask(SIG_SETMASK, &old, NULL);
    status = supervisor_wait_for_all(&failures);
    return supervisor_conclude(lab, status, failures);
}
