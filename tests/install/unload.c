/* A plug-in that uses holdfast is unloaded while a thread that has held a lock
 * still runs. When that thread exits, the code that the library registered for
 * a thread's exit must still be mapped. Usage: unload LIBRARY URL */
#include <holdfast.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t used, closed;
static const char *url;
static int (*open_client)(const char *, const hf_client_options *, hf_client **,
                          hf_error *);
static int (*close_client)(hf_client *);
static int (*new_lock)(hf_client *, const void *, size_t,
                       const hf_lock_options *, hf_lock **, hf_error *);
static int (*free_lock)(hf_lock *);
static int (*try_lock)(hf_lock *, hf_error *);
static int (*release_lock)(hf_lock *, hf_error *);

static int use(hf_error *err)
{
    hf_client *client = NULL;
    hf_lock *lock = NULL;

    if (open_client(url, NULL, &client, err) ||
        new_lock(client, "unloaded", HF_CSTRING, NULL, &lock, err) ||
        try_lock(lock, err) || release_lock(lock, err))
        return -1;
    return free_lock(lock) || close_client(client) ? -1 : 0;
}

static void *thread_main(void *arg)
{
    hf_error err = HF_ERROR_INIT;

    if (use(&err))
        printf("%s\n", err.text);
    else
        *(int *)arg = 1;
    sem_post(&used);
    sem_wait(&closed);
    return NULL; /* the thread's exit calls into the library */
}

static int find_all(void *library)
{
    *(void **)&open_client = dlsym(library, "hf_open");
    *(void **)&close_client = dlsym(library, "hf_close");
    *(void **)&new_lock = dlsym(library, "hf_lock_new");
    *(void **)&free_lock = dlsym(library, "hf_lock_free");
    *(void **)&try_lock = dlsym(library, "hf_lock_try");
    *(void **)&release_lock = dlsym(library, "hf_lock_release");
    return open_client && close_client && new_lock && free_lock && try_lock &&
           release_lock;
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    pthread_t thread;
    int held = 0;

    if (!library || !find_all(library)) {
        printf("usage: unload LIBRARY URL\n");
        return 64;
    }
    url = argv[2];
    sem_init(&used, 0, 0);
    sem_init(&closed, 0, 0);
    if (pthread_create(&thread, NULL, thread_main, &held))
        return 1;
    sem_wait(&used);
    dlclose(library);
    sem_post(&closed);
    pthread_join(thread, NULL);
    printf("%s\n", held ? "outlived" : "not held");
    return !held;
}
