/*
 * A process that locks with holdfast. It reads one command per line and answers
 * each with one line; peers.py lists the commands.
 *
 * interop-ours URL TTL_MS
 * interop-ours region FILE TOTAL STAY_US LIMIT    enters the region once
 */
#include "region.h"

#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 8, RACERS = 64, LATCHES = 3, LATCH_MS = 20000 };

struct command {
    const char *word[WORDS]; /* "" for a missing word */
    hf_error err;
};

static hf_client *client;
static hf_lock *held;
static bool is_wanted;

static int64_t number(const struct command *command, int at)
{
    return strtoll(command->word[at], NULL, 10);
}

static void failed(const struct command *command, int rc)
{
    printf("failed %s %s\n", hf_error_name(rc), command->err.text);
}

struct kind {
    const char *name;
    enum hf_kind kind;
    enum hf_fairness fairness;
    /* first: the mode of every fourth acquire; other: that of the others. */
    enum hf_mode first, other;
    bool is_shared; /* whether a hold in HF_WRITE admits
                       other holders */
};

static const struct kind kinds[] = {
    {"mutex", HF_MUTEX, HF_FAIR_DEFAULT, HF_WRITE, HF_WRITE, false},
    {"unfair", HF_MUTEX, HF_UNFAIR, HF_WRITE, HF_WRITE, false},
    {"fair", HF_MUTEX, HF_FAIR, HF_WRITE, HF_WRITE, false},
    {"fenced", HF_MUTEX, HF_UNFAIR, HF_WRITE, HF_WRITE, false},
    {"rwlock", HF_RWLOCK, HF_FAIR_DEFAULT, HF_WRITE, HF_READ, false},
    {"read", HF_RWLOCK, HF_FAIR_DEFAULT, HF_READ, HF_READ, false},
    {"write", HF_RWLOCK, HF_FAIR_DEFAULT, HF_WRITE, HF_WRITE, false},
    {"semaphore", HF_SEMAPHORE, HF_FAIR_DEFAULT, HF_WRITE, HF_WRITE, true},
    {"latch", HF_LATCH, HF_FAIR_DEFAULT, HF_WRITE, HF_WRITE, true},
    {NULL, 0, 0, 0, 0, false},
};

/* Returns the kind that the command names. For an unknown kind it returns the
 * entry whose name is NULL, with which every command fails with EINVAL. */
static const struct kind *kind_of(const struct command *command)
{
    const struct kind *kind = kinds;

    while (kind->name && strcmp(kind->name, command->word[1]) != 0)
        kind++;
    return kind;
}

static int make(struct command *command, uint32_t permits, uint32_t handoff,
                hf_lock **out)
{
    const struct kind *kind = kind_of(command);
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    opt.kind = kind->kind;
    opt.fairness = kind->fairness;
    opt.permits = kind->kind == HF_SEMAPHORE ? permits : 0;
    opt.handoff = handoff;
    return hf_lock_new(client, command->word[2], HF_CSTRING, &opt, out,
                       &command->err);
}

/* Acquires the lock and enters the region once. Returns 1 to enter again, 0
 * after enough entries, or an error code. */
static int visit(struct command *command, hf_lock *lock, bool is_first,
                 struct region *region, int64_t *longest_us)
{
    const struct kind *kind = kind_of(command);
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int64_t before = region_now_us(), waited_us;
    uint64_t token = 0;
    bool more;
    int rc;

    opt.mode = is_first ? kind->first : kind->other;
    rc = hf_lock_acquire(lock, &opt, &command->err);
    if (rc != HF_OK)
        return rc;
    waited_us = region_now_us() - before;
    if (waited_us > *longest_us)
        *longest_us = waited_us;
    hf_lock_token(lock, &token);
    more = kind->is_shared || opt.mode == HF_READ
               ? region_shared(region)
               : region_exclusive(region, token);
    rc = hf_lock_release(lock, &command->err);
    return rc == HF_OK ? more : rc;
}

static void print_region(const struct region *region, int64_t longest_us)
{
    printf("done entered=%llu overlaps=%llu stale=%llu longest_us=%lld\n",
           (unsigned long long)region->entered,
           (unsigned long long)region->overlaps,
           (unsigned long long)region->stale, (long long)longest_us);
}

