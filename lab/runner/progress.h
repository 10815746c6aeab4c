/*
 * The live line on a terminal, and the signals that end the runner (^C). Every
 * wait in the runner calls lab_tick() several times a second.
 */
#ifndef HF_LAB_PROGRESS_H
#define HF_LAB_PROGRESS_H

struct lab;

/* Sets the text of the live line on a terminal: what is being tried now. */
void lab_progress(struct lab *lab, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Call it regularly while the runner waits: it updates the line. */
void lab_tick(struct lab *lab);

/* Call it in the runner before any wait. It makes the runner ignore SIGPIPE,
 * and makes the signals of lab_catch() end the runner at the next
 * lab_tick(). */
void progress_init(void);
/* Removes the line from the terminal. */
void progress_clear(void);
/* Call it in a child, which must not draw the line. */
void progress_hide_after_fork(void);

/* Sets the handler of SIGINT, SIGTERM and SIGHUP. A signal that is ignored
 * stays ignored. */
void lab_catch(void (*handler)(int number));

#endif
