/* Opens a URL with an installed library, acquires a lock, and prints "held" or
 * what went wrong. Built as C and as C++. */
#include <holdfast.h>
#include <stdio.h>

static int once(hf_client *client)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *lock;
    int inside = 0;

    if (hf_lock_new(client, "installed", HF_CSTRING, &opt, &lock, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    HF_SYNCHRONIZED(lock)
    {
        inside = 1;
    }
    printf("%s\n", inside && !hf_synchronized_result() ? "held" : "not held");
    return hf_lock_free(lock);
}

int main(int argc, char **argv)
{
    hf_error err = HF_ERROR_INIT;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *client;
    int rc;

    opt.connect_timeout_ms = 1000;
    if (hf_open(argc > 1 ? argv[1] : "shm:", &opt, &client, &err)) {
        printf("%s: %s\n", hf_error_name(err.code), err.text);
        return 1;
    }
    rc = once(client);
    return hf_close(client) ? 1 : rc;
}
