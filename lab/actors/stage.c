/* An actor reports a step with a message of fixed size. The runner answers with
 * one byte, which lets the actor continue. */
#include "stage.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/memory.h"
#include "../runner/progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STEP = 48,
    SPANS = 32,
    MARKS = 32,
    STUCK_MS = 120000, /* an actor that takes longer has a defect */
    POLL_MS = 50,
};

/* What an actor records, in memory that it shares with the runner. */
struct script {
    struct die_words words;
    int64_t values[ACTOR_VALUES];
    unsigned spans_len, marks_len;
    struct lab_span spans[SPANS]; /* `to' is 0 while the span lasts */
    struct lab_mark marks[MARKS];
};

struct actor {
    struct stage *stage;
    struct script *script;
    char name[24];
    pid_t pid; /* 0 once it has been reaped */
    int fd;
    bool pauses;
    int64_t stopped_at, gone_at;
};

struct stage {
    struct lab *lab;
    struct actor actors[STAGE_ACTORS];
    unsigned actors_len;
    struct script *scripts; /* one for each actor */
    int64_t stood;          /* longest delay of a poll(), in ns */
};

/* Set only in an actor. The functions from here to actor_report() run in
 * actors; those after it, except stage_play_out(), run in the runner.
 * stage_copy() and stage_add_mark() run in both. */
static struct actor *self;

static void stage_copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

void actor_step(const char *step)
{
    char name[STEP] = "", go;

    stage_copy(name, sizeof name, step);
    if (send(self->fd, name, sizeof name, MSG_NOSIGNAL) != sizeof name ||
        recv(self->fd, &go, 1, 0) != 1)
        _exit(1); /* the runner has ended */
}

static void stage_begin_span(enum lab_span_kind kind, const char *label)
{
    struct script *script = self->script;
    struct lab_span *span;

    if (script->spans_len == SPANS)
        return;
    span = &script->spans[script->spans_len];
    stage_copy(span->lane, sizeof span->lane, self->name);
    stage_copy(span->label, sizeof span->label, label);
    span->kind = kind;
    span->from = lab_now();
    script->spans_len++;
}

void actor_holds(const char *label)
{
    stage_begin_span(LAB_HOLDS, label);
}

void actor_shares(const char *label)
{
    stage_begin_span(LAB_SHARES, label);
}

void actor_waits(const char *label)
{
    stage_begin_span(LAB_WAITS, label);
}

void actor_let_go_at(int64_t at)
{
    struct script *script = self->script;

    for (unsigned i = script->spans_len; i-- > 0;) {
        struct lab_span *span = &script->spans[i];

        if (span->to == 0) {
            span->to = at > span->from ? at : span->from;
            return;
        }
    }
}

void actor_lets_go(void)
{
    actor_let_go_at(lab_now());
}

static void stage_add_mark(struct actor *actor, bool bad, const char *label)
{
    struct script *script = actor->script;
    struct lab_mark *mark;

    if (script->marks_len == MARKS)
        return;
    mark = &script->marks[script->marks_len];
    stage_copy(mark->lane, sizeof mark->lane, actor->name);
    stage_copy(mark->label, sizeof mark->label, label);
    mark->bad = bad;
    mark->at = lab_now();
    script->marks_len++;
}

void actor_mark(bool bad, const char *fmt, ...)
{
    char label[60];
    va_list args;

    va_start(args, fmt);
    vsnprintf(label, sizeof label, fmt, args);
    va_end(args);
    stage_add_mark(self, bad, label);
}

void actor_report(unsigned i, int64_t value)
{
    self->script->values[i] = value;
}

struct stage *stage_new(struct lab *lab)
{
    struct stage *stage = lab_alloc(sizeof *stage);

    stage->lab = lab;
    stage->scripts = lab_share(STAGE_ACTORS * sizeof *stage->scripts);
    return stage;
}

_Noreturn static void stage_play_out(struct actor *actor, pid_t runner,
                                     void (*play)(void *arg), void *arg)
{
    /* Closes the runner's sockets of the earlier actors, which this actor has
     * inherited. */
    for (unsigned i = 0; i + 1 < actor->stage->actors_len; i++)
        if (actor->stage->actors[i].fd >= 0)
            close(actor->stage->actors[i].fd);
    die_in_child(&actor->script->words, runner);
    progress_hide_after_fork();
    self = actor;
    play(arg);
    _exit(0);
}

