/*
 * Ends a wait from a signal handler: the program leaves the queue and continues
 * normally. Here Ctrl-C ends the wait, or an alarm after a second.
 *
 *     cancel [URL]
 */
#include <holdfast.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static hf_cancel cancel = HF_CANCEL_INIT;

static void on_signal(int number)
{
    (void)number;
    hf_cancel_fire(&cancel); /* async-signal-safe */
}

static int wait_for(hf_lock *lock, hf_error *err)
{
    struct sigaction action = {.sa_handler = on_signal};
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT; /* no time limit */
    int rc;

    opt.cancel = &cancel;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    puts("waiting; Ctrl-C ends it");
    rc = hf_lock_acquire(lock, &opt, err);
    /* The wait has ended, so a signal has nothing to cancel. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    hf_lock_options by_handle = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_lock *other = NULL, *lock = NULL;
    int rc = hf_open(url, NULL, &client, &err);

    /* Another handle, which is another owner, holds the lock. */
    by_handle.flags = HF_OWNER_HANDLE;
    if (!rc)
        rc = hf_lock_new(client, "example", HF_CSTRING, &by_handle, &other,
                         &err);
    if (!rc)
        rc = hf_lock_acquire(other, NULL, &err);
    if (!rc)
        rc = hf_lock_new(client, "example", HF_CSTRING, NULL, &lock, &err);
    if (!rc)
        rc = wait_for(lock, &err);
    fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_lock_free(lock);
    if (other)
        hf_lock_release(other, NULL);
    hf_lock_free(other);
    hf_close(client);
    return rc == HF_ECANCELED ? 0 : 1;
}
