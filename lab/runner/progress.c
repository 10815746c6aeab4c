#include "progress.h"

#include "clock.h"
#include "die.h"
#include "lab_state.h"
#include "scenario.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TICK_NS = 100000000 };

static struct {
    bool live;  /* standard error is a terminal */
    bool shown; /* the line is visible */
    char text[160];
    int64_t began, drawn;
} live_line;

void lab_catch(void (*handler)(int number))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = handler}, old;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 &&
            old.sa_handler != SIG_IGN) /* ignored by nohup, or in a background
                                          job */
            sigaction(numbers[i], &action, NULL);
}

static volatile sig_atomic_t interrupted;

static void progress_on_signal(int number)
{
    interrupted = number;
}

void progress_init(void)
{
    live_line.live = isatty(STDERR_FILENO);
    live_line.began = lab_now();
    lab_catch(progress_on_signal);
    signal(SIGPIPE, SIG_IGN); /* a server, or the reader of our output, may
                                 die */
}

void progress_hide_after_fork(void)
{
    live_line.live = live_line.shown = false;
}

void progress_clear(void)
{
    if (live_line.shown)
        fputs("\r\033[K", stderr);
    live_line.shown = false;
}

static void progress_draw(struct lab *lab)
{
    char text[sizeof live_line.text + 64];
    struct winsize size = {.ws_col = 80};

    ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    live_line.drawn = lab_now();
    snprintf(text, sizeof text, "%4.0f s  %s: %s",
             (double)(live_line.drawn - live_line.began) / 1e9,
             lab->scenario ? lab->scenario->name : "lab", live_line.text);
    fprintf(stderr, "\r%.*s\033[K", size.ws_col > 1 ? size.ws_col - 1 : 79,
            text);
    live_line.shown = true;
}

void lab_progress(struct lab *lab, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(live_line.text, sizeof live_line.text, fmt, args);
    va_end(args);
    live_line.drawn = 0;
    lab_tick(lab);
}

void lab_tick(struct lab *lab)
{
    int number = interrupted;

    if (number) {
        interrupted = 0;
        die_by_signal(number);
    }
    if (live_line.live && lab_now() - live_line.drawn >= TICK_NS)
        progress_draw(lab);
}