struct actor *stage_enter(struct stage *stage, const char *name,
                          void (*play)(void *arg), void *arg)
{
    struct actor *actor = &stage->actors[stage->actors_len];
    pid_t runner = getpid();
    int fds[2];

    if (stage->actors_len == STAGE_ACTORS)
        lab_die(CLI_FAILED, "a defect: too many actors");
    actor->stage = stage;
    actor->script = &stage->scripts[stage->actors_len++];
    stage_copy(actor->name, sizeof actor->name, name);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        lab_die(CLI_OSERR, "socketpair: %s", strerror(errno));
    fflush(stdout);
    actor->pid = fork();
    if (actor->pid < 0)
        lab_die(CLI_OSERR, "cannot fork: %s", strerror(errno));
    actor->fd = fds[actor->pid == 0];
    close(fds[actor->pid != 0]);
    if (actor->pid == 0)
        stage_play_out(actor, runner, play, arg);
    return actor;
}

/* Reaps an actor that has ended. Dies if the actor failed, or if its end was
 * not expected. */
static void stage_reap(struct actor *actor, bool is_expected)
{
    int status = 0;

    while (waitpid(actor->pid, &status, 0) < 0 && errno == EINTR) {
    }
    actor->pid = 0;
    actor->gone_at = lab_now();
    actor->pauses = false;
    close(actor->fd);
    actor->fd = -1;
    if (!is_expected || atomic_load(&actor->script->words.status))
        die_of_child(&actor->script->words, actor->name, status);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        die_of_child(&actor->script->words, actor->name, status);
}

/* Calls poll(). stage->stood becomes the longest delay of a return so far. */
static int stage_poll_actors(struct stage *stage, struct pollfd *polled,
                             int64_t ms)
{
    int64_t due = lab_now() + ms * 1000000;
    int ready = poll(polled, 1, (int)ms);
    int64_t late = lab_now() - due;

    if (late > stage->stood)
        stage->stood = late;
    return ready;
}

int64_t stage_stood_ms(const struct stage *stage)
{
    return stage->stood / 1000000;
}

/* Dies if any actor has failed, because the actor that the scenario waits for
 * might then never reach its step. actor_end() reaps an actor that has ended
 * normally. */
static void stage_reap_failed(struct stage *stage)
{
    for (unsigned i = 0; i < stage->actors_len; i++) {
        struct actor *actor = &stage->actors[i];
        siginfo_t end = {.si_pid = 0};

        if (actor->pid &&
            !waitid(P_PID, (id_t)actor->pid, &end,
                    WEXITED | WNOHANG | WNOWAIT) &&
            end.si_pid && (end.si_code != CLD_EXITED || end.si_status))
            stage_reap(actor, false);
    }
}

/* Waits for a message from the actor. Returns 1 if a message has arrived, 0 if
 * the actor has ended, or -1 if the time has passed. */
static int stage_read_ready(struct actor *actor, char step[STEP], int64_t ms)
{
    struct pollfd polled = {actor->fd, POLLIN, 0};
    int64_t until = lab_now() + ms * 1000000;
    ssize_t len;

    while (stage_poll_actors(actor->stage, &polled,
                             ms < POLL_MS ? ms : POLL_MS) <= 0) {
        lab_tick(actor->stage->lab);
        stage_reap_failed(actor->stage);
        if (lab_now() >= until)
            return -1;
    }
    len = recv(actor->fd, step, STEP, 0);
    step[STEP - 1] = '\0';
    return len == STEP;
}

bool actor_comes(struct actor *actor, const char *step, int64_t ms)
{
    char at[STEP];
    int heard;

    if (actor->pauses)
        lab_die(CLI_FAILED, "a defect: %s pauses before %s", actor->name, step);
    heard = stage_read_ready(actor, at, ms);
    if (heard == 0)
        stage_reap(actor, false);
    if (heard == 1 && strcmp(at, step) != 0)
        lab_die(CLI_FAILED, "a defect: %s is at \"%s\", not at \"%s\"",
                actor->name, at, step);
    actor->pauses = heard == 1;
    return actor->pauses;
}

