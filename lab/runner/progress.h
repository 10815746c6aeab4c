/*
 * The live line on a terminal, and the signals that end the runner (^C).
 * Whatever waits in the runner calls lab_tick() several times a second.
 */
#ifndef HF_LAB_PROGRESS_H
#define HF_LAB_PROGRESS_H

struct lab;

/* The live line on a terminal: what is being tried now. */
void lab_progress(struct lab *lab, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* To be called now and then by what waits in the runner: moves the line on. */
void lab_tick(struct lab *lab);

/* In the runner, before anything else waits: SIGPIPE is ignored, and the
 * signals of lab_catch() end the runner at the next lab_tick(). */
void progress_init(void);
void progress_clear(void);
void progress_hide_after_fork(void); /* a child draws nothing */

/* INT, TERM and HUP, unless they are ignored. */
void lab_catch(void (*handler)(int number));

#endif
