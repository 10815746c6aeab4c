/* The history that real processes write, in the form that the checker needs. */
#include "../../lib/record.h"
#include "../backends/shm/shm_fixture.h"
#include "../cases.h"

/* By the killer's clock, a process was killed before its last record, while it
 * held the lock. In the history the death must come after that record. */
CASE_HERE(test_death_is_after_last_words)
{
    hf_client *c = open_client(p->url);
    char path[sizeof(p->dir) + 16];
    struct record_owner o = {.lock = make_lock(c, "x", true), .process = 1};
    hf_acquire_options forever = HF_ACQUIRE_OPTIONS_INIT;
    struct history h;

    snprintf(path, sizeof(path), "%s/record", p->dir);
    o.record = record_map(path);
    assert_non_null(o.record);
    history_init(&h);
    OK(record_round(&o, &forever));
    record_killed(o.record, &h, o.process, 0);
    record_gather(o.record, &h);
    assert_true(h.len > 4);
    assert_int_equal(h.event[h.len - 1].kind, HISTORY_END);
    assert_int_equal(h.event[h.len - 2].kind, HISTORY_KILLED);
    assert_int_equal(h.event[h.len - 3].kind, HISTORY_RELEASED);
    history_fini(&h);
    record_unmap(o.record);
    unlink(path);
}

CASES_MAIN(NULL, NULL);
