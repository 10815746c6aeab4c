/* holdfast run: takes the lock, runs the command, lets go. See run.h. */
#include "run.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As if we had not caught it. */
static void die_of(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- without the lock: the way out --------------------------------------- */

/* What is still to be asked may never be answered: what we say then. */
static struct {
    char words[1024];
    int status;
} last;

static void leave(int number)
{
    (void)number;
    if (write(STDERR_FILENO, last.words, strlen(last.words)) < 0) {
        /* Then nobody hears it. */
    }
    if (patience_caught)
        die_of(patience_caught);
    _exit(last.status);
}

static void leave_after(int ms, int status, const char *words)
{
    struct itimerval never = {0},
                     time = {.it_value = {ms / 1000, ms % 1000 * 1000}};

    setitimer(ITIMER_REAL, &never, NULL);
    last.status = status;
    snprintf(last.words, sizeof last.words, "%s", words);
    setitimer(ITIMER_REAL, &time, NULL);
}

/* In a second we leave, with these words: be done before. */
static void leave_soon(int status, const char *words)
{
    leave_after(1000, status, words);
}

/* What leave_after() has set ends us. */
static void hear_alarm(void)
{
    struct sigaction end = {.sa_handler = leave};
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &end, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
}

/* Signals end us again, as there is nothing that has to be done before. */
static void hear_signals(const struct command *command)
{
    sigset_t mask = command->mask;

    hear_alarm();
    sigdelset(&mask, SIGALRM);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* Names the lock, once. */
static int failed(const struct run_options *o, int rc, const hf_error *err)
{
    struct hf__shown name = hf__show(o->name);
    char quoted[sizeof name.text + 2];

    snprintf(quoted, sizeof quoted, "\"%s\"", name.text);
    if (err && strstr(err->text, quoted))
        cli_say(&cli_run, "%s", err->text);
    else
        cli_failed(&cli_run, name.text, rc, err);
    if (rc == HF_EMISMATCH &&
        !(err && (strstr(err->text, "dialect=") ||
                  strstr(err->text, "other than a lock"))))
        cli_say(&cli_run, "all who use a name have to agree: one of -s and -x, "
                          "or neither; --fair, --unfair, or neither");
    return cli_exit_of(rc);
}

/* The first who holds it, as far as that is known; what hf_inspect says. */
static int describe_holder(hf_client *client, const char *name, char *out,
                           size_t size)
{
    hf_info *info = NULL;
    const hf_party *p;
    int rc = hf_inspect(client, name, HF_CSTRING, &info, NULL);

    snprintf(out, size, "somebody else");
    if (rc == HF_OK && info->holders_len > 0) {
        p = info->holders;
        if (p->pid > 0)
            snprintf(out, size, "process %lld on %s%s%s%s", (long long)p->pid,
                     hf__show(p->host).text, p->label[0] ? " (" : "",
                     hf__show(p->label).text, p->label[0] ? ")" : "");
        else if (p->owner[0])
            snprintf(out, size, "%s", hf__show(p->owner).text);
    }
    hf_info_free(info);
    return rc;
}

/* How a wait that ended without the lock is told of: whoever waits is not sent
 * anything, so that the server may have gone silent meanwhile. */
static int not_acquired(hf_client *client, const struct run_options *o, int rc,
                        const hf_error *err)
{
    struct hf__shown name = hf__show(o->name);
    char who[256], words[sizeof last.words];
    int asked;

    if (patience_caught)
        return o->busy_exit;
    if (rc != HF_EBUSY && rc != HF_ETIMEDOUT)
        return failed(o, rc, err);
    if (rc == HF_EBUSY && o->quiet)
        return o->busy_exit;
    snprintf(words, sizeof words, "holdfast run: %s%s\n", err->text,
             rc == HF_EBUSY ? "" : "; the server does not say who holds it");
    leave_soon(rc == HF_EBUSY ? o->busy_exit : CLI_UNAVAILABLE, words);
    asked = describe_holder(client, o->name, who, sizeof who);
    if (asked == HF_EUNKNOWN || asked == HF_EBACKEND)
        leave(0);
    leave_soon(o->busy_exit, "");
    if (o->quiet)
        return o->busy_exit;
    if (asked == HF_ENOTSUP) { /* it may not be held at all */
        cli_say(&cli_run, "%s", err->text);
        return strstr(err->text, "; cause: ") ? CLI_UNAVAILABLE : o->busy_exit;
    }
    if (o->wait_ms > 0)
        cli_say(&cli_run, "%s: not got within %lld ms, held by %s", name.text,
                (long long)o->wait_ms, who);
    else
        cli_say(&cli_run, "%s: held by %s", name.text, who);
    return o->busy_exit;
}

static int exit_status(const struct watch *watch)
{
    int status = watch->command->status;

    if (watch->lost && !watch->only_warn)
        return CLI_LOST;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What the command finds in its environment is put there before the library has
 * threads, which may be reading it; the token's digits follow. */
static char token_variable[] = "HOLDFAST_TOKEN=00000000000000000000";

static int export_name(const struct run_options *o)
{
    if (setenv("HOLDFAST_NAME", o->name, 1) == 0 && putenv(token_variable) == 0)
        return CLI_OK;
    cli_say(&cli_run, "%s", strerror(errno));
    return CLI_OSERR;
}

static int export_token(const struct run_options *o, hf_lock *lock)
{
    uint64_t token = 0;
    int rc = hf_lock_token(lock, &token);

    if (rc != HF_OK)
        return failed(o, rc, NULL);
    snprintf(token_variable, sizeof token_variable, "HOLDFAST_TOKEN=%llu",
             (unsigned long long)token);
    return CLI_OK;
}

/* The command ended, and the release says that the hold had before. */
static int let_go(hf_lock *lock, const struct run_options *o, int status)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_release(lock, &err);

    if (rc == HF_OK)
        return status;
    failed(o, rc, &err);
    if (rc == HF_ELOST)
        return o->only_warn ? status : CLI_LOST;
    if (rc == HF_EUNKNOWN) {
        /* The server has had its time to answer: hf_close() does not wait for
         * it once more. */
        cli_say(&cli_run,
                "the lock is free when its ttl is over, at the latest");
        hear_alarm();
        leave_after(100, status, "");
    }
    return status;
}

static int run_holding(hf_lock *lock, const struct run_options *o,
                       struct command *command)
{
    struct watch watch = {.command = command,
                          .lock = lock,
                          .name = o->name,
                          .only_warn = o->only_warn,
                          .signals = -1,
                          .timer = -1};
    int status = export_token(o, lock);

    if (status == CLI_OK)
        status = watch_init(&watch);
    if (status == CLI_OK)
        status = command_start(command, lock);
    if (status == CLI_OK) {
        watch_run(&watch);
        status = exit_status(&watch);
    }
    watch_fini(&watch);
    if (watch.lost) {
        /* There is perhaps nothing to give back and nobody to ask: do not keep
         * the caller waiting for answers. */
        hf_lock_release_nowait(lock, NULL);
        guardian_stop(&command->guardian);
        _exit(status);
    }
    /* What it has left running goes on, however long the answer takes. */
    guardian_stop(&command->guardian);
    return let_go(lock, o, status);
}

static int run_client(hf_client *client, const struct run_options *o,
                      struct patience *patience, struct command *command)
{
    hf_lock_options lock_options = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock = NULL;
    int rc, status;

    lock_options.kind = o->kind;
    lock_options.fairness = o->fairness;
    rc = hf_lock_new(client, o->name, HF_CSTRING, &lock_options, &lock, &err);
    if (rc != HF_OK)
        return failed(o, rc, &err);
    rc = patience_acquire(patience, lock, &err);
    if (rc == HF_OK && !patience_caught) {
        status = run_holding(lock, o, command);
    } else {
        hear_signals(command);
        leave_soon(CLI_BUSY, "");
        status = rc == HF_OK ? let_go(lock, o, CLI_BUSY)
                             : not_acquired(client, o, rc, &err);
        /* A server that we waited for is asked once more to take us out of the
         * queue; it will probably refuse again. */
        leave_after(patience_caught && rc == HF_EBACKEND ? 100 : 1000, status,
                    "");
    }
    hf_lock_free(lock);
    return status;
}

static int run(const struct run_options *o, struct command *command)
{
    const char *url = cli_url(o->url);
    struct patience patience = {.o = o, .begun_at = cli_now_ns(CLOCK_BOOTTIME)};
    hf_client_options client_options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    int rc, status = export_name(o);

    if (status != CLI_OK)
        return status;
    client_options.ttl_ms = o->ttl_ms;
    client_options.label = o->label ? o->label : o->argv[0];
    rc = patience_open(&patience, url, &client_options, &client, &err);
    if (rc != HF_OK)
        return cli_failed(&cli_run,
                          url == getenv("HOLDFAST_URL")
                              ? "cannot open the backend of HOLDFAST_URL"
                              : "cannot open the backend",
                          rc, &err);
    status = run_client(client, o, &patience, command);
    hf_close(client);
    return status;
}

static int run_main(int argc, char **argv)
{
    struct run_options o = {.wait_ms = HF_FOREVER,
                            .kind = HF_MUTEX,
                            .mode = HF_WRITE,
                            .busy_exit = CLI_BUSY};
    struct command command = {.pid = -1};
    int status = run_parse(&o, argc, argv);

    if (status != CLI_OK)
        return status;
    if (o.help)
        return cli_help(&cli_run);
    signal(SIGCHLD, SIG_DFL); /* if it was ignored we could not wait */
    pthread_sigmask(SIG_SETMASK, NULL, &command.mask);
    command.argv = o.argv;
    /* Now, so that it has nothing of the library in it. */
    if (guardian_start(&command.guardian) < 0) {
        cli_say(&cli_run, "cannot fork: %s", strerror(errno));
        return CLI_OSERR;
    }
    terminal_open(&command.terminal);
    status = run(&o, &command);
    terminal_close(&command.terminal);
    guardian_stop(&command.guardian);
    if (patience_caught)
        die_of(patience_caught);
    return status;
}

const struct cli_verb cli_run = {"run", "takes a lock, runs a command, lets go",
                                 run_usage, run_main};