static int contend_in(struct command *command, struct region *region)
{
    hf_lock *lock = NULL;
    int64_t longest_us = 0;
    int rc = make(command, (uint32_t)region->limit, 0, &lock);

    if (rc == HF_OK)
        rc = 1;
    for (int i = 0; rc == 1; i++)
        rc = visit(command, lock, i % 4 == 0, region, &longest_us);
    if (rc == HF_OK)
        print_region(region, longest_us);
    hf_lock_free(lock);
    return rc;
}

static int contend(struct command *command)
{
    struct region region = {.total = number(command, 4),
                            .stay_us = number(command, 5),
                            .limit = number(command, 6)};
    int rc;

    if (!region_open(&region, command->word[3]))
        return HF_EINVAL;
    rc = contend_in(command, &region);
    region_close(&region);
    return rc;
}

struct racer {
    pthread_t thread;
    struct command command;
    int64_t end_us;
    uint64_t pairs;
    int rc;
};

static void *run_racer(void *arg)
{
    struct racer *racer = arg;
    hf_lock *lock = NULL;
    int rc =
        make(&racer->command, 0, (uint32_t)number(&racer->command, 5), &lock);

    while (rc == HF_OK && region_now_us() < racer->end_us) {
        rc = hf_lock_acquire(lock, NULL, &racer->command.err);
        if (rc == HF_OK)
            rc = hf_lock_release(lock, &racer->command.err);
        racer->pairs += rc == HF_OK;
    }
    hf_lock_free(lock);
    racer->rc = rc;
    return NULL;
}

static int race(struct command *command)
{
    static struct racer racer[RACERS];
    int n = (int)number(command, 3), started = 0, rc = HF_OK;
    int64_t begin = region_now_us();
    uint64_t pairs = 0;

    while (started < n && started < RACERS) {
        struct racer *one = &racer[started];

        *one = (struct racer){.command = *command,
                              .end_us = begin + number(command, 4) * 1000};
        if (pthread_create(&one->thread, NULL, run_racer, one) != 0)
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(racer[i].thread, NULL);
        pairs += racer[i].pairs;
        if (racer[i].rc != HF_OK) {
            rc = racer[i].rc;
            command->err = racer[i].command.err;
        }
    }
    if (started < n)
        return HF_ENOMEM;
    if (rc == HF_OK)
        printf("done pairs=%llu us=%lld\n", (unsigned long long)pairs,
               (long long)(region_now_us() - begin));
    return rc;
}

static void nap(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Acquires and releases the lock once. Counts the pair if the lock was granted
 * before end_us. */
static int turn(struct command *command, hf_lock *lock, int64_t end_us,
                FILE *waits, uint64_t *pairs)
{
    int64_t before = region_now_us(), now;
    int rc = hf_lock_acquire(lock, NULL, &command->err);

    if (rc != HF_OK)
        return rc;
    now = region_now_us();
    fprintf(waits, " %lld", (long long)(now - before));
    *pairs += now < end_us;
    nap(number(command, 4));
    rc = hf_lock_release(lock, &command->err);
    nap(number(command, 5));
    return rc;
}

static int turns(struct command *command)
{
    int64_t begin = region_now_us(), end = begin + number(command, 3) * 1000;
    char *text = NULL;
    size_t size = 0;
    FILE *waits = open_memstream(&text, &size);
    uint64_t pairs = 0;
    hf_lock *lock = NULL;
    int rc = waits ? make(command, 0, 0, &lock) : HF_ENOMEM;

    while (rc == HF_OK && region_now_us() < end)
        rc = turn(command, lock, end, waits, &pairs);
    hf_lock_free(lock);
    if (waits)
        fclose(waits);
    if (rc == HF_OK)
        printf("done pairs=%llu us=%lld waits%s\n", (unsigned long long)pairs,
               (long long)(end - begin), text);
    free(text);
    return rc;
}

static int hold(struct command *command)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int64_t before = region_now_us();
    uint64_t token = 0;
    hf_lock *lock = NULL;
    int rc = make(command, (uint32_t)number(command, 5), 0, &lock);

    opt.mode = kind_of(command)->first;
    opt.lease_ms = number(command, 3);
    opt.wait_ms = number(command, 4);
    if (rc == HF_OK)
        rc = hf_lock_acquire(lock, &opt, &command->err);
    if (rc == HF_OK) {
        held = lock;
        hf_lock_token(lock, &token);
        printf("held token=%llu waited_us=%lld\n", (unsigned long long)token,
               (long long)(region_now_us() - before));
        return HF_OK;
    }
    hf_lock_free(lock);
    if (rc != HF_EBUSY && rc != HF_ETIMEDOUT)
        return rc;
    puts("busy");
    return HF_OK;
}

