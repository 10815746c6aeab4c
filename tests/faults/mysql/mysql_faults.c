/* mysql_faults [GROUP [PATTERN]] */
#include "mysql_faults.h"

#include "../../lib/diagnosis.h"

#include <stdio.h>

struct my_server my_one;
const char *const my_tables[MY_TABLES] = {
    "holdfast_locks", "holdfast_holds", "holdfast_requests", "holdfast_values"};

int my_start(void)
{
    return my_server_start(&my_one);
}

void my_end(void)
{
    my_server_end(&my_one);
}

static int begin(struct world *w)
{
    w->process = &my_one.process;
    w->port = my_one.port;
    w->user = MY_SERVER_USER ":" MY_SERVER_SECRET "@";
    w->path = "/" MY_SERVER_DB;
    snprintf(w->near_url, sizeof(w->near_url), "%s", my_one.url);
    return 0;
}

static int take_away(struct world *w)
{
    my_server_empty(&my_one);
    return 0;
}

static int mend(struct world *w)
{
    if (my_one.pid > 0 ? server_continue(w->process) : my_server_again(&my_one))
        return -1;
    my_do("set global read_only=0");
    my_do("set global max_connections=400");
    my_do("set global max_user_connections=390");
    my_do("grant " MY_SERVER_GRANTS ", create on " MY_SERVER_DB
          ".* to " MY_SERVER_USER);
    return take_away(w);
}

static long left(struct world *w)
{
    return my_server_left(&my_one, false);
}

static void print_left(struct world *w)
{
    my_server_left(&my_one, true);
}

static long holds(struct world *w)
{
    return (long)my_number(
        "select count(*) from holdfast_locks where name='n' and "
        "lease_until > utc_timestamp(6)");
}

static bool is_waited_for(struct world *w)
{
    return my_server_waiting(&my_one) == 1;
}

static bool takes_value(struct world *w, const char *key, const char *value)
{
    bool same = strcmp(my_server_text(&my_one,
                                      "select value from holdfast_values where "
                                      "name='%s'",
                                      key),
                       value) == 0;

    my_do("delete from holdfast_values where name='%s'", key);
    return same;
}

const struct any_faults any_faults = {
    .op_ms = 600,
    .ttl_ms = 5500,
    .tick_ms = 500,
    .rounds = 200,
    .cut_most = 120,
    .cut_step = 7,
    .cut_op_ms = 3000,
    .request = "hfb:",
    .holds = holds,
    .take_away = take_away,
    .takes_value = takes_value,
};

static void read_only(struct world *w)
{
    my_do("set global read_only=1");
}

static void writable(struct world *w)
{
    my_do("set global read_only=0");
}

/* Grants or revokes rights on each table: `what` is the beginning of the
 * statement, `how` is "to" or "from". Rights on the whole database would not
 * do: the server checks them only when a connection selects the database. It
 * checks rights on tables for every statement. */
static void grant(const char *what, const char *how)
{
    for (size_t i = 0; i < MY_TABLES; i++)
        my_do("%s on " MY_SERVER_DB ".%s %s " MY_SERVER_USER, what,
              my_tables[i], how);
}

static void only_tables(struct world *w)
{
    world_ends(w, my_open(w, my_one.url)); /* creates the tables */
    my_do("revoke " MY_SERVER_GRANTS ", create on " MY_SERVER_DB
          ".* from " MY_SERVER_USER);
    grant("grant " MY_SERVER_GRANTS, "to");
}

static void whole_database(struct world *w)
{
    grant("revoke " MY_SERVER_GRANTS, "from");
    my_do("grant " MY_SERVER_GRANTS ", create on " MY_SERVER_DB
          ".* to " MY_SERVER_USER);
}

static void read_rights(struct world *w)
{
    grant("revoke insert, update, delete", "from");
}

static void all_rights(struct world *w)
{
    grant("grant " MY_SERVER_GRANTS, "to");
}