void actor_until(struct actor *actor, const char *step)
{
    if (!actor_comes(actor, step, STUCK_MS))
        lab_die(CLI_FAILED, "%s did not reach the step \"%s\"", actor->name,
                step);
}

void actor_go(struct actor *actor)
{
    if (!actor->pauses)
        lab_die(CLI_FAILED, "a defect: %s does not pause", actor->name);
    actor->pauses = false;
    if (send(actor->fd, "", 1, MSG_NOSIGNAL) != 1)
        stage_reap(actor, false);
}

void actor_end(struct actor *actor)
{
    char at[STEP];
    int heard;

    if (actor->pauses)
        actor_go(actor);
    heard = stage_read_ready(actor, at, STUCK_MS);
    if (heard < 0)
        lab_die(CLI_FAILED, "%s did not end in time", actor->name);
    if (heard == 1)
        lab_die(CLI_FAILED, "a defect: %s is at \"%s\", not at its end",
                actor->name, at);
    stage_reap(actor, true);
}

void actor_kill(struct actor *actor)
{
    if (!actor->pid)
        return;
    /* The end is recorded before the kill, because another actor may get the
     * lock before this actor has been reaped. */
    actor->gone_at = lab_now();
    kill(actor->pid, SIGKILL);
    while (waitpid(actor->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    actor->pid = 0;
    close(actor->fd);
    actor->fd = -1;
    stage_add_mark(actor, true, "killed");
}

void actor_stop(struct actor *actor)
{
    int status = 0;

    kill(actor->pid, SIGSTOP);
    while (waitpid(actor->pid, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(status))
        die_of_child(&actor->script->words, actor->name, status);
    actor->stopped_at = lab_now();
}

void actor_continue(struct actor *actor)
{
    struct script *script = actor->script;

    /* The runner may write to the actor's script, because the actor is
     * stopped. */
    if (script->spans_len < SPANS) {
        struct lab_span *span = &script->spans[script->spans_len++];

        stage_copy(span->lane, sizeof span->lane, actor->name);
        stage_copy(span->label, sizeof span->label, "stopped");
        span->kind = LAB_STOPPED;
        span->from = actor->stopped_at;
        span->to = lab_now();
    }
    kill(actor->pid, SIGCONT);
}

int64_t actor_value(const struct actor *actor, unsigned i)
{
    return actor->script->values[i];
}

static void stage_hand_over(const struct actor *actor, struct lab_row *row)
{
    struct script *script = actor->script;
    int64_t end = actor->gone_at ? actor->gone_at : lab_now();

    for (unsigned i = 0; i < script->spans_len; i++) {
        if (script->spans[i].to == 0)
            script->spans[i].to = end;
        lab_row_span(row, &script->spans[i]);
    }
    for (unsigned i = 0; i < script->marks_len; i++)
        lab_row_mark(row, &script->marks[i]);
}

void stage_close(struct stage *stage, struct lab_row *row)
{
    for (unsigned i = 0; i < stage->actors_len; i++) {
        struct actor *actor = &stage->actors[i];

        if (actor->pid) {
            kill(actor->pid, SIGKILL);
            while (waitpid(actor->pid, NULL, 0) < 0 && errno == EINTR) {
            }
            close(actor->fd);
        }
        if (row)
            stage_hand_over(actor, row);
    }
    lab_unshare(stage->scripts, STAGE_ACTORS * sizeof *stage->scripts);
    free(stage);
}

void stage_mark(struct lab_row *row, const char *server, const char *label)
{
    stage_mark_at(row, server, label, lab_now());
}

void stage_mark_at(struct lab_row *row, const char *server, const char *label,
                   int64_t at)
{
    struct lab_mark mark = {.at = at, .bad = true};

    snprintf(mark.lane, sizeof mark.lane, "%s", server);
    snprintf(mark.label, sizeof mark.label, "%s", label);
    lab_row_mark(row, &mark);
}

void stage_rest(struct lab *lab, int64_t ms)
{
    int64_t until = lab_now() + ms * 1000000;

    while (lab_now() < until) {
        lab_tick(lab);
        lab_sleep_ms(ms < 50 ? ms : 50);
    }
}
