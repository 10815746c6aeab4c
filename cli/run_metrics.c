/*
 * run --metrics FILE: the client's counters for a collector of text files
 * (node_exporter). A reader sees the whole old text or the whole new text: the
 * text is written to a temporary file in the same directory, which is then
 * renamed. The name of the temporary file does not end in ".prom", so the
 * collector ignores it.
 *
 * The main thread reads the counters. Another thread writes them, because a
 * write blocks if the disk or network file system hangs.
 */
#include "run_metrics.h"

#include "base/text.h"
#include "shared/message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Returns the counters as text, which the caller frees, or NULL with errno. */
static char *run_metrics_text_of(const struct run_metrics *m, size_t *len)
{
    hf_metrics numbers = HF_METRICS_INIT;
    hf_label lock = {"lock", m->names};
    hf_series series = {&numbers, &lock, 1};
    char *text = NULL;
    int size;

    errno = EINVAL;
    if (hf_client_metrics(m->client, &numbers, NULL) != HF_OK)
        return NULL;
    size = hf_metrics_text(&series, 1, NULL, 0, NULL);
    if (size < 0)
        return NULL;
    text = malloc((size_t)size + 1);
    if (text) {
        hf_metrics_text(&series, 1, text, (size_t)size + 1, NULL);
        *len = (size_t)size;
    }
    return text;
}

/* Writes all of the text. If the file would grow beyond its limit (ulimit -f),
 * the write fails and also raises SIGXFSZ. That signal is blocked and consumed
 * here, so that it does not end the process. */
static bool run_metrics_write_all(int fd, const char *text, size_t len)
{
    struct timespec now = {0, 0};
    sigset_t size, before;
    ssize_t n = 0;
    int why;

    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size, &before);
    while (len > 0 && (n = write(fd, text, len)) > 0) {
        text += n;
        len -= (size_t)n;
    }
    why = n == 0 ? ENOSPC : errno;
    if (len > 0)
        sigtimedwait(&size, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return len == 0;
}

/* Replaces the file. On failure, returns false with errno and leaves no
 * temporary file behind. */
static bool run_metrics_replace(const char *file, const char *text, size_t len)
{
    char other[PATH_MAX];
    int fd, why;

    if ((size_t)snprintf(other, sizeof other, "%s.%ld.tmp", file,
                         (long)getpid()) >= sizeof other) {
        errno = ENAMETOOLONG;
        return false;
    }
    unlink(other); /* left by a killed process with the same pid */
    fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    if (!run_metrics_write_all(fd, text, len)) {
        why = errno;
        close(fd);
    } else if (close(fd) == 0 && rename(other, file) == 0) {
        return true;
    } else {
        why = errno;
    }
    unlink(other);
    errno = why;
    return false;
}

enum { FINISH_S = 1 };

static void *run_metrics_write_all_texts(void *arg)
{
    struct run_metrics *m = arg;

    pthread_mutex_lock(&m->mu);
    for (;;) {
        char *text = m->text;
        size_t len = m->len;
        bool is_written;

        if (!text) {
            pthread_cond_wait(&m->changed, &m->mu);
            continue;
        }
        m->text = NULL;
        m->is_writing = true;
        pthread_mutex_unlock(&m->mu);
        is_written = run_metrics_replace(m->file, text, len);
        if (!is_written && !m->said) {
            cli_say(m->verb, "cannot write the metrics to %s: %s",
                    hf__show(m->file).text, strerror(errno));
            m->said = true;
        }
        free(text);
        pthread_mutex_lock(&m->mu);
        m->is_writing = false;
        pthread_cond_broadcast(&m->changed);
    }
    return NULL;
}

/* Starts the thread, with all signals blocked because the other threads handle
 * them. Returns 0 or an error number. */
static int run_metrics_start(struct run_metrics *m)
{
    pthread_condattr_t clock;
    sigset_t all, before;
    pthread_t thread;
    int rc;

    pthread_mutex_init(&m->mu, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, NULL, run_metrics_write_all_texts, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pthread_detach(thread);
    return rc;
}

void run_metrics_write(struct run_metrics *m)
{
    size_t len = 0;
    char *text;
    int rc = 0;

    if (!m->file || (!m->started && m->said))
        return;
    text = run_metrics_text_of(m, &len);
    if (!text)
        rc = errno;
    else if (!m->started)
        rc = run_metrics_start(m);
    if (rc != 0) {
        cli_say(m->verb, "cannot write the metrics to %s: %s",
                hf__show(m->file).text, strerror(rc));
        m->said = true;
        free(text);
        return;
    }
    m->started = true;
    pthread_mutex_lock(&m->mu);
    free(m->text); /* an older text that the thread has not written */
    m->text = text;
    m->len = len;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mu);
}

void run_metrics_finish(struct run_metrics *m)
{
    struct timespec until;
    int rc = 0;

    if (!m->started)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FINISH_S;
    pthread_mutex_lock(&m->mu);
    while ((m->text || m->is_writing) && rc == 0)
        rc = pthread_cond_timedwait(&m->changed, &m->mu, &until);
    pthread_mutex_unlock(&m->mu);
}