static int drop(struct command *command)
{
    int rc = hf_lock_release(held, &command->err);

    hf_lock_free(held);
    held = NULL;
    if (rc == HF_OK)
        puts("dropped");
    return rc;
}

static int check(struct command *command)
{
    (void)command;
    puts(hf_error_name(hf_lock_check(held)));
    return HF_OK;
}

static int force(struct command *command)
{
    int rc = hf_break(client, command->word[2], HF_CSTRING, &command->err);

    if (rc == HF_OK || rc == HF_ENOTOWNER)
        puts(rc == HF_OK ? "forced" : "free");
    return rc == HF_ENOTOWNER ? HF_OK : rc;
}

static int ask(struct command *command)
{
    int rc = hf_ask(client, command->word[2], HF_CSTRING, &command->err);

    if (rc == HF_OK)
        puts("asked");
    return rc;
}

static void note_event(void *arg, const hf_event *event)
{
    *(bool *)arg |= event->type == HF_EVENT_WANTED;
}

/* Prints whether another client has asked for the held lock, or asks for it
 * within the given time. */
static int wanted(struct command *command)
{
    int64_t end = region_now_us() + number(command, 1) * 1000;
    struct pollfd pfd = {hf_client_fd(client), POLLIN, 0};

    do {
        poll(&pfd, 1, 1);
        hf_client_dispatch(client);
    } while (!is_wanted && region_now_us() < end);
    puts(is_wanted ? "wanted" : "quiet");
    is_wanted = false;
    return HF_OK;
}

static int who(struct command *command)
{
    hf_info *info = NULL;
    int rc =
        hf_inspect(client, command->word[2], HF_CSTRING, &info, &command->err);

    if (rc != HF_OK)
        return rc;
    printf("who holders=%zu waiters=%zu host=%s owner=%s\n", info->holders_len,
           info->waiters_len, info->holders_len ? info->holders[0].host : "-",
           info->holders_len ? info->holders[0].owner : "-");
    hf_info_free(info);
    return HF_OK;
}

static int caps(struct command *command)
{
    int bits = hf_client_caps(client, kind_of(command)->kind);

    if (bits < 0)
        return bits;
    printf("caps %d\n", bits);
    return HF_OK;
}

static int latch_verb(struct command *command, hf_latch *latch)
{
    const char *verb = command->word[1];
    hf_error *err = &command->err;
    uint64_t count = 0;
    int rc;

    if (strcmp(verb, "set") == 0) {
        rc = hf_latch_set(latch, (uint64_t)number(command, 3), err);
        if (rc == HF_OK || rc == HF_EBUSY)
            puts(rc == HF_OK ? "set" : "busy");
        return rc == HF_EBUSY ? HF_OK : rc;
    }
    if (strcmp(verb, "down") == 0) {
        rc = hf_latch_down(latch, NULL, err);
        if (rc == HF_OK)
            puts("down");
        return rc;
    }
    if (strcmp(verb, "get") == 0) {
        rc = hf_latch_get(latch, &count, err);
        if (rc == HF_OK)
            printf("count %llu\n", (unsigned long long)count);
        return rc;
    }
    rc = hf_latch_wait(latch, number(command, 3), NULL, err);
    if (rc == HF_OK || rc == HF_ETIMEDOUT)
        puts(rc == HF_OK ? "zero" : "timeout");
    return rc == HF_ETIMEDOUT ? HF_OK : rc;
}

static int latch(struct command *command)
{
    hf_latch *one = NULL;
    int rc =
        hf_latch_new(client, command->word[2], HF_CSTRING, &one, &command->err);

    if (rc == HF_OK)
        rc = latch_verb(command, one);
    hf_latch_free(one);
    return rc;
}

