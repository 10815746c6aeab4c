/* The live line on a terminal, and ^C: whatever waits in the runner calls
 * lab_tick() several times a second. */
#include "frame.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TICK_NS = 100000000 };

static struct {
    bool live;  /* standard error is a terminal */
    bool shown; /* the line is on the screen */
    char text[160];
    int64_t began, drawn;
} line;

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

void progress_init(struct lab *lab)
{
    line.live = isatty(STDERR_FILENO);
    line.began = lab_now();
    lab_catch(on_signal);
    signal(SIGPIPE, SIG_IGN); /* a server that was killed; our reader */
    death_in_runner(lab);
}

void progress_hide_after_fork(void)
{
    line.live = line.shown = false;
}

void progress_clear(void)
{
    if (line.shown)
        fputs("\r\033[K", stderr);
    line.shown = false;
}

static void draw(struct lab *lab)
{
    char text[sizeof line.text + 64];
    struct winsize size = {.ws_col = 80};

    ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    line.drawn = lab_now();
    snprintf(text, sizeof text, "%4.0f s  %s: %s",
             (double)(line.drawn - line.began) / 1e9,
             lab->scenario ? lab->scenario->name : "lab", line.text);
    fprintf(stderr, "\r%.*s\033[K", size.ws_col > 1 ? size.ws_col - 1 : 79,
            text);
    line.shown = true;
}

void lab_progress(struct lab *lab, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(line.text, sizeof line.text, fmt, args);
    va_end(args);
    line.drawn = 0;
    lab_tick(lab);
}

void lab_tick(struct lab *lab)
{
    int number = interrupted;

    if (number) {
        interrupted = 0;
        death_by_signal(number);
    }
    if (line.live && lab_now() - line.drawn >= TICK_NS)
        draw(lab);
}
