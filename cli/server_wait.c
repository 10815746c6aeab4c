#include "server_wait.h"

#include "base/text.h"
#include "shared/message.h"
#include "shared/values.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 2000 };

static hf_cancel cancel = HF_CANCEL_INIT;
volatile sig_atomic_t server_wait_caught;

static void server_wait_on_signal(int number)
{
    server_wait_caught = number;
    hf_cancel_fire(&cancel);
}

/* Returns how many milliseconds of the time limit are left, or a negative
 * number if there is no limit. */
static int64_t server_wait_time_left(const struct server_wait *p)
{
    int64_t most = p->only_try ? 0 : p->options->wait_ms, left = most;

    if (left > 0)
        left -= (cli_now_ns(CLOCK_BOOTTIME) - p->begun_at) / 1000000;
    return left > 0 || most < 0 ? left : 0;
}

/* Returns between half of the time and all of it, so that processes that
 * wait for the same server do not all connect at the same moment. */
static int64_t server_wait_with_jitter(int64_t ms)
{
    uint16_t chance = 0;

    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0) {
        /* Without a random number there is no jitter. */
    }
    return ms - ms / 2 * chance / UINT16_MAX;
}

/* Sleeps. A signal ends the sleep, even if it arrives after server_wait_caught
 * was read. */
static void server_wait_nap(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    sigset_t block, before;

    server_wait_signals(&block);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    if (!server_wait_caught)
        ppoll(NULL, 0, &time, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Pauses after a failure, longer each time. Returns whether the failure may
 * pass and there is time to try again. If a signal ends the wait, or the pause
 * uses up the rest of the time, returns false; the caller then returns the
 * failure. */
static bool server_wait_try_again(struct server_wait *p, int rc,
                                  const hf_error *err)
{
    int64_t left = server_wait_time_left(p), pause;

    if (rc != HF_EBACKEND || !err->may_pass || left == 0 || server_wait_caught)
        return false;
    if (!p->said.text[0] && !p->options->quiet) {
        cli_say(p->options->verb, "%s: waiting for the server: %s",
                hf__show(p->options->names[0]).text, err->text);
        p->said = *err;
    }
    p->pause_ms = p->pause_ms ? p->pause_ms * 2 : PAUSE_MIN_MS;
    if (p->pause_ms > PAUSE_MAX_MS)
        p->pause_ms = PAUSE_MAX_MS;
    pause = server_wait_with_jitter(p->pause_ms);
    server_wait_nap(left < 0 || pause < left ? pause : left);
    return !server_wait_caught && server_wait_time_left(p) != 0;
}

bool server_wait_has_reported(const struct server_wait *p, const hf_error *err)
{
    return p->said.text[0] && p->options->wait_ms > 0 &&
           strcmp(p->said.text, err->text) == 0;
}

/* Returns the time limit of hf_open() in milliseconds: what is left of the time
 * of -w, and 800 ms more. (hf_lock_acquire(), too, may exceed its time limit by
 * up to a second.) Returns 0, which selects the limit of the URL, if there is
 * no -w, if its time is too long for hf_open(), or if the time is 0 (-n), in
 * which no connection could be made. */
static int64_t server_wait_open_timeout(const struct server_wait *p)
{
    int64_t most = server_wait_time_left(p) + 800;

    return p->options->wait_ms > 0 && most <= INT32_MAX ? most : 0;
}

int server_wait_open(struct server_wait *p, const char *url,
                     hf_client_options *options, hf_client **out, hf_error *err)
{
    int rc;

    do {
        options->open_timeout_ms = server_wait_open_timeout(p);
        rc = hf_open(url, options, out, err);
    } while (rc != HF_OK && server_wait_try_again(p, rc, err));
    return rc;
}

static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
enum { ENDING = sizeof ending / sizeof *ending };

static const int others[] = {SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP};

static void server_wait_add_unless_ignored(sigset_t *set, const int *numbers,
                                           size_t n)
{
    struct sigaction now;

    for (size_t i = 0; i < n; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(set, numbers[i]);
}

void server_wait_signals(sigset_t *set)
{
    sigemptyset(set);
    /* A signal that was ignored when holdfast was started (nohup) is left out:
     * it remains ignored, in the command too. */
    server_wait_add_unless_ignored(set, ending, ENDING);
    server_wait_add_unless_ignored(set, others, sizeof others / sizeof *others);
    sigaddset(set, SIGCHLD);
    /* SIGTTIN and SIGTTOU are not passed on to the command. They are blocked so
     * that they do not stop this process when it uses the terminal. */
    sigaddset(set, SIGTTIN);
    sigaddset(set, SIGTTOU);
}

static int acquire_server_wait(struct server_wait *p,
                               const struct held_locks *held, hf_error *err)
{
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;

    how.mode = p->options->mode;
    how.permits = p->options->permits;
    how.cancel = &cancel;
    how.wait_ms = server_wait_time_left(p);
    if (held->len == 1)
        return hf_lock_acquire(held->parts[0].lock, &how, err);
    return hf_lock_acquire_all(held->parts, held->len, &how, err);
}

int server_wait_acquire(struct server_wait *p, const struct held_locks *held,
                        struct wait_message *message, hf_error *err)
{
    struct sigaction catch = {.sa_handler = server_wait_on_signal},
                     before[ENDING];
    sigset_t block;
    int rc;

    server_wait_signals(&block);
    for (int i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &catch, NULL);
    }
    do {
        wait_message_begin(message);
        rc = acquire_server_wait(p, held, err);
        wait_message_pause(message);
    } while (rc != HF_OK && server_wait_try_again(p, rc, err));
    wait_message_end(message);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    return rc;
}