/* Runs one round. The latch of the next round is set before the latch of this
 * round can reach 0. Three latches take turns, so that no process still waits
 * for the latch that is being set. */
static int latch_round(struct command *command, hf_latch **turn,
                       struct region *region, int64_t round)
{
    int64_t rounds = number(command, 3), count = number(command, 6);
    hf_error *err = &command->err;
    int rc = HF_OK;

    if (round + 1 < rounds && (round + 1) % count == number(command, 5))
        rc = hf_latch_set(turn[(round + 1) % LATCHES], (uint64_t)count, err);
    if (rc != HF_OK)
        return rc;
    region_down(region);
    rc = hf_latch_down(turn[round % LATCHES], NULL, err);
    if (rc == HF_OK)
        rc = hf_latch_wait(turn[round % LATCHES], LATCH_MS, NULL, err);
    if (rc == HF_OK)
        region_pass(region, round);
    return rc;
}

static int latch_rounds(struct command *command, hf_latch **turn,
                        struct region *region)
{
    int64_t rounds = number(command, 3), longest_us = 0, before, took_us;
    int rc = HF_OK;

    for (int64_t i = 0; i < rounds && rc == HF_OK; i++) {
        before = region_now_us();
        rc = latch_round(command, turn, region, i);
        took_us = region_now_us() - before;
        longest_us = took_us > longest_us ? took_us : longest_us;
    }
    if (rc == HF_OK)
        print_region(region, longest_us);
    return rc;
}

static int rounds(struct command *command)
{
    struct region region = {.stay_us = number(command, 4),
                            .limit = number(command, 7)};
    hf_latch *turn[LATCHES] = {NULL};
    char name[128];
    int rc = region_open(&region, command->word[2]) ? HF_OK : HF_EINVAL;

    for (int i = 0; i < LATCHES && rc == HF_OK; i++) {
        snprintf(name, sizeof(name), "%s-%d", command->word[1], i);
        rc = hf_latch_new(client, name, HF_CSTRING, &turn[i], &command->err);
    }
    if (rc == HF_OK)
        rc = latch_rounds(command, turn, &region);
    for (int i = 0; i < LATCHES; i++)
        hf_latch_free(turn[i]);
    region_close(&region);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(struct command *); /* returns 0 if it has printed the answer */
} verbs[] = {
    {"contend", contend}, {"race", race},     {"hold", hold},
    {"drop", drop},       {"check", check},   {"force", force},
    {"caps", caps},       {"latch", latch},   {"rounds", rounds},
    {"ask", ask},         {"wanted", wanted}, {"who", who},
    {"turns", turns},
};

static void obey(char *line)
{
    struct command command = {.err = HF_ERROR_INIT};
    char *rest = NULL, *word = strtok_r(line, " \n", &rest);
    int rc = HF_EINVAL;

    for (int i = 0; i < WORDS; i++) {
        command.word[i] = word ? word : "";
        word = word ? strtok_r(NULL, " \n", &rest) : NULL;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, command.word[0]) == 0)
            rc = verbs[i].run(&command);
    if (rc != HF_OK)
        failed(&command, rc);
    fflush(stdout);
}

/* Enters the region once, for peers that lock by running a command under the
 * lock. */
static int visit_region(char **argv)
{
    struct region region = {.total = strtoll(argv[3], NULL, 10),
                            .stay_us = strtoll(argv[4], NULL, 10),
                            .limit = strtoll(argv[5], NULL, 10)};

    if (!region_open(&region, argv[2]))
        return 1;
    region_exclusive(&region, 0);
    print_region(&region, 0);
    return 0;
}

int main(int argc, char **argv)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    char line[512];

    if (argc == 6 && strcmp(argv[1], "region") == 0)
        return visit_region(argv);
    if (argc != 3)
        return 2;
    opt.ttl_ms = strtoll(argv[2], NULL, 10);
    opt.on_event = note_event;
    opt.event_arg = &is_wanted;
    if (hf_open(argv[1], &opt, &client, &err) != HF_OK) {
        printf("failed %s\n", err.text);
        return 1;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        obey(line);
    hf_close(client);
    return 0;
}