const struct any_refusal any_refusals[] = {
    {"read-only server", HF_EBACKEND, "read-only", read_only, writable, true,
     true, true, NULL, NULL, false, false},
    {"no right to write", HF_EAUTH, "denied", read_rights, all_rights, true,
     true, true, only_tables, whole_database, false, false},
    {0},
};
const int64_t any_refused_ttl_ms = 6000;

const char *my_url(const char *options)
{
    static char url[256];

    my_server_url_at(my_one.port, options, url, sizeof(url));
    return url;
}

hf_client *my_open(struct world *w, const char *url)
{
    return world_open(w, url, NULL);
}

static void has_word(const char *text, const char *word)
{
    if (word && !strstr(text, word))
        fail_msg("\"%s\" has no \"%s\"", text, word);
}

void my_open_refused(struct world *w, const char *url, int code,
                     const char *first, const char *second, bool may_pass)
{
    hf_client *c = NULL;
    int rc = hf_open(url, NULL, &c, &w->err);

    if (rc != code)
        fail_msg("%s instead of %s: %s", hf_error_name(rc), hf_error_name(code),
                 rc ? w->err.text : "");
    assert_null(c);
    has_word(w->err.text, first);
    has_word(w->err.text, second);
    assert_int_equal(w->err.may_pass, may_pass);
    assert_null(strstr(w->err.text, MY_SERVER_SECRET));
}

hf_lock *my_lock_as(struct world *w, hf_client *c, const char *name,
                    enum hf_kind kind)
{
    return world_handle(
        w, c, name,
        KIND(kind, .permits = kind == HF_SEMAPHORE ? 1 : 0, .label = MY_LABEL));
}

hf_lock *my_lock(struct world *w, hf_client *c, const char *name)
{
    return my_lock_as(w, c, name, HF_MUTEX);
}

void my_drop_tables(void)
{
    for (int i = 0; i < MY_TABLES; i++)
        my_do("drop table if exists %s", my_tables[i]);
}

long my_thread(bool waits, int n)
{
    long long id = my_server_number(
        &my_one,
        "select id from information_schema.processlist where "
        "user='" MY_SERVER_USER "' and %scoalesce(state, '') in "
        "('User lock', 'User sleep') order by id limit %d,1",
        waits ? "" : "not ", n);

    return id < 0 ? 0 : (long)id;
}

void my_has_waiters(long n)
{
    if (!WAIT_FOR(my_server_waiting(&my_one) == n))
        fail_msg("%ld wait, not %ld", my_server_waiting(&my_one), n);
}

void my_diagnosis_says(hf_client *c, enum hf_level level, const char *word)
{
    diagnosis_says(c, level, "waiting", word);
}

static uint32_t granted; /* atomic */

static void *wait_for_it(void *arg)
{
    struct my_waiter *t = arg;

    t->rc =
        hf_lock_acquire(t->lock, HOW(WAIT_MS, .cancel = &t->cancel), &t->err);
    if (!t->rc)
        t->place = __atomic_add_fetch(&granted, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&t->back, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&t->done, __ATOMIC_ACQUIRE))
        wait_tick();
    if (!t->rc)
        t->release_rc = hf_lock_release(t->lock, NULL);
    return NULL;
}

void my_waiter_start(struct my_waiter *t, hf_client *c, hf_lock *lock)
{
    *t =
        (struct my_waiter){.client = c, .lock = lock, .cancel = HF_CANCEL_INIT};
    OK(pthread_create(&t->thread, NULL, wait_for_it, t));
}

bool my_waiter_back(struct my_waiter *t)
{
    return __atomic_load_n(&t->back, __ATOMIC_ACQUIRE);
}

void my_waiter_end(struct my_waiter *t)
{
    __atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);
    pthread_join(t->thread, NULL);
}

static const struct world_server mysql = {
    "mysql", my_start, my_end, begin, mend, left, print_left, is_waited_for};

int main(int argc, char **argv)
{
    return world_main(argc, argv, &mysql);
}
