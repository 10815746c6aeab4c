/* Threads and processes use one lock while processes are killed and stopped;
 * the checkers then judge the record. */
#include "conf.h"

#define PUPPETS 4
#define THREADS 2
#define FAULTS 4
#define TTL_MS 600

struct member {
    struct proc p;
    uint32_t owner, process;
};

struct local {
    struct conf_thread t;
    struct record_owner o;
    int rc;
};

struct storm {
    struct record *record;
    struct history history;
    char path[256];
    const char *name;
    enum hf_kind kind;
    uint32_t size;
    hf_client *c;
    uint32_t owners, processes;
    struct local local[THREADS];
    struct member member[PUPPETS];
};

static void run_local(void *arg)
{
    struct local *l = arg;

    l->rc = record_rounds(&l->o);
}

static void join(struct storm *s, struct member *m)
{
    struct proc_cmd cmd = {
        .op = PROC_LOOP, .kind = s->kind, .permits = s->size, .wait_ms = 5000};

    m->owner = cmd.owner = s->owners++;
    m->process = cmd.process = s->processes++;
    m->p = conf_puppet_of(s->name, TTL_MS, s->kind, s->size);
    snprintf(cmd.text, sizeof(cmd.text), "%s", s->path);
    assert_int_equal(proc_send(&m->p, &cmd), 0);
}

static void begin(struct storm *s, enum hf_kind kind, uint32_t size)
{
    *s = (struct storm){.name = conf_name(), .kind = kind, .size = size};
    snprintf(s->path, sizeof(s->path), "%s/%s", conf.dir, conf_name());
    s->record = record_map(s->path);
    assert_non_null(s->record);
    history_init(&s->history);
    s->c = conf_open();
    s->processes = 1; /* process 0 is this process */
    for (int i = 0; i < THREADS; i++) {
        struct local *l = &s->local[i];

        l->o = (struct record_owner){
            .record = s->record,
            .lock = conf_lock_of(s->c, s->name, kind, size, 0),
            .owner = s->owners++,
            .op_timeout_ms = conf_op_ms(),
            .kind = kind,
            .size = size};
        conf_thread_start(&l->t, run_local, l);
    }
    for (int i = 0; i < PUPPETS; i++)
        join(s, &s->member[i]);
}

/* Asserts that the owner is granted the lock several more times. */
static void works(struct storm *s, uint32_t owner)
{
    uint64_t before = record_grants(s->record, owner);

    COMES(record_grants(s->record, owner) > before + 3);
}

static void kill_one(struct storm *s, struct member *m)
{
    int64_t before;

    works(s, m->owner);
    before = wait_now();
    proc_kill(&m->p);
    record_killed(s->record, &s->history, m->process, before);
}

static void replace_one(struct storm *s, struct member *m)
{
    kill_one(s, m);
    join(s, m);
}

/* One owner takes all permits, which shows that those of dead processes have
 * become free. */
static void take_all(struct storm *s)
{
    struct record_owner o = s->local[0].o;
    hf_acquire_options all =
        ACQUIRE_OPTIONS(.permits = s->size, .wait_ms = WAIT_LONG_MS);

    o.owner = s->owners++;
    o.lock = conf_lock_of(s->c, s->name, s->kind, s->size, 0);
    OK(record_round(&o, &all));
    assert_int_equal(record_grants(s->record, o.owner), 1);
    conf_free(o.lock);
}

/* Ends the storm. One process is killed at the end, after which all others end
 * normally, and one last owner acquires the lock. */
static void end(struct storm *s)
{
    struct proc_reply r;

    for (int i = 0; i < PUPPETS; i++)
        works(s, s->member[i].owner);
    for (int i = 0; i < THREADS; i++)
        works(s, s->local[i].o.owner);
    kill_one(s, &s->member[0]);
    record_over(s->record);
    for (int i = 1; i < PUPPETS; i++) {
        conf_puppet_answer(&s->member[i].p, &r);
        OK(r.rc);
        assert_int_equal(proc_end(&s->member[i].p), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        conf_thread_join(&s->local[i].t);
        OK(s->local[i].rc);
        conf_free(s->local[i].o.lock);
    }
    take_all(s);
    conf_close(s->c);
    conf_check_record(s->record, &s->history, TTL_MS);
    record_unmap(s->record);
    history_fini(&s->history);
    unlink(s->path);
}

/* Stops a process for longer than the server keeps its hold, if holds are
 * leases. */
static void stop_one(struct storm *s, struct member *m)
{
    int64_t before;

    works(s, m->owner);
    before = wait_now();
    assert_int_equal(proc_stop(&m->p), 0);
    record_stopped(&s->history, m->process, before);
    COMES(wait_ms_since(before) > 2 * TTL_MS);
    record_continued(&s->history, m->process);
    assert_int_equal(proc_continue(&m->p), 0);
}

static void deaths(enum hf_kind kind, uint32_t size)
{
    struct storm s;

    begin(&s, kind, size);
    for (int i = 0; i < FAULTS; i++)
        replace_one(&s, &s.member[i % PUPPETS]);
    end(&s);
}

static void stops_and_deaths(enum hf_kind kind, uint32_t size)
{
    struct storm s;

    begin(&s, kind, size);
    for (int i = 0; i < FAULTS; i++) {
        stop_one(&s, &s.member[i % PUPPETS]);
        replace_one(&s, &s.member[(i + 1) % PUPPETS]);
    }
    end(&s);
}

CONF_ROW(test_storm_of_deaths, CONF_EACH, deaths(HF_MUTEX, 0));
CONF_ROW(test_storm_of_stops_and_deaths, CONF_EACH,
         stops_and_deaths(HF_MUTEX, 0));
CONF_ROW(test_storm_of_deaths_among_readers_and_writers,
         CONF_EACH | CONF_RWLOCK, deaths(HF_RWLOCK, 0));
CONF_ROW(test_storm_of_stops_and_deaths_among_readers_and_writers,
         CONF_EACH | CONF_RWLOCK, stops_and_deaths(HF_RWLOCK, 0));
CONF_ROW(test_storm_of_deaths_with_permits, CONF_EACH | CONF_SEMAPHORE,
         deaths(HF_SEMAPHORE, 4));
CONF_ROW(test_storm_of_stops_and_deaths_with_permits,
         CONF_EACH | CONF_SEMAPHORE, stops_and_deaths(HF_SEMAPHORE, 4));
